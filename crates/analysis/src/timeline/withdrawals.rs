// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steal time of single CPUs as the kernel counts it at each tick, in nanoseconds; the column
//! `steal` of /proc/stat counts it in steps of 10 ms.

use tipme_record::records::Withdrawn;
use tipme_record::{Cpu, Nanos};

/// Minimum share of a stretch without records that was stolen, for the hypervisor to be its cause.
const SHARE_MIN: f64 = 0.5;

/// Time stolen from a CPU between two ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Withdrawal {
    cpu: Cpu,
    since: Nanos,
    until: Nanos,
    nanos: Nanos,
}

/// All recorded steal times, by CPU and end.
#[derive(Debug, Default)]
pub struct Withdrawals {
    sorted: Vec<Withdrawal>,
}

impl Withdrawals {
    pub fn new(records: &[(Cpu, Withdrawn)]) -> Withdrawals {
        let withdrawals = records.iter().map(|(cpu, record)| Withdrawal {
            cpu: *cpu,
            since: record.since.min(record.head.ts),
            until: record.head.ts,
            nanos: record.nanos,
        });
        let mut sorted: Vec<Withdrawal> = withdrawals.collect();
        sorted.sort_by_key(|one| (one.cpu, one.until, one.since));
        Withdrawals { sorted }
    }

    /// Returns `true` if the kernel accounted any.
    pub(crate) fn are_counted(&self) -> bool {
        !self.sorted.is_empty()
    }

    /// Returns the maximum time in `lo..hi` that the hypervisor stole from a CPU: its position
    /// between two ticks is unknown.
    pub fn taken(&self, cpu: Cpu, lo: Nanos, hi: Nanos) -> Nanos {
        let first = self.sorted.partition_point(|one| (one.cpu, one.until) <= (cpu, lo));
        let here = self.sorted.get(first..).unwrap_or_default().iter();
        let here = here.take_while(|one| one.cpu == cpu && one.since < hi);
        let parts = here.map(|one| one.nanos.0.min(hi.min(one.until).since(lo.max(one.since)).0));
        Nanos(parts.fold(0, u64::saturating_add))
    }

    /// Returns `true` if the hypervisor caused a stretch without records on a CPU.
    pub fn explains(&self, cpu: Cpu, lo: Nanos, hi: Nanos) -> bool {
        lo < hi && self.taken(cpu, lo, hi).0 as f64 >= SHARE_MIN * hi.since(lo).0 as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_record::{Head, Tid};

    fn record(cpu: u32, since: u64, until: u64, nanos: u64) -> (Cpu, Withdrawn) {
        let head = Head { ts: Nanos(until), tid: Tid(7), size: 32, kind: 36, generation: 0 };
        (Cpu(cpu), Withdrawn { head, nanos: Nanos(nanos), since: Nanos(since) })
    }

    #[test]
    fn stolen_time_is_split_between_overlapping_stretches() {
        let all = Withdrawals::new(&[
            record(0, 100, 200, 60),
            record(0, 200, 300, 10),
            record(1, 0, 900, 500),
        ]);
        assert_eq!(all.taken(Cpu(0), Nanos(110), Nanos(190)), Nanos(60));
        assert_eq!(all.taken(Cpu(0), Nanos(150), Nanos(260)), Nanos(60));
        assert_eq!(all.taken(Cpu(0), Nanos(300), Nanos(400)), Nanos(0));
        assert_eq!(all.taken(Cpu(2), Nanos(0), Nanos(900)), Nanos(0));
        assert!(
            all.explains(Cpu(0), Nanos(110), Nanos(190))
                && !all.explains(Cpu(0), Nanos(210), Nanos(290))
        );
        assert!(!all.explains(Cpu(0), Nanos(150), Nanos(150)));
    }
}
