// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a confined process can come to besides what it has open.

use rustix::thread::CapabilitySet;

/// What a confined process can come to besides what it has open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    Nothing,
    /// Files that its user may read, so many at once.
    Files(u32),
    /// The kernel's count of what kernel programs cost, and to attach so many programs that it has open; it takes
    /// `SYS_ADMIN`.
    Count(u32),
}

impl Reach {
    pub(crate) fn files(self) -> u32 {
        match self {
            Reach::Nothing => 0,
            Reach::Files(files) => files,
            // The count itself; and for each program what holds it attached.
            Reach::Count(programs) => 1 + 2 * programs,
        }
    }

    pub(crate) fn capabilities(self) -> CapabilitySet {
        if matches!(self, Reach::Count(_)) { CapabilitySet::SYS_ADMIN } else { CapabilitySet::empty() }
    }
}
