// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chunks: the units of memory that the rings consist of.
//!
//! A CPU fills a chunk from front to back; a full one goes to the end of a queue, and the CPU takes
//! the chunk at the front, which was filled longest ago. Each use gives the chunk the next
//! generation, and a record is valid only if its generation is that of the chunk. So leftovers of
//! earlier uses, and records being written during a copy, are recognised without a length.

use crate::declare::CType;
use crate::named;
use crate::packed::{PackedWord, WORD_BYTES};
use crate::records::{Head, RecordKind};
use crate::units::Nanos;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Size of a chunk in bytes, including its head.
pub const CHUNK_BYTES: usize = 64 * 1024;

named! {
    /// Ring that a chunk belongs to; rare records outlive frequent ones, exits outlive both.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[repr(u32)]
    pub enum RingClass {
        /// Switch, waking and migrate records.
        Sched = "sched",
        /// All other records.
        Rare = "rare",
        /// Identity of exited tasks.
        Exits = "exits",
    }
}

/// First bytes of every chunk.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ChunkHead {
    /// Number of uses of this chunk; its low byte is the generation of the records. 0: never used.
    pub taken: u64,
    /// Start of the current use.
    pub opened: Nanos,
    /// CPU that fills it.
    pub cpu: u32,
    /// Number of the [`RingClass`].
    pub class: u32,
    /// Time of the last record of a full chunk, 0 while a CPU owns it.
    pub closed: Nanos,
}

impl ChunkHead {
    /// Reads the head of a chunk; returns `None` if there are not enough bytes.
    pub(crate) fn of(chunk: &[u8]) -> Option<ChunkHead> {
        ChunkHead::read_from_prefix(chunk).ok().map(|(head, _)| head)
    }

    /// Returns a lower bound of the times of its records.
    pub fn earliest(&self) -> Nanos {
        self.opened.before(SLACK)
    }

    /// Returns `true` if the chunk may have a record in `lo..hi`.
    pub fn reaches(&self, lo: Nanos, hi: Nanos) -> bool {
        let ended = self.closed != Nanos(0) && self.closed.after(SLACK) < lo;
        self.earliest() < hi && !ended
    }
}

impl CType for ChunkHead {
    const C: &'static str = "struct rec_chunk_head";
}

/// One record in a chunk: its head and all its bytes.
#[derive(Clone, Copy, Debug)]
pub struct ChunkEntry<'a> {
    pub head: Head,
    pub kind: RecordKind,
    pub bytes: &'a [u8],
}

/// Contents at one position of a chunk.
pub(crate) enum ChunkPart<'a> {
    Record(ChunkEntry<'a>),
    /// A scheduler record in one word.
    Word(PackedWord),
    /// Bytes before a valid record that are none.
    Gap,
}

/// Iterates over the valid records of a chunk in write order, without the packed ones:
/// [`crate::unpacked`] expands those.
///
/// A record is valid if its generation is that of the chunk, its size fits its kind, and it is not
/// older than the current use of the chunk. An invalid one was being written during the copy, or is
/// of a kind that this version does not know: the iteration continues at the next valid one within
/// [`GAP_BYTES`]. It ends if there is none, since the rest was not written in this use.
pub fn entries(chunk: &[u8]) -> impl Iterator<Item = ChunkEntry<'_>> {
    parts(chunk).filter_map(|part| match part {
        ChunkPart::Record(entry) => Some(entry),
        ChunkPart::Word(_) | ChunkPart::Gap => None,
    })
}

/// Iterates over all parts of a chunk.
pub(crate) fn parts(chunk: &[u8]) -> impl Iterator<Item = ChunkPart<'_>> {
    let head = ChunkHead::of(chunk);
    let mut rest = chunk.get(size_of::<ChunkHead>()..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, part) = first_part(rest, head.as_ref()?)?;
        rest = &rest[length..];
        Some(part)
    })
}

/// Maximum size of a record, and of the hole that an unfinished one leaves. No record begins closer
/// to the end of a chunk.
const GAP_BYTES: usize = 512;

/// Alignment of records.
const ALIGNMENT: usize = 8;

/// Returns the first part and its length; `None` at the end of the written bytes.
#[inline]
fn first_part<'a>(bytes: &'a [u8], chunk: &ChunkHead) -> Option<(usize, ChunkPart<'a>)> {
    if let Some(word) = first_word(bytes, chunk) {
        return Some((WORD_BYTES, ChunkPart::Word(word)));
    }
    match first_entry(bytes, chunk) {
        Some(entry) => Some((entry.bytes.len(), ChunkPart::Record(entry))),
        None => gap(bytes, chunk).map(|length| (length, ChunkPart::Gap)),
    }
}

