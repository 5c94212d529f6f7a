// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every thread and CPU did.
//!
//! Takes records; gives the [`Recording`](recording::Recording): the states of all threads over the time, their waits
//! and wake-ups, when each was in its event wait, and what disk, memory, interrupts, quotas and terminals did
//! meanwhile.

pub mod attempts;
pub mod bursts;
pub mod by_thread;
pub mod contention;
pub mod cpu_intervals;
pub mod descendants;
pub mod disk;
pub mod event_waits;
pub mod interrupts;
pub mod losses;
pub mod named;
pub mod pauses;
pub mod polls;
pub mod priorities;
pub mod reclaim;
pub mod recording;
pub mod steal;
pub mod tasks;
pub mod terminals;
pub mod threads;
pub mod throttle;
pub mod waits;
pub mod wakes;
