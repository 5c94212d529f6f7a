// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of whoever types and watches: it is not pushed out beside a load that fills the memory.

use rustix::mm::{MlockAllFlags, mlockall, munlockall};

/// Keeps what this process touches in memory, by mlockall(2). Processes that it starts have no part in that.
pub(crate) struct LockedMemory(());

impl LockedMemory {
    /// Does without where it is not allowed.
    pub(crate) fn new() -> LockedMemory {
        let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT);
        LockedMemory(())
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        let _ = munlockall();
    }
}
