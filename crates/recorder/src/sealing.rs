// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits on incidents being sealed: each takes as much memory as the rings.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of incidents of users other than root sealed at once.
const SEALING_MAX: usize = 3;
/// Maximum number of those per user.
const USER_MAX: usize = 2;
/// Maximum number of additional incidents that belong to root.
const ROOT_MAX: usize = 3;

/// Number of incidents being sealed, by user.
#[derive(Clone, Default)]
pub(crate) struct Sealing(Arc<Mutex<BTreeMap<u32, usize>>>);

/// Right to seal one incident, returned on drop.
pub(crate) struct Turn {
    sealing: Sealing,
    uid: u32,
}

impl Sealing {
    /// Takes the right to seal one incident.
    ///
    /// # Errors
    /// The reason why it cannot begin now, as a message for the user.
    pub(crate) fn begin(&self, uid: u32) -> Result<Turn, String> {
        let mut counts = self.counts();
        let own = counts.get(&uid).copied().unwrap_or(0);
        let others: usize =
            counts.iter().filter(|(uid, _)| **uid != 0).map(|(_, count)| count).sum();
        let own_max = if uid == 0 { ROOT_MAX } else { USER_MAX };
        if own >= own_max {
            return Err(format!(
                "{own} incidents of user {uid} are being written already; wait a second"
            ));
        }
        if uid != 0 && others >= SEALING_MAX {
            return Err(format!(
                "{others} incidents of users are being written already; \
                 wait a second, or mark as root"
            ));
        }
        counts.insert(uid, own + 1);
        Ok(Turn { sealing: self.clone(), uid })
    }

    /// Returns `true` if any incident is being sealed.
    pub(crate) fn any(&self) -> bool {
        !self.counts().is_empty()
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<u32, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut counts = self.sealing.counts();
        let left = counts.get(&self.uid).map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            counts.remove(&self.uid);
        } else {
            counts.insert(self.uid, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_leave_room_for_others_and_for_root() {
        let sealing = Sealing::default();
        let mut turns: Vec<Turn> =
            (0..USER_MAX).map(|_| sealing.begin(7).expect("there is room")).collect();
        let refusal = sealing.begin(7).err().expect("there is no room");
        assert!(refusal.starts_with("2 incidents of user 7 are"), "{refusal}");
        turns.push(sealing.begin(8).expect("another user"));
        let refusal = sealing.begin(9).err().expect("there is no room");
        assert!(refusal.starts_with("3 incidents of users are"), "{refusal}");
        turns.extend((0..ROOT_MAX).map(|_| sealing.begin(0).expect("root has room of its own")));
        assert!(sealing.begin(0).is_err());
        turns.remove(0);
        drop(sealing.begin(7).expect("there is room again"));
        drop(turns);
        assert!(!sealing.any());
    }
}
