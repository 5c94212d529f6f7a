// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interaction manager: from the user's attention to kernel knobs, in one poll loop.
//!
//! The display reports the user's attention, [`tipme_policy`] decides which sets to favour, and
//! [`tipme_sched`] applies the knobs and restores them at the end. This crate connects them:
//! processes of a window (`desktop_state`, `family`; `display_thread` queries the display), trust
//! in claims of windows (`trust`), timing of the next looks (`schedule`), prefetching (`prefetch`,
//! and at login `preload`), and answers to requests.
//!
//! Without root the display, the policy and the socket stay with the user, and only the knobs move
//! to another process: `actuator` calls the helper, and `helper_service` is the helper.
//!
//! A change of focus takes effect at once: the sets are known in advance. Processes are looked at
//! again afterwards, within a budget of a thousandth of a CPU.

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
mod installed;
mod memory;
mod own_cpu;
mod prefetch;
mod preload;
mod schedule;
mod session;
mod setting;
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
