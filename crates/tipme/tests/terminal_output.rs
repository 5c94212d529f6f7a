// SPDX-License-Identifier: MIT OR Apache-2.0
//! A terminal that is busy with a command's output: recorded, marked and diagnosed. Needs root and
//! bash.

use support::shell::{HELD, marked, shell, type_command};
use support::typist;

#[test]
fn the_command_that_keeps_a_terminal_busy_is_named() {
    let session = shell("seq 1 4000000");
    let recording = type_command(&session);
    typist(&session, 120.0).text("x").unwrap();
    std::thread::sleep(HELD);
    let verdict = marked(&recording);
    // A key in the terminal, or the command itself, waits for the terminal; on a busy machine it
    // waits for a CPU before that.
    let mut findings = verdict["findings"].as_array().unwrap().iter();
    let finding = findings
        .find(|one| one["kind"] != "cpu-competition")
        .unwrap_or_else(|| panic!("{verdict:#}"));
    assert!(
        ["own-computation", "peer-wait"].contains(&finding["kind"].as_str().unwrap()),
        "{verdict:#}"
    );
    assert_eq!(finding["culprit"]["pid"], session.terminal_pid().unwrap(), "{verdict:#}");
    let evidence = finding["evidence"].to_string();
    assert!(
        evidence.contains("seq (pid ") && evidence.contains(" busy: it wrote to the terminal "),
        "{verdict:#}"
    );
    assert!(
        finding["remedy"].as_str().unwrap().starts_with("redirect the output of seq"),
        "{verdict:#}"
    );
}
