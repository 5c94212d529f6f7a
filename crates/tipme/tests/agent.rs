// SPDX-License-Identifier: MIT OR Apache-2.0
//! The session agent as a user runs it, on a private display. Needs root for the recorder.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that fails")]

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use support::{Recording, files, meta, tipme};
use tipme_bench::Session;
use tipme_bench::session::Options;
use tipme_control::{Client, Request, Response};
use tipme_desktop::inject::{Pace, Typist};
use tipme_record::incident::{Section, Words};

const LONG: Duration = Duration::from_secs(20);

/// A running agent; killed with the value.
struct Agent {
    child: Child,
    lines: Receiver<String>,
}

impl Agent {
    fn start(session: &Session, state_dir: &Path, change: impl FnOnce(&mut Command)) -> Agent {
        let mut command = tipme();
        command.arg("agent").arg("--state-dir").arg(state_dir).args(["--display", &session.display_name()]);
        session.show(&mut command);
        change(&mut command);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let (output, errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let of_errors = sender.clone();
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
        });
        std::thread::spawn(move || {
            BufReader::new(errors).lines().map_while(Result::ok).all(|line| of_errors.send(line).is_ok())
        });
        Agent { child, lines }
    }

    /// The rest of the next line that starts with `prefix`.
    fn line(&self, prefix: &str) -> String {
        let (deadline, mut said) = (Instant::now() + LONG, Vec::new());
        while let Ok(line) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if let Some(rest) = line.strip_prefix(prefix) {
                return rest.to_string();
            }
            said.push(line);
        }
        panic!("the agent did not say {prefix:?} but {said:?}");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn session() -> Session {
    Session::start(Options::default()).unwrap()
}

fn press(session: &Session, keys: &[&str]) {
    let mut typist = Typist::open(&session.target(), Pace::default()).unwrap();
    for key in keys {
        typist.chord(&key.parse().unwrap()).unwrap();
    }
}

/// A folder with a `zenity` that answers once there is a file `answer` beside it.
fn slow_dialog() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zenity");
    let wait = "while ! [ -e \"${0%/*}/answer\" ]; do sleep 0.1; done";
    std::fs::write(&file, format!("#!/bin/sh\n{wait}\necho the editor hung\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn words(path: &Path) -> String {
    tipme_store::read(path).unwrap().json::<Words>(Section::Words).unwrap().text
}

#[test]
fn marks_in_a_row_do_not_wait_for_dialogs_and_get_their_words() {
    let (session, recording, dialog) = (session(), Recording::start(&[]), slow_dialog());
    let path = format!("{}:/usr/bin:/bin", dialog.path().display());
    let agent = Agent::start(&session, recording.dir.path(), |command| {
        command.env("PATH", path).arg("--no-notification");
    });
    agent.line("ready: ctrl+alt+minus marks on ");
    press(&session, &["ctrl+alt+minus", "ctrl+alt+minus", "ctrl+alt+minus"]);
    let marked: Vec<PathBuf> = (0..3).map(|_| PathBuf::from(agent.line("marked "))).collect();
    assert_eq!(files(&recording.incidents(), ".tipme").len(), 3);
    let first = tipme_store::read(&marked[0]).unwrap();
    std::fs::write(dialog.path().join("answer"), "").unwrap();
    assert_eq!(meta(&first).trigger, "hotkey");
    let deadline = Instant::now() + LONG;
    while marked.iter().any(|path| words(path) != "the editor hung") {
        assert!(Instant::now() < deadline, "the words do not arrive");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn each_key_reaches_the_recorder() {
    let (session, recording) = (session(), Recording::start(&[]));
    let agent = Agent::start(&session, recording.dir.path(), |command| {
        command.args(["--no-dialog", "--no-notification", "--stop-keys-key", "f11"]);
    });
    agent.line("ready: ");
    let keys_recorded = || match Client::new(recording.dir.path()).call(&Request::Status).unwrap() {
        Response::Status(status) => status.keys,
        other => panic!("{other:?}"),
    };
    press(&session, &["f11"]);
    agent.line("input is no longer recorded");
    assert!(!keys_recorded());
    press(&session, &["ctrl+alt+1"]);
    agent.line("input is recorded again");
    assert!(keys_recorded());
    press(&session, &["ctrl+alt+plus"]);
    agent.line("recording");
}

#[test]
fn without_a_recorder_a_press_is_answered_with_the_remedy() {
    let (session, folder) = (session(), tempfile::tempdir().unwrap());
    let agent = Agent::start(&session, folder.path(), |command| {
        command.arg("--no-dialog");
    });
    agent.line("ready: ");
    for _ in 0..2 {
        press(&session, &["ctrl+alt+minus"]);
        assert!(agent.line("tipme: no recorder listens at ").contains("start one with: sudo tipme record"));
    }
}

#[test]
fn a_key_that_another_agent_holds_is_named() {
    let (session, folder) = (session(), tempfile::tempdir().unwrap());
    let first = Agent::start(&session, folder.path(), |_| ());
    first.line("ready: ");
    let mut second = Agent::start(&session, folder.path(), |command| {
        command.args(["--start-key", "f9"]);
    });
    second.line("tipme: hot key ctrl+alt+minus is held by another program on display ");
    assert_eq!(second.child.wait().unwrap().code(), Some(2));
}

#[test]
fn an_interrupt_ends_it_in_order() {
    let (session, folder) = (session(), tempfile::tempdir().unwrap());
    let mut agent = Agent::start(&session, folder.path(), |_| ());
    agent.line("ready: ");
    let pid = rustix::process::Pid::from_child(&agent.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(agent.child.wait().unwrap().code(), Some(0));
}
