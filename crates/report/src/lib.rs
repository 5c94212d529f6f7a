// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rendering of verdicts as text, JSON and HTML, and of measurements as plots. Pure code.
//!
//! Each format is one function from values to a string; nothing here makes decisions.

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
mod table;
mod text;
pub mod timer;

use tipme_analysis::Verdict;

pub use conditions::conditions;
pub use figures::span;
pub use kinds::explanation;
pub use layout::{Layout, Tone, display_width, padded};
pub use listing::interactions;
pub use notice::{Notice, notice};
pub use page::{ResultsPage, page, picture, results};
pub use strip::strip;
pub use text::{headline, text};

/// Returns the verdict as one indented JSON document with a final newline.
///
/// A verdict contains no numbers that JSON cannot express; if it did, the result would be `null`.
pub fn json(verdict: &Verdict) -> String {
    serde_json::to_string_pretty(verdict).map_or_else(|_| "null\n".to_owned(), |text| text + "\n")
}
