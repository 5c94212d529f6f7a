// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data of other users in a user's incident. Needs root, perl, Xvfb and xclock.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use support::{
    Recording, Running, contains, diagnose, mark_as, meta, open_folder, records_of, session,
};
use tipme_bench::PrivateSession;
use tipme_record::incident::{Incident, Section};
use tipme_record::records::{Message, Tty};
use tipme_record::{Nanos, RecordKind};

/// Users without an account.
const ANN: u32 = 4242;
const BOB: u32 = 4343;

/// Number of keys typed into a terminal.
const KEYS: usize = 13;

/// Types into a terminal without echo, in which a program of a new session reads, then stays.
const TYPE: &str = r#"
    use POSIX; syscall 157, 1, 9;
    open my $master, "+<", "/dev/ptmx" or die; my $number = pack "i", 0;
    ioctl $master, 0x40045431, $number or die; ioctl $master, 0x80045430, $number or die;
    my $path = "/dev/pts/" . unpack "i", $number;
    pipe my $ready, my $tell;
    if (!fork) {
        syscall 157, 1, 9; POSIX::setsid; open my $own, "+<", $path or die; ioctl $own, 0x540e, 0;
        my $modes = POSIX::Termios->new; $modes->getattr(fileno $own);
        $modes->setlflag(0); $modes->setattr(fileno $own, TCSANOW);
        syswrite $tell, "1"; sysread $own, my $key, 1 while 1;
    }
    sysread $ready, my $one, 1; for (1 .. 13) { syswrite $master, "k"; select undef, undef, undef, 0.02 }
    $| = 1; print "ready\n"; sleep 600;
"#;

fn record(display: &str) -> Recording {
    let options =
        ["--display", display, "--memory", "16M", "--allow-user", "4242", "--allow-user", "4343"];
    Recording::start_in(open_folder(), &options)
}

/// Marks as this user; returns the incident.
fn mark(recording: &Recording, uid: u32) -> (PathBuf, Incident) {
    let path = mark_as(uid, recording.dir.path());
    let incident = tipme_store::read(&path).unwrap();
    (path, incident)
}

/// Starts a program of this user that reports when it is ready.
fn start(uid: u32, program: &str, arguments: &[&str]) -> Running {
    let mut command = Command::new(program);
    command.args(arguments).env("SCRIPT", TYPE).uid(uid).gid(uid);
    Running::start_saying(&mut command).0
}

fn keys_into_terminals_of(incident: &Incident, leader: &str) -> usize {
    let sessions = processes(leader);
    let typed = records_of(incident, Section::Rare, RecordKind::Tty, Tty::read);
    typed.filter(|tty| tty.stage == 0 && sessions.contains(&tty.session.0)).count()
}

/// Returns the processes with this word in their command line, according to `/proc`.
fn processes(word: &str) -> Vec<u32> {
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.contains(word))
    })
    .collect()
}

fn has_word(incident: &Incident, word: &str) -> bool {
    [Section::Cmdlines, Section::Rare, Section::Exits]
        .into_iter()
        .any(|section| contains(incident.bytes(section), word.as_bytes()))
}

#[test]
fn terminal_input_and_command_lines_are_for_their_user_only() {
    let recording = record("none");
    let _typing = start(BOB, "perl", &["-e", "eval $ENV{SCRIPT}", "a-terminal-of-bob"]);
    for (uid, keys, is_shown) in [(ANN, 0, false), (BOB, KEYS, true), (0, KEYS, true)] {
        let (path, incident) = mark(&recording, uid);
        assert_eq!(keys_into_terminals_of(&incident, "a-terminal-of-bob"), keys, "user {uid}");
        assert_eq!(has_word(&incident, "a-terminal-of-bob"), is_shown, "user {uid}");
        let withheld = meta(&incident).withheld;
        let said = diagnose(&path, &[]).1;
        // Other terminals of this machine may be in use.
        assert!(uid != ANN || withheld.inputs >= KEYS as u64, "{withheld:?}");
        assert_eq!(said.contains("Note: Not shown: "), uid != 0, "{said}");
        assert!(
            uid != ANN
                || said.contains("input and command lines of ") && said.contains(" other user"),
            "{said}"
        );
    }
}

#[test]
fn command_lines_of_ended_processes_are_for_their_user_only() {
    let recording = record("none");
    for (uid, word) in [(ANN, "a-word-of-ann"), (BOB, "a-word-of-bob"), (0, "a-word-of-root")] {
        drop(start(uid, "perl", &["-e", "$| = 1; print qq(ready\n)", word]));
    }
    std::thread::sleep(Duration::from_millis(300));
    let (_, incident) = mark(&recording, ANN);
    let words =
        ["a-word-of-ann", "a-word-of-bob", "a-word-of-root"].map(|word| has_word(&incident, word));
    assert_eq!(words, [true, false, true]);
}

