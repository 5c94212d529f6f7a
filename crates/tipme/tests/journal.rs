// SPDX-License-Identifier: MIT OR Apache-2.0
//! Journal entries of the daemons. Needs root.

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use support::journal::{Entry, Journal, Service};
use support::{session_with_terminal, tipme, typist};
use tempfile::TempDir;
use tipme_bench::PrivateSession;
use tipme_control::journal::JournalEvent;
use tipme_desktop::inject::Typist;

/// Time for which the terminal is stopped.
const HITCH: Duration = Duration::from_millis(700);
/// A program name crafted to forge a field.
const HOSTILE: &str = "ev\nPRIORITY=0";

fn mark(dir: &Path) -> String {
    let marked = tipme().args(["mark", "--state-dir"]).arg(dir).output().unwrap();
    assert!(marked.status.success(), "{}", String::from_utf8_lossy(&marked.stderr));
    String::from_utf8(marked.stdout).unwrap().trim().to_owned()
}

fn stem(path: &str) -> &str {
    Path::new(path).file_stem().unwrap().to_str().unwrap()
}

fn recorder(journal: &Journal, dir: &Path, more: &[&str]) -> Service {
    let arguments =
        [&["record", "--hot-keys", "off", "--state-dir", dir.to_str().unwrap()], more].concat();
    let mut service = journal.service(&arguments);
    let begun = journal.await_event(&mut service, JournalEvent::Recording.name());
    assert!(begun.get("MESSAGE").starts_with("recording the last "), "{begun:?}");
    assert_eq!((begun.get("PRIORITY"), begun.get("SYSLOG_IDENTIFIER")), ("6", "tipme"));
    service
}

#[test]
fn marks_and_failures_are_entries_and_nothing_is_said_twice() {
    let (journal, dir) = (Journal::start(), TempDir::new().unwrap());
    // A separate line, for parsers that take each line for a field.
    let state = dir.path().join(HOSTILE);
    let mut service = recorder(&journal, &state, &["--display", "none"]);
    let path = mark(&state);
    let entry = journal.await_event(&mut service, JournalEvent::Marked.name());
    assert_eq!(entry.get("MESSAGE"), format!("marked {path} for user 0 (command)"));
    assert_eq!(entry.get("TIPME_INCIDENT"), stem(&path));
    assert_eq!((entry.get("TIPME_TRIGGER"), entry.get("TIPME_USER")), ("command", "0"));
    assert_eq!(entry.get("PRIORITY"), "6");

    let mut second =
        journal.service(&["record", "--display", "none", "--state-dir", state.to_str().unwrap()]);
    let failed = journal.await_entry(&mut second, |entry| entry.get("PRIORITY") == "3");
    assert!(failed.get("MESSAGE").contains("give this one its own --state-dir"), "{failed:?}");
    assert!(service.stop().success());
    assert_eq!(service.output() + &second.output(), "");
}

#[test]
fn a_journal_that_is_too_busy_is_not_waited_for() {
    let (journal, dir) = (Journal::start(), TempDir::new().unwrap());
    let mut service = recorder(&journal, dir.path(), &["--display", "none"]);
    // Entries of the start come before this.
    mark(dir.path());
    journal.await_event(&mut service, JournalEvent::Marked.name());
    journal.fill();
    mark(dir.path());
    mark(dir.path());
    journal.empty();
    let path = mark(dir.path());
    let entry = journal.await_event(&mut service, JournalEvent::Marked.name());
    assert_eq!((entry.get("TIPME_INCIDENT"), entry.get("TIPME_LOST")), (stem(&path), "2"));
}

/// Types while a program with that name stops the terminal.
fn hitch(session: &PrivateSession, typist: &mut Typist, program: &Path) {
    let terminal = session.terminal_pid().unwrap().to_string();
    typist.text("before").unwrap();
    for (signal, text) in [("-STOP", "now"), ("-CONT", "after")] {
        assert!(Command::new(program).args([signal, &terminal]).status().unwrap().success());
        typist.text(text).unwrap();
        std::thread::sleep(HITCH);
    }
}

#[test]
fn a_cause_has_fields_of_its_own_that_no_name_can_forge() {
    let (journal, dir) = (Journal::start(), TempDir::new().unwrap());
    let program = dir.path().join(HOSTILE);
    std::fs::copy("/bin/kill", &program).unwrap();
    let session = session_with_terminal();
    let mut typist = typist(&session, 150.0);
    let display = session.display_name();
    let mut service = recorder(&journal, dir.path(), &["--auto", "--display", &display]);
    typist.text(&"The quick brown fox jumps over the lazy dog\n".repeat(2)).unwrap();
    hitch(&session, &mut typist, &program);

    let entry = journal.await_event(&mut service, JournalEvent::Marked.name());
    assert_eq!((entry.get("TIPME_KIND"), entry.get("TIPME_CULPRIT")), ("stopped", "ev PRIORITY=0"));
    assert_eq!((entry.get("TIPME_APPLICATION"), entry.get("TIPME_TRIGGER")), ("xterm", "auto"));
    assert_eq!(entry.get("PRIORITY"), "6", "{entry:?}");
    assert!(
        dir.path()
            .join("incidents")
            .join(format!("{}.tipme", entry.get("TIPME_INCIDENT")))
            .is_file()
    );
}

#[test]
fn the_helper_says_that_it_helps() {
    let (journal, dir) = (Journal::start(), TempDir::new().unwrap());
    let mut service =
        journal.service(&["manage-helper", "--state-dir", dir.path().to_str().unwrap()]);
    let entry: Entry = journal.await_event(&mut service, JournalEvent::Helping.name());
    assert!(entry.get("MESSAGE").starts_with("helping managers at "), "{entry:?}");
    assert!(service.stop().success());
    assert_eq!(service.output(), "");
}
