// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the policy with simulated desktops.
#![allow(clippy::unwrap_used, reason = "a failed test may panic")]

mod memory;
mod replay;
mod roles;
mod support;
