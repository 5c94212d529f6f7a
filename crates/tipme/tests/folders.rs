// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folders that another user has prepared for the recorder. Needs root.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use support::tipme;

/// Runs a script as a user without an account.
fn as_other_user(script: &str, dir: &Path) {
    let status =
        Command::new("sh").args(["-c", script]).current_dir(dir).uid(4242).gid(4242).status();
    assert!(status.unwrap().success(), "{script}");
}

#[test]
fn a_state_folder_of_another_user_is_refused() {
    let dir = tempfile::TempDir::new().unwrap();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).unwrap();
    let precious = dir.path().join("precious");
    std::fs::write(&precious, "of root").unwrap();
    as_other_user(
        "mkdir -m 755 own own/incidents away; ln -s ../precious own/lock; ln -s away link",
        dir.path(),
    );
    refused(&["record", "--hot-keys", "off", "--display", "none", "--memory", "16M"], dir.path());
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "of root");
    assert_eq!(std::fs::read_dir(dir.path().join("away")).unwrap().count(), 0);
}

/// Asserts that root is refused a folder of user 4242, or one behind a link of that user.
fn refused(arguments: &[&str], dir: &Path) {
    for name in ["own", "link", "own/below"] {
        let mut command = Command::new("timeout");
        command
            .arg("20")
            .arg(tipme().get_program())
            .args(arguments)
            .arg("--state-dir")
            .arg(dir.join(name));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {name}: {said}");
        assert!(
            said.contains("belongs to another user, user 4242")
                && said.contains("choose a --state-dir"),
            "{arguments:?} {name}: {said}"
        );
    }
}

#[test]
fn folders_of_manager_and_helper_of_another_user_are_refused() {
    let dir = tempfile::TempDir::new().unwrap();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).unwrap();
    as_other_user(
        "mkdir -m 755 own away; ln -s ../precious own/manage.lock; ln -s away link",
        dir.path(),
    );
    refused(&["manage-helper"], dir.path());
    refused(&["manage", "--display", ":4242"], dir.path());
    assert_eq!(std::fs::read_dir(dir.path().join("away")).unwrap().count(), 0);
    let kept = dir.path().join("kept");
    std::fs::create_dir(&kept).unwrap();
    std::os::unix::fs::symlink(dir.path().join("away"), kept.join("sessions")).unwrap();
    std::os::unix::fs::lchown(kept.join("sessions"), Some(4242), None).unwrap();
    let mut helper = Command::new("timeout");
    helper.arg("20").arg(tipme().get_program()).args(["manage-helper", "--state-dir"]).arg(&kept);
    assert_eq!(
        helper.output().unwrap().status.code(),
        Some(2),
        "a folder of journals that another user chose"
    );
}
