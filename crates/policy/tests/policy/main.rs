// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policy, told of made-up desks.
#![allow(clippy::unwrap_used, reason = "a failed test may panic")]

mod memory;
mod replay;
mod roles;
mod support;
