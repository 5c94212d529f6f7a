// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timing of the manager's looks.

use tipme_policy::SetId;
use tipme_record::Nanos;

/// Time between two looks at presence, memory and the stalest set.
pub(crate) const TICK: Nanos = Nanos::from_millis(1_000);
/// Time between two looks at the foreground of the focused terminals while there is input.
pub(crate) const TERMINALS: Nanos = Nanos::from_millis(250);
/// Looks due within this time run in a turn that happens anyway, since a wakeup costs more than a
/// look. Turns with display events are exempt: at that moment many threads want a CPU.
pub(crate) const SLACK: Nanos = Nanos::from_millis(100);
/// Time after the last input during which the foreground is followed.
pub(crate) const RECENT: Nanos = Nanos::from_millis(3_000);
/// A set that lost the focus is looked at shortly before it loses the favour, so that its new
/// children lose it as well, and once afterwards for those forked in between.
const BEFORE_LOSS: Nanos = Nanos::from_millis(150);
const AFTER_LOSS: Nanos = Nanos::from_millis(1_000);
/// A new set is looked at soon after it gets the focus: the program of a new window is just
/// starting its children.
const AFTER_GAIN: Nanos = Nanos::from_millis(20);
/// Maximum number of scheduled looks; further ones are left to the periodic round.
const LOOKS_MAX: usize = 32;

/// Scheduled looks.
pub(crate) struct Schedule {
    pub(crate) tick: Nanos,
    pub(crate) terminals: Nanos,
    /// Time of the mechanism's next retry.
    pub(crate) later: Option<Nanos>,
    looks: Vec<(Nanos, SetId)>,
    input: Nanos,
}

impl Schedule {
    pub(crate) fn new(now: Nanos) -> Schedule {
        Schedule { tick: now, terminals: now, later: None, looks: Vec::new(), input: now }
    }

    /// Records input at this time.
    pub(crate) fn input(&mut self, at: Nanos) {
        self.input = self.input.max(at);
    }

    pub(crate) fn is_busy(&self, now: Nanos) -> bool {
        now.since(self.input) < RECENT
    }

    /// Schedules looks after the focus moved from one set to another, which may be new.
    pub(crate) fn focus(&mut self, from: Option<SetId>, young: Option<SetId>, now: Nanos) {
        self.input(now);
        let loss = from.into_iter().flat_map(|set| [(BEFORE_LOSS, set), (AFTER_LOSS, set)]);
        let gain = young.into_iter().flat_map(|set| [(AFTER_GAIN, set), (AFTER_LOSS, set)]);
        for (span, set) in loss.chain(gain).take(LOOKS_MAX.saturating_sub(self.looks.len())) {
            self.looks.push((now.after(span), set));
        }
    }

    /// Returns the sets with due looks, each once.
    pub(crate) fn due(&mut self, now: Nanos) -> Vec<SetId> {
        let (due, ahead): (Vec<_>, Vec<_>) = self.looks.drain(..).partition(|(at, _)| *at <= now);
        self.looks = ahead;
        let mut sets: Vec<SetId> = due.into_iter().map(|(_, set)| set).collect();
        sets.sort_unstable();
        sets.dedup();
        sets
    }

    /// Returns the time of the next look of any kind.
    pub(crate) fn next(&self, now: Nanos) -> Nanos {
        let terminals = self.is_busy(now).then_some(self.terminals);
        let looks = self.looks.iter().map(|(at, _)| *at);
        looks.chain(terminals).chain(self.later).fold(self.tick, Nanos::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_policy::Identity;

    fn set(pid: u32) -> SetId {
        SetId(Identity { pid, start: 1 })
    }

    #[test]
    fn a_change_of_focus_has_both_sets_looked_at() {
        let mut schedule = Schedule::new(Nanos(0));
        schedule.tick = Nanos::from_secs(9);
        schedule.terminals = Nanos::from_secs(9);
        schedule.focus(Some(set(1)), Some(set(2)), Nanos(0));
        assert_eq!(schedule.next(Nanos(0)), AFTER_GAIN);
        assert_eq!(schedule.due(AFTER_GAIN), [set(2)]);
        assert_eq!(schedule.due(BEFORE_LOSS), [set(1)]);
        assert_eq!(schedule.due(AFTER_LOSS), [set(1), set(2)]);
        assert_eq!(schedule.next(AFTER_LOSS), Nanos::from_secs(9));
    }

    #[test]
    fn without_input_terminals_are_not_followed() {
        let mut schedule = Schedule::new(Nanos(0));
        (schedule.tick, schedule.terminals) = (Nanos::from_secs(20), Nanos::from_secs(10));
        assert_eq!(schedule.next(Nanos::from_secs(1)), Nanos::from_secs(10));
        assert_eq!(schedule.next(Nanos::from_secs(4)), Nanos::from_secs(20));
        schedule.input(Nanos::from_secs(4));
        assert_eq!(schedule.next(Nanos::from_secs(4)), Nanos::from_secs(10));
    }

    #[test]
    fn looks_are_bounded() {
        let mut schedule = Schedule::new(Nanos(0));
        for pid in 0..1000 {
            schedule.focus(Some(set(pid)), Some(set(pid + 1)), Nanos(0));
        }
        assert_eq!(schedule.looks.len(), LOOKS_MAX);
    }
}
