// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of some time a thread spent in some state, found without looking at all of it.

use crate::timeline::pauses::Pause;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use tipme_record::{Nanos, Tid};

/// How long a thread had been in some state, by time.
#[derive(Debug, Default)]
pub struct SpentTimes(Vec<(Nanos, Nanos, u64)>);

/// What a thread may spend its time with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SpentWith {
    Pausing(Pause),
    /// It runs, or waits for less than a frame.
    Moving,
    /// It draws nothing for longer than frames are apart.
    NotDrawing,
}

/// Those times by thread.
pub(crate) type SpentIndex = RefCell<HashMap<(Tid, SpentWith), Rc<SpentTimes>>>;

impl SpentTimes {
    pub(crate) fn new(times: impl Iterator<Item = (Nanos, Nanos)>) -> SpentTimes {
        let add = |sum: &mut u64, (start, end): (Nanos, Nanos)| {
            let before = *sum;
            *sum += end.since(start).0;
            Some((start, end, before))
        };
        SpentTimes(times.scan(0, add).collect())
    }

    /// How much of the time until `at` was spent so.
    fn until(&self, at: Nanos) -> u64 {
        let begun = self.0.partition_point(|(start, ..)| *start < at);
        let last = begun.checked_sub(1).and_then(|last| self.0.get(last));
        last.map_or(0, |(start, end, before)| before + at.min(*end).since(*start).0)
    }

    /// How much of `lo..hi` was.
    pub(crate) fn within(&self, lo: Nanos, hi: Nanos) -> u64 {
        self.until(hi).saturating_sub(self.until(lo))
    }
}
