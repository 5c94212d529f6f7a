// SPDX-License-Identifier: MIT OR Apache-2.0
//! Users' refusals to have input recorded, and the times without it, which an incident states.

use std::collections::{BTreeSet, VecDeque};
use tipme_record::Nanos;

/// Maximum number of past stops remembered.
const STOPS_MAX: usize = 64;

/// Stops of the recording of input.
#[derive(Debug, Default)]
pub(crate) struct Unrecorded {
    /// Users who have refused; all of them are root or entitled to mark.
    unwilling: BTreeSet<u32>,
    /// Start of the current stop.
    since: Option<Nanos>,
    /// Start and end of past stops.
    past: VecDeque<(Nanos, Nanos)>,
}

impl Unrecorded {
    /// Records a user's choice; one refusal overrides all others.
    pub(crate) fn set(&mut self, uid: u32, record: bool, now: Nanos) {
        if record {
            self.unwilling.remove(&uid);
        } else {
            self.unwilling.insert(uid);
        }
        if self.unwilling.is_empty() {
            self.past.extend(self.since.take().map(|since| (since, now)));
            self.past.drain(..self.past.len().saturating_sub(STOPS_MAX));
        } else {
            self.since.get_or_insert(now);
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.since.is_some()
    }

    /// Returns one of the refusing users.
    pub(crate) fn unwilling(&self) -> Option<u32> {
        self.unwilling.first().copied()
    }

    /// Returns the stopped time within a span.
    pub(crate) fn within(&self, from: Nanos, until: Nanos) -> Nanos {
        let all = self.past.iter().copied().chain(self.since.map(|since| (since, until)));
        Nanos(all.map(|(lo, hi)| hi.min(until).since(lo.max(from)).0).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_stopped_as_long_as_anybody_does_not_want_it() {
        let mut stops = Unrecorded::default();
        stops.set(1, false, Nanos(10));
        stops.set(2, false, Nanos(12));
        stops.set(1, true, Nanos(20));
        assert!(stops.is_stopped());
        assert_eq!((stops.unwilling(), stops.within(Nanos(0), Nanos(25))), (Some(2), Nanos(15)));
        stops.set(2, true, Nanos(30));
        assert!(!stops.is_stopped());
        for (from, until, stopped) in [(0, 100, 20), (15, 22, 7), (31, 100, 0), (0, 5, 0)] {
            assert_eq!(stops.within(Nanos(from), Nanos(until)), Nanos(stopped));
        }
        for at in 0..1_000 {
            stops.set(3, at % 2 != 0, Nanos(100 + at));
        }
        assert_eq!(stops.past.len(), STOPS_MAX);
    }
}
