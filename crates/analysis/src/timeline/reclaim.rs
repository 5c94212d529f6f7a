// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time that threads spent freeing memory: from the begin of a reclaim or compaction to its end.

use std::collections::HashMap;
use tipme_record::records::Reclaim;
use tipme_record::{Nanos, Tid};

/// Throttling of a writer that has dirtied too many pages; the record has no end.
pub(crate) const THROTTLED: u32 = 2;

/// Reclaim inside a control group at its limit, limited to the group's own memory.
pub(crate) const IN_GROUP: u32 = 4;

/// Reclaim spans of all threads, in chronological order without overlaps.
#[derive(Debug, Default)]
pub struct Reclaiming {
    by_tid: HashMap<Tid, Vec<(Nanos, Nanos)>>,
}

impl Reclaiming {
    /// Builds spans from records in chronological order; drops a begin without an end.
    pub fn new(records: &[Reclaim]) -> Reclaiming {
        let mut open: HashMap<(Tid, u32), Nanos> = HashMap::new();
        let mut reclaiming = Reclaiming::default();
        for record in records.iter().filter(|record| record.what != THROTTLED) {
            let key = (record.head.tid, record.what);
            match (record.phase, open.remove(&key)) {
                (0, _) => {
                    open.insert(key, record.head.ts);
                }
                (_, Some(begin)) => reclaiming.add(record.head.tid, begin, record.head.ts),
                _ => {}
            }
        }
        reclaiming
    }

    /// Adds a span. Compaction may run inside reclaim: the one that ends later absorbs those it
    /// contains.
    fn add(&mut self, tid: Tid, lo: Nanos, hi: Nanos) {
        let spans = self.by_tid.entry(tid).or_default();
        let mut lo = lo;
        while let Some(last) = spans.last().filter(|last| last.1 > lo) {
            lo = lo.min(last.0);
            spans.pop();
        }
        spans.push((lo, hi.max(lo)));
    }

    /// Returns the time in `lo..hi` that a thread spent freeing memory.
    pub fn within(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Nanos {
        let spans = self.by_tid.get(&tid).map_or(&[][..], Vec::as_slice);
        let first = spans.partition_point(|span| span.1 <= lo);
        let spans = spans.get(first..).unwrap_or_default().iter().take_while(|span| span.0 < hi);
        Nanos(spans.map(|span| span.1.min(hi).since(span.0.max(lo)).0).fold(0, u64::saturating_add))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    fn record(ts: u64, tid: u32, what: u32, phase: u32) -> Reclaim {
        let mut record = Reclaim::new_zeroed();
        (record.head.ts, record.head.tid, record.what, record.phase) =
            (Nanos(ts), Tid(tid), what, phase);
        record
    }

    #[test]
    fn overlapping_reclaims_of_a_thread_count_once() {
        let records = [
            record(10, 1, 0, 0),
            record(12, 2, 4, 0),
            record(20, 1, 1, 0),
            record(30, 1, 1, 1),
            record(40, 1, 0, 1),
            record(45, 1, 2, 0),
            record(50, 1, 0, 1),
            record(60, 1, 0, 0),
        ];
        let reclaiming = Reclaiming::new(&records);
        assert_eq!(reclaiming.within(Tid(1), Nanos(0), Nanos(100)), Nanos(30));
        assert_eq!(reclaiming.within(Tid(1), Nanos(15), Nanos(35)), Nanos(20));
        assert_eq!(reclaiming.within(Tid(2), Nanos(0), Nanos(100)), Nanos(0));
    }
}
