// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the programs have in common: `tipme`, which runs on people's machines, and `tipme-lab`, which works a machine hard.
//!
//! Each finds the other by [`program`]; which verbs `tipme` leaves to `tipme-lab` stands in [`verbs`]. The rest is what
//! both say and read in the same way: kinds of arguments, help, pages, standard output, schemas, incidents and results.

#![warn(unreachable_pub)]

pub mod checks;
mod choice;
pub mod completions;
mod duration;
mod groups;
pub mod incident;
pub mod output;
pub mod pages;
pub mod program;
pub mod results;
mod schema;
mod size;
pub mod verbs;

pub use choice::choice;
pub use duration::duration;
pub use groups::{Group, grouped};
pub use schema::schema;
pub use size::size;

/// As in the standard library, but a reader that is gone is no reason to panic.
#[macro_export]
macro_rules! print {
    ($($words:tt)*) => { $crate::output::write(&std::format!($($words)*)) };
}

/// The same with the end of a line.
#[macro_export]
macro_rules! println {
    ($($words:tt)*) => { $crate::output::write(&(std::format!($($words)*) + "\n")) };
}
