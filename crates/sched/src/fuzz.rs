// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzzing entry points: journals, and process files of the kernel.

use crate::journal::read_any;
use crate::processes::parse_any;

/// Reads a journal as it is, and with corrected check sums; returns `true` if some line was valid.
/// Must not panic.
pub fn exercise_journal(bytes: &[u8]) -> bool {
    read_any(bytes)
}

/// Parses a `stat` line and a `status` file; returns `true` if one was valid. Must not panic.
pub fn exercise_processes(bytes: &[u8]) -> bool {
    parse_any(&String::from_utf8_lossy(bytes))
}
