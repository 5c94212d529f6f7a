// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work done by the processes of a load, in memory that they share with their parent.

use crate::shared_words::SharedWords;
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use tipme_desktop::clock;
use tipme_record::Nanos;

/// Words of an account: a cache line, so that processes do not slow each other down.
const WORDS: usize = 8;
/// Maximum number of accounts.
const ACCOUNTS_MAX: usize = super::kind::LEVEL_MAX as usize;

/// Counters of an account, by position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Count {
    Rounds,
    Pages,
    CpuNs,
    /// CPU time plus run-queue delay.
    RunnableNs,
    Forks,
    /// 1 once the process has ended early.
    Ended,
    /// Short-lived processes that ended early.
    Cut,
}

/// Sums of all accounts at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LedgerReading {
    pub at: Nanos,
    pub rounds: u64,
    pub pages: u64,
    pub cpu_ns: u64,
    pub runnable_ns: u64,
    pub forks: u64,
    /// Processes and short-lived children that ended early, for instance for lack of memory.
    pub casualties: u64,
}

/// One account for each process of the load. A process adds to its own only, and its parent records
/// its end.
pub(super) struct LoadLedger(SharedWords);

impl LoadLedger {
    /// Makes an empty ledger.
    pub(super) fn make(accounts: usize) -> Result<LoadLedger> {
        ensure!(
            (1..=ACCOUNTS_MAX).contains(&accounts),
            "cannot make a ledger for {accounts} processes"
        );
        SharedWords::make("tipme-load", accounts * WORDS).map(LoadLedger)
    }

    /// Opens the ledger of another process of the same user, by its path.
    pub(super) fn open(path: &Path) -> Result<LoadLedger> {
        SharedWords::open(path, WORDS..=ACCOUNTS_MAX * WORDS, "a ledger").map(LoadLedger)
    }

    /// Path for other processes of the same user while this one lives.
    pub(super) fn path(&self) -> PathBuf {
        self.0.path()
    }

    fn accounts(&self) -> usize {
        self.0.count() / WORDS
    }

    /// Adds to an account.
    pub(super) fn add(&self, account: usize, count: Count, more: u64) {
        self.word(account, count).fetch_add(more, Ordering::Relaxed);
    }

    /// Records that the process of an account has ended early; idempotent.
    pub(super) fn end(&self, account: usize) {
        self.word(account, Count::Ended).store(1, Ordering::Relaxed);
    }

    /// Rounds of each process so far.
    pub(super) fn rounds(&self) -> Vec<u64> {
        self.all(Count::Rounds).collect()
    }

    fn sum(&self, count: Count) -> u64 {
        self.all(count).sum()
    }

    fn all(&self, count: Count) -> impl Iterator<Item = u64> + '_ {
        (0..self.accounts()).map(move |account| self.word(account, count).load(Ordering::Relaxed))
    }

    /// Sums up all accounts.
    pub(super) fn reading(&self) -> LedgerReading {
        LedgerReading {
            at: clock::now(),
            rounds: self.sum(Count::Rounds),
            pages: self.sum(Count::Pages),
            cpu_ns: self.sum(Count::CpuNs),
            runnable_ns: self.sum(Count::RunnableNs),
            forks: self.sum(Count::Forks),
            casualties: self.sum(Count::Ended) + self.sum(Count::Cut),
        }
    }

    /// Returns a counter; of the last account for an index beyond it.
    fn word(&self, account: usize, count: Count) -> &AtomicU64 {
        self.0.word(account.min(self.accounts() - 1) * WORDS + count as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_adds_the_other_reads() {
        let made = LoadLedger::make(3).expect("memory");
        let opened = LoadLedger::open(&made.path()).expect("the same process may open it");
        opened.add(0, Count::Rounds, 5);
        opened.add(2, Count::Rounds, 7);
        opened.add(1, Count::Forks, 1);
        opened.add(9, Count::Pages, 3);
        let reading = made.reading();
        assert_eq!((reading.rounds, reading.forks, reading.pages, reading.cpu_ns), (12, 1, 3, 0));
        assert_eq!((made.rounds(), reading.casualties), (vec![5, 0, 7], 0));
    }

    #[test]
    fn an_end_is_counted_once_and_a_short_life_each_time() {
        let ledger = LoadLedger::make(2).expect("memory");
        ledger.end(1);
        ledger.end(1);
        assert_eq!(ledger.reading().casualties, 1);
        ledger.add(0, Count::Cut, 2);
        assert_eq!(ledger.reading().casualties, 3);
    }

    #[test]
    fn other_files_are_no_ledgers() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(LoadLedger::open(file.path()).is_err());
        assert!(LoadLedger::make(0).is_err() && LoadLedger::make(ACCOUNTS_MAX + 1).is_err());
    }
}
