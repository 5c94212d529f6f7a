// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chunks: the pieces of memory that the rings are made of.
//!
//! One CPU fills a chunk from front to back; when it is full it goes to the end of a queue and the
//! CPU takes the chunk at the front, which is the one that was filled longest ago. Each taking gives
//! the chunk the next generation, and a record is valid only where its generation is the chunk's:
//! so bytes of an earlier life, and records that were being written during the copy, are told apart
//! without a length.

use crate::declare::CType;
use crate::records::{Head, Kind};
use crate::units::Nanos;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of one chunk, head included.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// Which ring a chunk belongs to; rare records outlive frequent ones, exits outlive both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Class {
    /// Switch, waking, migrate.
    Sched = 0,
    /// Everything else.
    Rare = 1,
    /// Identity of exited tasks.
    Exits = 2,
}

impl Class {
    /// All classes, in the order of their numbers.
    pub const ALL: [Class; 3] = [Class::Sched, Class::Rare, Class::Exits];

    /// The name in messages and in the incident file.
    pub fn name(self) -> &'static str {
        match self {
            Class::Sched => "sched",
            Class::Rare => "rare",
            Class::Exits => "exits",
        }
    }
}

/// The first bytes of every chunk.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ChunkHead {
    /// Times that this chunk was taken; its low byte is the generation of its records. 0: never.
    pub taken: u64,
    /// When it was taken.
    pub opened: Nanos,
    /// The CPU that fills it.
    pub cpu: u32,
    /// The ring, a [`Class`] number.
    pub class: u32,
    /// Filled and waiting in the queue: time of its last record. 0 while a CPU owns it.
    pub closed: Nanos,
}

impl CType for ChunkHead {
    const C: &'static str = "struct rec_chunk_head";
}

/// One record in a chunk: its head and all its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub head: Head,
    pub kind: Kind,
    pub bytes: &'a [u8],
}

/// Walks the valid records of a chunk's bytes, in the order of writing.
///
/// Stops at the first record that is not of this chunk's generation or not well formed: what
/// follows was never written in this life of the chunk.
pub fn entries(chunk: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    let head = ChunkHead::read_from_prefix(chunk).ok().map(|(head, _)| head);
    let mut rest = chunk.get(size_of::<ChunkHead>()..).unwrap_or_default();
    std::iter::from_fn(move || {
        let generation = head?.taken as u8;
        let entry = first_entry(rest, generation)?;
        rest = &rest[entry.bytes.len()..];
        Some(entry)
    })
}

fn first_entry(bytes: &[u8], generation: u8) -> Option<Entry<'_>> {
    let (head, _) = Head::read_from_prefix(bytes).ok()?;
    let kind = Kind::from_number(head.kind)?;
    let size = usize::from(head.size);
    let whole = head.generation == generation && size >= kind.size() && size.is_multiple_of(8);
    if whole { bytes.get(..size).map(|bytes| Entry { head, kind, bytes }) } else { None }
}
