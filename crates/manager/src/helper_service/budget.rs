// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU budget of a helper session: the helper works for its callers on its own CPU time.

use std::time::{Duration, Instant};

/// Maximum saved CPU time of a user: more than a manager needs to set everything again.
const SAVED_MAX: Duration = Duration::from_secs(1);
/// Fraction of wall time earned as CPU time. A manager uses a hundredth of that.
const SHARE_DIVISOR: u32 = 5;

/// Time at which all CPU time used for a user's helper sessions is paid off.
#[derive(Debug)]
pub(super) struct CpuBudget(pub(super) Instant);

impl CpuBudget {
    /// Charges CPU time; returns the time to wait until the debt beyond the savings is paid off.
    pub(super) fn spend(&mut self, cpu: Duration, now: Instant) -> Duration {
        self.0 = self.0.max(now) + cpu * SHARE_DIVISOR;
        self.0.saturating_duration_since(now + SAVED_MAX * SHARE_DIVISOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn occasional_requests_never_wait() {
        let begin = Instant::now();
        let mut budget = CpuBudget(begin);
        for step in 1..1_000 {
            assert_eq!(budget.spend(5 * MS, begin + step * 100 * MS), Duration::ZERO);
        }
    }

    #[test]
    fn a_flood_of_requests_gets_its_share() {
        let begin = Instant::now();
        let (mut now, mut used, mut budget) = (begin, Duration::ZERO, CpuBudget(begin));
        while now < begin + 100_000 * MS {
            now += 10 * MS;
            used += 10 * MS;
            now += budget.spend(10 * MS, now);
        }
        assert!(used < 100_000 * MS / SHARE_DIVISOR + SAVED_MAX + 100 * MS, "{used:?}");
        assert!(used > 19_000 * MS, "{used:?}");
    }
}
