// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cutting of an incident to a later start, for a smaller file and to share no more of a day than
//! needed.

use crate::chunk::{CHUNK_BYTES, ChunkEntry, ChunkHead, entries};
use crate::incident::{Incident, Losses, Meta, Section};
use crate::records::{Input, RecordKind, Switch};
use crate::units::{Nanos, Tid};
use crate::unpack::unpacked;
use std::collections::BTreeMap;
use zerocopy::FromBytes;

/// Bytes before the text of a sample: time, source, length.
const SAMPLE_HEAD: usize = 16;

/// Source of samples of a control group.
const OF_GROUP: u32 = 5;

/// Maximum interval of samples.
const SAMPLE_PERIOD: Nanos = Nanos::from_secs(1);

/// Returns a copy of the incident without the records before `from`.
///
/// Records of fork, exec and rename stay: later records identify processes by pid only. So do the
/// last records that determine if a thread ran or slept at `from`, and everything collected at the
/// mark.
///
/// # Errors
/// If a section with times is not a valid document.
pub fn cut(incident: &Incident, from: Nanos) -> Result<Incident, serde_json::Error> {
    let mut later = Incident { damage: incident.damage.clone(), ..Incident::default() };
    for (section, bytes) in &incident.sections {
        match section {
            Section::Meta => {
                later.push_json(*section, &held_from(incident.json(*section)?, from))?
            }
            Section::Losses => {
                later.push_json(*section, &lost_from(incident.json(*section)?, from))?
            }
            Section::Sched => later.push(*section, cut_chunks(&unpacked(bytes), from)),
            Section::Rare => later.push(*section, cut_chunks(bytes, from)),
            Section::Samples => later.push(*section, samples(bytes, from)),
            Section::Inputs => later.push(*section, inputs(bytes, from)),
            Section::Exits
            | Section::Tasks
            | Section::Cmdlines
            | Section::Stacks
            | Section::Symbols
            | Section::Displays
            | Section::Locks
            | Section::Cost
            | Section::Words
            | Section::Groups
            | Section::Files
            | Section::Baselines
            | Section::Ports => later.push(*section, bytes.clone()),
        }
    }
    Ok(later)
}

fn held_from(mut meta: Meta, from: Nanos) -> Meta {
    meta.held_from_ns = meta.held_from_ns.max(from.0);
    meta.window_requested_ns = meta.window_requested_ns.min(meta.mark_ns.saturating_sub(from.0));
    for class in &mut meta.classes {
        class.held_from_ns = class.held_from_ns.max(from.0);
    }
    meta
}

fn lost_from(mut losses: Losses, from: Nanos) -> Losses {
    losses.per_second.retain(|loss| loss.until_ns > from.0);
    losses
}

/// Cuts chunks to the records since `from`, those that identify tasks, and those that determine if
/// a thread ran or slept at that time. Chunks without such records are left out.
fn cut_chunks(section: &[u8], from: Nanos) -> Vec<u8> {
    let records = section.chunks(CHUNK_BYTES).flat_map(entries);
    let mut states: BTreeMap<Change, Nanos> = BTreeMap::new();
    for entry in records.filter(|entry| entry.head.ts < from) {
        for change in changes(&entry).into_iter().flatten() {
            let last = states.entry(change).or_default();
            *last = entry.head.ts.max(*last);
        }
    }
    section.chunks(CHUNK_BYTES).flat_map(|bytes| chunk(bytes, from, &states)).collect()
}

/// Cuts a chunk to the records since `from` and those that identify tasks; returns nothing if it
/// has none.
pub fn cut_chunk(bytes: &[u8], from: Nanos) -> Vec<u8> {
    chunk(bytes, from, &BTreeMap::new())
}

fn chunk(bytes: &[u8], from: Nanos, states: &BTreeMap<Change, Nanos>) -> Vec<u8> {
    let kept = entries(bytes).filter(|entry| stays(entry, from, states));
    let kept: Vec<&[u8]> = kept.map(|entry| entry.bytes).collect();
    let Some(head) = bytes.get(..size_of::<ChunkHead>()).filter(|_| !kept.is_empty()) else {
        return Vec::new();
    };
    let mut later = [head, &kept.concat()].concat();
    later.resize(bytes.len(), 0);
    later
}

fn stays(entry: &ChunkEntry<'_>, from: Nanos, states: &BTreeMap<Change, Nanos>) -> bool {
    let names = matches!(entry.kind, RecordKind::Fork | RecordKind::Exec | RecordKind::Rename);
    let mut changes = changes(entry).into_iter().flatten();
    entry.head.ts >= from
        || names
        || changes.any(|change| states.get(&change) == Some(&entry.head.ts))
}

/// A thread and its state change in a record.
type Change = (Tid, Transition);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Transition {
    Left,
    Ran,
    Woke,
}

/// Returns the state changes in a record.
fn changes(entry: &ChunkEntry<'_>) -> [Option<Change>; 2] {
    let tid = entry.head.tid;
    match entry.kind {
        RecordKind::Switch => [
            Some((tid, Transition::Left)),
            Switch::read(entry.bytes).map(|switch| (switch.next, Transition::Ran)),
        ],
        RecordKind::Waking => [Some((tid, Transition::Woke)), None],
        _ => [None, None],
    }
}

fn inputs(section: &[u8], from: Nanos) -> Vec<u8> {
    let records = section.chunks(Input::SIZE);
    records
        .filter(|record| Input::read(record).is_some_and(|input| input.head.ts >= from))
        .flatten()
        .copied()
        .collect()
}

