// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each user's last hot-key press that was answered: an incident does not report a hitch that was
//! over by then again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tipme_record::Nanos;

/// Maximum number of users with a remembered press.
const USERS_MAX: usize = 64;

/// Time of each user's last mark by hot key.
#[derive(Clone, Default)]
pub(crate) struct LastPresses(Arc<Mutex<BTreeMap<u32, Nanos>>>);

impl LastPresses {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, Nanos>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a user's last press before this time, or zero.
    pub(crate) fn last(&self, uid: u32, before: Nanos) -> Nanos {
        self.all().get(&uid).copied().filter(|at| *at < before).unwrap_or_default()
    }

    /// Adds a press; evicts the oldest one beyond the limit.
    pub(crate) fn add(&self, uid: u32, at: Nanos) {
        let mut all = self.all();
        all.insert(uid, at);
        if all.len() > USERS_MAX
            && let Some(oldest) = all.iter().min_by_key(|(_, at)| **at).map(|(uid, _)| *uid)
        {
            all.remove(&oldest);
        }
    }

    /// Withdraws an unanswered press, for which no incident could be written.
    pub(crate) fn withdraw(&self, uid: u32, at: Nanos, before: Nanos) {
        let mut all = self.all();
        if all.get(&uid) == Some(&at) {
            all.insert(uid, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_a_last_press_that_made_an_incident() {
        let presses = LastPresses::default();
        assert_eq!(presses.last(7, Nanos(100)), Nanos(0));
        presses.add(7, Nanos(100));
        presses.add(8, Nanos(150));
        assert_eq!(
            (presses.last(7, Nanos(200)), presses.last(7, Nanos(100))),
            (Nanos(100), Nanos(0))
        );
        presses.add(7, Nanos(200));
        presses.withdraw(7, Nanos(200), Nanos(100));
        assert_eq!([7, 8].map(|uid| presses.last(uid, Nanos(300))), [Nanos(100), Nanos(150)]);
        presses.add(7, Nanos(300));
        presses.withdraw(7, Nanos(200), Nanos(100));
        assert_eq!(presses.last(7, Nanos(400)), Nanos(300), "a later press was answered");
    }

    #[test]
    fn users_are_bounded() {
        let presses = LastPresses::default();
        (0..200).for_each(|uid| presses.add(uid, Nanos(u64::from(uid) + 1)));
        assert_eq!(presses.all().len(), USERS_MAX);
        assert_eq!([0, 199].map(|uid| presses.last(uid, Nanos(999))), [Nanos(0), Nanos(200)]);
    }
}
