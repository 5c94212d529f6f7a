// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keyboard focus on a compositor, derived from its socket traffic: equal to sway's own state,
//! private, and followed by the manager. Needs root, sway, foot and perl.

use rustix::event::{PollFd, PollFlags, poll};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use support::compositor::{Compositor, DISPLAY, USER};
use support::managed::{Managed, forget_nice_value, nice};
use support::{Recording, Running, open_folder, tipme, tipme_as};
use tempfile::TempDir;
use tipme_analysis::focus_changes;
use tipme_bench::until;
use tipme_control::{Client, Focused, Following, RecorderRequest, RecorderResponse};

/// Other users than the compositor's: one that may mark, and one that may not.
const OTHER: u32 = 4343;
const NOBODY: u32 = 4444;

/// Timeout that only a failing test reaches.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Number of focus changes; `TIPME_FOCUS_CHANGES` overrides it.
const CHANGES: usize = 40;

/// Follows the focus like a program of another user, and prints what it receives.
const FOLLOW: &str = r#"use IO::Socket::UNIX; $| = 1; $SIG{PIPE} = "IGNORE";
    my $s = IO::Socket::UNIX->new($ARGV[0]) or die $!;
    print $s "\"follow\"\n"; $s->flush; print while <$s>;"#;

/// Starts a recorder that two users may call.
fn recorder() -> Recording {
    recorder_in(open_folder())
}

fn recorder_in(dir: TempDir) -> Recording {
    let [user, other] = [USER, OTHER].map(|user| user.to_string());
    Recording::start_in(dir, &["--display", DISPLAY, "--allow-user", &user, "--allow-user", &other])
}

/// Makes sway focus a window of a process.
fn give(compositor: &Compositor, pid: u32) {
    let mut command = compositor.command("swaymsg");
    command.arg("-s").arg(compositor.control().unwrap()).arg(format!("[pid={pid}] focus"));
    assert!(command.stdout(Stdio::null()).status().unwrap().success());
}

/// Returns the process of the focused window according to sway.
fn focused(compositor: &Compositor) -> Option<u64> {
    fn of(node: &Value) -> Option<u64> {
        let children =
            ["nodes", "floating_nodes"].iter().filter_map(|name| node[name].as_array()).flatten();
        node["pid"]
            .as_u64()
            .filter(|_| node["focused"] == true)
            .or_else(|| children.filter_map(of).next())
    }
    of(&serde_json::from_str(&compositor.tree()).unwrap())
}

fn follow(recording: &Recording) -> Following {
    Following::begin(Client::new(recording.dir.path()), &RecorderRequest::Follow).unwrap()
}

fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Receives the focus changes of a compositor, each with its arrival time; root receives all.
fn hear(mut following: Following, compositor: &Compositor) -> Receiver<(Focused, u64)> {
    let ((heard, news), sway) = (channel(), compositor.sway.0.id());
    std::thread::spawn(move || {
        // As in the manager.
        tipme_confine::be_urgent();
        loop {
            // Ends with the recorder, or with the test.
            let Ok(news) = following.news() else { return };
            let at = now_ns();
            for focused in news.into_iter().filter_map(|one| focus_of(one, sway)) {
                if heard.send((focused, at)).is_err() {
                    return;
                }
            }
            poll(&mut [PollFd::from_borrowed_fd(following.fd(), PollFlags::IN)], None).unwrap();
        }
    });
    news
}

