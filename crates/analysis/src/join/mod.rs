// SPDX-License-Identifier: MIT OR Apache-2.0
//! User input and its answers.
//!
//! Reads a recording and returns its interactions: each input with the way over wakeups and
//! messages to the drawing that answers it, and with the later milestones, such as the end of the
//! command that it started.

pub(crate) mod answer;
mod asked_others;
pub(crate) mod commands;
pub(crate) mod compositing_managers;
pub(crate) mod drawing_cause;
mod ended_children;
pub(crate) mod focus;
pub(crate) mod input_methods;
pub(crate) mod input_readers;
pub(crate) mod input_work;
pub(crate) mod inputs;
pub(crate) mod interactions;
mod joiner;
pub(crate) mod labels;
pub(crate) mod late_answers;
pub(crate) mod milestones;
pub(crate) mod network_answers;
pub(crate) mod prompt_answers;
pub(crate) mod repeats;
mod requests;
pub(crate) mod selections;
pub(crate) mod server_drawings;
mod sleeping_threads;
pub(crate) mod starts;
pub(crate) mod stopped_processes;
pub(crate) mod timed_interactions;
pub(crate) mod unresponsive;
mod work_steps;