/// Cuts samples. Counters are read as differences, so one sample before `from` stays. Those of a
/// control group may be older than the others, so all of them stay.
fn samples(section: &[u8], from: Nanos) -> Vec<u8> {
    let mut later = Vec::new();
    let mut rest = section;
    while let Some((head, behind)) = rest.split_first_chunk::<SAMPLE_HEAD>() {
        let Ok(at) = Nanos::read_from_bytes(&head[..8]) else { break };
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let text = usize::try_from(word(12)).unwrap_or(usize::MAX).checked_next_multiple_of(8);
        let Some((text, after)) = text.and_then(|length| behind.split_at_checked(length)) else {
            break;
        };
        if word(8) == OF_GROUP || at.after(SAMPLE_PERIOD) >= from {
            later.extend_from_slice(head);
            later.extend_from_slice(text);
        }
        rest = after;
    }
    later
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::Loss;
    use crate::records::{Head, Rename, Switch};
    use crate::units::Tid;
    use zerocopy::{FromZeros, IntoBytes};

    const FROM: Nanos = Nanos::from_secs(8);

    fn head(seconds: u64, size: usize, kind: RecordKind) -> Head {
        Head {
            ts: Nanos::from_secs(seconds),
            tid: Tid(7),
            size: size as u16,
            kind: kind as u8,
            generation: 1,
        }
    }

    fn switch(seconds: u64) -> Vec<u8> {
        let mut record = Switch::new_zeroed();
        record.head = head(seconds, Switch::SIZE, RecordKind::Switch);
        record.as_bytes().to_vec()
    }

    fn rename(seconds: u64) -> Vec<u8> {
        Rename {
            head: head(seconds, Rename::SIZE, RecordKind::Rename),
            comm: *b"sh\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        }
        .as_bytes()
        .to_vec()
    }

    fn input(seconds: u64) -> Vec<u8> {
        let mut record = Input::new_zeroed();
        record.head = head(seconds, Input::SIZE, RecordKind::Input);
        record.as_bytes().to_vec()
    }

    fn chunk_of(records: &[Vec<u8>]) -> Vec<u8> {
        let head = ChunkHead { taken: 1, opened: Nanos(1), cpu: 0, class: 0, closed: Nanos(0) };
        let mut bytes = [head.as_bytes(), &records.concat()].concat();
        bytes.resize(CHUNK_BYTES, 0);
        bytes
    }

    fn sample(seconds: u64, source: u32) -> Vec<u8> {
        let head = [
            &(seconds * 1_000_000_000).to_le_bytes()[..],
            &source.to_le_bytes(),
            &3_u32.to_le_bytes(),
        ]
        .concat();
        [&head[..], b"cpu\0\0\0\0\0"].concat()
    }

    fn incident() -> Incident {
        let mut incident = Incident::default();
        let meta = Meta {
            mark_ns: 9_000_000_000,
            held_from_ns: 1,
            window_requested_ns: 60_000_000_000,
            ..Meta::default()
        };
        incident.push_json(Section::Meta, &meta).expect("it is a document");
        let lost = [3, 9].map(|second| Loss {
            until_ns: second * 1_000_000_000,
            count: 1,
            ..Loss::default()
        });
        incident
            .push_json(Section::Losses, &Losses { per_second: lost.into() })
            .expect("it is a document");
        let chunks =
            [chunk_of(&[switch(2)]), chunk_of(&[switch(3), rename(3), switch(4), switch(8)])];
        incident.push(Section::Sched, chunks.concat());
        incident.push(
            Section::Samples,
            [sample(3, 3), sample(3, 5), sample(7, 3), sample(8, 3)].concat(),
        );
        incident.push(Section::Inputs, [input(2), input(9)].concat());
        incident
    }

    fn later() -> Incident {
        cut(&incident(), FROM).expect("the documents are whole")
    }

    #[test]
    fn what_was_before_goes_but_names_and_states() {
        let sched = later().bytes(Section::Sched).to_vec();
        assert_eq!(sched.len(), CHUNK_BYTES);
        let kept: Vec<(RecordKind, Nanos)> =
            entries(&sched).map(|entry| (entry.kind, entry.head.ts)).collect();
        let state = (RecordKind::Switch, Nanos::from_secs(4));
        assert_eq!(
            kept,
            [(RecordKind::Rename, Nanos::from_secs(3)), state, (RecordKind::Switch, FROM)]
        );
        assert_eq!(later().bytes(Section::Inputs), input(9));
        assert_eq!(
            later().bytes(Section::Samples),
            [sample(3, 5), sample(7, 3), sample(8, 3)].concat()
        );
    }

    #[test]
    fn the_documents_say_where_it_begins() {
        let meta: Meta = later().json(Section::Meta).expect("it is a document");
        assert_eq!((meta.held_from_ns, meta.window_requested_ns), (FROM.0, 1_000_000_000));
        let losses: Losses = later().json(Section::Losses).expect("it is a document");
        assert_eq!(
            losses.per_second.iter().map(|loss| loss.until_ns).collect::<Vec<_>>(),
            [9_000_000_000]
        );
    }

    #[test]
    fn damaged_sections_are_cut_as_far_as_they_go() {
        for length in [0, 1, 15, 40, 200] {
            let mut damaged = incident();
            damaged.sections.iter_mut().skip(2).for_each(|(_, bytes)| bytes.truncate(length));
            assert!(cut(&damaged, FROM).is_ok());
        }
    }
}
