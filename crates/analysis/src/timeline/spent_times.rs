// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prefix sums of the time that threads spend in a state.

use crate::timeline::pauses::Pause;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use tipme_record::{Nanos, Tid};

/// Spans in a state: start, end, and the total time in it before the start.
#[derive(Debug, Default)]
pub struct SpentTimes(Vec<(Nanos, Nanos, u64)>);

/// State of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SpentWith {
    Pausing(Pause),
    /// The thread runs, or waits for less than a frame.
    Moving,
    /// The thread draws nothing for longer than the distance between frames.
    NotDrawing,
}

/// Prefix sums by thread and state.
pub(crate) type SpentIndex = RefCell<HashMap<(Tid, SpentWith), Rc<SpentTimes>>>;

impl SpentTimes {
    pub(crate) fn new(times: impl Iterator<Item = (Nanos, Nanos)>) -> SpentTimes {
        let summed = times.scan(0, |sum, (start, end)| {
            let before = *sum;
            *sum += end.since(start).0;
            Some((start, end, before))
        });
        SpentTimes(summed.collect())
    }

    /// Returns the time spent in the state until `at`.
    fn until(&self, at: Nanos) -> u64 {
        let begun = self.0.partition_point(|(start, ..)| *start < at);
        let last = begun.checked_sub(1).and_then(|last| self.0.get(last));
        last.map_or(0, |(start, end, before)| before + at.min(*end).since(*start).0)
    }

    /// Returns the time spent in the state in `lo..hi`.
    pub(crate) fn within(&self, lo: Nanos, hi: Nanos) -> u64 {
        self.until(hi).saturating_sub(self.until(lo))
    }
}
