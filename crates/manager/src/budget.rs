// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU budget for looks at processes: a thousandth of a CPU for all of them together.

use tipme_record::Nanos;

/// Factor between the CPU time of a look and the time in which it is paid off.
const SHARE: u64 = 1000;
/// Maximum debt for looks that follow a change of focus: ten milliseconds of CPU time.
const CREDIT: Nanos = Nanos::from_secs(10);

/// An account of the CPU time spent on checks.
#[derive(Debug, Default)]
pub(crate) struct LookBudget {
    /// Time at which everything spent so far is paid off.
    paid: Nanos,
    left: u64,
}

impl LookBudget {
    /// Charges the cost of a look.
    pub(crate) fn spend(&mut self, cost: Nanos, now: Nanos) {
        self.paid = self.paid.max(now).after(Nanos(cost.0.saturating_mul(SHARE)));
    }

    /// Returns `true` if a look is affordable now; otherwise counts a refusal.
    pub(crate) fn is_affordable(&mut self, now: Nanos) -> bool {
        self.grant(self.paid <= now)
    }

    /// Same as [`LookBudget::is_affordable`] on credit, for a look that is urgent.
    pub(crate) fn has_credit(&mut self, now: Nanos) -> bool {
        self.grant(self.paid <= now.after(CREDIT))
    }

    /// Returns the time at which everything spent so far is paid off.
    pub(crate) fn paid(&self) -> Nanos {
        self.paid
    }

    /// Number of due looks that were not affordable.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    fn grant(&mut self, granted: bool) -> bool {
        self.left += u64::from(!granted);
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_looks_together_take_a_thousandth() {
        let (mut budget, mut looks, cost) = (LookBudget::default(), 0, Nanos::from_millis(1));
        // A hundred sets, each due for a look every second, over a minute.
        for step in 0..6_000 {
            let now = Nanos::from_millis(step * 10);
            if budget.is_affordable(now) {
                budget.spend(cost, now);
                looks += 1;
            }
        }
        assert_eq!((looks, budget.left()), (60, 5_940));
    }

    #[test]
    fn a_change_of_focus_has_credit_and_not_without_end() {
        let mut budget = LookBudget::default();
        let granted = (0..100).filter(|_| {
            let granted = budget.has_credit(Nanos(0));
            if granted {
                budget.spend(Nanos::from_millis(2), Nanos(0));
            }
            granted
        });
        assert_eq!(granted.count(), 6);
        assert_eq!(budget.left(), 94);
        assert!(
            !budget.is_affordable(Nanos::from_secs(11))
                && budget.is_affordable(Nanos::from_secs(12))
        );
    }
}
