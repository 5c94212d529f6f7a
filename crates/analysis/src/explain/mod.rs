// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explanation of an interval.
//!
//! Takes an interval of an interaction or of a thread. Produces the chain from its end back to its
//! start (the critical path), and the blame for each piece: its kind, and the responsible thread,
//! job, device or host. The pieces sum to the interval.

mod activation;
pub(crate) mod blame;
mod blocked_waits;
pub(crate) mod chain;
mod debtors;
pub(crate) mod describe;
pub(crate) mod feeders;
pub(crate) mod io_limits;
pub(crate) mod jobs;
pub(crate) mod lateness;
pub(crate) mod limits;
pub(crate) mod load;
pub(crate) mod loopback;
pub(crate) mod outsider;
pub(crate) mod partition;
pub(crate) mod periods;
#[cfg(test)]
mod properties;
pub(crate) mod stages;
pub(crate) mod stolen;
pub(crate) mod suspect;
