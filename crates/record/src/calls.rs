// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls of the recorded machine, whatever machine reads the incident.

use crate::records::Wait;
pub use syscalls::x86_64::Sysno as SystemCall;

impl Wait {
    /// Returns the system call that the thread waited in; `None` outside of one, and for an unknown
    /// one.
    pub fn call(&self) -> Option<SystemCall> {
        usize::try_from(self.syscall).ok().and_then(SystemCall::new)
    }
}
