// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme status` and `tipme doctor` report whether a press of the key leads to a verdict. Needs
//! root for the recorder.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use support::session_agent::{Agent, press};
use support::{Recording, open_folder, schema, session, tipme};
use tempfile::TempDir;
use tipme_bench::PrivateSession;
use tipme_desktop::hotkeys::{Bindings, HotKeyAction, HotKeys};
use tipme_desktop::server;

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

/// A session in which a press leads to a verdict, and everything that it takes.
struct Whole {
    agent: Option<Agent>,
    /// Keys that another program holds.
    taken: Option<HotKeys>,
    recording: Recording,
    disk: Disk,
    server: Pid,
    session: PrivateSession,
}

/// A small file system with the recorder's folder, mounted until drop.
struct Disk(TempDir);

impl Disk {
    fn mount(options: &[&str], at: &Path) {
        assert!(Command::new("mount").args(options).arg(at).status().unwrap().success());
    }

    fn unmount(at: &Path) {
        Command::new("umount").arg("-l").arg(at).status().ok();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        Disk::unmount(self.0.path());
    }
}

impl Whole {
    fn start() -> Whole {
        let (session, disk) = (session(), Disk(open_folder()));
        Disk::mount(&["-t", "tmpfs", "-o", "size=64m,mode=755", "tmpfs"], disk.0.path());
        let server = server::describe(&session.target()).unwrap().server_pid;
        let server = Pid::from_raw(server as i32).unwrap();
        let recording = Recording::start_in(TempDir::new_in(disk.0.path()).unwrap(), &[]);
        recording.mark();
        let (agent, taken) = (None, None);
        let mut whole = Whole { agent, taken, recording, disk, server, session };
        whole.restart_agent();
        whole
    }

    fn restart_agent(&mut self) {
        self.agent = None;
        let (dir, options) = (self.recording.dir.path(), ["--no-dialog", "--no-notification"]);
        self.agent = Some(Agent::ready(&self.session, dir, &options, &[]));
    }

    /// Gives all keys that mark, and their alternatives, to another program or back.
    fn take_keys(&mut self, take: bool) {
        (self.agent, self.taken) = (None, None);
        if take {
            let mut bindings = Bindings::default();
            for (action, key) in [
                (HotKeyAction::Start, "super+minus"),
                (HotKeyAction::StopKeys, "ctrl+alt+shift+m"),
                (HotKeyAction::StartKeys, "ctrl+alt+pause"),
            ] {
                bindings.set(action, key.parse().unwrap());
            }
            self.taken = Some(HotKeys::grab(&self.session.target(), bindings).unwrap());
        }
        self.restart_agent();
    }

    fn signal_agent(&mut self, signal: Signal) {
        self.agent.as_ref().unwrap().child.signal(signal);
    }

    fn tipme(&mut self, words: &[&str]) {
        let (code, text) = run(&self.session, &self.recording, words);
        assert_eq!(code, Some(0), "{text}");
    }
}

/// A breakage: its name, the functions that cause and repair it, and texts of the headline and of a
/// line below it.
type Breakage = (&'static str, fn(&mut Whole), fn(&mut Whole), &'static str, &'static str);

const BREAKAGES: [Breakage; 10] = [
    (
        "recorder stopped",
        |whole| whole.recording.child.signal(Signal::STOP),
        |whole| whole.recording.child.signal(Signal::CONT),
        " did not answer within 2s; check whether it",
        "recording      unknown",
    ),
    (
        "recording paused",
        |whole| whole.tipme(&["pause"]),
        |whole| whole.tipme(&["resume"]),
        "recording is paused since",
        "held           nothing can be marked until recording resumes",
    ),
    (
        "input paused",
        |whole| whole.tipme(&["pause", "--input"]),
        |whole| whole.tipme(&["resume"]),
        "input is not recorded; press Ctrl+Alt+1, or run: tipme resume",
        "input          not recorded; press Ctrl+Alt+1",
    ),
    (
        "agent ended",
        |whole| whole.agent = None,
        Whole::restart_agent,
        "start one there: tipme agent &",
        "keys           none",
    ),
    (
        "agent stopped",
        |whole| whole.signal_agent(Signal::STOP),
        |whole| whole.signal_agent(Signal::CONT),
        " is stopped; run: kill -CONT ",
        ", stopped)",
    ),
    (
        "keys taken",
        |whole| whole.take_keys(true),
        |whole| whole.take_keys(false),
        "the agent reports: no key marks (unavailable: ",
        "keys           no key marks",
    ),
    (
        "display stopped",
        |whole| kill_process(whole.server, Signal::STOP).unwrap(),
        |whole| kill_process(whole.server, Signal::CONT).unwrap(),
        " did not answer within 1000 ms: its server hangs or is stopped",
        "agent          of :",
    ),
    (
        "disk full",
        |whole| {
            std::fs::write(whole.disk.0.path().join("x"), vec![0; 80 << 20]).unwrap_or_default()
        },
        |whole| std::fs::remove_file(whole.disk.0.path().join("x")).unwrap(),
        "is full (0 KiB free); free some space there",
        "",
    ),
    (
        "disk read-only",
        |whole| {
            let folder = whole.recording.incidents();
            Disk::mount(&["--bind", folder.to_str().unwrap()], &folder);
            Disk::mount(&["-o", "remount,bind,ro"], &folder);
        },
        |whole| Disk::unmount(&whole.recording.incidents()),
        "is mounted read-only; see journalctl -k, and mount it writable",
        "",
    ),
    (
        "recorder ended",
        |whole| whole.recording.kill(),
        |whole| {
            let dir = TempDir::new_in(whole.disk.0.path()).unwrap();
            whole.recording = Recording::start_in(dir, &[]);
            whole.restart_agent();
        },
        "no recorder listens at ",
        "recording      nothing",
    ),
];

#[test]
fn each_breakage_turns_ready_to_no_and_its_remedy_back() {
    let mut whole = Whole::start();
    for (what, breaks, mends, why, line) in BREAKAGES {
        breaks(&mut whole);
        let [(code, text), (code_of_doctor, doctor)] =
            ["status", "doctor"].map(|verb| run(&whole.session, &whole.recording, &[verb]));
        mends(&mut whole);
        let headline = text.lines().next().unwrap();
        assert!(
            headline.starts_with("Ready: no, because ") && headline.contains(why),
            "{what}: {text}"
        );
        assert!(text.contains(line), "{what}: {text}");
        assert!(
            doctor.starts_with("Ready: no, because ") && doctor.contains(why),
            "{what}: {doctor}"
        );
        assert_eq!((code, code_of_doctor), (Some(1), Some(1)), "{what}");
        let (code, text) = run(&whole.session, &whole.recording, &["status"]);
        assert!(code == Some(0) && text.starts_with("Ready: yes, "), "{what} was mended: {text}");
    }
}

#[test]
fn a_user_without_permission_is_told_so() {
    let recording = Recording::start_in(open_folder(), &[]);
    for (words, line) in [
        (&["status"][..], "recording      by a recorder that you may not use yet"),
        (&["doctor", "--verbose"], "not root; recording needs: sudo tipme record"),
    ] {
        let output = support::tipme_as(4713, recording.dir.path(), words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.code() == Some(1) && text.starts_with("Ready: no, because user 4713 "),
            "{text}"
        );
        assert!(text.contains(line), "{text}");
    }
}
