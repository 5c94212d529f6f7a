// SPDX-License-Identifier: MIT OR Apache-2.0
//! A press that fails shows the reason and the remedy on screen: for a user that may not mark, and
//! on a full disk. `notification` covers a missing recorder or notification daemon, an unresponsive
//! daemon and paused input; `wayland` covers Wayland without a portal. Needs root, to be another
//! user and to mount.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use support::popups::Viewer;
use support::screen::{ADDRESS, Bus, wait_for};
use support::session_agent::{Agent, press};
use support::{Recording, files, session};
use tempfile::TempDir;

/// A user that may not mark.
const OTHER_UID: u32 = 12_345;

/// Creates a folder of that user with the display's authority file.
fn home(authority: &Path) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::copy(authority, folder.path().join("authority")).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for owned in [folder.path().to_owned(), folder.path().join("authority")] {
        chown(owned, Some(OTHER_UID), Some(OTHER_UID)).unwrap();
    }
    folder
}

#[test]
fn a_user_that_may_not_mark_sees_the_reason_on_screen() {
    let session = session();
    let recording = Recording::start(&["--display", &session.display_name()]);
    fs::set_permissions(recording.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut shown = Command::new("true");
    session.show(&mut shown);
    let authority = shown
        .get_envs()
        .find(|(name, _)| *name == "XAUTHORITY")
        .and_then(|(_, path)| path)
        .unwrap();
    let home = home(Path::new(authority));
    let agent = Agent::start(&session, recording.dir.path(), |command| {
        command.env("XAUTHORITY", home.path().join("authority")).env("HOME", home.path());
        command.uid(OTHER_UID).gid(OTHER_UID);
    });
    agent.line("ready: ");
    press(&session, &["ctrl+alt+minus"]);
    let why = "user 12345 may not use this recorder, since user 12345 is not logged in at this \
               machine; run: tipme setup (";
    agent.line(&format!("tipme: {why}"));
    let text = Viewer::open(&session).wait_for(why).text;
    assert!(text.starts_with("The mark failed\n\n"), "{text}");
    assert_eq!(files(&recording.incidents(), ".tipme").len(), 0);
}

/// A disk of half a MiB without a free byte once it is filled.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> SmallDisk {
        let folder = TempDir::new().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=512k,mode=755", "tmpfs"]).arg(folder.path());
        assert!(mount.status().unwrap().success(), "this test needs root");
        SmallDisk(folder)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Processes with open files there end later.
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_shown_on_screen() {
    let (session, bus, disk) = (session(), Bus::start(), SmallDisk::mount());
    let (_daemon, shown) = bus.start_notifications(&session);
    let own = TempDir::new_in(disk.0.path()).unwrap();
    let recording = Recording::start_in(own, &["--display", &session.display_name()]);
    assert!(
        fs::write(disk.0.path().join("filler"), vec![1; 1 << 20]).is_err(),
        "the disk is not full"
    );
    let _agent =
        Agent::ready(&session, recording.dir.path(), &["--no-dialog"], &[(ADDRESS, &bus.address)]);
    press(&session, &["ctrl+alt+minus"]);
    let text = wait_for(
        &shown,
        "the disk is full; free some space there, or record with --state-dir on another disk",
    );
    assert!(text.contains("\nThe mark failed\ncannot write "), "{text}");
    assert_eq!(files(&recording.incidents(), ".tipme").len(), 0);
}
