// SPDX-License-Identifier: MIT OR Apache-2.0
//! Learning of baselines from the kernel's coarse counts: names of clients, and the growth of their
//! counts.

use crate::baselines::{Baselines, LEARNED};
use crate::identity::realtime_now;
use std::collections::HashMap;
use std::path::PathBuf;
use tipme_control::journal;
use tipme_kernel::{AnswerCounts, Counts, Kernel};
use tipme_measure::InputClass;
use tipme_record::incident::StoredBaseline;
use tipme_record::{Nanos, Pid};

/// Period of merging counts; the kernel keeps the slot of a closed connection for longer.
const MERGE_PERIOD: Nanos = Nanos::from_secs(60);

/// Age before the last merge up to which slots are read again: an answer is counted after its
/// press.
const OVERLAP: Nanos = Nanos::from_secs(120);

/// Write period of the file, which bounds the loss in a crash.
const SAVE_PERIOD: Nanos = Nanos::from_secs(600);

/// Maximum number of remembered client names.
const NAMES_MAX: usize = 512;

/// Name of the recorder's own windows.
const OWN_NAME: &str = "tipme";

/// Returns the input class of a kernel class number.
pub(crate) fn class(number: usize) -> InputClass {
    LEARNED[number % LEARNED.len()]
}

/// Returns `true` for input that mostly needs no answer.
pub(crate) fn is_of_pointer(class: InputClass) -> bool {
    matches!(class, InputClass::Motion | InputClass::Scroll)
}

/// Learned baselines, with the state of the merge.
pub(crate) struct Learning {
    path: PathBuf,
    baselines: Baselines,
    /// Client and merged counts by slot.
    taken: HashMap<usize, (Pid, Counts)>,
    names: HashMap<Pid, String>,
    merged: Nanos,
    next_merge: Nanos,
    next_save: Nanos,
}

impl Learning {
    /// Loads the file; logs a warning if it is damaged.
    pub(crate) fn open(path: PathBuf, now: Nanos) -> Learning {
        let (baselines, damage) = Baselines::open(&path);
        if let Some(damage) = damage {
            journal::warning(damage).tell();
        }
        let (next_merge, next_save) = (now.after(MERGE_PERIOD), now.after(SAVE_PERIOD));
        Learning {
            path,
            baselines,
            taken: HashMap::new(),
            names: HashMap::new(),
            merged: now,
            next_merge,
            next_save,
        }
    }

    /// Merges and saves when due. Call at every tick.
    pub(crate) fn tick(&mut self, kernel: &Kernel<'_>, now: Nanos) {
        if now >= self.next_merge {
            self.next_merge = now.after(MERGE_PERIOD);
            self.merge(kernel, now);
        }
        if now >= self.next_save {
            self.next_save = now.after(SAVE_PERIOD);
            self.save();
        }
    }

    /// Merges the counts up to now.
    pub(crate) fn merge(&mut self, kernel: &Kernel<'_>, now: Nanos) {
        let since = self.merged.before(OVERLAP);
        self.merged = now;
        for counted in kernel.counted(since) {
            self.take(&counted, realtime_now() / 1_000_000_000);
        }
    }

    /// Writes the file; on failure, logs a warning.
    pub(crate) fn save(&mut self) {
        if let Err(error) = self.baselines.save(&self.path) {
            journal::warning(format!("cannot save the baselines: {error:#}")).tell();
        }
    }

    fn take(&mut self, counted: &AnswerCounts, now_s: u64) {
        let before = self.taken.insert(counted.slot, (counted.client, counted.counts));
        let zero = [[0; tipme_kernel::BUCKETS]; tipme_kernel::CLASSES];
        let before = before.map_or(zero, |(_, counts)| counts);
        let grown = LEARNED.iter().zip(growth(&counted.counts, &before));
        let grown: Vec<(InputClass, Vec<(usize, u64)>)> =
            grown.map(|(class, counts)| (*class, counts)).collect();
        if grown.iter().all(|(_, counts)| counts.is_empty()) {
            return;
        }
        let Some(name) = self.name(counted.client) else { return };
        for (class, counts) in grown {
            self.baselines.add(class, &name, &counts, now_s);
        }
    }

