// SPDX-License-Identifier: MIT OR Apache-2.0
//! Number of held records in the seconds in which others were lost.

use crate::decode::sections::Rare;
use tipme_record::incident::{Loss, Losses};
use tipme_record::{Nanos, RingClass};

/// Unit in which losses are counted.
pub(crate) const SECOND: Nanos = Nanos::from_secs(1);

/// Counts scheduler events in passing, up to the begin and the end of each second with losses.
pub(crate) struct Passed {
    /// Sorted.
    times: Vec<Nanos>,
    /// Number of events before each of the times passed so far.
    before: Vec<u64>,
    all: u64,
}

impl Passed {
    pub(crate) fn new(losses: &Losses) -> Passed {
        let mut times: Vec<Nanos> = losses.per_second.iter().flat_map(second).collect();
        times.sort_unstable();
        times.dedup();
        Passed { times, before: Vec::new(), all: 0 }
    }

    /// Counts an event; events come in chronological order.
    pub(crate) fn see(&mut self, at: Nanos) {
        while self.times.get(self.before.len()).is_some_and(|time| *time <= at) {
            self.before.push(self.all);
        }
        self.all += 1;
    }

    /// Returns the number of held records in the second of a loss, for comparison: those of the
    /// scheduler class for a loss of that class, else all others.
    pub(crate) fn beside(&self, loss: &Loss, rare: &Rare<'_>) -> u64 {
        let [lo, hi] = second(loss).map(|time| match loss.class == RingClass::Sched.name() {
            true => self.events_before(time),
            false => rare.count_before(time) as u64,
        });
        hi - lo
    }

    fn events_before(&self, time: Nanos) -> u64 {
        let place = self.times.partition_point(|known| *known < time);
        self.before.get(place).copied().unwrap_or(self.all)
    }
}

/// Returns begin and end of the second of a loss.
fn second(loss: &Loss) -> [Nanos; 2] {
    let end = Nanos(loss.until_ns);
    [end.before(SECOND), end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_record::incident::Incident;

    #[test]
    fn events_of_a_second_are_counted_from_its_begin_up_to_its_end() {
        let per_second = [2, 3, 9, 1].map(|s| Loss {
            until_ns: Nanos::from_secs(s).0,
            class: "sched".to_owned(),
            count: 1,
        });
        let losses = Losses { per_second: per_second.into() };
        let (mut passed, incident) = (Passed::new(&losses), Incident::default());
        for ms in [0, 999, 1_000, 1_500, 1_999, 2_000, 2_001] {
            passed.see(Nanos::from_millis(ms));
        }
        let rare = Rare::read(&incident);
        let beside: Vec<u64> =
            losses.per_second.iter().map(|loss| passed.beside(loss, &rare)).collect();
        assert_eq!(beside, [3, 2, 0, 2]);
    }
}
