// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sections of an incident: documents, and records in the order of time.

use crate::decode::bytes::chunks;
use crate::decode::events::{CPU_LIMIT, Event};
use crate::decode::merge::Merge;
use crate::error::Error;
use tipme_record::incident::{Incident, Section};
use tipme_record::records::Switch;
use tipme_record::{CHUNK_BYTES, Cpu, Entry, Kind, Nanos, entries};

/// More scheduler records than this are not read; the oldest are left out.
pub const EVENTS_MAX: usize = 8_000_000;

/// More other records than this are not read; the oldest are left out.
pub const ENTRIES_MAX: usize = 4_000_000;

/// A record outside the scheduler's class with the CPU that wrote it.
pub struct Placed<'a> {
    pub cpu: Cpu,
    pub entry: Entry<'a>,
}

/// The JSON document of a section; its default where there is none.
pub fn document<T: for<'a> serde::Deserialize<'a> + Default>(
    incident: &Incident,
    section: Section,
) -> Result<T, Error> {
    incident.json(section).map_err(|cause| Error::Document { section, cause })
}

/// All records outside the scheduler's class; of each kind in the order of time.
pub struct Rare<'a> {
    /// By the number of the kind.
    by_kind: [Vec<Placed<'a>>; 256],
}

impl<'a> Rare<'a> {
    /// Reads them; the oldest are left out where they are too many.
    pub fn read(incident: &'a Incident) -> Rare<'a> {
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
    pub fn placed(&self, kind: Kind) -> &[Placed<'a>] {
        &self.by_kind[kind as usize]
    }

    /// The records of one kind.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = Entry<'a>> {
        self.placed(kind).iter().map(|placed| placed.entry)
    }

    /// How many records there are before a time.
    pub fn count_before(&self, time: Nanos) -> usize {
        self.by_kind.iter().map(|list| list.partition_point(|placed| placed.entry.head.ts < time)).sum()
    }

    /// Whether there are so many that the oldest were left out.
    pub fn is_full(&self) -> bool {
        self.by_kind.iter().map(Vec::len).sum::<usize>() >= ENTRIES_MAX
    }
}

/// Chunks that hold that many scheduler records.
const CHUNKS_MAX: usize = EVENTS_MAX.div_ceil(CHUNK_BYTES / Switch::SIZE);

/// All changes of the states of threads, in the order of time, and whether the oldest were left out, being too many.
pub fn read_events<'a>(incident: &'a Incident, rare: &Rare<'_>) -> (Merge<'a>, bool) {
    let mut chunks = chunks(incident.bytes(Section::Sched));
    let oldest = chunks.len().saturating_sub(CHUNKS_MAX);
    chunks.drain(..oldest);
    chunks.retain(|(head, _)| (head.cpu as usize) < CPU_LIMIT);
    let forks = rare.placed(Kind::Fork).iter().filter_map(|placed| Event::read(&placed.entry, placed.cpu));
    (Merge::new(chunks, forks.collect()), oldest > 0)
}

/// The records of one kind.
pub fn typed<'a, T>(entries: impl Iterator<Item = Entry<'a>>, kind: Kind, read: fn(&[u8]) -> Option<T>) -> Vec<T> {
    entries.filter(|entry| entry.kind == kind).filter_map(|entry| read(entry.bytes)).collect()
}

/// A record with the bytes behind its fixed part.
pub fn with_tail<'a, T>(entry: Entry<'a>, read: fn(&[u8]) -> Option<T>, size: usize) -> Option<(T, &'a [u8])> {
    read(entry.bytes).zip(entry.bytes.get(size..))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether some of so many chunks are left out.
    fn leaves_out(chunks: usize) -> bool {
        let mut incident = Incident::default();
        incident.push(Section::Sched, vec![0; chunks * CHUNK_BYTES]);
        read_events(&incident, &Rare::read(&incident)).1
    }

    #[test]
    fn it_is_known_whether_the_oldest_were_left_out() {
        assert!(!leaves_out(CHUNKS_MAX));
        assert!(leaves_out(CHUNKS_MAX + 1));
    }
}
