// SPDX-License-Identifier: MIT OR Apache-2.0
//! What looks at processes may cost: all of them together a thousandth of a CPU.

use tipme_record::Nanos;

/// A look is paid for by so many times the CPU time that it took.
const SHARE: u64 = 1000;
/// How far ahead looks may be paid for that a change of focus asks for: ten milliseconds of CPU time.
const CREDIT: Nanos = Nanos::from_secs(10);

/// An account of looks.
#[derive(Debug, Default)]
pub(crate) struct LookBudget {
    /// Until when everything is paid for.
    paid: Nanos,
    left: u64,
}

impl LookBudget {
    /// Something was looked at.
    pub(crate) fn spend(&mut self, cost: Nanos, now: Nanos) {
        self.paid = self.paid.max(now).after(Nanos(cost.0.saturating_mul(SHARE)));
    }

    /// Whether a look can be afforded now; where not, it is counted.
    pub(crate) fn is_affordable(&mut self, now: Nanos) -> bool {
        self.grant(self.paid <= now)
    }

    /// The same for a look that is wanted soon.
    pub(crate) fn has_credit(&mut self, now: Nanos) -> bool {
        self.grant(self.paid <= now.after(CREDIT))
    }

    /// When what was looked at will be paid for.
    pub(crate) fn paid(&self) -> Nanos {
        self.paid
    }

    /// Looks that could not be afforded when they were due.
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
        // A hundred sets, each of which wants to be looked at each second, for a minute.
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
        assert!(!budget.is_affordable(Nanos::from_secs(11)) && budget.is_affordable(Nanos::from_secs(12)));
    }
}
