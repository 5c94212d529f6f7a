// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a focus booster does that sets only `cpu.weight`: the focused program's control group gets more of it.
//!
//! Focused program, display's programs and load are in three groups side by side, as under systemd. Processes go
//! back to where they were, and the groups are removed.

use super::Background;
use crate::intervals::{PREFIX, Sweeper};
use crate::job::Helper;
use crate::selftest::group::ControlGroup;
use crate::session::Session;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use tipme_desktop::server::describe;

/// The weight of the focused program; others have the kernel's own, 100. A usual ratio of such boosters.
pub const FOCUSED_WEIGHT: u32 = 3_000;

/// Why this cannot be done here; `None` where it can.
pub(super) fn lacks() -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut places = mounts.lines().filter_map(unified);
    let Some(mount) = places.next() else {
        return Some("there are no control groups of version 2".to_owned());
    };
    if !rustix::process::geteuid().is_root() {
        return Some("making control groups takes root".to_owned());
    }
    let offered = std::fs::read_to_string(mount.join("cgroup.subtree_control")).unwrap_or_default();
    let there = offered.split_whitespace().any(|controller| controller == "cpu");
    (!there).then(|| {
        let file = mount.join("cgroup.subtree_control");
        format!("the cpu controller is not one of version 2 here, or not handed down by {}", file.display())
    })
}

/// Where a line of the list of mounts shows control groups of version 2.
fn unified(line: &str) -> Option<PathBuf> {
    let (place, kind) = line.split_once(" - ")?;
    kind.starts_with("cgroup2 ").then(|| place.split(' ').nth(4).map(PathBuf::from))?
}

/// Groups with their weights. Dropping it moves everybody back and removes them.
pub(super) struct Weights {
    /// Who was moved in, and the file that moves it back.
    moved: Vec<(u32, PathBuf)>,
    groups: Vec<ControlGroup>,
    /// Removes the groups where this process no longer can.
    sweeper: Sweeper,
}

impl Weights {
    pub(super) fn set(session: &Session, background: Option<&Background>, helper: &Helper) -> Result<Weights> {
        let focused = family(session.terminal_pid().context("no terminal is open")?);
        let server = describe(&session.target())?.server_pid;
        let load = background.map(Background::pids).unwrap_or_default();
        let mut weights = Weights { moved: Vec::new(), groups: Vec::new(), sweeper: Sweeper::start(helper)? };
        for (members, weight) in [(focused, Some(FOCUSED_WEIGHT)), (vec![server], None), (load, None)] {
            weights.group(&members, weight)?;
        }
        Ok(weights)
    }

    fn group(&mut self, members: &[u32], weight: Option<u32>) -> Result<()> {
        let group = ControlGroup::named(PREFIX, "cpu")?;
        ensure!(group.is_unified(), "the cpu controller is not one of version 2 here");
        self.sweeper.group(group.folder())?;
        if let Some(weight) = weight {
            group.set("cpu.weight", &weight.to_string())?;
        }
        let root = group.folder().parent().context("a group below none")?;
        for pid in members {
            // Who has just ended needs no weight.
            let Some(back) = home(*pid, root) else { continue };
            if std::fs::write(group.door(), pid.to_string()).is_ok() {
                self.moved.push((*pid, back));
            }
        }
        self.groups.push(group);
        Ok(())
    }
}

impl Drop for Weights {
    fn drop(&mut self) {
        for (pid, back) in self.moved.drain(..) {
            let _ = std::fs::write(back, pid.to_string());
        }
    }
}

/// The file by which a process goes back to its group.
fn home(pid: u32, root: &Path) -> Option<PathBuf> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(root.join(group.trim_start_matches('/')).join("cgroup.procs"))
}

/// A process and all below it.
pub(crate) fn family(root: u32) -> Vec<u32> {
    let mut members = vec![root];
    let mut at = 0;
    while let Some(pid) = members.get(at).copied() {
        let path = format!("/proc/{pid}/task/{pid}/children");
        let children = std::fs::read_to_string(path).unwrap_or_default();
        members.extend(children.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
        at += 1;
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_version_2_are_found() {
        let line = "32 25 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(unified(line), Some("/sys/fs/cgroup".into()));
        assert_eq!(unified("31 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"), None);
    }

    #[test]
    fn where_it_cannot_be_done_the_reason_is_told() {
        assert!(lacks().is_none_or(|why| why.len() > 10));
        assert!(home(std::process::id(), Path::new("/root")).is_none_or(|path| path.ends_with("cgroup.procs")));
    }
}
