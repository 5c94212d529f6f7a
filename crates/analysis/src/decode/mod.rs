// SPDX-License-Identifier: MIT OR Apache-2.0
//! From bytes to records.
//!
//! Takes the sections of an incident; gives scheduler events, names of functions, and what passed on display
//! connections in the terms of the protocol. Every access is checked; what is damaged is left out.

pub mod bytes;
pub mod events;
pub mod matching;
pub mod merge;
pub mod messages;
pub mod names;
pub mod objects;
pub mod parts;
pub mod protocol;
pub mod samples;
pub mod sections;
