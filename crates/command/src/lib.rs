// SPDX-License-Identifier: MIT OR Apache-2.0
//! Common code of the programs `tipme`, which runs on users' machines, and `tipme-lab`, which
//! stresses the machine.
//!
//! Each finds the other by [`program`]; [`verbs`] lists the verbs that `tipme` leaves to
//! `tipme-lab`. The rest is common input and output: kinds of arguments, help, man pages, standard
//! output, schemas, incidents and results.

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

/// Like `print!` of the standard library, but a closed pipe does not panic.
#[macro_export]
macro_rules! print {
    ($($words:tt)*) => { $crate::output::write(&std::format!($($words)*)) };
}

/// Like `print!` above, with a newline.
#[macro_export]
macro_rules! println {
    ($($words:tt)*) => { $crate::output::write(&(std::format!($($words)*) + "\n")) };
}
