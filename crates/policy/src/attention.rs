// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user's attention, and the role that it gives to a set.

use crate::entry::{FADE_STEP, RoleStanding, SetEntry, steps};
use crate::identity::SetId;
use crate::role::{Reason, Role};
use tipme_record::Nanos;

/// Time after the loss of the keyboard focus during which a set is [`Role::Recent`].
pub const RECENT: Nanos = Nanos::from_secs(600);
/// Time without presence after which the user counts as away.
pub(crate) const AWAY: Nanos = Nanos::from_secs(60);
/// Time for which a set must have been out of focus, or the user away, to be prefetched when the
/// focus or the user returns. In less time little can have been reclaimed, and prefetching all of
/// it costs more than it saves.
pub(crate) const WILL_NEED: Nanos = Nanos::from_secs(5);

/// Location of the user's attention.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct AttentionState {
    pub(crate) keyboard: Option<SetId>,
    pub(crate) pointer: Option<SetId>,
    /// Time since which the user has been absent.
    pub(crate) absent: Option<Nanos>,
}

impl AttentionState {
    /// Returns the role that a set should have at `now`.
    pub(crate) fn wanted(&self, id: SetId, entry: &SetEntry, now: Nanos) -> RoleStanding {
        if entry.core {
            return RoleStanding::new(Role::Core, Reason::Session);
        }
        if self.keyboard == Some(id) {
            return self.focused(now);
        }
        if let Some(bytes) = entry.hog {
            return RoleStanding::new(Role::Hog, Reason::MemoryHog { bytes });
        }
        if self.pointer == Some(id) {
            return RoleStanding::new(Role::Visible, Reason::PointerFocus);
        }
        if entry.is_visible() {
            return RoleStanding::new(Role::Visible, Reason::VisibleWindow);
        }
        if entry.is_loose() {
            return RoleStanding::new(Role::Rest, Reason::Busy);
        }
        match entry.lost {
            Some(lost) if now.since(lost) < RECENT => recent(steps(lost, now)),
            _ => RoleStanding::new(Role::Rest, Reason::NoAttention),
        }
    }

    fn focused(&self, now: Nanos) -> RoleStanding {
        match self.absent {
            Some(since) if now.since(since) >= AWAY => {
                RoleStanding::new(Role::Visible, Reason::Away)
            }
            _ => RoleStanding::new(Role::Focused, Reason::KeyboardFocus),
        }
    }

    /// Returns the time at which the user starts to count as away.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        self.absent.map(|since| since.after(AWAY))
    }

    pub(crate) fn forget(&mut self, id: SetId) {
        self.keyboard = self.keyboard.filter(|other| *other != id);
        self.pointer = self.pointer.filter(|other| *other != id);
    }
}

fn recent(steps: u64) -> RoleStanding {
    let seconds = (steps * (FADE_STEP.0 / 1_000_000_000)) as u32;
    let faded = steps as f32 / (RECENT.0 / FADE_STEP.0) as f32;
    RoleStanding { role: Role::Recent, reason: Reason::RecentFocus { seconds }, faded }
}
