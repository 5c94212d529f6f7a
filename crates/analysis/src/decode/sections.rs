// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sections of an incident: documents, and records in the order of time.

use crate::decode::bytes::chunks;
use crate::decode::events::{CPU_LIMIT, Event};
use crate::error::Error;
use tipme_record::incident::{Incident, Section};
use tipme_record::{Cpu, Entry, Kind, entries};

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

/// All records outside the scheduler's class, in the order of time; the oldest are left out where they are too many.
pub fn rare_records(incident: &Incident) -> Vec<Placed<'_>> {
    let sections = [Section::Rare, Section::Exits].map(|section| chunks(incident.bytes(section)));
    let mut placed = Vec::new();
    for (head, chunk) in sections.iter().flatten().rev() {
        if placed.len() < ENTRIES_MAX {
            placed.extend(entries(chunk).map(|entry| Placed { cpu: Cpu(head.cpu), entry }));
        }
    }
    placed.sort_by_key(|placed| placed.entry.head.ts);
    placed
}

/// All changes of the states of threads, in the order of time; the oldest are left out where they are too many.
pub fn read_events(incident: &Incident, placed: &[Placed<'_>]) -> Vec<Event> {
    let chunks = chunks(incident.bytes(Section::Sched));
    let mut first = chunks.len();
    let mut budget = EVENTS_MAX;
    while first > 0 && budget > 0 {
        first -= 1;
        budget = budget.saturating_sub(chunks[first].1.len() / 24);
    }
    let believed = chunks[first..].iter().filter(|(head, _)| (head.cpu as usize) < CPU_LIMIT);
    let frequent =
        believed.flat_map(|(head, chunk)| entries(chunk).filter_map(|entry| Event::read(&entry, Cpu(head.cpu))));
    let mut events: Vec<Event> = frequent.collect();
    events.extend(placed.iter().filter_map(|placed| Event::read(&placed.entry, placed.cpu)));
    events.sort_by_key(|event| event.ts);
    events
}

/// The records of one kind.
pub fn typed<'a, T>(entries: impl Iterator<Item = Entry<'a>>, kind: Kind, read: fn(&[u8]) -> Option<T>) -> Vec<T> {
    entries.filter(|entry| entry.kind == kind).filter_map(|entry| read(entry.bytes)).collect()
}

/// A record with the bytes behind its fixed part.
pub fn with_tail<'a, T>(entry: Entry<'a>, read: fn(&[u8]) -> Option<T>, size: usize) -> Option<(T, &'a [u8])> {
    read(entry.bytes).zip(entry.bytes.get(size..))
}
