// SPDX-License-Identifier: MIT OR Apache-2.0
//! What passes one end of a display connection at a time.

use tipme_record::{Nanos, Pid, Tid};

/// Bytes that passed one end in one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Part {
    pub ts: Nanos,
    pub tid: Tid,
    /// The thread's process when it happened.
    pub pid: Pid,
    pub bytes: u64,
    /// Where its words begin among those of all messages, and how many they are.
    pub(super) words: (u32, u8),
    pub(super) flags: u16,
}

impl Part {
    /// Whether the bytes could not be read, so that its words are not known.
    pub(crate) fn is_opaque(&self) -> bool {
        self.flags & 2 != 0
    }
}