fn focus_of(news: RecorderResponse, server: u32) -> Option<Focused> {
    match news {
        RecorderResponse::Focus(focused) => {
            Some(focused).filter(|focused| focused.server == server)
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the time slice of a process or thread from `/proc/PID/sched`; `None` if the kernel does
/// not show it.
fn slice(of: &str) -> Option<String> {
    let table = std::fs::read_to_string(format!("/proc/{of}/sched")).unwrap();
    table.lines().find(|line| line.starts_with("se.slice")).map(str::to_owned)
}

/// Returns the slice of a thread that requests the shortest one, if the kernel supports per-thread
/// slices.
fn urgent_slice() -> Option<String> {
    let thread = std::thread::spawn(|| {
        tipme_confine::be_urgent();
        slice("thread-self")
    });
    thread.join().unwrap()
}

/// Returns the changes received until a process has the focus.
fn changes_until(news: &Receiver<(Focused, u64)>, pid: u32) -> Vec<(Focused, u64)> {
    let mut changes: Vec<(Focused, u64)> = Vec::new();
    while changes.last().is_none_or(|(focused, _)| focused.client != Some(pid)) {
        changes.push(news.recv_timeout(TIMEOUT).unwrap_or_else(|_| panic!("only {changes:?}")));
    }
    changes
}

#[test]
fn the_focus_is_that_of_sways_own_tree() {
    let compositor = Compositor::start();
    let _keyboard = compositor.keyboard();
    let recording = recorder();
    let terminals: Vec<Running> =
        (0..3).map(|number| compositor.terminal(&format!("terminal {number}"))).collect();
    let pids: Vec<u32> = terminals.iter().map(|terminal| terminal.0.id()).collect();
    let news = hear(follow(&recording), &compositor);
    changes_until(&news, pids[2]);
    let changes =
        std::env::var("TIPME_FOCUS_CHANGES").map_or(CHANGES, |number| number.parse().unwrap());
    assert_eq!(slice(&recording.child.id().to_string()), urgent_slice());
    let (mut late, mut expected) = (Vec::new(), Vec::new());
    for turn in 0..changes {
        let (pid, begun) = (pids[(turn * turn + turn / 2) % 3], now_ns());
        if expected.last().unwrap_or(&pids[2]) == &pid {
            continue;
        }
        give(&compositor, pid);
        assert_eq!(focused(&compositor), Some(u64::from(pid)));
        let changes = changes_until(&news, pid);
        let wrong = changes
            .iter()
            .filter(|(focused, _)| focused.client.is_some_and(|client| client != pid))
            .count();
        let (last, came) = *changes.last().unwrap();
        assert_eq!(wrong, 0, "{changes:?}");
        assert!(begun <= last.since_ns && last.since_ns <= came, "{begun} {last:?} {came}");
        late.push(came - last.since_ns);
        expected.push(pid);
    }
    late.sort_unstable();
    let [p50, p99, max] = [50, 99, 100].map(|share| late[(late.len() - 1) * share / 100] / 1_000);
    println!("{} changes, reported after {p50} us (p50), {p99} us (p99), {max} us", late.len());
    // An otherwise idle machine needs a few hundred microseconds.
    assert!(p50 < 1_000_000, "{late:?}");
    let (_, incident) = recording.mark();
    let own = focus_changes(&incident)
        .unwrap()
        .into_iter()
        .filter(|change| change.server_pid == compositor.sway.0.id());
    let found: Vec<u32> = own.filter_map(|change| change.client_pid).collect();
    assert!(found.ends_with(&expected), "{found:?} does not end with {expected:?}");
}

/// Starts a program of a user that follows the focus; also returns its first line.
fn follower(recording: &Recording, uid: u32) -> (Running, BufReader<ChildStdout>, String) {
    let mut command = Command::new("perl");
    command
        .args(["-e", FOLLOW])
        .arg(recording.dir.path().join(tipme_control::SOCKET_NAME))
        .uid(uid)
        .gid(uid);
    let mut child = Running::start(command.stdout(Stdio::piped()));
    let (mut output, mut first) = (BufReader::new(child.stdout.take().unwrap()), String::new());
    output.read_line(&mut first).unwrap();
    (child, output, first)
}

fn status(uid: u32, recording: &Recording) -> Output {
    let mut command = tipme_as(uid, recording.dir.path(), &["status", "--json"]);
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").output().unwrap()
}

/// Returns the focus in the `tipme status` of a user.
fn focus_seen_by(uid: u32, recording: &Recording) -> Value {
    let output = status(uid, recording);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["recorder"].is_object(), "{document:#}");
    document["recorder"]["focus"].clone()
}

#[test]
fn the_focus_is_visible_to_its_user_only() {
    let compositor = Compositor::start();
    let _keyboard = compositor.keyboard();
    let recording = recorder();
    let (own, other) = (follower(&recording, USER), follower(&recording, OTHER));
    assert_eq!((own.2.as_str(), other.2.as_str()), ("\"done\"\n", "\"done\"\n"));
    assert!(follower(&recording, NOBODY).2.starts_with("{\"error\":"));
    let all = hear(follow(&recording), &compositor);
    let terminal = compositor.terminal("terminal");
    let pid = terminal.0.id();
    changes_until(&all, pid);
    let seen = focus_seen_by(USER, &recording);
    // Other tests may have compositors of the same user.
    let of_sway =
        seen.as_array().unwrap().iter().find(|focused| focused["server"] == compositor.sway.0.id());
    assert_eq!(of_sway.map(|focused| &focused["client"]), Some(&pid.into()), "{seen}");
    assert_eq!(focus_seen_by(OTHER, &recording), Value::Null);
    let refused: Value = serde_json::from_slice(&status(NOBODY, &recording).stdout).unwrap();
    assert_eq!(refused["recorder"], Value::Null);
    // When it ends, its followers have received all that they ever will.
    drop(recording);
    let received = std::io::read_to_string(own.1).unwrap();
    assert!(received.contains(&format!("\"client\":{pid},")), "{received}");
    assert_eq!(std::io::read_to_string(other.1).unwrap(), "");
}

#[test]
fn the_favour_goes_with_the_focus_on_sway() {
    forget_nice_value();
    let compositor = Compositor::start();
    let _keyboard = compositor.keyboard();
    let mut recording = recorder();
    let (first, second) = (compositor.terminal("first"), compositor.terminal("second"));
    let (mut command, dir) = (tipme(), TempDir::new().unwrap());
    command.env("XDG_RUNTIME_DIR", compositor.home());
    let recorder = recording.dir.path().display().to_string();
    let managed = Managed::start_by(command, dir, DISPLAY, &["--recorder", &recorder]);
    for (on, off) in [(&first, &second), (&second, &first), (&first, &second)] {
        let (on, off) = (on.0.id(), off.0.id());
        give(&compositor, on);
        until("the favour of the focused terminal", || nice(on) < 0);
        until("the end of the other's favour", || nice(off) > nice(on));
    }
    let status = managed.status();
    let focused: Vec<&Value> =
        status["sets"].as_array().unwrap().iter().filter(|set| set["role"] == "focused").collect();
    assert!(focused.iter().any(|set| set["pid"] == first.0.id()), "{status:#}");
    assert!(focused.iter().all(|set| set["pid"] != second.0.id()), "{status:#}");
    assert_eq!(
        (&status["display"], &status["user"]),
        (&Value::from(DISPLAY), &Value::from(USER)),
        "{status:#}"
    );
    let gone = second.0.id();
    drop(second);
    until("the end of the terminal is seen", || {
        managed.status()["sets"].as_array().unwrap().iter().all(|set| set["pid"] != gone)
    });
    recording.kill();
    let third = compositor.terminal("third");
    let _again = recorder_in(std::mem::replace(&mut recording.dir, TempDir::new().unwrap()));
    give(&compositor, first.0.id());
    give(&compositor, third.0.id());
    until("the favour of the focused terminal, with another recorder", || nice(third.0.id()) < 0);
}

#[test]
fn no_more_follow_than_may() {
    let options = ["--display", "none", "--allow-user", &OTHER.to_string()];
    let recording = Recording::start_in(open_folder(), &options);
    let mut four: Vec<_> = (0..4).map(|_| follower(&recording, OTHER)).collect();
    assert!(four.iter().all(|(.., first)| first == "\"done\"\n"));
    assert!(follower(&recording, OTHER).2.contains("too many follow the focus: user 4343 4 times"));
    drop(four.pop());
    assert_eq!(follower(&recording, OTHER).2, "\"done\"\n", "an ended one makes room");
    drop(follow(&recording));
}

/// Encodes a Wayland message.
fn message(object: u32, opcode: u32, arguments: &[u32]) -> Vec<u8> {
    let size = 8 + 4 * arguments.len() as u32;
    [&[object, size << 16 | opcode], arguments]
        .concat()
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect()
}

#[test]
fn a_restless_focus_is_reported_now_and_then() {
    const KEYBOARD: u32 = 8;
    let dir = TempDir::new().unwrap();
    let listener = UnixListener::bind(dir.path().join("wayland-77")).unwrap();
    let recording = Recording::start(&["--display", "wayland-77"]);
    let mut following = follow(&recording);
    let mut connections = [(); 2].map(|()| {
        let client = UnixStream::connect(dir.path().join("wayland-77")).unwrap();
        (client, listener.accept().unwrap().0)
    });
    let enter = [message(KEYBOARD, 1, &[1, 3, 0]), message(KEYBOARD, 4, &[2, 0, 0, 0, 0])].concat();
    let (begun, mut count) = (Instant::now(), 0);
    for turn in 0..5_000 {
        let (client, server) = &mut connections[turn % 2];
        server.write_all(&enter).unwrap();
        client.read_exact(&mut vec![0; enter.len()]).unwrap();
        // A client that does not read gets no more.
        count += following.news().unwrap().len();
    }
    let halves = begun.elapsed().as_millis() as usize / 500 + 1;
    // The recorder responds in order: all earlier changes have arrived by then.
    focus_seen_by(0, &recording);
    count += following.news().unwrap().len();
    // One more change per tick, i.e. at most ten a second, may arrive.
    assert!((2..=255 * halves).contains(&count), "{count} in {halves} times half a second");
}
