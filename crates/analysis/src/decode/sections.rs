// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sections of an incident: documents, and records in the order of time.

use crate::decode::bytes::chunks;
use crate::decode::events::{CPU_LIMIT, SchedEvent};
use crate::decode::merge::Merge;
use crate::error::DiagnoseError;
use tipme_record::incident::{Incident, Section};
use tipme_record::packed::WORD_BYTES;
use tipme_record::records::Switch;
use tipme_record::{ChunkEntry, ChunkHead, Cpu, Nanos, RecordKind, entries};

/// More scheduler records than this are not read; the oldest are left out.
pub(crate) const EVENTS_MAX: usize = 10_000_000;

/// More other records than this are not read; the oldest are left out.
pub(crate) const ENTRIES_MAX: usize = 4_000_000;

/// A record outside the scheduler's class with the CPU that wrote it.
pub(crate) struct Placed<'a> {
    pub cpu: Cpu,
    pub entry: ChunkEntry<'a>,
}

/// The JSON document of a section; its default where there is none.
pub(crate) fn document<T: for<'a> serde::Deserialize<'a> + Default>(
    incident: &Incident,
    section: Section,
) -> Result<T, DiagnoseError> {
    incident.json(section).map_err(|cause| DiagnoseError::Document { section, cause })
}

/// All records outside the scheduler's class; of each kind in the order of time.
pub(crate) struct Rare<'a> {
    /// By the number of the kind.
    by_kind: [Vec<Placed<'a>>; 256],
}

impl<'a> Rare<'a> {
    /// Reads them; the oldest are left out where they are too many.
    pub(crate) fn read(incident: &'a Incident) -> Rare<'a> {
        let sections = [Section::Rare, Section::Exits].map(|section| chunks(incident.bytes(section)));
        let mut rare = Rare { by_kind: [const { Vec::new() }; 256] };
        for (head, chunk) in sections.iter().flatten().rev() {
            if !rare.is_full() {
                rare.add(Cpu(head.cpu), chunk);
            }
        }
        rare.by_kind.iter_mut().for_each(|list| list.sort_by_key(|placed| placed.entry.head.ts));
        rare
    }

    fn add(&mut self, cpu: Cpu, chunk: &'a [u8]) {
        entries(chunk).for_each(|entry| self.by_kind[entry.kind as usize].push(Placed { cpu, entry }));
    }

    /// The records of one kind, with the CPU that wrote each.
    pub(crate) fn placed(&self, kind: RecordKind) -> &[Placed<'a>] {
        &self.by_kind[kind as usize]
    }

    /// The records of one kind.
    pub(crate) fn of(&self, kind: RecordKind) -> impl Iterator<Item = ChunkEntry<'a>> {
        self.placed(kind).iter().map(|placed| placed.entry)
    }

    /// How many records there are before a time.
    pub(crate) fn count_before(&self, time: Nanos) -> usize {
        self.by_kind.iter().map(|list| list.partition_point(|placed| placed.entry.head.ts < time)).sum()
    }

    /// Whether there are so many that the oldest were left out.
    pub(crate) fn is_full(&self) -> bool {
        self.by_kind.iter().map(Vec::len).sum::<usize>() >= ENTRIES_MAX
    }
}

/// How many scheduler records a chunk has at most: packed ones are words with the highest bit set.
fn events_at_most(chunk: &[u8]) -> usize {
    let (words, _) = chunk.as_chunks::<WORD_BYTES>();
    let packed = words.iter().filter(|word| word[WORD_BYTES - 1] >= 0x80).count();
    packed + (words.len() - packed) * WORD_BYTES / Switch::SIZE
}

/// How many chunks, of these in the order in which they were opened, are too old to be read.
fn too_old(chunks: &[(ChunkHead, &[u8])]) -> usize {
    let mut events = 0;
    let newest = chunks.iter().rev().take_while(|(_, chunk)| {
        events += events_at_most(chunk);
        events <= EVENTS_MAX
    });
    chunks.len() - newest.count()
}

/// All that tells of the states of threads, in the order of time, and whether the oldest were left out, being too many.
pub(crate) fn read_events<'a>(incident: &'a Incident, rare: &Rare<'_>) -> (Merge<'a>, bool) {
    let mut chunks = chunks(incident.bytes(Section::Sched));
    let oldest = too_old(&chunks);
    chunks.drain(..oldest);
    chunks.retain(|(head, _)| (head.cpu as usize) < CPU_LIMIT);
    let kinds = [RecordKind::Fork, RecordKind::Sample].into_iter();
    let others = kinds.flat_map(|kind| rare.placed(kind));
    let mut others: Vec<_> = others.filter_map(|placed| SchedEvent::read(&placed.entry, placed.cpu)).collect();
    others.sort_by_key(|event| event.ts);
    (Merge::new(chunks, others), oldest > 0)
}

/// The records of one kind.
pub(crate) fn typed<'a, T>(
    entries: impl Iterator<Item = ChunkEntry<'a>>,
    kind: RecordKind,
    read: fn(&[u8]) -> Option<T>,
) -> Vec<T> {
    entries.filter(|entry| entry.kind == kind).filter_map(|entry| read(entry.bytes)).collect()
}

/// A record with the bytes behind its fixed part.
pub(crate) fn with_tail<'a, T>(
    entry: ChunkEntry<'a>,
    read: fn(&[u8]) -> Option<T>,
    size: usize,
) -> Option<(T, &'a [u8])> {
    read(entry.bytes).zip(entry.bytes.get(size..))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_record::CHUNK_BYTES;

    /// Whether some of so many chunks of these bytes are left out.
    fn leaves_out(byte: u8, chunks: usize) -> bool {
        let mut incident = Incident::default();
        incident.push(Section::Sched, vec![byte; chunks * CHUNK_BYTES]);
        read_events(&incident, &Rare::read(&incident)).1
    }

    #[test]
    fn it_is_known_whether_the_oldest_were_left_out() {
        let [packed, whole] = [WORD_BYTES, Switch::SIZE].map(|size| EVENTS_MAX / (CHUNK_BYTES / size));
        assert!(!leaves_out(0xff, packed) && leaves_out(0xff, packed + 1));
        assert!(!leaves_out(0, whole) && leaves_out(0, whole + 1));
    }
}
