// SPDX-License-Identifier: MIT OR Apache-2.0
//! The session agent as a user runs it, on a private display. Needs root for the recorder.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that fails")]

mod support;

#[path = "support/session_agent.rs"]
mod session_agent;

use session_agent::{Agent, LONG, press, program, session};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::{Recording, files, meta, tipme};
use tipme_control::{Client, RecorderRequest, RecorderResponse};
use tipme_record::incident::{Section, Words};

/// Creates a folder with a `zenity` that answers once a file `answer` exists beside it.
fn slow_dialog() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let wait = "while ! [ -e \"${0%/*}/answer\" ]; do sleep 0.1; done";
    program(folder.path(), "zenity", &format!("{wait}\necho the editor hung"));
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
    agent.line("ready: Ctrl+Alt+Minus marks on ");
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
    let keys_recorded =
        || match Client::new(recording.dir.path()).call(&RecorderRequest::Status).unwrap() {
            RecorderResponse::Status(status) => status.keys,
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
fn the_key_that_starts_ends_a_pause_and_a_mark_says_why_it_finds_nothing() {
    let (session, recording) = (session(), Recording::start(&[]));
    let agent = Agent::start(&session, recording.dir.path(), |command| {
        command.args(["--no-dialog", "--no-notification"]);
    });
    agent.line("ready: ");
    let paused = tipme().args(["pause", "--state-dir"]).arg(recording.dir.path()).status().unwrap();
    assert!(paused.success());
    press(&session, &["ctrl+alt+minus"]);
    let why = agent.line("tipme: recording was paused ");
    assert!(why.contains("tipme resume"), "{why}");
    assert_eq!(files(&recording.incidents(), ".tipme").len(), 0);
    press(&session, &["ctrl+alt+plus"]);
    agent.line("recording");
    press(&session, &["ctrl+alt+minus"]);
    agent.line("marked ");
    assert_eq!(files(&recording.incidents(), ".tipme").len(), 1);
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
        assert!(
            agent
                .line("tipme: no recorder listens at ")
                .contains("start one with: sudo tipme record")
        );
    }
}

#[test]
fn a_second_agent_names_the_first() {
    let (session, folder) = (session(), tempfile::tempdir().unwrap());
    let first = Agent::start(&session, folder.path(), |_| ());
    first.line("ready: ");
    let mut second = Agent::start(&session, folder.path(), |command| {
        command.args(["--mark-key", "f9"]);
    });
    let why = second
        .line(&format!("tipme: another agent (process {}) serves display ", first.child.id()));
    assert!(why.contains(" already: Ctrl+Alt+Minus marks; end it first: kill "), "{why}");
    assert_eq!(second.child.wait().unwrap().code(), Some(2));
    drop(first);
    let third = Agent::start(&session, folder.path(), |_| ());
    third.line("ready: Ctrl+Alt+Minus marks on ");
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
