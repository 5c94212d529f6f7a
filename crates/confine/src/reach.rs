// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access of a confined process beyond its open files.

use rustix::thread::CapabilitySet;

/// Access of a confined process beyond its open files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    Nothing,
    /// Files that its user may read; the value is the maximum number open at once.
    Files(u32),
    /// The kernel's run statistics of BPF programs. The process may also attach this many programs
    /// that it has open, one of them to perf clocks on this many CPUs. It needs `SYS_ADMIN`.
    Count {
        programs: u32,
        cpus: u32,
    },
}

impl Reach {
    pub(crate) fn files(self) -> u32 {
        match self {
            Reach::Nothing => 0,
            Reach::Files(files) => files,
            // The statistics, and for each program its attachment.
            Reach::Count { programs, cpus } => 1 + 2 * programs + cpus,
        }
    }

    pub(crate) fn capabilities(self) -> CapabilitySet {
        if matches!(self, Reach::Count { .. }) {
            CapabilitySet::SYS_ADMIN
        } else {
            CapabilitySet::empty()
        }
    }
}
