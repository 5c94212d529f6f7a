// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locks the memory of the typing and watching process, so that a memory load does not evict it.

use rustix::mm::{MlockAllFlags, mlockall, munlockall};

/// Keeps the memory that this process touches resident, by mlockall(2). Child processes do not
/// inherit that.
pub(crate) struct LockedMemory(());

impl LockedMemory {
    /// Locks the memory if allowed.
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
