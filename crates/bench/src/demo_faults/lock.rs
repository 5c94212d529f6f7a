// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stopped by a file lock: the terminal's program locks a file for each key, and a job holds that lock.

use super::scenario::{InjectedJob, Scenario};
use crate::process::ProcessGroup;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// For each key: lock, show the key, unlock. The terminal does not echo by itself. Argument 1 is the lock file.
const ECHO_WITH_LOCK: &str =
    r#"stty -echo; exec 9<"$1"; while IFS= read -rsn1 key; do flock 9; printf '%s' "${key:-$'\n'}"; flock -u 9; done"#;
/// Seconds that the job holds the lock.
const HELD_S: &str = "1.5";

/// `flock` holds the lock while it sleeps.
pub(super) struct HeldLock {
    file: PathBuf,
}

impl HeldLock {
    pub(super) fn prepare(folder: &Path) -> Result<HeldLock> {
        let file = folder.join("lock");
        std::fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))?;
        Ok(HeldLock { file })
    }
}

impl Scenario for HeldLock {
    fn program(&self) -> Vec<OsString> {
        let words = ["bash", "--norc", "--noprofile", "-c", ECHO_WITH_LOCK, "notes"].map(OsString::from);
        words.into_iter().chain([self.file.clone().into_os_string()]).collect()
    }

    fn keys(&self) -> &'static str {
        "notes are kept under a lock and nothing else is slow\n"
    }

    fn inject(&mut self) -> Result<Option<InjectedJob>> {
        let mut command = Command::new("flock");
        command.arg(&self.file).args(["sleep", HELD_S]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = ProcessGroup::start("the job that holds the lock", command, None)?;
        Ok(Some(InjectedJob::new(&format!("flock {} sleep {HELD_S}", self.file.display()), process)))
    }
}