    /// Returns the name of a client; `None` if it ended before it was read, and for the recorder's
    /// own windows.
    ///
    /// It is read each time, since a process may exec another program, and remembered beyond the
    /// end of the process.
    pub(crate) fn name(&mut self, client: Pid) -> Option<String> {
        if let Ok(text) = std::fs::read_to_string(format!("/proc/{client}/comm")) {
            if self.names.len() >= NAMES_MAX {
                self.names.clear();
            }
            self.names.insert(client, text.trim_end_matches('\n').to_owned());
        }
        self.names.get(&client).filter(|name| *name != OWN_NAME && !name.is_empty()).cloned()
    }

    /// Returns the number of latencies so far, and their 98th percentile.
    pub(crate) fn habit(&self, class: InputClass, application: &str) -> (u64, Option<u64>) {
        self.baselines.habit(class, application)
    }

    /// Returns the baselines of applications that had input since recording began.
    pub(crate) fn stored(&self) -> Vec<StoredBaseline> {
        let applications: Vec<String> = self.names.values().cloned().collect();
        self.baselines.stored(&applications)
    }
}

/// Returns bucket and count of the increments, per class.
fn growth(now: &Counts, before: &Counts) -> Vec<Vec<(usize, u64)>> {
    let growths = now.iter().zip(before).map(|(now, before)| {
        let grown =
            now.iter().zip(before).map(|(now, before)| u64::from(now.wrapping_sub(*before)));
        grown.enumerate().filter(|(_, count)| *count > 0).collect()
    });
    growths.collect()
}

const _: () =
    assert!(tipme_kernel::BUCKETS == tipme_measure::BUCKETS, "both sides have the same buckets");

#[cfg(test)]
mod tests {
    use super::*;

    fn learning() -> (tempfile::TempDir, Learning) {
        let dir = tempfile::TempDir::new().unwrap();
        let learning = Learning::open(dir.path().join("baselines.json"), Nanos(0));
        (dir, learning)
    }

    fn counted(slot: usize, key: u32) -> AnswerCounts {
        counted_of(0, slot, key)
    }

    fn counted_of(class: usize, slot: usize, count: u32) -> AnswerCounts {
        let mut counts = [[0; tipme_kernel::BUCKETS]; tipme_kernel::CLASSES];
        counts[class][40] = count;
        AnswerCounts { slot, client: Pid(std::process::id()), used: Nanos(1), counts }
    }

    #[test]
    fn each_class_is_learned_apart() {
        let (_dir, mut learning) = learning();
        let name = learning.name(Pid(std::process::id())).unwrap();
        for (number, of) in LEARNED.into_iter().enumerate() {
            assert_eq!(class(number), of);
            learning.take(&counted_of(number, number, 10 + number as u32), 1);
        }
        let all = [InputClass::Key, InputClass::Click, InputClass::Scroll, InputClass::Motion];
        assert_eq!(all.map(|class| learning.habit(class, &name).0), [10, 11, 12, 13]);
    }

    #[test]
    fn only_growth_is_added_and_numbers_may_wrap() {
        let (_dir, mut learning) = learning();
        let name = learning.name(Pid(std::process::id())).unwrap();
        for key in [u32::MAX - 1, u32::MAX, 2, 2] {
            learning.take(&counted(3, key), 1);
        }
        // The first count exceeds the limit and fades; the next ones add one, three and none.
        let (n, _) = learning.habit(InputClass::Key, &name);
        learning.take(&counted(3, 7), 1);
        assert_eq!(learning.habit(InputClass::Key, &name).0, n + 5);
        assert_eq!(learning.stored().len(), 1);
    }

    #[test]
    fn learning_survives_a_restart() {
        let (dir, mut learning) = learning();
        let name = learning.name(Pid(std::process::id())).unwrap();
        learning.take(&counted(0, 60), 1);
        learning.save();
        let again = Learning::open(dir.path().join("baselines.json"), Nanos(0));
        assert_eq!(again.habit(InputClass::Key, &name), learning.habit(InputClass::Key, &name));
    }
}
