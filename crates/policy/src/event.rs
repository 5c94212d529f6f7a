// SPDX-License-Identifier: MIT OR Apache-2.0
//! Input and output of the policy.

use crate::identity::{Identity, Member, SetId};
use crate::knobs::Strength;
use crate::role::{Reason, Role};
use serde::{Deserialize, Serialize};

/// A change on the desktop.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DesktopEvent {
    /// Processes that the session needs, such as display server, window manager, manager, sound and
    /// input method; replaces the previous list. Each counts alone: its children are not part of
    /// the session.
    Core(Vec<Identity>),
    /// A set appeared or changed; replaces the previous state of the set.
    Set { id: SetId, members: Vec<Member>, visible: bool },
    /// The client disconnected from the display.
    Gone(SetId),
    /// Owner of the keyboard focus. The set may become known later.
    Keyboard(Option<SetId>),
    /// Owner of the window under the pointer.
    Pointer(Option<SetId>),
    /// Processes that compute without a pause while CPUs are scarce; replaces the previous list.
    /// Those that belong neither to a client nor to the core form sets of their own without
    /// attention.
    Busy(Vec<Identity>),
    /// `true` if the user is present.
    Presence(bool),
    /// A memory sample. While memory is short, samples should be a second apart.
    Memory(MemorySample),
    /// The user changed the strength.
    Strength(Strength),
    /// A deadline returned by [`Policy::next`](crate::Policy::next) has come.
    Time,
}

/// State of the machine's memory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MemorySample {
    /// Total memory in bytes; 0 makes the sample void.
    pub total: u64,
    /// Bytes available without paging (`MemAvailable`).
    pub available: u64,
    /// PSI `some` of memory over the last 2 s, in percent; 0 if the kernel does not provide it.
    pub some_percent: f32,
    /// Memory of each group. Small groups may be omitted, except those of the core and of the
    /// focused set: only memory listed here is protected. The first entry of a duplicate group
    /// counts.
    pub groups: Vec<GroupMemory>,
}

/// A process or group with memory accounting of its own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryGroup {
    Process(Identity),
    /// A path in the cgroup hierarchy. The group must not contain processes of the core unless
    /// `set` names its owner.
    Cgroup(String),
}

/// Memory use of a group.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GroupMemory {
    pub group: MemoryGroup,
    /// Bytes resident now.
    pub bytes: u64,
    /// PSI `full` of memory over the last 10 s, in percent; 0 if the kernel does not provide it.
    pub full_percent: f32,
    /// The owning set, if the caller knows one.
    pub set: Option<SetId>,
}

/// Role of a set.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Assignment {
    pub set: SetId,
    pub role: Role,
    pub reason: Reason,
    /// Progress from 0 (focus just lost) to 1 (ten minutes ago) for [`Role::Recent`]; 0 for other
    /// roles.
    pub faded: f32,
    /// Sorted by identity. A process is a member of one assignment at a time.
    pub members: Vec<Member>,
}

/// An order from the policy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Applies from now on and replaces the set's earlier assignment. Processes that are no longer
    /// listed return to their baseline.
    Assign(Assignment),
    /// Returns the whole set to its baseline.
    Forget(SetId),
    Memory(MemoryAction),
}

/// An order about memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryAction {
    /// Protects `bytes` of the set from reclaim while others have memory left (`memory.low`); 0
    /// ends the protection.
    Protect { set: SetId, bytes: u64 },
    /// Throttles and reclaims the group above `bytes` (`memory.high`).
    High { group: MemoryGroup, bytes: u64 },
    /// Reclaims `bytes` of the group now. Use [`PageOut`](MemoryAction::PageOut) for a process
    /// without a group.
    Reclaim { group: MemoryGroup, bytes: u64 },
    /// Raises the group's limit to `bytes`; [`UNLIMITED`](crate::UNLIMITED) removes it.
    Relieve { group: MemoryGroup, bytes: u64 },
    /// Lets all processes without attention grow by `more` bytes together, or makes them shrink if
    /// `more` is negative; they keep `least` bytes. A value beyond all memory removes the limit.
    /// Has no effect unless they share one group.
    Room { more: i64, least: u64 },
    /// Marks the memory of the process as the first to reclaim.
    Cold(Identity),
    /// Pages out the memory of the process. The policy itself emits
    /// [`Reclaim`](MemoryAction::Reclaim), which has a bound; this variant is for mechanisms and
    /// their callers.
    PageOut(Identity),
    /// Prefetches paged-out memory of the set ahead of its use.
    WillNeed(SetId),
}
