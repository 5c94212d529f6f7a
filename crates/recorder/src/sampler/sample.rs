// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was read of a file, and when.

use tipme_record::Nanos;

#[derive(Clone)]
pub(crate) struct ProcSample {
    pub(super) at: Nanos,
    /// A number in [`SOURCES`](super::SOURCES), or [`hierarchy::SOURCE`](super::hierarchy::SOURCE).
    pub(super) source: u32,
    pub(super) text: Vec<u8>,
}
