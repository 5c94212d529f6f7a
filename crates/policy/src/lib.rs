// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager's decisions: which processes to favour, and by how much.
//!
//! A [`Policy`] consumes [`DesktopEvent`]s that describe the user's attention and returns
//! [`Action`]s: the [`Role`] of each set of processes from now on, and memory orders. It does no
//! I/O and reads no clock, so every decision can be replayed from its events. [`knobs`] is the
//! constant table of values for each role. [`preload::FileHistory`] remembers the files that the
//! most recently used programs had mapped.
//!
//! **Roles.** A set has the first of these that fits: core of the session; keyboard focus; memory
//! hog; pointer; visible window; recent focus, fading over [`RECENT`]; the rest. A process listed
//! by several sets belongs to the set named after it, otherwise to the most favoured one. A process
//! thus never has two roles, and a program with a window of its own is judged by that window even
//! if it was started from the focused terminal.
//!
//! **Time.** The policy grants favour at once and withdraws it `UNBOOST` later, so crossing a
//! window or looking aside for a moment causes no changes. A hog loses its favour at once.
//!
//! **Absence** (`AWAY` after [`DesktopEvent::Presence`] reported it): the keyboard focus counts as
//! a visible window. No user waits for the focused set then, so the machine serves its computing
//! load. Visible windows keep their favour, since people watch a film or a talk with no hand on the
//! keyboard. The focused set also keeps its memory: a returning user continues there, and that
//! first key is the one that usually takes long. The first input restores everything at once.
//!
//! **Memory.** While memory is short, sets above their share that do not have the focus are hogs:
//! they give memory back and rank behind all others until memory has been plentiful for a while.
//! The focused set and the core are protected, and a set that regains the focus after a while is
//! prefetched. The strength has no influence here, except that `off` disables all of it.
//!
//! **Bounds.** Input beyond [`SETS_MAX`], [`MEMBERS_MAX`], [`CORE_MAX`], [`BUSY_MAX`],
//! [`GROUPS_MAX`], [`HOGS_MAX`] and `PRESSED_MAX` is dropped and counted, see [`Policy::dropped`].

#![warn(unreachable_pub)]

mod attention;
mod entry;
mod event;
mod identity;
mod knobs;
mod memory;
mod policy;
pub mod preload;
mod protection;
mod role;
mod sets;
mod table;

pub use attention::RECENT;
pub use event::{
    Action, Assignment, DesktopEvent, GroupMemory, MemoryAction, MemoryGroup, MemorySample,
};
pub use identity::{Identity, Member, Membership, SetId};
pub use knobs::{Backend, Knobs, Strength};
pub use memory::{GROUPS_MAX, HOGS_MAX, UNLIMITED};
pub use policy::Policy;
pub use role::{Reason, Role};
pub use sets::{BUSY_MAX, CORE_MAX, MEMBERS_MAX, SETS_MAX};
pub use table::{HOG_RUN_MIN_MS, REST_SHARE_MIN_PERCENT, knobs};
