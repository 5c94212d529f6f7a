// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a user's incident tells of other users. Needs root, perl, Xvfb and xclock.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that fails")]

mod support;

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::{Recording, diagnose, meta, records, tipme};
use tipme_bench::Session;
use tipme_record::Kind;
use tipme_record::incident::{Incident, Section};
use tipme_record::records::{Message, Tty};

/// Users without an account.
const ANN: u32 = 4242;
const BOB: u32 = 4343;

/// Keys that are typed into a terminal.
const KEYS: usize = 13;

/// Types into a terminal that shows nothing and where a program of a new session reads, then stays.
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

/// A program that is killed with the value.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn record(display: &str) -> Recording {
    let dir = tempfile::TempDir::new().unwrap();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let users = ["--allow-user", "4242", "--allow-user", "4343"];
    Recording::start_in(dir, &[&["--display", display, "--memory", "16M"][..], &users].concat())
}

/// What this user gets.
fn mark(recording: &Recording, uid: u32) -> (PathBuf, Incident) {
    let mut command = tipme();
    command.args(["mark", "--state-dir"]).arg(recording.dir.path()).uid(uid).gid(uid);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end());
    let incident = tipme_store::read(&path).unwrap();
    (path, incident)
}

/// A program of this user that says when it is ready.
fn start(uid: u32, program: &str, arguments: &[&str]) -> Program {
    let mut command = Command::new(program);
    let mut child =
        command.args(arguments).env("SCRIPT", TYPE).uid(uid).gid(uid).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    Program(child)
}

fn keys_into_terminals_of(incident: &Incident, leader: &str) -> usize {
    let sessions = processes(leader);
    let typed = records(incident, Section::Rare).filter(|entry| entry.kind == Kind::Tty);
    let typed = typed.filter_map(|entry| Tty::read(entry.bytes));
    typed.filter(|tty| tty.stage == 0 && sessions.contains(&tty.session.0)).count()
}

/// The processes with this word in their command line, as /proc has them.
fn processes(word: &str) -> Vec<u32> {
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok());
    let line = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    pids.filter(|pid| line(*pid).contains(word)).collect()
}

fn tells(incident: &Incident, word: &str) -> bool {
    let found = |bytes: &[u8]| bytes.windows(word.len()).any(|window| window == word.as_bytes());
    [Section::Cmdlines, Section::Rare, Section::Exits].into_iter().any(|section| found(incident.bytes(section)))
}

#[test]
fn keys_into_a_terminal_and_command_lines_are_told_to_whose_they_are() {
    let recording = record("none");
    let _typing = start(BOB, "perl", &["-e", "eval $ENV{SCRIPT}", "a-terminal-of-bob"]);
    for (uid, keys, told) in [(ANN, 0, false), (BOB, KEYS, true), (0, KEYS, true)] {
        let (path, incident) = mark(&recording, uid);
        assert_eq!(keys_into_terminals_of(&incident, "a-terminal-of-bob"), keys, "user {uid}");
        assert_eq!(tells(&incident, "a-terminal-of-bob"), told, "user {uid}");
        let withheld = meta(&incident).withheld;
        let said = diagnose(&path, &[]).1;
        // Other terminals of this machine may be in use.
        assert!(uid != ANN || withheld.inputs >= KEYS as u64, "{withheld:?}");
        assert_eq!(said.contains("Note: Not shown: "), uid != 0, "{said}");
        assert!(uid != ANN || said.contains("input and command lines of ") && said.contains(" other user"), "{said}");
    }
}

#[test]
fn command_lines_of_processes_that_ended_are_told_to_whose_they_are() {
    let recording = record("none");
    for (uid, word) in [(ANN, "a-word-of-ann"), (BOB, "a-word-of-bob"), (0, "a-word-of-root")] {
        drop(start(uid, "perl", &["-e", "$| = 1; print qq(ready\n)", word]));
    }
    std::thread::sleep(Duration::from_millis(300));
    let (_, incident) = mark(&recording, ANN);
    let told = ["a-word-of-ann", "a-word-of-bob", "a-word-of-root"].map(|word| tells(&incident, word));
    assert_eq!(told, [true, false, true]);
}

#[test]
fn messages_are_told_to_whose_client_it_is_though_root_runs_the_server() {
    let session = Session::start(tipme_bench::session::Options::default()).unwrap();
    let recording = record(&session.display_name());
    let cookie = recording.dir.path().join("cookie");
    std::fs::copy(session.folder().join("authority"), &cookie).unwrap();
    std::fs::set_permissions(&cookie, Permissions::from_mode(0o644)).unwrap();
    let clock = |uid: u32| {
        let mut command = Command::new("xclock");
        command.args(["-update", "1", "-display", &session.display_name()]).env("XAUTHORITY", &cookie);
        Program(command.uid(uid).gid(uid).spawn().unwrap())
    };
    let (ann, bob) = (clock(ANN), clock(BOB));
    std::thread::sleep(Duration::from_secs(4));
    let (_, incident) = mark(&recording, ANN);
    let messages = records(&incident, Section::Rare).filter(|entry| entry.kind == Kind::Message);
    let messages: Vec<Message> = messages.filter_map(|entry| Message::read(entry.bytes)).collect();
    let of = |program: &Program| {
        let pid = program.0.id();
        messages.iter().filter(move |message| message.client.0 == pid)
    };
    let directions: std::collections::BTreeSet<u8> = of(&ann).map(|message| message.direction).collect();
    assert_eq!(directions, (0..4).collect(), "both sides of the own connection");
    assert_eq!(of(&bob).count(), 0);
    assert!(meta(&incident).withheld.messages > 0);
}
