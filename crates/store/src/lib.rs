// SPDX-License-Identifier: MIT OR Apache-2.0
//! The incident file: the interface between recording and analysis.
//!
//! A file is a header of 64 bytes followed by sections, each with its own head: kind, lengths and
//! checksums. Large sections are compressed. The header has an *incomplete* flag, cleared only
//! after everything else has reached the disk, and the length of the sealed file. A truncated file
//! is therefore recognised as such, even if cut at the border of a section. After sealing, only the
//! user's words may follow, as one more section.
//!
//! [`write()`] writes an [`Incident`](tipme_record::incident::Incident) to a file or leaves nothing
//! behind. [`read`] returns the intact part: it stops at the first damage, reports it, and keeps
//! the sections before it. [`encode`] and [`decode`] do the same in memory. [`PackedIncident`]
//! holds a capture, which is never unpacked as a whole. For any input, the reader ends with a value
//! or an error, within the bounds `MAX_SECTION_BYTES` and [`MAX_TOTAL_BYTES`]. [`IncidentFolder`]
//! bounds the disk use of many incidents.

#![warn(unreachable_pub)]

mod decode;
mod encode;
mod error;
mod file;
mod folder;
mod fuzz;
mod id;
mod layout;
mod packed;

pub use decode::decode;
pub use encode::{encode, write_open};
pub use error::{ReadError, WriteError};
pub use file::{append_words, memory_file, open_regular, read, read_from, write};
pub use folder::{FolderBounds, IncidentFolder, Listed, PINNED_MAX, Room};
pub use fuzz::with_sums;
pub use id::{id_ago, id_at};
pub use layout::{HEADER_BYTES, MAX_TOTAL_BYTES, SECTION_HEAD_BYTES, VERSION};
pub use packed::PackedIncident;
