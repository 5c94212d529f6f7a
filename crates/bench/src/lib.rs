// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benchmarks, scripted input to applications, loads, the idle loop and the timers; and known
//! faults, with the self-test and the demonstration that use them.
//!
//! [`experiment`] defines a benchmark; each has a module of its own. Most run on a private display
//! ([`session`], [`compositor`]) through [`driver`]'s traits.
//!
//! All processes started here run in process groups of their own. The kernel kills them when their
//! parent dies; the value that started them ends and reaps them. Nothing else is touched: no other
//! process, and no file outside a temporary folder.

#![warn(unreachable_pub)]

pub mod alone;
pub mod arms;
pub mod choice;
pub mod compositor;
mod cpu_work;
pub mod cpus;
pub mod demo;
mod disk;
mod display;
pub mod driver;
pub mod experiment;
#[cfg(test)]
mod fake;
pub mod faults;
mod files;
mod filler;
pub mod fork;
mod group;
pub mod idle;
pub mod intervals;
mod kernel_text;
pub mod live;
pub mod load;
mod locked_buffer;
mod locked_memory;
pub mod machine;
pub mod measure;
pub mod memory;
pub mod pagein;
mod pages;
pub mod place;
mod priority;
pub mod process;
mod programs;
mod progress;
pub mod screen;
pub mod script;
pub mod scroll;
pub mod seen;
pub mod selftest;
pub mod session;
mod shared_words;
pub mod system;
pub mod timer;
pub mod truth;
pub mod typing;
mod typist;
mod units;
mod until;
pub mod warmstart;
pub mod worker;
pub mod worker_programs;

pub use progress::ProgressListener;
pub use session::{PrivateSession, SessionOptions};
pub use tipme_control::interrupt;
pub use until::until;
