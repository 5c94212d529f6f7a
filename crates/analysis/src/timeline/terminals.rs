// SPDX-License-Identifier: MIT OR Apache-2.0
//! Terminal data: the writer of the data that a kernel worker delivers to a reader.

use crate::timeline::threads::Timeline;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use tipme_record::records::Tty;
use tipme_record::{Nanos, Tid};

/// Maximum time from a worker's delivery to the wakeup that it causes.
const DELIVERY_MAX: Nanos = Nanos::from_millis(5);

/// Maximum time from a delivery to the wakeup of the reader. The first thread that the worker wakes
/// within it, and before its next delivery, reads that terminal; the worker has other work as well,
/// and wakes other threads for it.
const READER_MAX: Nanos = Nanos::from_millis(1);

/// Maximum number of writes of a thread that are followed to readers, earliest first.
const WRITES_MAX: usize = 4_096;

/// Writes and deliveries of all terminals, with the readers.
#[derive(Debug, Default)]
pub struct Terminals {
    /// Port, time and writer.
    written: Vec<(u64, Nanos, Tid)>,
    /// Worker, time and port.
    delivered: Vec<(Tid, Nanos, u64)>,
    /// The last port that each reader read.
    readers: HashMap<Tid, u64>,
    /// All readers of a port; a multiplexer reads several ports.
    readers_of: HashMap<u64, BTreeSet<Tid>>,
    /// Writes by writer: time and port.
    written_by: HashMap<Tid, Vec<(Nanos, u64)>>,
    /// All ports that a thread writes to.
    ports_of: HashMap<Tid, BTreeSet<u64>>,
}

impl Terminals {
    pub fn new(records: &[Tty], timeline: &Timeline) -> Terminals {
        let (mut written, mut delivered) = (Vec::new(), Vec::new());
        for Tty { head, port, stage, .. } in records {
            match stage {
                0 => written.push((*port, head.ts, head.tid)),
                1 => delivered.push((head.tid, head.ts, *port)),
                _ => {}
            }
        }
        written.sort_unstable();
        delivered.sort_unstable();
        let mut terminals = Terminals { written, delivered, ..Terminals::default() };
        for (port, at, writer) in &terminals.written {
            terminals.written_by.entry(*writer).or_default().push((*at, *port));
            terminals.ports_of.entry(*writer).or_default().insert(*port);
        }
        terminals.written_by.values_mut().for_each(|writes| writes.sort_unstable());
        terminals.find_readers(timeline);
        terminals
    }

    fn find_readers(&mut self, timeline: &Timeline) {
        let workers: HashSet<Tid> = self.delivered.iter().map(|entry| entry.0).collect();
        if workers.is_empty() {
            return;
        }
        let mut woken: Vec<(Tid, Nanos, Tid)> = Vec::new();
        for tid in timeline.threads() {
            let wakes = timeline.wakes(tid).filter(|(waker, _)| workers.contains(waker));
            woken.extend(wakes.map(|(worker, at)| (worker, at, tid)));
        }
        woken.sort_unstable();
        let delivered = self.delivered.iter().copied().enumerate();
        let reads = delivered.filter_map(|(index, (worker, delivered, port))| {
            let first = woken.partition_point(|(tid, at, _)| (*tid, *at) <= (worker, delivered));
            let &(tid, at, reader) = woken.get(first)?;
            let next = self.delivered.get(index + 1).filter(|next| next.0 == worker);
            let for_this = tid == worker && next.is_none_or(|next| at < next.1);
            (for_this && at.since(delivered) <= READER_MAX).then_some((at, reader, port))
        });
        let mut found: Vec<(Nanos, Tid, u64)> = reads.collect();
        found.sort_unstable();
        for (_, reader, port) in found {
            self.readers.insert(reader, port);
            self.readers_of.entry(port).or_default().insert(reader);
        }
    }

