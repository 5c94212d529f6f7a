// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drawing requests by thread.

use crate::decode::messages::{Messages, PartPlace, Side};
use std::collections::HashMap;
use tipme_record::{Nanos, Tid};

/// Drawings of each thread, by time.
#[derive(Debug, Default)]
pub struct Drawings(HashMap<Tid, Vec<(Nanos, PartPlace)>>);

impl Drawings {
    pub(crate) fn find(messages: &Messages) -> Drawings {
        let mut drawings: HashMap<Tid, Vec<(Nanos, PartPlace)>> = HashMap::new();
        for (index, stream) in messages.streams().iter().enumerate() {
            let sent = stream.side(Side::RequestSent).iter().enumerate();
            for (part, sent) in sent.filter(|(_, sent)| messages.draws(stream, sent)) {
                drawings
                    .entry(sent.tid)
                    .or_default()
                    .push((sent.ts, PartPlace { stream: index, part }));
            }
        }
        drawings.values_mut().for_each(|list| list.sort_unstable());
        Drawings(drawings)
    }

    /// Returns the time of a thread's next drawing at or after `at`.
    pub(crate) fn next(&self, tid: Tid, at: Nanos) -> Option<Nanos> {
        let all = self.0.get(&tid)?;
        all.get(all.partition_point(|(sent, _)| *sent < at)).map(|(sent, _)| *sent)
    }

    /// Returns the drawings of a thread in `lo..=hi`.
    pub(crate) fn within(&self, tid: Tid, lo: Nanos, hi: Nanos) -> &[(Nanos, PartPlace)] {
        let all = self.0.get(&tid).map_or(&[][..], Vec::as_slice);
        let (first, after) =
            (all.partition_point(|(at, _)| *at < lo), all.partition_point(|(at, _)| *at <= hi));
        all.get(first..after).unwrap_or_default()
    }

    /// Returns `true` if some threads together kept drawing: no gap covers three quarters of
    /// `lo..hi`.
    pub(crate) fn went_on(&self, is_one: impl Fn(Tid) -> bool, lo: Nanos, hi: Nanos) -> bool {
        let threads = self.0.keys().copied().filter(|tid| is_one(*tid));
        let drawn = threads.flat_map(|tid| self.within(tid, lo, hi)).map(|(at, _)| *at);
        let mut times: Vec<Nanos> = drawn.chain([lo, hi]).collect();
        times.sort_unstable();
        let longest = times.iter().zip(&times[1..]).map(|(from, to)| to.since(*from)).max();
        longest.is_some_and(|longest| longest.0 < hi.since(lo).0 / 4 * 3)
    }

    /// Returns the gaps between drawings of a thread that are longer than `longest`, from the start
    /// of the recording to `end`.
    pub(crate) fn apart(
        &self,
        tid: Tid,
        end: Nanos,
        longest: Nanos,
    ) -> impl Iterator<Item = (Nanos, Nanos)> {
        let all = self.0.get(&tid).map_or(&[][..], Vec::as_slice).iter().map(|(at, _)| *at);
        let pairs =
            all.chain([end]).scan(Nanos(0), |from, to| Some((std::mem::replace(from, to), to)));
        pairs.filter(move |(from, to)| to.since(*from) > longest)
    }
}
