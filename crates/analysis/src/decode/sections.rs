// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sections of an incident: JSON documents, and records in chronological order.

use crate::decode::bytes::{chunks, loose_records};
use crate::decode::events::{CPU_LIMIT, SchedEvent};
use crate::decode::merge::Merge;
use crate::error::DiagnoseError;
use tipme_record::incident::{Incident, Section};
use tipme_record::packed::WORD_BYTES;
use tipme_record::records::Switch;
use tipme_record::{ChunkEntry, ChunkHead, Cpu, Nanos, RecordKind, entries};

/// Maximum number of scheduler records read; beyond it, the oldest are dropped.
pub(crate) const EVENTS_MAX: usize = 10_000_000;

/// Maximum number of other records read; beyond it, the oldest are dropped.
pub(crate) const ENTRIES_MAX: usize = 4_000_000;

/// Parser of the fixed part of a record.
type Read<T> = fn(&[u8]) -> Option<T>;

/// Record outside the scheduler class with the CPU that wrote it.
pub(crate) struct Placed<'a> {
    pub cpu: Cpu,
    pub entry: ChunkEntry<'a>,
}

/// Parses the JSON document of a section; the default value if the section is missing.
pub(crate) fn document<T: for<'a> serde::Deserialize<'a> + Default>(
    incident: &Incident,
    section: Section,
) -> Result<T, DiagnoseError> {
    incident.json(section).map_err(|cause| DiagnoseError::Document { section, cause })
}

/// All records outside the scheduler class, each kind in chronological order.
pub(crate) struct Rare<'a> {
    /// Indexed by the number of the kind.
    by_kind: [Vec<Placed<'a>>; 256],
    /// Records of the walk over all tasks at the mark.
    walked: Vec<ChunkEntry<'a>>,
}

impl<'a> Rare<'a> {
    /// Reads the records, newest chunks first, and drops the oldest beyond [`ENTRIES_MAX`].
    pub(crate) fn read(incident: &'a Incident) -> Rare<'a> {
        let sections =
            [Section::Rare, Section::Exits].map(|section| chunks(incident.bytes(section)));
        let walked = loose_records(incident.bytes(Section::Tasks)).take(ENTRIES_MAX).collect();
        let mut rare = Rare { by_kind: [const { Vec::new() }; 256], walked };
        for (head, chunk) in sections.iter().flatten().rev() {
            if !rare.is_full() {
                rare.add(Cpu(head.cpu), chunk);
            }
        }
        rare.by_kind.iter_mut().for_each(|list| list.sort_by_key(|placed| placed.entry.head.ts));
        rare
    }

    fn add(&mut self, cpu: Cpu, chunk: &'a [u8]) {
        entries(chunk)
            .for_each(|entry| self.by_kind[entry.kind as usize].push(Placed { cpu, entry }));
    }

    /// Returns the records of one kind, each with the CPU that wrote it.
    pub(crate) fn placed(&self, kind: RecordKind) -> &[Placed<'a>] {
        &self.by_kind[kind as usize]
    }

    /// Returns the records of one kind, without those of the walk.
    pub(crate) fn records<T>(&self, kind: RecordKind, read: Read<T>) -> Vec<T> {
        self.placed(kind).iter().filter_map(|placed| read(placed.entry.bytes)).collect()
    }

    /// Returns the same, each record with the CPU that wrote it.
    pub(crate) fn on_cpus<T>(&self, kind: RecordKind, read: Read<T>) -> Vec<(Cpu, T)> {
        let placed = self.placed(kind).iter();
        placed.filter_map(|placed| Some((placed.cpu, read(placed.entry.bytes)?))).collect()
    }

    /// Returns the same, each record with the bytes after its fixed part.
    pub(crate) fn with_tails<T>(
        &self,
        kind: RecordKind,
        read: Read<T>,
        size: usize,
    ) -> impl Iterator<Item = (T, &'a [u8])> {
        let placed = self.placed(kind).iter();
        placed
            .filter_map(move |Placed { entry, .. }| read(entry.bytes).zip(entry.bytes.get(size..)))
    }

    /// Returns the records of one kind in the walk over all tasks.
    pub(crate) fn walked<T>(&self, kind: RecordKind, read: Read<T>) -> Vec<T> {
        typed(self.walked.iter().copied(), kind, read)
    }

    /// Returns all records of one kind, those of the walk first.
    pub(crate) fn all<T>(&self, kind: RecordKind, read: Read<T>) -> Vec<T> {
        let mut all = self.walked(kind, read);
        all.extend(self.records(kind, read));
        all
    }

    /// Returns the number of records before a time.
    pub(crate) fn count_before(&self, time: Nanos) -> usize {
        self.by_kind
            .iter()
            .map(|list| list.partition_point(|placed| placed.entry.head.ts < time))
            .sum()
    }

    /// Returns `true` if the number of records reached the maximum, so that the oldest were
    /// dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.by_kind.iter().map(Vec::len).sum::<usize>() >= ENTRIES_MAX
    }
}

