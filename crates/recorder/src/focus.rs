// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keyboard focus on compositors, and its followers. The user of a compositor sees its focus, the
//! user of a client sees that client, and root sees all.

use crate::outcome::refuse;
use crate::processes;
use std::collections::BTreeMap;
use tipme_control::{Call, Focused, Follower, RecorderResponse};
use tipme_kernel::FocusGained;

/// Maximum number of compositors with a known focus, those with the latest changes.
const KEPT_MAX: usize = 64;
/// Maximum number of simultaneous followers, of those reserved for root, and of those of one other
/// user.
const FOLLOWERS_MAX: usize = 16;
const ROOT_FOLLOWERS: usize = 4;
const USER_FOLLOWERS: usize = 4;

/// Focus on a compositor, with the users of both processes.
struct HeldFocus {
    focused: Focused,
    server_user: Option<u32>,
    client_user: Option<u32>,
}

#[derive(Default)]
pub(crate) struct Focuses {
    /// By pid of the compositor.
    held: BTreeMap<u32, HeldFocus>,
    followers: Vec<Follower>,
}

impl Focuses {
    /// Applies focus changes and sends them to the followers.
    pub(crate) fn update(&mut self, changes: Vec<FocusGained>) {
        for change in changes {
            if self
                .held
                .get(&change.server.0)
                .is_some_and(|held| held.focused.since_ns >= change.at.0)
            {
                continue;
            }
            let held = HeldFocus::new(change);
            self.followers.retain(|follower| {
                held.seen_by(follower.caller.uid).is_none_or(|seen| send(follower, seen))
            });
            self.held.insert(change.server.0, held);
        }
        while self.held.len() > KEPT_MAX {
            let oldest = self
                .held
                .iter()
                .min_by_key(|(_, held)| held.focused.since_ns)
                .map(|(server, _)| *server);
            oldest.map(|server| self.held.remove(&server));
        }
    }

    /// Returns the focus on each live compositor, as far as this user may see it.
    pub(crate) fn seen_by(&mut self, uid: u32) -> Vec<Focused> {
        self.held.retain(|server, held| {
            held.server_user.is_some() && processes::user(*server) == held.server_user
        });
        self.held.values().filter_map(|held| held.seen_by(uid)).collect()
    }

    /// Sends the caller the current focus and all changes from now on.
    pub(crate) fn follow(&mut self, call: Call) {
        let uid = call.caller.uid;
        self.followers.retain(Follower::is_there);
        if let Some(why) = self.crowd(uid) {
            return call.answer(&refuse(why));
        }
        let (seen, follower) = (self.seen_by(uid), call.follow());
        if follower.tell(&RecorderResponse::Done)
            && seen.into_iter().all(|seen| send(&follower, seen))
        {
            self.followers.push(follower);
        }
    }

    /// Returns the reason why this user cannot have another follower.
    fn crowd(&self, uid: u32) -> Option<String> {
        let (all, root) = (self.followers.len(), uid == 0);
        let own = self.followers.iter().filter(|follower| follower.caller.uid == uid).count();
        let most = if root { FOLLOWERS_MAX } else { FOLLOWERS_MAX - ROOT_FOLLOWERS };
        let full = all >= most || (!root && own >= USER_FOLLOWERS);
        full.then(|| {
            format!(
                "too many follow the focus: user {uid} {own} times ({USER_FOLLOWERS} at most), \
                 and all users {all} ({most} at most); end one of them"
            )
        })
    }
}

fn send(follower: &Follower, seen: Focused) -> bool {
    follower.tell(&RecorderResponse::Focus(seen))
}

impl HeldFocus {
    fn new(change: FocusGained) -> HeldFocus {
        let (server, client) = (change.server.0, change.client.map(|client| client.0));
        HeldFocus {
            focused: Focused { server, client, since_ns: change.at.0 },
            server_user: processes::user(server),
            client_user: client.and_then(processes::user),
        }
    }

    /// Returns the part of the focus that a user may see; `None` for none of it.
    fn seen_by(&self, uid: u32) -> Option<Focused> {
        let all = uid == 0;
        let client = self.focused.client.filter(|_| all || self.client_user == Some(uid));
        (all || self.server_user == Some(uid)).then_some(Focused { client, ..self.focused })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_sees_own_compositors_and_own_clients() {
        let focused = Focused { server: 7, client: Some(9), since_ns: 1 };
        let without_client = Focused { client: None, ..focused };
        for (server_user, client_user, uid, seen) in [
            (Some(1000), Some(1000), 1000, Some(focused)),
            (Some(1000), Some(1001), 1000, Some(without_client)),
            (Some(1001), Some(1000), 1000, None),
            (Some(1001), Some(1002), 0, Some(focused)),
            (None, None, 1000, None),
            (None, None, 0, Some(focused)),
        ] {
            let held = HeldFocus { focused, server_user, client_user };
            assert_eq!(held.seen_by(uid), seen, "{server_user:?} {client_user:?} {uid}");
        }
    }
}