/// Returns the distance to the next valid record that is not packed.
fn gap(bytes: &[u8], chunk: &ChunkHead) -> Option<usize> {
    let mut gaps = (ALIGNMENT..=GAP_BYTES).step_by(ALIGNMENT);
    gaps.find(|gap| bytes.get(*gap..).is_some_and(|rest| first_entry(rest, chunk).is_some()))
}

#[inline]
fn first_word(bytes: &[u8], chunk: &ChunkHead) -> Option<PackedWord> {
    let may_be = chunk.class == RingClass::Sched as u32 && bytes.len() >= GAP_BYTES;
    if may_be { PackedWord::first(bytes, chunk.taken) } else { None }
}

#[inline]
fn first_entry<'a>(bytes: &'a [u8], chunk: &ChunkHead) -> Option<ChunkEntry<'a>> {
    let (head, _) = Head::read_from_prefix(bytes).ok()?;
    let kind = RecordKind::from_number(head.kind)?;
    let size = usize::from(head.size);
    let fits = size >= kind.size() && size <= GAP_BYTES && size.is_multiple_of(ALIGNMENT);
    let when = head.ts >= chunk.earliest() && head.ts < LATEST;
    let valid = fits && when && head.generation == chunk.taken as u8;
    if valid { bytes.get(..size).map(|bytes| ChunkEntry { head, kind, bytes }) } else { None }
}

/// Upper bound of times: no machine runs for 36 years. Within records of an earlier use, this word
/// holds a generation or is packed.
const LATEST: Nanos = Nanos(1 << 60);

/// Tolerance of times: a program reads the clock before it takes a chunk, and may be interrupted in
/// between.
const SLACK: Nanos = Nanos::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Rename;
    use crate::units::Tid;

    fn record(ts: u64, kind: u8, generation: u8) -> Vec<u8> {
        let head = Head { ts: Nanos(ts), tid: Tid(7), size: Rename::SIZE as u16, kind, generation };
        Rename { head, comm: [0xff; 16] }.as_bytes().to_vec()
    }

    fn times(records: &[Vec<u8>]) -> Vec<u64> {
        let head = ChunkHead {
            taken: 0x105,
            opened: Nanos(2_000_000),
            cpu: 0,
            class: 1,
            closed: Nanos(0),
        };
        let mut chunk = head.as_bytes().to_vec();
        chunk.extend(records.concat());
        chunk.resize(CHUNK_BYTES, 0);
        entries(&chunk).map(|entry| entry.head.ts.0).collect()
    }

    const RENAME: u8 = Rename::KIND as u8;

    #[test]
    fn an_earlier_life_ends_the_walk() {
        let old = vec![record(1, RENAME, 4); 1000];
        assert_eq!(times(&[vec![record(3_000_000, RENAME, 5)], old].concat()), [3_000_000]);
    }

    #[test]
    fn a_record_in_the_making_and_an_unknown_kind_are_passed_over() {
        let records = [
            record(3_000_000, RENAME, 5),
            record(0, 0, 4),
            record(3_000_001, 250, 5),
            record(3_000_002, RENAME, 5),
        ];
        assert_eq!(times(&records), [3_000_000, 3_000_002]);
    }

    #[test]
    fn a_chunk_reaches_from_its_opening_to_its_last_record() {
        let [opened, closed] = [10, 20].map(Nanos::from_millis);
        for (closed, lo, hi, reaches) in [
            (closed, 5, 10, true),
            (closed, 21, 30, true),
            (closed, 12, 13, true),
            (closed, 5, 9, false),
            (closed, 22, 30, false),
            // A CPU may still fill it.
            (Nanos(0), 22, 30, true),
        ] {
            let chunk = ChunkHead { taken: 1, opened, cpu: 0, class: 0, closed };
            let [from, until] = [lo, hi].map(Nanos::from_millis);
            assert_eq!(chunk.reaches(from, until), reaches, "{closed:?}: {lo} to {hi} ms");
        }
    }

    #[test]
    fn a_record_from_before_the_chunk_was_taken_is_none() {
        assert_eq!(times(&[record(900_000, RENAME, 5)]), [] as [u64; 0]);
    }
}