/// Copies the display's cookie to a file that everyone may read.
fn cookie_for_all(session: &PrivateSession, recording: &Recording) -> PathBuf {
    let cookie = recording.dir.path().join("cookie");
    std::fs::copy(session.folder().join("authority"), &cookie).unwrap();
    std::fs::set_permissions(&cookie, Permissions::from_mode(0o644)).unwrap();
    cookie
}

/// Starts a client of this user that draws each second.
fn clock(session: &PrivateSession, cookie: &Path, uid: u32) -> Running {
    let mut command = Command::new("xclock");
    command.args(["-update", "1", "-display", &session.display_name()]).env("XAUTHORITY", cookie);
    Running::start(command.uid(uid).gid(uid))
}

/// Same with the PID of an earlier process: other processes may start in between, so it takes some
/// attempts.
fn clock_numbered(session: &PrivateSession, cookie: &Path, uid: u32, number: u32) -> Running {
    for _ in 0..100 {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).unwrap();
        let clock = clock(session, cookie, uid);
        if clock.0.id() == number {
            return clock;
        }
    }
    panic!("the number {number} was not had again");
}

/// Returns the times of a client's messages in an incident of one user.
fn times_of(recording: &Recording, uid: u32, client: u32) -> Vec<Nanos> {
    let (_, incident) = mark(recording, uid);
    let messages = records_of(&incident, Section::Rare, RecordKind::Message, Message::read);
    messages.filter(|message| message.client.0 == client).map(|message| message.head.ts).collect()
}

#[test]
fn users_of_a_reused_pid_get_their_own_messages() {
    let session = session();
    let recording = record(&session.display_name());
    let cookie = cookie_for_all(&session, &recording);
    let bob = clock(&session, &cookie, BOB);
    std::thread::sleep(Duration::from_secs(2));
    let number = bob.0.id();
    drop(bob);
    let between = tipme_desktop::clock::now();
    let _ann = clock_numbered(&session, &cookie, ANN, number);
    std::thread::sleep(Duration::from_secs(2));
    let (of_ann, of_bob) = (times_of(&recording, ANN, number), times_of(&recording, BOB, number));
    assert!(!of_ann.is_empty() && of_ann.iter().all(|at| *at > between), "{of_ann:?}, {between:?}");
    assert!(!of_bob.is_empty() && of_bob.iter().all(|at| *at < between), "{of_bob:?}, {between:?}");
}

#[test]
fn messages_at_roots_server_are_for_the_clients_user_only() {
    let session = session();
    let recording = record(&session.display_name());
    let cookie = cookie_for_all(&session, &recording);
    let (ann, bob) = (clock(&session, &cookie, ANN), clock(&session, &cookie, BOB));
    std::thread::sleep(Duration::from_secs(4));
    let (_, incident) = mark(&recording, ANN);
    let messages: Vec<Message> =
        records_of(&incident, Section::Rare, RecordKind::Message, Message::read).collect();
    let of_ann = messages.iter().filter(|message| message.client.0 == ann.id());
    let directions: BTreeSet<u8> = of_ann.map(|message| message.direction).collect();
    assert_eq!(directions, (0..4).collect(), "both sides of the own connection");
    assert!(messages.iter().all(|message| message.client.0 != bob.id()));
    assert!(meta(&incident).withheld.messages > 0);
}

/// Returns the mapped address ranges of a process.
fn places(pid: u32) -> Vec<std::ops::Range<u64>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let ranges = maps.lines().filter_map(|line| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
    });
    ranges.collect()
}

#[test]
fn no_address_in_roots_processes_is_in_the_incident() {
    let recording = record("none");
    let computing = start(0, "perl", &["-e", "$| = 1; print qq(ready\n); 1 while syscall 39"]);
    let waiting = start(
        0,
        "perl",
        &["-e", "$| = 1; print qq(ready\n); my $x = pack 'QQ', 600, 0; syscall 35, $x, 0"],
    );
    std::thread::sleep(Duration::from_secs(2));
    let (_, incident) = mark(&recording, ANN);
    for process in [computing, waiting] {
        let places = places(process.0.id());
        for section in
            [Section::Rare, Section::Tasks, Section::Stacks, Section::Symbols, Section::Locks]
        {
            let words =
                incident.bytes(section).as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
            let found = words.filter(|word| places.iter().any(|place| place.contains(word)));
            assert_eq!(found.count(), 0, "{section:?}");
        }
    }
}
