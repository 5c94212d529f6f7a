// SPDX-License-Identifier: MIT OR Apache-2.0
//! The entries for fuzzing: bytes of a journal, and what the kernel says of processes.

use crate::journal::tell_any;
use crate::processes::parse_any;

/// Reads a journal, as it is and with the check sums of its lines made right, and says whether one was good; it must
/// not panic.
pub fn exercise_journal(bytes: &[u8]) -> bool {
    tell_any(bytes)
}

/// Reads a process's line and its status; whether one was understood; it must not panic.
pub fn exercise_processes(bytes: &[u8]) -> bool {
    parse_any(&String::from_utf8_lossy(bytes))
}
