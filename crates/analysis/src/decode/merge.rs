// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chronological merge of the scheduler events of all CPUs.
//!
//! A CPU fills one chunk after the other, so about as many chunks as there are CPUs overlap at any
//! time. The merge decodes a chunk only when it reaches the time at which the chunk was opened, so
//! the events are never all in memory.

use crate::decode::events::SchedEvent;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::vec;
use tipme_record::records::Switch;
use tipme_record::{CHUNK_BYTES, ChunkHead, Cpu, Nanos, entries, unpacked};

/// Iterator over events in chronological order; at equal times, the chunk opened first comes first.
pub(crate) struct Merge<'a> {
    /// In the order in which they were opened.
    chunks: Vec<(ChunkHead, &'a [u8])>,
    /// Number of decoded chunks.
    decoded: usize,
    /// Remaining events of each chunk, by its index; the last list has the events of other
    /// sections.
    lists: Vec<vec::IntoIter<SchedEvent>>,
    /// Time of the next event of each list that is not empty.
    next: BinaryHeap<Reverse<(Nanos, usize)>>,
}

impl<'a> Merge<'a> {
    /// Merges chunks, in the order in which they were opened, with chronological events of other
    /// sections.
    pub(crate) fn new(chunks: Vec<(ChunkHead, &'a [u8])>, others: Vec<SchedEvent>) -> Merge<'a> {
        let (none, last) = (Vec::new().into_iter(), chunks.len());
        let mut merge =
            Merge { chunks, decoded: 0, lists: vec![none; last + 1], next: BinaryHeap::new() };
        merge.add(last, others);
        merge
    }

    fn add(&mut self, list: usize, events: Vec<SchedEvent>) {
        if let Some(first) = events.first() {
            self.next.push(Reverse((first.ts, list)));
            self.lists[list] = events.into_iter();
        }
    }

    /// Decodes the chunks that may contain the next event.
    fn decode(&mut self) {
        while let Some((head, chunk)) = self.chunks.get(self.decoded) {
            if self.next.peek().is_some_and(|Reverse((at, _))| *at < head.earliest()) {
                break;
            }
            let events = in_order(chunk, Cpu(head.cpu));
            self.add(self.decoded, events);
            self.decoded += 1;
        }
    }
}

impl Iterator for Merge<'_> {
    type Item = SchedEvent;

    fn next(&mut self) -> Option<SchedEvent> {
        self.decode();
        let mut first = self.next.peek_mut()?;
        let Reverse((_, list)) = *first;
        let event = self.lists[list].next();
        match self.lists[list].as_slice().first() {
            Some(next) => *first = Reverse((next.ts, list)),
            None => {
                PeekMut::pop(first);
                self.lists[list] = Vec::new().into_iter();
            }
        }
        event
    }
}

/// Returns the events of a chunk in chronological order.
fn in_order(chunk: &[u8], cpu: Cpu) -> Vec<SchedEvent> {
    let chunks = unpacked(chunk);
    let mut events = Vec::with_capacity(chunks.len() / Switch::SIZE);
    for entry in chunks.chunks(CHUNK_BYTES).flat_map(entries) {
        events.extend(SchedEvent::read(&entry, cpu));
    }
    events.sort_by_key(|event: &SchedEvent| event.ts);
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_record::{Head, RecordKind, Tid};
    use zerocopy::IntoBytes;

    /// Returns a chunk of switches, given as milliseconds and thread, opened at the time of the
    /// first.
    fn chunk(switches: &[(u64, u32)]) -> Vec<u8> {
        let opened = Nanos::from_millis(switches[0].0);
        let head = ChunkHead { taken: 1, opened, cpu: 0, class: 0, closed: Nanos(0) };
        let mut bytes = head.as_bytes().to_vec();
        for (ms, tid) in switches {
            let (size, kind) = (Switch::SIZE as u16, RecordKind::Switch as u8);
            let head =
                Head { ts: Nanos::from_millis(*ms), tid: Tid(*tid), size, kind, generation: 1 };
            let record = Switch { head, next: Tid(0), prev_state: 0, prev_prio: 0, next_prio: 0 };
            bytes.extend(record.as_bytes());
        }
        bytes.resize(CHUNK_BYTES, 0);
        bytes
    }

    fn merged(chunks: &[Vec<u8>], others: &[(u64, u32)]) -> Vec<(u64, u32)> {
        let others = in_order(&chunk(&[&[(0, 0)][..], others].concat()), Cpu(0)).split_off(1);
        let section = chunks.concat();
        let merge = Merge::new(crate::decode::bytes::chunks(&section), others);
        merge.map(|event| (event.ts.0 / 1_000_000, event.tid.0)).collect()
    }

    #[test]
    fn chunks_of_all_cpus_are_merged_in_order_of_time() {
        let chunks = [
            chunk(&[(10, 1), (30, 2), (70, 3)]),
            chunk(&[(75, 4)]),
            chunk(&[(5, 5), (40, 6), (80, 7)]),
        ];
        let expected =
            [(5, 5), (10, 1), (20, 9), (30, 2), (40, 6), (70, 3), (75, 4), (80, 7), (90, 9)];
        assert_eq!(merged(&chunks, &[(20, 9), (90, 9)]), expected);
    }

    #[test]
    fn events_of_one_time_come_in_order_of_their_chunks() {
        let chunks = [chunk(&[(20, 3)]), chunk(&[(10, 1), (20, 2)])];
        assert_eq!(merged(&chunks, &[(20, 9)]), [(10, 1), (20, 2), (20, 3), (20, 9)]);
    }

    #[test]
    fn a_disordered_chunk_is_sorted() {
        assert_eq!(
            merged(&[chunk(&[(10, 1), (30, 2), (20, 3)])], &[]),
            [(10, 1), (20, 3), (30, 2)]
        );
    }

    #[test]
    fn a_chunk_is_decoded_only_when_the_merge_comes_to_it() {
        let bytes: Vec<u8> =
            (1..=9).flat_map(|ms| chunk(&[(ms * 10, 1), (ms * 10 + 5, 1)])).collect();
        let mut merge = Merge::new(crate::decode::bytes::chunks(&bytes), Vec::new());
        let mut most = 0;
        while merge.next().is_some() {
            most = most.max(merge.lists.iter().filter(|list| !list.as_slice().is_empty()).count());
        }
        assert_eq!((most, merge.decoded), (1, 9));
    }
}
