// SPDX-License-Identifier: MIT OR Apache-2.0
//! Presses of keys.

/// One press of a key, of all that the agent has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PressNumber(pub u64);
