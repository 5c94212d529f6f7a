// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the person did, and what answered it.
//!
//! Takes a recording; gives its interactions: each input with the way over wake-ups and messages to the drawing that
//! answers it, and with the later milestones, such as the end of the command that it started.

pub mod answer;
mod asleep;
pub mod cause;
pub mod commands;
pub mod compositors;
pub mod focus;
pub mod inputs;
pub mod interactions;
pub mod late;
pub mod milestones;
pub mod readers;
pub mod selections;
pub mod served;
pub mod stops;
pub mod timed;
pub mod work;
