// SPDX-License-Identifier: MIT OR Apache-2.0
//! A set as it is known, and what of its standing was told.

use crate::identity::{Member, Membership, SetId};
use crate::role::{Reason, Role};
use std::cmp::{Ordering, Reverse};
use tipme_record::Nanos;

/// A recent set fades by one step in this time.
pub(crate) const FADE_STEP: Nanos = Nanos::from_secs(60);
/// Favour is taken away so long after its reason is gone.
pub(crate) const UNBOOST: Nanos = Nanos::from_millis(200);

/// A set. It stays as long as it is a client, or of the core, or a hog, or busy.
#[derive(Clone, Debug)]
pub(crate) struct SetEntry {
    pub(crate) client: Option<DisplayClient>,
    pub(crate) core: bool,
    /// It computes without a pause.
    pub(crate) busy: bool,
    /// Bytes that it had when it was found to be one.
    pub(crate) hog: Option<u64>,
    /// When it became known.
    pub(crate) since: Nanos,
    /// When it lost the keyboard focus.
    pub(crate) lost: Option<Nanos>,
    /// Whoever it lists now, whether they belong to it or to another set.
    pub(crate) members: Vec<Member>,
    /// What was told.
    pub(crate) standing: Option<RoleStanding>,
    /// Its right to processes that others list as well: how favoured it was before it was a hog, if it is one. So
    /// no process of a hog escapes to another set.
    pub(crate) claim: Option<Height>,
    pub(crate) told: Vec<Member>,
    /// When it loses favour for which there is no reason any more.
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
            told: Vec::new(),
            falls: None,
        }
    }

    pub(crate) fn is_visible(&self) -> bool {
        self.client.as_ref().is_some_and(|client| client.visible)
    }

    /// Since when it has no keyboard focus, for one that has none.
    pub(crate) fn out_since(&self) -> Nanos {
        self.lost.unwrap_or(self.since)
    }

    /// Known as a hog, or as busy, only.
    pub(crate) fn is_loose(&self) -> bool {
        self.client.is_none() && !self.core
    }

    pub(crate) fn has_ground(&self) -> bool {
        self.client.is_some() || self.core || self.busy || self.hog.is_some()
    }

    /// Whoever it should list. A set of the core is its one process; a client's children are not the session.
    pub(crate) fn listed(&self, id: SetId) -> Vec<Member> {
        match &self.client {
            Some(client) if !self.core => client.members.clone(),
            _ if self.has_ground() => vec![Member { who: id.0, because: Membership::Alone }],
            _ => Vec::new(),
        }
    }
}

/// The higher, the more favoured.
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

    /// Whether a set that has this waits before it gets `target`: only favour that came by attention does, and
    /// only if it was taken away, rather than faded or outweighed.
    fn outlasts(&self, target: &RoleStanding) -> bool {
        let falls = target.height().cmp(&self.height()) == Ordering::Less;
        let outweighed = matches!(target.reason, Reason::MemoryHog { .. } | Reason::Away);
        falls && !outweighed && !matches!(self.role, Role::Recent | Role::Core)
    }
}

/// Lets an entry go towards its target; whether its standing changed.
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

/// When time alone changes an entry next.
pub(crate) fn deadline(entry: &SetEntry, now: Nanos) -> Option<Nanos> {
    let recent = entry.standing.as_ref().is_some_and(|held| held.role == Role::Recent);
    let lost = entry.lost.filter(|_| recent);
    let fades = lost.map(|lost| lost.after(Nanos((steps(lost, now) + 1).saturating_mul(FADE_STEP.0))));
    [entry.falls, fades].into_iter().flatten().min()
}

pub(crate) fn steps(lost: Nanos, now: Nanos) -> u64 {
    now.since(lost).0 / FADE_STEP.0
}
