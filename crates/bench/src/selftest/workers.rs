// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worker programs that do what goes wrong.

mod bus;
mod delay;
mod disk;
mod display;
mod flood;
mod hogs;
mod holders;
mod memory;
mod pages;
mod peers;
mod realtime;
mod semaphore;
mod shortages;
mod waits;
mod work;
mod writers;

pub(super) use bus::look_up;
pub(super) use delay::{Delay, note, noted, round_picoseconds, spin_rounds};
pub(super) use holders::Stopped;
pub(crate) use pages::MappedPages;
pub(super) use pages::{read_file, touch_file};
pub(super) use peers::{PIPE_BYTES, ask};
pub(super) use realtime::sleep_until;
pub(super) use semaphore::Pair;
pub(crate) use shortages::PROGRAMS as SHORTAGES;
pub(crate) use waits::PROGRAMS as WAITS;
pub(super) use work::{TIMEOUT, compute, compute_until, millis, number, use_cpu_time, word};
