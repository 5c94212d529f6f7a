// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prefetching memory of the sets that the user is likely to focus next: the two most recently used
//! ones.
//!
//! The focus history is kept while the manager runs, and never written to disk.

use tipme_control::manager::PredictionStatus;
use tipme_policy::{Action, MemoryAction, SetId};
use tipme_record::Nanos;

/// Maximum number of sets prefetched at a time.
const MADE_READY_MAX: usize = 2;
/// Time after a change of focus without prefetching: the focused set comes first.
const SETTLED: Nanos = Nanos::from_secs(2);
/// Time after which a set may be prefetched again.
const AGAIN: Nanos = Nanos::from_secs(60);
/// Maximum number of remembered sets, including those that have ended.
const USED_MAX: usize = 16;

/// The most recently used sets; empty if prefetching is switched off.
pub(crate) struct Prefetch {
    on: bool,
    /// Sets that had the focus, most recent first.
    used: Vec<UsedSet>,
    /// Time of the next prefetch.
    due: Option<Nanos>,
    /// Sets prefetched since the last change of focus.
    ready: Vec<SetId>,
    figures: PredictionStatus,
}

struct UsedSet {
    id: SetId,
    /// Time of its last prefetch.
    asked: Option<Nanos>,
}

impl Prefetch {
    pub(crate) fn new(on: bool) -> Prefetch {
        let figures = PredictionStatus::default();
        Prefetch { on, used: Vec::new(), due: None, ready: Vec::new(), figures }
    }

    /// Handles a change of focus to this set.
    pub(crate) fn focus(&mut self, set: Option<SetId>, now: Nanos) {
        let Some(id) = set.filter(|_| self.on) else { return };
        self.due = Some(now.after(SETTLED));
        let known = self.used.iter().position(|used| used.id == id);
        if known == Some(0) {
            return;
        }
        if !self.used.is_empty() {
            self.figures.predictions += 1;
            self.figures.hits += u64::from(self.ready.contains(&id));
        }
        self.ready.clear();
        let used = known.map_or(UsedSet { id, asked: None }, |place| self.used.remove(place));
        self.used.insert(0, used);
        self.used.truncate(USED_MAX);
    }

    /// Returns the due prefetch requests for the two most recently used sets among those that
    /// `is_other` admits: existing sets without the focus. The caller has checked that memory is
    /// free.
    pub(crate) fn actions(&mut self, is_other: impl Fn(SetId) -> bool, now: Nanos) -> Vec<Action> {
        if self.due.take_if(|due| *due <= now).is_none() {
            return Vec::new();
        }
        self.ready.clear();
        let mut actions = Vec::new();
        let others = self.used.iter_mut().filter(|used| is_other(used.id));
        for used in others.take(MADE_READY_MAX) {
            self.ready.push(used.id);
            if used.asked.is_none_or(|at| now.since(at) >= AGAIN) {
                used.asked = Some(now);
                actions.push(Action::Memory(MemoryAction::WillNeed(used.id)));
            }
        }
        self.figures.warmed += actions.len() as u64;
        actions
    }

    /// Returns `None` if prefetching is switched off.
    pub(crate) fn figures(&self) -> Option<PredictionStatus> {
        self.on.then_some(self.figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_policy::Identity;

    fn set(pid: u32) -> SetId {
        SetId(Identity { pid, start: 1 })
    }

    /// A manager with simulated focus changes, ten seconds apart.
    struct FocusReplay {
        prefetch: Prefetch,
        now: Nanos,
    }

    impl FocusReplay {
        fn new() -> FocusReplay {
            FocusReplay { prefetch: Prefetch::new(true), now: Nanos(0) }
        }

        /// Focuses a set; returns the sets prefetched while the focus stays there, of those below
        /// ten.
        fn turns_to(&mut self, pid: u32) -> Vec<u32> {
            self.prefetch.focus(Some(set(pid)), self.now);
            assert_eq!(self.actions(pid, self.now), [], "the focus has not stayed");
            let actions = self.actions(pid, self.now.after(SETTLED));
            assert_eq!(self.actions(pid, self.now.after(SETTLED)), [], "once");
            self.now = self.now.after(Nanos::from_secs(10));
            let pids = actions.into_iter().map(|action| match action {
                Action::Memory(MemoryAction::WillNeed(set)) => set.0.pid,
                other => panic!("{other:?}"),
            });
            pids.collect()
        }

        fn actions(&mut self, focused: u32, now: Nanos) -> Vec<Action> {
            self.prefetch.actions(|other| other != set(focused) && other.0.pid < 10, now)
        }

        fn figures(&self) -> [u64; 3] {
            let PredictionStatus { predictions, hits, warmed } = self.prefetch.figures().unwrap();
            [predictions, hits, warmed]
        }
    }

    #[test]
    fn the_two_used_last_are_asked_back_once_a_minute() {
        let mut replay = FocusReplay::new();
        assert_eq!(
            [1, 2, 3, 4].map(|pid| replay.turns_to(pid)),
            [vec![], vec![1], vec![2], vec![3]]
        );
        assert_eq!(replay.figures(), [3, 0, 3]);
        assert_eq!([3, 4].map(|pid| replay.turns_to(pid)), [vec![4], vec![]]);
        assert_eq!(replay.figures(), [5, 2, 4]);
        replay.now = replay.now.after(AGAIN);
        assert_eq!(replay.turns_to(1), [4, 3]);
        assert_eq!(replay.figures(), [6, 2, 6]);
    }

    #[test]
    fn ended_sets_take_no_place_and_the_list_is_bounded() {
        let mut replay = FocusReplay::new();
        replay.turns_to(1);
        replay.turns_to(2);
        assert_eq!([11, 12, 13].map(|pid| replay.turns_to(pid)), [vec![2], vec![], vec![]]);
        assert_eq!(replay.prefetch.ready, [2, 1].map(set));
        (20..60).for_each(|pid| drop(replay.turns_to(pid)));
        assert_eq!((replay.prefetch.used.len(), replay.prefetch.ready.len()), (USED_MAX, 0));
    }

    #[test]
    fn nothing_is_made_ready_while_the_focus_does_not_stay() {
        let mut prefetch = Prefetch::new(true);
        let second = Nanos::from_secs(1);
        for number in 0..20 {
            let (now, pid) = (Nanos(number * second.0), number as u32 % 2);
            prefetch.focus(Some(set(pid)), now);
            let before_next = now.after(Nanos(second.0 - 1));
            assert_eq!(prefetch.actions(|other| other != set(pid), before_next), []);
        }
        assert_eq!(prefetch.figures().unwrap().hits, 0);
    }

    #[test]
    fn switched_off_it_remembers_nothing() {
        let mut prefetch = Prefetch::new(false);
        prefetch.focus(Some(set(1)), Nanos(0));
        prefetch.focus(Some(set(2)), SETTLED);
        assert_eq!(prefetch.actions(|_| true, Nanos::from_secs(60)), []);
        assert!(prefetch.used.is_empty() && prefetch.figures().is_none());
    }
}
