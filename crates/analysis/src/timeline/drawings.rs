// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who draws what, by thread.

use crate::decode::messages::{Messages, PartPlace, Side};
use std::collections::HashMap;
use tipme_record::{Nanos, Tid};

/// The drawings of each thread, by time.
#[derive(Debug, Default)]
pub struct Drawings(HashMap<Tid, Vec<(Nanos, PartPlace)>>);

impl Drawings {
    pub(crate) fn find(messages: &Messages) -> Drawings {
        let mut drawings: HashMap<Tid, Vec<(Nanos, PartPlace)>> = HashMap::new();
        for (index, stream) in messages.streams().iter().enumerate() {
            let sent = stream.side(Side::RequestSent).iter().enumerate();
            for (part, sent) in sent.filter(|(_, sent)| messages.draws(stream, sent)) {
                drawings.entry(sent.tid).or_default().push((sent.ts, PartPlace { stream: index, part }));
            }
        }
        drawings.values_mut().for_each(|list| list.sort_unstable());
        Drawings(drawings)
    }

    /// When a thread draws next, at or after a time.
    pub(crate) fn next(&self, tid: Tid, at: Nanos) -> Option<Nanos> {
        let all = self.0.get(&tid)?;
        all.get(all.partition_point(|(sent, _)| *sent < at)).map(|(sent, _)| *sent)
    }

    /// The drawings of a thread in `lo..=hi`.
    pub(crate) fn within(&self, tid: Tid, lo: Nanos, hi: Nanos) -> &[(Nanos, PartPlace)] {
        let all = self.0.get(&tid).map_or(&[][..], Vec::as_slice);
        let (first, after) = (all.partition_point(|(at, _)| *at < lo), all.partition_point(|(at, _)| *at <= hi));
        all.get(first..after).unwrap_or_default()
    }

    /// Whether some threads together went on drawing: at no time did they draw nothing for three quarters of `lo..hi`.
    pub(crate) fn went_on(&self, is_one: impl Fn(Tid) -> bool, lo: Nanos, hi: Nanos) -> bool {
        let threads = self.0.keys().copied().filter(|tid| is_one(*tid));
        let drawn = threads.flat_map(|tid| self.within(tid, lo, hi)).map(|(at, _)| *at);
        let mut times: Vec<Nanos> = drawn.chain([lo, hi]).collect();
        times.sort_unstable();
        let longest = times.iter().zip(&times[1..]).map(|(from, to)| to.since(*from)).max();
        longest.is_some_and(|longest| longest.0 < hi.since(lo).0 / 4 * 3)
    }

    /// When a thread drew nothing for longer than this, from the begin of the records to their end.
    pub(crate) fn apart(&self, tid: Tid, end: Nanos, longest: Nanos) -> impl Iterator<Item = (Nanos, Nanos)> {
        let all = self.0.get(&tid).map_or(&[][..], Vec::as_slice).iter().map(|(at, _)| *at);
        let pairs = all.chain([end]).scan(Nanos(0), |from, to| Some((std::mem::replace(from, to), to)));
        pairs.filter(move |(from, to)| to.since(*from) > longest)
    }
}
