// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simple focus booster: sets only a larger `cpu.weight` for the focused program's control group.
//!
//! Focused program, display server and load are in three sibling groups, as if each had a systemd
//! unit of its own. Afterwards the processes return to their previous groups, and the new groups
//! are removed.

use crate::group::ControlGroup;
use crate::intervals::{Cleanup, PREFIX};
use crate::load::RunningJob;
use crate::process::family;
use crate::screen::TerminalScreen;
use crate::worker::WorkerLauncher;
use anyhow::{Context, Result};
use std::path::Path;

/// Weight of the focused program, a usual ratio of such boosters.
const FOCUSED_WEIGHT: u32 = 3_000;
/// Default weight of the kernel, for the other groups.
const USUAL_WEIGHT: u32 = 100;

/// Groups with their weights. Dropping them moves all processes back and removes the groups.
pub(super) struct Weights {
    _groups: Vec<ControlGroup>,
    /// Removes the groups if this process no longer can.
    _cleanup: Cleanup,
}

impl Weights {
    pub(super) fn set(
        screen: &dyn TerminalScreen,
        background: Option<&dyn RunningJob>,
        launcher: &WorkerLauncher,
    ) -> Result<Weights> {
        let focused = family(screen.terminal_pid().context("no program has the focus")?);
        let server = screen.server_pid()?;
        let load = background.map(RunningJob::pids).unwrap_or_default();
        let mut cleanup = Cleanup::start(launcher)?;
        let sets = [(focused, FOCUSED_WEIGHT), (vec![server], USUAL_WEIGHT), (load, USUAL_WEIGHT)];
        let groups = sets.iter().map(|(members, weight)| group(members, *weight, &mut cleanup));
        Ok(Weights { _groups: groups.collect::<Result<Vec<ControlGroup>>>()?, _cleanup: cleanup })
    }
}

fn group(members: &[u32], weight: u32, cleanup: &mut Cleanup) -> Result<ControlGroup> {
    let mut group = ControlGroup::with_weight(PREFIX, weight)?;
    cleanup.group(group.folder())?;
    for pid in members {
        match group.take(*pid) {
            Ok(()) => {}
            Err(error) if Path::new(&format!("/proc/{pid}")).exists() => return Err(error),
            // A process that has just ended needs no weight.
            Err(_) => {}
        }
    }
    Ok(group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::lacks_unified;
    use crate::process::ProcessGroup;
    use std::process::Command;

    /// Expects a reason if the controller is not a unified one; otherwise processes move in and
    /// back.
    #[test]
    fn a_group_has_its_weight_and_gives_everybody_back() {
        if lacks_unified("cpu").is_some() {
            assert!(
                ControlGroup::with_weight(PREFIX, FOCUSED_WEIGHT).is_err(),
                "what is said to be lacking can be had"
            );
            return;
        }
        let mut command = Command::new("sleep");
        command.arg("60");
        let process = ProcessGroup::start("a sleeper", command, None).expect("sleep starts");
        let place = format!("/proc/{}/cgroup", process.pid());
        let before = std::fs::read_to_string(&place).expect("it lives");
        let mut group = ControlGroup::with_weight(PREFIX, FOCUSED_WEIGHT).expect("a group");
        group.take(process.pid()).expect("it lives");
        let weight = std::fs::read_to_string(group.folder().join("cpu.weight")).expect("a weight");
        assert_eq!(weight.trim(), "3000");
        assert_ne!(std::fs::read_to_string(&place).expect("it lives"), before);
        drop(group);
        assert_eq!(std::fs::read_to_string(&place).expect("it lives"), before);
    }
}
