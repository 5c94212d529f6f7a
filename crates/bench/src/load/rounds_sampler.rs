// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress of each process of a load: samples the rounds every second, to detect a process that
//! made no progress for ten seconds.

use super::ledger::LoadLedger;
use crate::priority::Priority;
use anyhow::{Result, anyhow};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tipme_desktop::clock;
use tipme_record::Nanos;

/// Window in which each process must make progress.
pub const WINDOW: Duration = Duration::from_secs(10);
/// Interval between samples.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of samples: those of a day. Later progress is not watched.
const LOOKS_MAX: usize = 86_400;

/// Rounds completed by each process at a given time.
#[derive(Clone, PartialEq, Eq, Debug)]
struct RoundsSample {
    at: Nanos,
    rounds: Vec<u64>,
}

/// Sampling thread. Dropping it ends the thread.
pub struct RoundsSampler {
    stop: Sender<()>,
    thread: JoinHandle<Vec<RoundsSample>>,
}

impl RoundsSampler {
    /// Starts sampling a load's ledger.
    pub(super) fn begin(ledger: LoadLedger) -> RoundsSampler {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let _priority = Priority::realtime();
            let mut looks = vec![look(&ledger)];
            while looks.len() < LOOKS_MAX
                && stopped.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout)
            {
                looks.push(look(&ledger));
            }
            looks
        });
        RoundsSampler { stop, thread }
    }

    /// Returns the fewest rounds of a process in any window; `None` if the run was shorter than a
    /// window.
    pub fn finish(self) -> Result<Option<u64>> {
        drop(self.stop);
        let looks = self
            .thread
            .join()
            .map_err(|_| anyhow!("the thread that watched the load has failed"))?;
        Ok(least(&looks, Nanos(WINDOW.as_nanos() as u64)))
    }
}

fn look(ledger: &LoadLedger) -> RoundsSample {
    RoundsSample { at: clock::now(), rounds: ledger.rounds() }
}

/// Returns the fewest rounds in any window. Windows end at each sample, and begin at the latest one
/// that is old enough.
fn least(looks: &[RoundsSample], window: Nanos) -> Option<u64> {
    let windows = looks.iter().enumerate().filter_map(|(index, end)| {
        let begin = looks[..index].iter().rev().find(|begin| end.at.since(begin.at) >= window)?;
        end.rounds
            .iter()
            .zip(&begin.rounds)
            .map(|(after, before)| after.saturating_sub(*before))
            .min()
    });
    windows.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(rounds: &[[u64; 2]]) -> Vec<RoundsSample> {
        let samples = (0..).zip(rounds).map(|(second, rounds)| RoundsSample {
            at: Nanos::from_secs(second),
            rounds: rounds.to_vec(),
        });
        samples.collect()
    }

    #[test]
    fn one_that_starves_beside_a_busy_one_is_seen() {
        let window = Nanos::from_secs(3);
        let steady = looks(&[[0, 0], [5, 1], [10, 2], [15, 3], [20, 4], [25, 5]]);
        assert_eq!(least(&steady, window), Some(3));
        let starving = looks(&[[0, 0], [5, 1], [10, 1], [15, 1], [20, 1], [25, 9]]);
        assert_eq!(least(&starving, window), Some(0));
    }

    #[test]
    fn less_than_a_window_says_nothing() {
        assert_eq!(least(&looks(&[[0, 0], [1, 1]]), Nanos::from_secs(3)), None);
        assert_eq!(least(&[], Nanos::from_secs(3)), None);
    }

    #[test]
    fn late_looks_make_longer_windows() {
        let looks = [(0, 0), (9, 4), (30, 5)].map(|(second, rounds)| RoundsSample {
            at: Nanos::from_secs(second),
            rounds: vec![rounds],
        });
        assert_eq!(least(&looks, Nanos::from_secs(10)), Some(1));
    }
}
