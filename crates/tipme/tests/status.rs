// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme status` and `tipme doctor` report whether a press of the key leads to a verdict. Needs
//! root for the recorder.

use serde_json::Value;
use support::session_agent::{Agent, press};
use support::{Recording, schema, session, tipme};
use tipme_bench::PrivateSession;

/// Returns exit code and text.
fn run(session: &PrivateSession, recording: &Recording, words: &[&str]) -> (Option<i32>, String) {
    let mut command = tipme();
    session.show(command.args(words).arg("--state-dir").arg(recording.dir.path()));
    command.env("XDG_CACHE_HOME", recording.dir.path().join("cache"));
    let output = command
        .env_remove("DBUS_SESSION_BUS_ADDRESS")
        .env_remove("XDG_RUNTIME_DIR")
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn recorder_and_agent_make_it_ready() {
    let (session, recording) = (session(), Recording::start(&["--allow-user", "4712"]));
    let (code, text) = run(&session, &recording, &["status"]);
    let display = session.display_name();
    let why = format!(
        "Ready: no, because no agent serves display {display}; start one there: tipme agent &"
    );
    assert!(code == Some(1) && text.starts_with(&why), "{text}");
    let (code, text) = run(&session, &recording, &["doctor"]);
    assert!(code == Some(1) && text.starts_with(&why), "{text}");
    assert!(
        !text.lines().any(|line| line.starts_with("ok ")),
        "only what is missing is shown: {text}"
    );

    let agent =
        Agent::ready(&session, recording.dir.path(), &["--no-dialog", "--no-notification"], &[]);
    let (code, text) = run(&session, &recording, &["status"]);
    assert_eq!(code, Some(0), "{text}");
    let keys = format!("Ctrl+Alt+Minus marks on {display} (agent, process {})", agent.child.id());
    assert!(text.starts_with(&format!("Ready: yes, {keys}\n\n")), "{text}");
    for line in [
        "\nrecording      since 20",
        "\nmay mark       root, 4712\n",
        "\nlast incident  none of yours\n",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    let none = "\nnotifications  popups instead; no notification is shown: there is no session bus";
    assert!(text.contains(none), "{text}");
    let (code, text) = run(&session, &recording, &["doctor", "--verbose"]);
    assert!(
        code == Some(0) && text.starts_with("Ready: yes, ") && text.contains("\nok "),
        "{text}"
    );

    recording.mark();
    press(&session, &["ctrl+alt+0"]);
    agent.line("input is no longer recorded");
    let (code, text) = run(&session, &recording, &["status", "--json"]);
    let status: Value = serde_json::from_str(&text).unwrap();
    schema::assert_fits("status", &status);
    assert_eq!(
        (code, &status["ready"], &status["recorder"]["keys"]),
        (Some(1), &false.into(), &false.into())
    );
    assert!(status["last_incident"].as_str().unwrap().ends_with(".tipme"), "{text}");
}

#[test]
fn without_a_recorder_the_reason_comes_first() {
    let (session, folder) = (session(), tempfile::tempdir().unwrap());
    for verb in ["status", "doctor"] {
        let mut command = tipme();
        session.show(command.arg(verb).arg("--state-dir").arg(folder.path()));
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.starts_with("Ready: no, because no recorder listens at "), "{text}");
        let none = format!(
            "; also, no agent serves display {}; start one there: tipme agent &",
            session.display_name()
        );
        assert!(text.contains(&none), "{text}");
    }
}
