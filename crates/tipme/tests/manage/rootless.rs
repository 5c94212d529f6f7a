// SPDX-License-Identifier: MIT OR Apache-2.0
//! A manager without root, and the helper that changes its knobs.

use crate::other_users::{NOBODY, other_users_terminal};
use rustix::process::Signal;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::family::for_everybody;
use support::helper_daemon::{HelperDaemon, favour};
use support::managed::{Desktop, Managed, nice};
use tempfile::TempDir;
use tipme_bench::until;
use tipme_policy::Strength;

/// A user with a program and access to the display.
pub struct User {
    program: PathBuf,
    _folder: TempDir,
    /// Contains the display's authority file.
    pub keys: TempDir,
}

impl User {
    pub fn new() -> User {
        let (folder, program) = for_everybody(&["tipme"]);
        User { program, _folder: folder, keys: TempDir::new().unwrap() }
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("XAUTHORITY", self.keys.path().join("authority")).env("HOME", "/");
        command.current_dir("/").uid(NOBODY).gid(NOBODY);
        command
    }

    /// Starts the manager as this user, with that helper.
    fn manage(&self, desktop: &Desktop, helper: &Path) -> Managed {
        let display = desktop.session.display_name();
        Managed::start_by(
            self.command(),
            self.state(),
            &display,
            &["--helper", helper.to_str().unwrap()],
        )
    }

    pub fn state(&self) -> TempDir {
        let dir = TempDir::new().unwrap();
        std::os::unix::fs::chown(dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        dir
    }
}

#[test]
fn the_helper_turns_the_knobs_of_a_manager_without_root() {
    let (desktop, user, helper) = (Desktop::start(), User::new(), HelperDaemon::start(&[NOBODY]));
    let roots = desktop.terminal("+20+20");
    let (own, _) = other_users_terminal(&desktop, &user.keys);
    let mut managed = user.manage(&desktop, helper.dir.path());
    until("the favour of the user's terminal", || nice(own.pid()) < 0);
    let status = managed.status();
    assert_eq!(
        (&status["helper"], &status["user"]),
        (&helper.pid().into(), &NOBODY.into()),
        "{status:#}"
    );
    assert!(
        status["missing"].to_string().contains("the display server is not favoured"),
        "{status:#}"
    );
    assert!(
        managed
            .said(&["manage", "status"])
            .contains(&format!("by the helper (pid {})", helper.pid()))
    );
    let why = managed.why(own.pid());
    assert_eq!(
        (&why["role"], &why["knobs"][0]["name"]),
        (&"focused".into(), &"nice value".into()),
        "{why:#}"
    );
    desktop.click(&roots);
    until("the end of the favour", || nice(own.pid()) > favour(Strength::Normal));
    assert_eq!(nice(roots.pid()), 0);
    managed.said(&["manage", "off"]);
    until("the end of all favour", || nice(own.pid()) == 0);
    managed.said(&["manage", "strong"]);
    until("the favour again", || nice(own.pid()) < 0);
    assert_eq!(managed.stop(Signal::TERM), Some(0));
    assert_eq!(nice(own.pid()), 0);
}

#[test]
fn a_manager_that_is_killed_leaves_nothing_changed() {
    let (desktop, user, helper) = (Desktop::start(), User::new(), HelperDaemon::start(&[NOBODY]));
    let (own, _) = other_users_terminal(&desktop, &user.keys);
    let mut managed = user.manage(&desktop, helper.dir.path());
    until("the favour", || nice(own.pid()) < 0);
    managed.stop(Signal::KILL);
    until("the end of the favour", || nice(own.pid()) == 0);
    helper.expect_no_session();
}

#[test]
fn a_manager_outlives_its_helper_and_finds_the_next_one() {
    let (desktop, user, mut helper) =
        (Desktop::start(), User::new(), HelperDaemon::start(&[NOBODY]));
    let (own, _) = other_users_terminal(&desktop, &user.keys);
    let managed = user.manage(&desktop, helper.dir.path());
    until("the favour", || nice(own.pid()) < 0);
    helper.stop(Signal::TERM);
    assert_eq!(nice(own.pid()), 0);
    until("that the manager has seen it", || {
        managed.said(&["manage", "gentle"]);
        managed.status()["missing"].to_string().contains("until the helper is back")
    });
    helper.start_again(&[NOBODY]);
    until("the favour again, with the strength of now", || {
        nice(own.pid()) == favour(Strength::Gentle)
    });
    let status = managed.status();
    assert_eq!(status["helper"], helper.pid());
    assert!(!status["missing"].to_string().contains("until the helper is back"), "{status:#}");
}

#[test]
fn without_a_helper_the_remedy_is_printed() {
    let (desktop, user, nothing) = (Desktop::start(), User::new(), TempDir::new().unwrap());
    let (_own, _) = other_users_terminal(&desktop, &user.keys);
    let mut command = user.command();
    command
        .args(["manage", "--display", &desktop.session.display_name(), "--helper"])
        .arg(nothing.path());
    let output = command.arg("--state-dir").arg(user.state().path()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("start one with: sudo tipme manage-helper --state-dir "), "{error}");
}
