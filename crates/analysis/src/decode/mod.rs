// SPDX-License-Identifier: MIT OR Apache-2.0
//! From bytes to records.
//!
//! Takes the sections of an incident; gives scheduler events, names of functions, and what passed on display
//! connections in the terms of the protocol. Every access is checked; what is damaged is left out.

pub(crate) mod bytes;
pub(crate) mod events;
pub(crate) mod matching;
pub(crate) mod merge;
pub(crate) mod messages;
pub(crate) mod names;
pub(crate) mod objects;
pub(crate) mod parts;
pub(crate) mod protocol;
pub(crate) mod samples;
pub(crate) mod sections;
