// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notifications by capabilities of their server, and servers that come and go. Needs root for the
//! recorder.

use std::path::PathBuf;
use support::notification_server::{FakeServer, ServerCall};
use support::popups::Viewer;
use support::screen::{ADDRESS, Bus, wait_for};
use support::session_agent::{Agent, press, program};
use support::suffering::suffer;
use support::{Recording, session};
use tempfile::TempDir;
use tipme_bench::PrivateSession;

/// A session with a recorder and an agent; the test starts the server. Fields are dropped in this
/// order.
struct Desktop {
    agent: Agent,
    _recording: Recording,
    bus: Bus,
    /// Contains programs of the test, and their output.
    folder: TempDir,
    session: PrivateSession,
}

impl Desktop {
    fn start() -> Desktop {
        let (session, bus, folder) = (session(), Bus::start(), TempDir::new().unwrap());
        program(folder.path(), "xdg-open", r#"echo "$1" >> "${0%/*}/opened""#);
        let recording = Recording::start(&["--display", &session.display_name()]);
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let agent = Agent::start(&session, recording.dir.path(), |command| {
            command
                .env(ADDRESS, &bus.address)
                .env("PATH", path)
                .env("XDG_CACHE_HOME", folder.path());
        });
        agent.line("ready: ");
        Desktop { agent, _recording: recording, bus, folder, session }
    }

    fn mark(&self) {
        press(&self.session, &["ctrl+alt+minus"]);
        self.agent.line("marked ");
    }
}

const ACTIONS: &[&str] = &["actions", "body", "body-markup", "persistence"];

#[test]
fn a_server_that_may_drop_actions_gets_a_new_notification() {
    let desktop = Desktop::start();
    let server = FakeServer::start(&desktop.bus.address, "gnome-shell", ACTIONS);
    desktop.mark();
    let [captured, verdict] = [0, 1].map(|place| server.wait_for(place));
    assert!(captured.summary.starts_with("Captured the last "), "{captured:?}");
    assert!(
        captured.keys.is_empty() && captured.hints.iter().any(|hint| hint == "transient"),
        "{captured:?}"
    );
    assert_eq!(verdict.replaces, 0, "{verdict:?}");
    let [_, second, _] = &server.calls()[..] else { panic!("{:?}", server.calls()) };
    assert!(matches!(second, ServerCall::Close(id) if *id == captured.id), "{second:?}");
    assert_eq!(
        verdict.keys,
        ["details", "note", "copy", "default"],
        "nothing was found that can be confirmed"
    );
    assert!(verdict.hints.iter().any(|hint| hint == "resident"), "{verdict:?}");
    assert!(!verdict.hints.iter().any(|hint| hint == "transient"), "{verdict:?}");
    assert!(!verdict.body.contains("tipme diagnose"), "the actions say that: {verdict:?}");
}

#[test]
fn a_click_opens_the_page_and_a_used_action_disappears() {
    let desktop = Desktop::start();
    let server = FakeServer::start(&desktop.bus.address, "Xfce Notify Daemon", ACTIONS);
    desktop.mark();
    let verdict = server.wait_for(1);
    server.invoke(verdict.id, "details", true);
    let opened = desktop.folder.path().join("opened");
    wait_for(&opened, ".html");
    let again = server.wait_for(2);
    assert_eq!(
        (again.summary, again.keys),
        (verdict.summary, vec!["note".to_owned(), "copy".to_owned()])
    );
    std::fs::remove_file(&opened).unwrap();
    desktop.mark();
    let verdict = server.wait_for(4);
    server.invoke(verdict.id, "default", true);
    wait_for(&opened, ".html");
    desktop.mark();
    server.wait_for(6);
    assert_eq!(server.notified().len(), 7, "a click on the notification itself may dismiss it");
}

#[test]
fn one_hitch_has_one_answer() {
    let _alone = support::alone();
    let mut desktop = Desktop::start();
    let server = FakeServer::start(&desktop.bus.address, "gnome-shell", ACTIONS);
    suffer(&mut desktop.session);
    let first = PathBuf::from(desktop.agent.line("marked "));
    let verdict = server.wait_for(1);
    assert!(verdict.summary.starts_with("Typing in xterm stalled for "), "{verdict:?}");
    assert_eq!(verdict.keys[0], "details");
    press(&desktop.session, &["ctrl+alt+minus"]);
    let second = PathBuf::from(desktop.agent.line("marked "));
    let again = server.wait_for(3);
    assert!(
        again.summary.starts_with("Nothing since the last answer ")
            || again.summary.starts_with("Nothing new ")
    );
    assert!(again.body.contains(" Before it: typing in xterm, "), "{again:?}");
    assert_eq!(again.keys, ["details", "earlier", "note", "default"]);
    let opened = desktop.folder.path().join("opened");
    server.invoke(again.id, "earlier", false);
    wait_for(&opened, &first.file_stem().unwrap().to_string_lossy());
    let (_, text) = support::diagnose(&second, &[]);
    assert!(text.contains("Delays before the last answer:\n"), "{text}");
    press(&desktop.session, &["ctrl+alt+minus", "ctrl+alt+minus"]);
    desktop.agent.line("marked ");
    desktop.agent.line("marked ");
    let [third, fourth] = [5, 7].map(|place| server.wait_for(place));
    let closed: Vec<u32> = server
        .calls()
        .iter()
        .filter_map(|call| if let ServerCall::Close(id) = call { Some(*id) } else { None })
        .collect();
    let mut open: Vec<(String, String)> = [again, third, fourth]
        .into_iter()
        .filter(|one| !closed.contains(&one.id))
        .map(|one| (one.summary, one.body))
        .collect();
    open.sort();
    assert!(open.windows(2).all(|pair| pair[0] != pair[1]), "{open:?}");
}

#[test]
fn the_agent_follows_servers_that_come_and_go() {
    let desktop = Desktop::start();
    let server = FakeServer::start(&desktop.bus.address, "dunst", ACTIONS);
    desktop.mark();
    let [captured, verdict] = [0, 1].map(|place| server.wait_for(place));
    assert_eq!(verdict.replaces, captured.id, "this server updates in place");
    drop(server);
    desktop.mark();
    desktop.agent.line("tipme: no notification is shown: ");
    Viewer::open(&desktop.session).wait_for("Read more: tipme diagnose ");
    let server = FakeServer::start(&desktop.bus.address, "plain", &["body"]);
    desktop.mark();
    let [captured, verdict] = [0, 1].map(|place| server.wait_for(place));
    assert_eq!((captured.replaces, verdict.replaces), (0, 0));
    assert!(
        verdict.keys.is_empty() && !verdict.hints.iter().any(|hint| hint == "resident"),
        "{verdict:?}"
    );
    assert!(verdict.body.contains("\nRead more: tipme diagnose "), "{verdict:?}");
}
