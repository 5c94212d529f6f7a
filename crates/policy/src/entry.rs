// SPDX-License-Identifier: MIT OR Apache-2.0
//! One known set, and the part of its standing that the policy has assigned.

use crate::identity::{Member, Membership, SetId};
use crate::role::{Reason, Role};
use std::cmp::{Ordering, Reverse};
use tipme_record::Nanos;

/// Time in which a recent set fades by one step.
pub(crate) const FADE_STEP: Nanos = Nanos::from_secs(60);
/// Delay from the loss of the reason for favour to the loss of the favour itself.
pub(crate) const UNBOOST: Nanos = Nanos::from_millis(200);

/// A set. It exists as long as it is a display client, part of the core, a hog, or busy.
#[derive(Clone, Debug)]
pub(crate) struct SetEntry {
    pub(crate) client: Option<DisplayClient>,
    pub(crate) core: bool,
    /// It computes without a pause.
    pub(crate) busy: bool,
    /// Size in bytes at the time when the set became a hog.
    pub(crate) hog: Option<u64>,
    /// Time at which the set became known.
    pub(crate) since: Nanos,
    /// Time at which it lost the keyboard focus.
    pub(crate) lost: Option<Nanos>,
    /// All processes that the set lists now, including those that another set owns.
    pub(crate) members: Vec<Member>,
    /// Standing as last assigned.
    pub(crate) standing: Option<RoleStanding>,
    /// Precedence over other sets that list the same processes. A hog keeps the height that it had
    /// before, so that none of its processes escapes to another set.
    pub(crate) claim: Option<Height>,
    /// Members as last assigned.
    pub(crate) assigned: Vec<Member>,
    /// Time at which unjustified favour ends.
    pub(crate) falls: Option<Nanos>,
}

#[derive(Clone, Debug)]
pub(crate) struct DisplayClient {
    pub(crate) members: Vec<Member>,
    pub(crate) visible: bool,
}

impl SetEntry {
    pub(crate) fn new(since: Nanos) -> SetEntry {
        SetEntry {
            client: None,
            core: false,
            busy: false,
            hog: None,
            since,
            lost: None,
            members: Vec::new(),
            standing: None,
            claim: None,
            assigned: Vec::new(),
            falls: None,
        }
    }

    /// Returns the role as last assigned.
    pub(crate) fn role(&self) -> Option<Role> {
        self.standing.as_ref().map(|standing| standing.role)
    }

    pub(crate) fn is_visible(&self) -> bool {
        self.client.as_ref().is_some_and(|client| client.visible)
    }

    /// Returns the time since which a set without the keyboard focus has been without it.
    pub(crate) fn out_since(&self) -> Nanos {
        self.lost.unwrap_or(self.since)
    }

    /// Returns `true` if the set is known only as a hog or as busy.
    pub(crate) fn is_loose(&self) -> bool {
        self.client.is_none() && !self.core
    }

    pub(crate) fn has_ground(&self) -> bool {
        self.client.is_some() || self.core || self.busy || self.hog.is_some()
    }

    /// Returns the processes that the set should list. A set of the core is a single process: a
    /// client's children are not part of the session.
    pub(crate) fn listed(&self, id: SetId) -> Vec<Member> {
        match &self.client {
            Some(client) if !self.core => client.members.clone(),
            _ if self.has_ground() => vec![Member { who: id.0, because: Membership::Alone }],
            _ => Vec::new(),
        }
    }
}

/// Precedence of a standing; a greater height is more favoured.
pub(crate) type Height = (Reverse<Role>, Reverse<u32>, bool);

/// A role with its reason.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RoleStanding {
    pub(crate) role: Role,
    pub(crate) reason: Reason,
    pub(crate) faded: f32,
}

impl RoleStanding {
    pub(crate) fn new(role: Role, reason: Reason) -> RoleStanding {
        RoleStanding { role, reason, faded: 0.0 }
    }

    pub(crate) fn height(&self) -> Height {
        (Reverse(self.role), Reverse(self.faded.to_bits()), self.reason == Reason::PointerFocus)
    }

    /// Returns `true` if a set with this standing waits before it gets `target`. Only favour gained
    /// by attention waits, and only if it is withdrawn rather than faded or outweighed.
    fn outlasts(&self, target: &RoleStanding) -> bool {
        let falls = target.height().cmp(&self.height()) == Ordering::Less;
        let outweighed = matches!(target.reason, Reason::MemoryHog { .. } | Reason::Away);
        falls && !outweighed && !matches!(self.role, Role::Recent | Role::Core)
    }
}

/// Moves an entry towards its target. Returns `true` if its standing changed.
pub(crate) fn approach(entry: &mut SetEntry, target: RoleStanding, now: Nanos) -> bool {
    if entry.standing.as_ref().is_some_and(|held| held.outlasts(&target)) {
        let due = *entry.falls.get_or_insert(now.after(UNBOOST));
        if now < due {
            return false;
        }
    }
    entry.falls = None;
    let changed = entry.standing.as_ref() != Some(&target);
    entry.standing = Some(target);
    changed
}

/// Returns the next time at which an entry changes without an event.
pub(crate) fn deadline(entry: &SetEntry, now: Nanos) -> Option<Nanos> {
    let lost = entry.lost.filter(|_| entry.role() == Some(Role::Recent));
    let fades =
        lost.map(|lost| lost.after(Nanos((steps(lost, now) + 1).saturating_mul(FADE_STEP.0))));
    [entry.falls, fades].into_iter().flatten().min()
}

pub(crate) fn steps(lost: Nanos, now: Nanos) -> u64 {
    now.since(lost).0 / FADE_STEP.0
}
