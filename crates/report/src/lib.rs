// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings to text and JSON; pure.
//!
//! Each format is one function from the verdict to a string; nothing here decides anything.

mod listing;
mod text;

use tipme_analysis::Verdict;

pub use listing::interactions;
pub use text::text;

/// The verdict as one JSON document, indented, with a line end.
///
/// Numbers that JSON cannot express do not occur in a verdict; where one did, the result is `null`.
pub fn json(verdict: &Verdict) -> String {
    serde_json::to_string_pretty(verdict).map_or_else(|_| "null\n".to_owned(), |text| text + "\n")
}
