// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of whoever types and watches: it is not pushed out beside a load that fills the memory.

use rustix::mm::{MlockAllFlags, mlockall, munlockall};

/// Keeps what this process touches in memory. Processes that it starts have no part in that.
pub(crate) struct Pinned(());

impl Pinned {
    /// Does without where it is not allowed.
    pub(crate) fn new() -> Pinned {
        let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT);
        Pinned(())
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = munlockall();
    }
}
