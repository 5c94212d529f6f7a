// SPDX-License-Identifier: MIT OR Apache-2.0
//! The entries for fuzzing: the files of what is usual, of days and of what people put up with, the images that
//! functions are named from, and the names that are answered.

use crate::baselines;
use crate::day;
use crate::symbols;
use crate::tolerances;

/// Reads what was learned, adds to it and asks it; whether it is one. It must not panic.
pub fn exercise_baselines(bytes: &[u8]) -> bool {
    baselines::parse_any(bytes)
}

/// Reads a user's day, and asks for its figures; whether it is one. It must not panic.
pub fn exercise_days(bytes: &[u8]) -> bool {
    day::parse_any(bytes)
}

/// Reads what people put up with; whether it is that. It must not panic.
pub fn exercise_tolerances(bytes: &[u8]) -> bool {
    tolerances::parse_any(bytes)
}

/// Names functions of an ELF image; whether there was one. It must not panic.
pub fn exercise_image(bytes: &[u8]) -> bool {
    symbols::name_any(bytes)
}

/// Takes what is answered about functions; whether there was a name. It must not panic.
pub fn exercise_answers(bytes: &[u8]) -> bool {
    symbols::hear_any(bytes)
}
