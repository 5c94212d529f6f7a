// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzzing entry points: files of baselines, days and tolerances, ELF images with functions to
//! name, and answers with names.

use crate::baselines;
use crate::day;
use crate::symbols;
use crate::tolerances;

/// Parses a baseline file, adds to it and queries it; returns `true` if it holds a habit. Must not
/// panic.
pub fn exercise_baselines(bytes: &[u8]) -> bool {
    baselines::parse_any(bytes)
}

/// Parses a user's day and computes its figures; returns `true` if it is valid. Must not panic.
pub fn exercise_days(bytes: &[u8]) -> bool {
    day::parse_any(bytes)
}

/// Parses a tolerance file; returns `true` if it is valid. Must not panic.
pub fn exercise_tolerances(bytes: &[u8]) -> bool {
    tolerances::parse_any(bytes)
}

/// Looks up functions in an ELF image; returns `true` if it finds any. Must not panic.
pub fn exercise_image(bytes: &[u8]) -> bool {
    symbols::name_any(bytes)
}

/// Parses an answer with function names; returns `true` if it holds any. Must not panic.
pub fn exercise_answers(bytes: &[u8]) -> bool {
    symbols::read_any_answers(bytes)
}
