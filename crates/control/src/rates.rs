// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rate limits per user: a burst, and then one more request per period.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Maximum number of users remembered; beyond that, the one with the earliest refill is forgotten.
const USERS_MAX: usize = 256;

/// Time at which each user's burst is full again.
#[derive(Clone, Debug)]
pub struct Rates {
    burst: u32,
    every: Duration,
    full: BTreeMap<u32, Instant>,
}

impl Rates {
    pub fn new(burst: u32, every: Duration) -> Rates {
        Rates { burst, every, full: BTreeMap::new() }
    }

    /// Takes a turn. Returns `None` if there was one, else the time to wait.
    pub fn take(&mut self, uid: u32, now: Instant) -> Option<Duration> {
        self.full.retain(|_, full| *full > now);
        let full = self.full.get(&uid).copied().unwrap_or(now) + self.every;
        let wait = full
            .saturating_duration_since(now)
            .saturating_sub(self.every.saturating_mul(self.burst));
        if wait > Duration::ZERO {
            return Some(wait);
        }
        if self.full.len() >= USERS_MAX && !self.full.contains_key(&uid) {
            let first = self.full.iter().min_by_key(|(_, full)| **full).map(|(uid, _)| *uid);
            first.map(|uid| self.full.remove(&uid));
        }
        self.full.insert(uid, full);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_back_one_by_one_and_each_user_has_own_ones() {
        let (mut rates, now) = (Rates::new(3, Duration::from_secs(5)), Instant::now());
        assert_eq!(
            [(); 4].map(|()| rates.take(7, now)),
            [None, None, None, Some(Duration::from_secs(5))]
        );
        assert_eq!(rates.take(8, now), None);
        let later = now + Duration::from_secs(5);
        assert_eq!(
            [rates.take(7, later), rates.take(7, later)],
            [None, Some(Duration::from_secs(5))]
        );
        assert!((0..2 * USERS_MAX as u32).all(|uid| uid == 7 || rates.take(uid, later).is_none()));
        assert!(rates.full.len() <= USERS_MAX);
    }
}
