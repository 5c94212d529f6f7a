// SPDX-License-Identifier: MIT OR Apache-2.0
//! Activity of every thread and CPU.
//!
//! Reads records and builds the [`Recording`](recording::Recording): the states of all threads over
//! time, their waits and wakeups, their event waits, and the activity of disk, memory, interrupts,
//! quotas and terminals.

pub(crate) mod askers;
pub(crate) mod attempts;
mod brokers;
pub(crate) mod bursts;
pub(crate) mod by_thread;
pub(crate) mod contention;
pub(crate) mod cpu_intervals;
pub(crate) mod deferred;
pub(crate) mod descendants;
pub(crate) mod disk;
pub(crate) mod drawings;
pub(crate) mod event_waits;
pub(crate) mod holders;
pub(crate) mod interrupts;
pub(crate) mod io_limits;
pub(crate) mod losses;
pub(crate) mod named;
pub(crate) mod network;
pub(crate) mod overdue;
pub(crate) mod packets;
pub(crate) mod pauses;
pub(crate) mod polls;
pub(crate) mod priorities;
pub(crate) mod quota_members;
pub(crate) mod reclaim;
pub(crate) mod recording;
pub(crate) mod restless;
pub(crate) mod retries;
pub(crate) mod silence;
pub(crate) mod spent_times;
pub(crate) mod steal;
pub(crate) mod tasks;
pub(crate) mod terminal_output;
pub(crate) mod terminals;
pub(crate) mod threads;
pub(crate) mod throttle;
mod tries;
pub(crate) mod wait_functions;
pub(crate) mod waits;
pub(crate) mod wakes;
pub(crate) mod withdrawals;
