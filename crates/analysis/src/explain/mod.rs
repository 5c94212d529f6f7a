// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an interval went to, and to whom.
//!
//! Takes an interval of an interaction or of a thread; gives the chain from its end back to its start (the critical
//! path), and the blame of each piece: its kind, and the thread, job, device or host that it is due to. Pieces sum to
//! the interval.

pub mod blame;
pub mod chain;
pub mod describe;
pub mod jobs;
pub mod lateness;
pub mod limits;
pub mod load;
pub mod partition;
pub mod periods;
#[cfg(test)]
mod properties;
pub mod stolen;
