// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings to text, JSON and HTML, measurements to plots; pure.
//!
//! Each format is one function from values to a string; nothing here decides anything.

#![warn(unreachable_pub)]

pub mod comparison;
mod conditions;
pub mod day;
mod figures;
mod kinds;
mod layout;
mod listing;
pub mod measure;
mod nothing;
mod notice;
mod page;
pub mod plot;
mod sentence;
pub mod single;
mod strip;
mod text;
pub mod timer;

use tipme_analysis::Verdict;

pub use conditions::conditions;
pub use figures::span;
pub use kinds::explanation;
pub use layout::{Layout, Tone};
pub use listing::interactions;
pub use notice::{Notice, notice};
pub use page::{ResultsPage, page, picture, results};
pub use strip::strip;
pub use text::{headline, text};

/// The verdict as one JSON document, indented, with a line end.
///
/// Numbers that JSON cannot express do not occur in a verdict; where one did, the result is `null`.
pub fn json(verdict: &Verdict) -> String {
    serde_json::to_string_pretty(verdict).map_or_else(|_| "null\n".to_owned(), |text| text + "\n")
}