    /// Returns the readers of the terminals that a thread wrote to in `lo..=hi`, with the time of
    /// the first write to each; considers at most [`WRITES_MAX`] writes.
    pub fn reached(&self, writer: Tid, lo: Nanos, hi: Nanos) -> Vec<(Tid, Nanos)> {
        let mut ports: BTreeMap<u64, Nanos> = BTreeMap::new();
        let writes = self.written_by.get(&writer).map_or(&[][..], Vec::as_slice);
        let first = writes.partition_point(|(at, _)| *at < lo);
        for (at, port) in writes[first..].iter().take(WRITES_MAX).take_while(|(at, _)| *at <= hi) {
            ports.entry(*port).or_insert(*at);
        }
        let reached = ports.iter().flat_map(|(port, at)| {
            let readers = self.readers_of.get(port).into_iter().flatten();
            readers.map(|reader| (*reader, *at))
        });
        reached.collect()
    }

    /// Returns `true` if `writer` wrote again, between `after` and `before`, to the terminal that
    /// `reader` reads.
    pub(crate) fn writes_again(
        &self,
        writer: Tid,
        reader: Tid,
        after: Nanos,
        before: Nanos,
    ) -> bool {
        let writes = self.written_by.get(&writer).map_or(&[][..], Vec::as_slice);
        let later = writes[writes.partition_point(|(at, _)| *at <= after)..].iter();
        let port = self.readers.get(&reader);
        later.take_while(|(at, _)| *at < before).any(|(_, of)| Some(of) == port)
    }

    /// Returns all threads that read the terminal that a thread read last.
    pub(crate) fn fellows(&self, reader: Tid) -> impl Iterator<Item = Tid> {
        let port = self.readers.get(&reader);
        port.and_then(|port| self.readers_of.get(port)).into_iter().flatten().copied()
    }

    /// Returns the threads at the other end of a thread's terminal: the readers of its output, or
    /// else the writers of its input.
    pub(crate) fn other_ends(&self, tid: Tid) -> BTreeSet<Tid> {
        let ports = self.ports_of.get(&tid).into_iter().flatten();
        let shows: BTreeSet<Tid> =
            ports.filter_map(|port| self.readers_of.get(port)).flatten().copied().collect();
        if !shows.is_empty() {
            return shows;
        }
        self.written_to(tid, Nanos(0), Nanos(u64::MAX)).map(|(writer, _)| writer).collect()
    }

    /// Returns `true` if a thread reads a terminal.
    pub fn reads(&self, tid: Tid) -> bool {
        self.readers.contains_key(&tid)
    }

    /// Returns `true` if a thread ever wrote to a terminal.
    pub fn writes(&self, tid: Tid) -> bool {
        self.written_by.contains_key(&tid)
    }

    /// Returns the writes in `lo..hi` to the terminal that a thread reads, latest first: writer and
    /// time.
    pub(crate) fn written_to(
        &self,
        reader: Tid,
        lo: Nanos,
        hi: Nanos,
    ) -> impl Iterator<Item = (Tid, Nanos)> {
        let port = self.readers.get(&reader).copied();
        let first = self.written.partition_point(|entry| (Some(entry.0), entry.1) < (port, lo));
        let last = self.written.partition_point(|entry| (Some(entry.0), entry.1) < (port, hi));
        let within = self.written.get(first..last).filter(|_| port.is_some());
        let written = within.unwrap_or_default().iter().rev();
        written.filter(move |entry| entry.2 != reader).map(|entry| (entry.2, entry.1))
    }

    /// Returns the writer of the data that a worker delivered at a time, and the earlier time of
    /// the write.
    ///
    /// The writer may be the worker itself: the terminal echoes typed characters.
    pub fn writer(&self, worker: Tid, at: Nanos) -> Option<(Tid, Nanos)> {
        let after = self.delivered.partition_point(|entry| (entry.0, entry.1) <= (worker, at));
        let &(tid, delivered, port) = self.delivered.get(after.checked_sub(1)?)?;
        if tid != worker || at.since(delivered) > DELIVERY_MAX {
            return None;
        }
        let after = self.written.partition_point(|entry| (entry.0, entry.1) <= (port, delivered));
        let &(of, written, writer) = self.written.get(after.checked_sub(1)?)?;
        (of == port && written < at).then_some((writer, written))
    }
}