/// Returns an upper bound of the scheduler records in a chunk: packed ones are words with the
/// highest bit set.
fn events_at_most(chunk: &[u8]) -> usize {
    let (words, _) = chunk.as_chunks::<WORD_BYTES>();
    let packed = words.iter().filter(|word| word[WORD_BYTES - 1] >= 0x80).count();
    packed + (words.len() - packed) * WORD_BYTES / Switch::SIZE
}

/// Returns the number of leading chunks that are too old to be read; `chunks` are in the order in
/// which they were opened.
fn too_old(chunks: &[(ChunkHead, &[u8])]) -> usize {
    let mut events = 0;
    let newest = chunks.iter().rev().take_while(|(_, chunk)| {
        events += events_at_most(chunk);
        events <= EVENTS_MAX
    });
    chunks.len() - newest.count()
}

/// Returns all events that affect the states of threads, in chronological order, and `true` if the
/// oldest were dropped because of [`EVENTS_MAX`].
pub(crate) fn read_events<'a>(incident: &'a Incident, rare: &Rare<'_>) -> (Merge<'a>, bool) {
    let mut chunks = chunks(incident.bytes(Section::Sched));
    let oldest = too_old(&chunks);
    chunks.drain(..oldest);
    chunks.retain(|(head, _)| (head.cpu as usize) < CPU_LIMIT);
    let kinds = [RecordKind::Fork, RecordKind::Sample].into_iter();
    let others = kinds.flat_map(|kind| rare.placed(kind));
    let mut others: Vec<_> =
        others.filter_map(|placed| SchedEvent::read(&placed.entry, placed.cpu)).collect();
    others.sort_by_key(|event| event.ts);
    (Merge::new(chunks, others), oldest > 0)
}

/// Returns the records of one kind.
pub(crate) fn typed<'a, T>(
    entries: impl Iterator<Item = ChunkEntry<'a>>,
    kind: RecordKind,
    read: Read<T>,
) -> Vec<T> {
    entries.filter(|entry| entry.kind == kind).filter_map(|entry| read(entry.bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_record::CHUNK_BYTES;

    /// Returns `true` if some of `chunks` chunks filled with `byte` are dropped.
    fn leaves_out(byte: u8, chunks: usize) -> bool {
        let mut incident = Incident::default();
        incident.push(Section::Sched, vec![byte; chunks * CHUNK_BYTES]);
        read_events(&incident, &Rare::read(&incident)).1
    }

    #[test]
    fn it_is_known_whether_the_oldest_were_left_out() {
        let [packed, whole] =
            [WORD_BYTES, Switch::SIZE].map(|size| EVENTS_MAX / (CHUNK_BYTES / size));
        assert!(!leaves_out(0xff, packed) && leaves_out(0xff, packed + 1));
        assert!(!leaves_out(0, whole) && leaves_out(0, whole + 1));
    }
}
