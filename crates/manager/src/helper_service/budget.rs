// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a helper session may cost: the helper works for its callers with time that is not theirs.

use std::time::{Duration, Instant};

/// CPU time that a user has in hand at most: more than a manager needs to set everything again.
const SAVED_MAX: Duration = Duration::from_secs(1);
/// What it gets back: one part in so many of the time that goes by. A manager takes a hundredth of that.
const SHARE_DIVISOR: u32 = 5;

/// The CPU time that is left to a user's helper sessions.
#[derive(Debug)]
pub(super) struct CpuBudget {
    left: Duration,
    /// What was taken beyond what was left.
    owed: Duration,
    /// When it was last spent from.
    last: Instant,
}

impl CpuBudget {
    pub(super) fn new(now: Instant) -> CpuBudget {
        CpuBudget { left: SAVED_MAX, owed: Duration::ZERO, last: now }
    }

    /// Takes so much CPU time away; returns how long to wait until what was taken too much is earned.
    pub(super) fn spend(&mut self, cpu: Duration, now: Instant) -> Duration {
        let earned = now.saturating_duration_since(self.last) / SHARE_DIVISOR;
        self.last = now;
        let paid = earned.min(self.owed);
        self.owed -= paid;
        self.left = (self.left + (earned - paid)).min(SAVED_MAX);
        let covered = cpu.min(self.left);
        self.left -= covered;
        self.owed += cpu - covered;
        self.owed * SHARE_DIVISOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn who_asks_now_and_then_never_waits() {
        let begin = Instant::now();
        let mut budget = CpuBudget::new(begin);
        for step in 1..1_000 {
            assert_eq!(budget.spend(5 * MS, begin + step * 100 * MS), Duration::ZERO);
        }
    }

    #[test]
    fn who_floods_gets_its_share() {
        let begin = Instant::now();
        let (mut now, mut used, mut budget) = (begin, Duration::ZERO, CpuBudget::new(begin));
        while now < begin + 100_000 * MS {
            now += 10 * MS;
            used += 10 * MS;
            now += budget.spend(10 * MS, now);
        }
        assert!(used < 100_000 * MS / SHARE_DIVISOR + SAVED_MAX + 100 * MS, "{used:?}");
        assert!(used > 19_000 * MS, "{used:?}");
    }
}
