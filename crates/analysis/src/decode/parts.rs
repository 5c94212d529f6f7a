// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends and receives at one end of a display connection.

use tipme_record::{Nanos, Pid, Tid};

/// Bytes of one send or receive call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Part {
    pub ts: Nanos,
    pub tid: Tid,
    /// Process of the thread at that time.
    pub pid: Pid,
    pub bytes: u64,
    /// Index of its first word among those of all messages, and the number of its words.
    pub(super) words: (u32, u8),
    pub(super) flags: u16,
}

impl Part {
    /// Returns `true` if the bytes could not be read, so that the words are unknown.
    pub(crate) fn is_opaque(&self) -> bool {
        self.flags & 2 != 0
    }
}
