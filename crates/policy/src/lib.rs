// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who is favoured, and how: the manager's decisions.
//!
//! A [`Policy`] is told what the user attends to, [`DesktopEvent`] by event, and answers with [`Action`]s: which set of
//! processes has which [`Role`] from now on, and what to do about memory. It does no I/O and looks at no clock, so
//! that every decision can be replayed from its events. What a role is worth stands in one constant
//! table, [`knobs`]. [`preload::FileHistory`] knows which files the programs used last have mapped.
//!
//! **Roles.** A set has the first of these that fits: core of the session; keyboard focus; memory hog; pointer;
//! visible window; recent focus, fading over [`RECENT`]; the rest. A process in several sets belongs to one of them: to
//! the set that is named after it, otherwise to the most favoured. So no process has two roles, and a program that
//! was started from the focused terminal, and has a window of its own, is judged by its own window.
//!
//! **Time.** Favour is given at once, and taken away `UNBOOST` later: whoever only passes over a window, or looks
//! aside for a moment, causes no changes. A hog is put back at once.
//!
//! **Nobody at the desk** (`AWAY` after [`DesktopEvent::Presence`] said so): the keyboard focus counts as a visible window.
//! Nobody waits for the focused set then, so the machine belongs to what it computes. Visible windows keep their
//! favour, since a film or a talk is watched with no hand on the keyboard. The focused set also keeps its memory, since
//! whoever comes back continues there, and that first key is the one that usually takes long. With the
//! first input all is as before, at once.
//!
//! **Memory.** While it is short, sets above their share that do not have the focus are hogs: they give memory back and
//! are put behind all others, until memory has been plentiful for a while. The focused set and the core are protected,
//! and what comes into focus after a while is brought back ahead of its use. The strength changes nothing in this,
//! but for off.
//!
//! **Bounds.** What is told beyond [`SETS_MAX`], [`MEMBERS_MAX`], [`CORE_MAX`], [`BUSY_MAX`], [`GROUPS_MAX`],
//! [`HOGS_MAX`] and `PRESSED_MAX` is left out and counted, see [`Policy::dropped`].

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
pub use event::{Action, Assignment, DesktopEvent, GroupMemory, MemoryAction, MemoryGroup, MemorySample};
pub use identity::{Identity, Member, Membership, SetId};
pub use knobs::{Backend, IoPriority, Knobs, Scheduling, Strength, UnknownStrength};
pub use memory::{GROUPS_MAX, HOGS_MAX, UNLIMITED};
pub use policy::Policy;
pub use role::{Reason, Role};
pub use sets::{BUSY_MAX, CORE_MAX, MEMBERS_MAX, SETS_MAX};
pub use table::{HOG_RUN_MIN_MS, REST_SHARE_MIN_PERCENT, knobs, table};
