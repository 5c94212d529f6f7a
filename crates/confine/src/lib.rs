// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dropping of privileges, and scheduling priority.
//!
//! A daemon [keeps](keep()) only the capabilities that it still needs. Untrusted bytes are read by
//! a separate process, which is [confined](confine()) before it reads the first of them. It has its
//! open files and access to nothing else, except files that a user may read if that is its purpose.
//! The parent [reads](read_output()) its output, up to a limit and for a limited time.

#![warn(unreachable_pub)]

mod calls;
mod child;
mod reach;
mod rights;
mod schedule;

pub use child::{ChildFault, ChildOutput, read_both, read_errors, read_output, stream_output};
pub use reach::Reach;
pub use rights::{Account, NOBODY, ResourceBounds, confine, keep};
pub use rustix::thread::CapabilitySet;
pub use schedule::{be_idle, be_urgent, schedule};
