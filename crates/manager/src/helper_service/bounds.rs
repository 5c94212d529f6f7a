// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds on the actions that a caller sends.
//!
//! At each change the mechanism checks the owner of the process and values set by others. The
//! bounds here limit the helper's memory, and the kernel time of one request.

use std::collections::BTreeMap;
use tipme_policy::{Action, MemoryAction, MemoryGroup, SetId};

/// Maximum number of sets of a helper session, twice that of the policy.
pub(super) const SETS_MAX: usize = 512;
/// Maximum number of members of all sets of a helper session together.
pub(super) const MEMBERS_MAX: usize = 8_192;
/// Maximum number of memory actions in one request: the kernel performs each of them while the
/// caller waits.
const MEMORY_ACTIONS_MAX: usize = 64;
/// Maximum number of bytes reclaimed by one action.
const RECLAIM_BYTES_MAX: u64 = 256 << 20;

/// Number of members of each set of a helper session.
#[derive(Debug, Default)]
pub(super) struct MemberCounts {
    members: BTreeMap<SetId, usize>,
    total: usize,
}

impl MemberCounts {
    /// Returns the actions within the bounds, and the number of refused ones.
    pub(super) fn admit(&mut self, actions: Vec<Action>) -> (Vec<Action>, usize) {
        let (asked, mut memory) = (actions.len(), 0);
        let admitted: Vec<Action> =
            actions.into_iter().filter_map(|action| self.check(action, &mut memory)).collect();
        let refused = asked - admitted.len();
        (admitted, refused)
    }

    /// Forgets all sets.
    pub(super) fn clear(&mut self) {
        *self = MemberCounts::default();
    }

    fn check(&mut self, action: Action, memory: &mut usize) -> Option<Action> {
        match action {
            Action::Assign(mut assignment) => {
                assignment.faded = assignment.faded.clamp(0.0, 1.0);
                self.count(assignment.set, assignment.members.len())
                    .then_some(Action::Assign(assignment))
            }
            Action::Forget(set) => {
                self.total -= self.members.remove(&set).unwrap_or(0);
                Some(Action::Forget(set))
            }
            Action::Memory(action) => {
                *memory += 1;
                (*memory <= MEMORY_ACTIONS_MAX).then(|| limit(action)).flatten().map(Action::Memory)
            }
        }
    }

    fn count(&mut self, set: SetId, members: usize) -> bool {
        let before = self.members.get(&set).copied();
        let total = self.total - before.unwrap_or(0) + members;
        let fits = total <= MEMBERS_MAX && (before.is_some() || self.members.len() < SETS_MAX);
        if fits {
            self.members.insert(set, members);
            self.total = total;
        }
        fits
    }
}

/// Clamps an action to its bounds. The helper has no groups: actions on groups, and all others not
/// listed here, are refused.
fn limit(action: MemoryAction) -> Option<MemoryAction> {
    match action {
        MemoryAction::Reclaim { group: group @ MemoryGroup::Process(_), bytes } => {
            Some(MemoryAction::Reclaim { group, bytes: bytes.min(RECLAIM_BYTES_MAX) })
        }
        MemoryAction::High { group: MemoryGroup::Process(_), .. }
        | MemoryAction::Relieve { group: MemoryGroup::Process(_), .. }
        | MemoryAction::Cold(_)
        | MemoryAction::PageOut(_)
        | MemoryAction::WillNeed(_)
        // Has no effect without a group; accepted so that the request of each second does not count
        // as refused.
        | MemoryAction::Room { .. } => Some(action),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_policy::{Assignment, Identity, Member, Membership, Reason, Role};

    fn set(pid: u32) -> SetId {
        SetId(Identity { pid, start: 1 })
    }

    fn assign(pid: u32, members: usize) -> Action {
        let member = Member { who: set(pid).0, because: Membership::Client };
        let (role, reason) = (Role::Focused, Reason::KeyboardFocus);
        Action::Assign(Assignment {
            set: set(pid),
            role,
            reason,
            faded: 7e30,
            members: vec![member; members],
        })
    }

    #[test]
    fn members_and_sets_have_a_bound_and_room_comes_back() {
        let mut bounds = MemberCounts::default();
        let full = (1..=MEMBERS_MAX / 512).map(|pid| assign(pid as u32, 512)).collect();
        assert_eq!(bounds.admit(full).1, 0);
        assert_eq!(bounds.admit(vec![assign(900, 1)]).1, 1);
        assert_eq!(bounds.admit(vec![assign(1, 511), assign(900, 1)]).1, 0);
        assert_eq!(bounds.admit(vec![Action::Forget(set(2)), assign(901, 512)]).1, 0);
        bounds.clear();
        let many = (0..2 * SETS_MAX).map(|pid| assign(pid as u32, 0)).collect();
        assert_eq!(bounds.admit(many).1, SETS_MAX);
    }

    #[test]
    fn numbers_are_brought_into_their_bounds() {
        let (process, group) =
            (MemoryGroup::Process(set(1).0), MemoryGroup::Cgroup("/../..".into()));
        let [of_process, of_group] = [process.clone(), group]
            .map(|group| Action::Memory(MemoryAction::Reclaim { group, bytes: u64::MAX }));
        let (admitted, refused) =
            MemberCounts::default().admit(vec![assign(1, 1), of_process, of_group]);
        assert_eq!(refused, 1);
        assert!(matches!(&admitted[0], Action::Assign(assignment) if assignment.faded == 1.0));
        let bounded = MemoryAction::Reclaim { group: process, bytes: RECLAIM_BYTES_MAX };
        assert_eq!(admitted[1], Action::Memory(bounded));
        let protect = Action::Memory(MemoryAction::Protect { set: set(1), bytes: u64::MAX });
        assert_eq!(MemberCounts::default().admit(vec![protect]).1, 1);
        let flood = vec![Action::Memory(MemoryAction::PageOut(set(1).0)); 1_000];
        assert_eq!(MemberCounts::default().admit(flood).1, 1_000 - MEMORY_ACTIONS_MAX);
    }
}
