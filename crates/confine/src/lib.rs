// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a process gives up, and how soon it has its turn.
//!
//! A daemon [keeps](keep()) the capabilities that it goes on needing. What reads bytes that others have made is done by a
//! process of its own, which is [confined](confine()) before it reads the first of them: it has what it was given
//! open, and no way to anything else, but where it is to read files that a user may read. Who started it
//! [hears](hear()) what it says, up to a bound and for a time.

#![warn(unreachable_pub)]

mod calls;
mod child;
mod reach;
mod rights;
mod schedule;

pub use child::{ChildFault, ChildOutput, HeardBoth, hear, hear_both, hear_each, hear_errors};
pub use reach::Reach;
pub use rights::{Account, NOBODY, ResourceBounds, confine, keep};
pub use rustix::thread::CapabilitySet;
pub use schedule::{be_idle, be_urgent, schedule};
