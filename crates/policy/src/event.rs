// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the policy is told, and what it asks for.

use crate::identity::{Identity, Member, SetId};
use crate::knobs::Strength;
use crate::role::{Reason, Role};
use serde::{Deserialize, Serialize};

/// Something happened on the desktop.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DesktopEvent {
    /// The processes that the session needs, such as display server, window manager, manager, sound and input
    /// method; replaces what was known. Each counts alone: what it has started does not belong to the session.
    Core(Vec<Identity>),
    /// A set appeared or changed; replaces what was known of it.
    Set { id: SetId, members: Vec<Member>, visible: bool },
    /// The client left the display.
    Gone(SetId),
    /// Who has the keyboard focus now. The set may become known later.
    Keyboard(Option<SetId>),
    /// Whose window the pointer is in now.
    Pointer(Option<SetId>),
    /// The processes that compute without a pause while CPUs are scarce; replaces what was known. Those that belong to
    /// no client and not to the core are sets of their own, to which nobody attends.
    Busy(Vec<Identity>),
    /// Whether somebody is at the desk.
    Presence(bool),
    /// A look at memory. Between two looks there should be a second, while memory is short.
    Memory(MemorySample),
    /// The user turned the knob.
    Strength(Strength),
    /// A deadline told by [`Policy::next`](crate::Policy::next) came.
    Time,
}

/// How memory is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MemorySample {
    /// Bytes of memory in the machine; 0 makes the sample void.
    pub total: u64,
    /// Bytes that can be had without paging, MemAvailable.
    pub available: u64,
    /// Percent of the last 2 s in which some task waited for memory; 0 where the kernel does not tell.
    pub some_percent: f32,
    /// Who has how much. Those with little may be left out, but for the core's and the focused set's: only what
    /// is told is protected. A group that is named twice counts as it is named first.
    pub groups: Vec<GroupMemory>,
}

/// Processes whose memory is known together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryGroup {
    Process(Identity),
    /// A path in the cgroup hierarchy. It must not hold processes of the core, unless `set` says so.
    Cgroup(String),
}

/// The memory of a group.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GroupMemory {
    pub group: MemoryGroup,
    /// Bytes that it has in memory now.
    pub bytes: u64,
    /// Percent of the last 10 s in which all its tasks waited for memory; 0 where the kernel does not tell.
    pub full_percent: f32,
    /// The set that it belongs to, if the caller knows one.
    pub set: Option<SetId>,
}

/// A set's role.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Assignment {
    pub set: SetId,
    pub role: Role,
    pub reason: Reason,
    /// For [`Role::Recent`]: 0 just lost the focus, towards 1 ten minutes ago; else 0.
    pub faded: f32,
    /// In the order of their identities. A process is a member of one assignment at a time.
    pub members: Vec<Member>,
}

/// Something to do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// From now on; replaces the set's earlier assignment. Processes that are no longer listed go back to their
    /// baseline.
    Assign(Assignment),
    /// Everything of the set goes back to its baseline.
    Forget(SetId),
    Memory(MemoryAction),
}

/// Something to do about memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryAction {
    /// So many bytes of the set stay in memory as long as others have any (memory.low); 0 ends it.
    Protect { set: SetId, bytes: u64 },
    /// Above so many bytes the group is slowed down and gives memory back (memory.high).
    High { group: MemoryGroup, bytes: u64 },
    /// So many bytes of the group are to be pushed out now. Where a process has no group, a
    /// [`PageOut`](MemoryAction::PageOut) stands for it.
    Reclaim { group: MemoryGroup, bytes: u64 },
    /// The group's limit rises to so many bytes; [`UNLIMITED`](crate::UNLIMITED) takes it away.
    Relieve { group: MemoryGroup, bytes: u64 },
    /// All that nobody attends to may together have so many bytes more than it has now, or has to give so many back; it
    /// keeps `least`. More than there could be takes the limit away. Where they have no group in common, nothing is done.
    Room { more: i64, least: u64 },
    /// What the process has is the first to be pushed out when memory is needed.
    Cold(Identity),
    /// What the process has is pushed out. The policy says [`Reclaim`](MemoryAction::Reclaim), which has a bound;
    /// this is for a mechanism and its callers.
    PageOut(Identity),
    /// What was pushed out of the set is brought back ahead of its use.
    WillNeed(SetId),
}
