// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user interaction manager: from attention to knobs, in one poll loop.
//!
//! The display tells what the user attends to, [`tipme_policy`] decides who is favoured, [`tipme_sched`] turns
//! the knobs and takes everything back in the end. What is here is the way between them: which processes
//! belong to a window (`desktop_state`, `family`; `display_thread` asks the display), which claims are believed (`trust`), when to look again
//! (`schedule`), what is had in memory ahead (`prefetch`, and at login `preload`), and what is told to those who ask.
//!
//! Without root the display, the policy and the socket stay with the user, and only the knobs are turned by somebody else:
//! `actuator` asks the helper, and `helper_service` is the helper.
//!
//! A change of focus goes straight through: the sets are known before it comes. Processes are looked at again
//! afterwards, and only as often as a thousandth of a CPU allows.

#![warn(unreachable_pub)]

mod actuator;
mod answers;
mod budget;
mod busy;
mod compositor;
mod connections;
mod daemon;
mod desktop_state;
mod display;
mod display_thread;
mod family;
mod fuzz;
mod helper_service;
mod history_file;
mod installed;
mod memory;
mod own_cpu;
mod prefetch;
mod preload;
mod schedule;
mod session;
mod setting;
mod signals;
mod state;
mod terminal_servers;
mod times;
mod trust;

pub use daemon::{Ended, run};
pub use fuzz::{exercise_files, exercise_lines};
pub use helper_service::{HelperOptions, ask_helper, help};
pub use setting::{ManageOptions, UseHelper};
pub use state::StateDir;
pub use tipme_policy::{Backend, Strength};
