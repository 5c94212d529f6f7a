// SPDX-License-Identifier: MIT OR Apache-2.0
//! The session agent as a user runs it, on a private display. Needs root for the recorder.

use std::path::{Path, PathBuf};
use support::session_agent::{Agent, press, program};
use support::{Recording, files, meta, session, status, tipme};
use tipme_bench::until;
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
    until("the words are in each incident", || {
        marked.iter().all(|path| words(path) == "the editor hung")
    });
}

#[test]
fn each_key_reaches_the_recorder() {
    let (session, recording) = (session(), Recording::start(&[]));
    let options = ["--no-dialog", "--no-notification", "--stop-keys-key", "f11"];
    let agent = Agent::ready(&session, recording.dir.path(), &options, &[]);
    press(&session, &["f11"]);
    agent.line("input is no longer recorded");
    assert!(!status(recording.dir.path()).keys);
    press(&session, &["ctrl+alt+1"]);
    agent.line("input is recorded again");
    assert!(status(recording.dir.path()).keys);
    press(&session, &["ctrl+alt+plus"]);
    agent.line("recording");
}

#[test]
fn the_start_key_ends_a_pause_and_a_paused_mark_says_why() {
    let (session, recording) = (session(), Recording::start(&[]));
    let agent =
        Agent::ready(&session, recording.dir.path(), &["--no-dialog", "--no-notification"], &[]);
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
    let agent = Agent::ready(&session, folder.path(), &["--no-dialog"], &[]);
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
    let first = Agent::ready(&session, folder.path(), &[], &[]);
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
    let mut agent = Agent::ready(&session, folder.path(), &[], &[]);
    agent.child.signal(rustix::process::Signal::TERM);
    assert_eq!(agent.child.wait().unwrap().code(), Some(0));
}
