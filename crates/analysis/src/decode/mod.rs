// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decoding of bytes to records.
//!
//! Reads the sections of an incident and returns scheduler events, symbol names, and display
//! messages in the terms of the protocol. Every access is bounds-checked; damaged records are
//! skipped.

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
