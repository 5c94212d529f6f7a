// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme setup` in a session with a real notification daemon. Needs root for the recorder, and
//! dunst.

use std::path::Path;
use support::screen::{ADDRESS, Bus, wait_for};
use support::{Recording, said, session, tipme};
use tempfile::TempDir;
use tipme_bench::PrivateSession;
use tipme_desktop::presence;

/// Session, home folder and bus of a user.
struct Desktop {
    session: PrivateSession,
    bus: Bus,
    home: TempDir,
}

impl Desktop {
    fn start() -> Desktop {
        Desktop { session: session(), bus: Bus::start(), home: TempDir::new().unwrap() }
    }

    /// Returns exit code and text.
    fn setup(&self, state_dir: &Path, words: &[&str]) -> (Option<i32>, String) {
        let mut command = tipme();
        self.session.show(command.arg("setup").args(words).arg("--state-dir").arg(state_dir));
        for unset in ["SUDO_UID", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            command.env_remove(unset);
        }
        command.env("HOME", self.home.path()).env("XDG_CACHE_HOME", self.home.path().join("cache"));
        said(command.env(ADDRESS, &self.bus.address).output().unwrap())
    }

    fn agent(&self) -> Option<presence::RunningAgent> {
        presence::find(&self.session.target()).unwrap()
    }
}

impl Drop for Desktop {
    /// A failed test leaves the agent behind.
    fn drop(&mut self) {
        if let Ok(Some(agent)) = presence::find(&self.session.target())
            && let Some(pid) = rustix::process::Pid::from_raw(agent.pid as i32)
        {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
        }
    }
}

#[test]
fn one_command_leads_to_a_verdict_at_the_screen_and_one_back() {
    let (desktop, recording) = (Desktop::start(), Recording::start(&[]));
    let (_daemon, shown) = desktop.bus.start_notifications(&desktop.session);
    let dir = recording.dir.path();
    let entry = desktop.home.path().join(".config/autostart/tipme-agent.desktop");

    let (code, text) = desktop.setup(dir, &["--dry-run"]);
    assert_eq!((code, text.matches("to do ").count()), (Some(0), 2), "{text}");
    assert!(desktop.agent().is_none() && !entry.exists(), "a dry run does nothing");
    let (code, text) = desktop.setup(dir, &[]);
    assert!(code == Some(2) && text.contains("give --yes") && desktop.agent().is_none(), "{text}");

    let (code, text) = desktop.setup(dir, &["--yes"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("A test press marked ")
            && text.contains("\nReady: yes, Ctrl+Alt+Minus marks on "),
        "{text}"
    );
    assert!(
        text.contains("note        the recorder (process ") && !text.contains("who started"),
        "{text}"
    );
    assert!(wait_for(&shown, "Captured the last ").contains(", looking for the cause"));
    let command = format!("\"agent\" \"--state-dir\" \"{}\"\n", dir.display());
    assert!(std::fs::read_to_string(&entry).unwrap().contains(&command));

    let first = desktop.agent().unwrap();
    let (code, text) = desktop.setup(dir, &["--yes"]);
    assert_eq!(
        (code, text.contains("to do "), desktop.agent().as_ref()),
        (Some(0), false, Some(&first)),
        "{text}"
    );
    let (code, text) = desktop.setup(dir, &["--yes", "--mark-key", "f9"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("\nReady: yes, F9 marks on "), "{text}");
    let (_, text) = desktop.setup(dir, &["--dry-run"]);
    assert!(!text.contains("to do "), "the chosen key stays: {text}");
    assert!(std::fs::read_to_string(&entry).unwrap().contains(r#" "--mark-key" "F9""#));

    let (code, text) = desktop.setup(dir, &["--undo", "--yes"]);
    assert_eq!((code, desktop.agent(), entry.exists()), (Some(0), None, false), "{text}");
}

#[test]
fn without_a_recorder_it_is_not_ready_and_says_what_to_start() {
    let desktop = Desktop::start();
    let (code, text) = desktop.setup(&desktop.home.path().join("none"), &["--yes"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("by hand     no recorder listens at ") && text.contains("sudo tipme record"),
        "{text}"
    );
    assert!(text.contains("\nReady: no, because no recorder listens at "), "{text}");
}
