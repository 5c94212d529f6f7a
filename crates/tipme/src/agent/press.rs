// SPDX-License-Identifier: MIT OR Apache-2.0
//! Key presses.

/// Sequence number of a key press seen by the agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PressNumber(pub u64);
