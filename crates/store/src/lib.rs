// SPDX-License-Identifier: MIT OR Apache-2.0
//! The incident file: the one place where recording and analysis meet.
//!
//! A file is a header of 64 bytes and then sections, each with a head of its own: kind, lengths and
//! checksums. Large sections are compressed. The header carries an *incomplete* flag that is cleared
//! last, after everything else has reached the disk, and the length that the file then had; so a
//! file that was cut, at a section's border too, is told from a whole one. After the sealing only
//! the user's words may follow, as one more section.
//!
//! [`write()`] makes a file from an [`Incident`](tipme_record::incident::Incident) or leaves nothing
//! behind. [`read`] gives back what is whole: it stops at the first damage, names it, and keeps what
//! came before. [`encode`] and [`decode`] do the same from and to memory. [`PackedIncident`] is one that was never
//! unpacked as a whole: what a mark captures. Whatever the bytes are, the
//! reader ends with a value or an error, within the bounds in `MAX_SECTION_BYTES` and
//! [`MAX_TOTAL_BYTES`]. [`IncidentFolder`] keeps the disk use of many incidents bounded.

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
