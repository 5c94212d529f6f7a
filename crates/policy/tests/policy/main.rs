// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the policy with simulated desktops.

mod memory;
mod replay;
mod roles;
mod support;
