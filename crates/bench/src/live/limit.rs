// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory limit on a load by a control group, as an administrator would set it.

use crate::group::ControlGroup;
use crate::intervals::{Cleanup, PREFIX};
use crate::kernel_text::memory_field;
use crate::worker::WorkerLauncher;
use anyhow::Result;
use std::path::PathBuf;

/// Share of the available memory for the load: numerator and divisor.
const SHARE: (u64, u64) = (3, 4);

/// A limited group that a load enters by itself. Dropping it removes the group.
pub(super) struct LoadLimit {
    group: ControlGroup,
    /// Removes the group if this process no longer can.
    _cleanup: Cleanup,
}

impl LoadLimit {
    pub(super) fn make(launcher: &WorkerLauncher) -> Result<LoadLimit> {
        let mut cleanup = Cleanup::start(launcher)?;
        let group = ControlGroup::named(PREFIX, "memory")?;
        cleanup.group(group.folder())?;
        group.limit_memory(memory_field("MemAvailable") / SHARE.1 * SHARE.0)?;
        Ok(LoadLimit { group, _cleanup: cleanup })
    }

    pub(super) fn procs_file(&self) -> PathBuf {
        self.group.procs_file()
    }
}
