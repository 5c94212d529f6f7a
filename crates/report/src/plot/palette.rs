// SPDX-License-Identifier: MIT OR Apache-2.0
//! Colours that people with any kind of colour vision tell apart on white, also when printed in grey.

/// Eight, after which lines begin to be dashed.
pub(super) const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#806000"];
/// What is usual.
pub(super) const CALM: &str = COLOURS[0];
/// What is too long.
pub(super) const ALARM: &str = COLOURS[1];
/// Summed up, or not of interest.
pub(super) const REST: &str = "#b0b0b0";
/// Lines of the grid.
pub(super) const GRID: &str = "#e2e2e2";
/// Axes and texts.
pub(super) const INK: &str = "#222222";

/// The colour of the n-th set.
pub(super) fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// The dashes of the n-th line, as an attribute.
pub(super) fn dashes(index: usize) -> &'static str {
    if index < COLOURS.len() { "" } else { r#" stroke-dasharray="7 3""# }
}

/// What is read best on a colour.
pub(super) fn ink_on(colour: &str) -> &'static str {
    let light = ["#e69f00", "#56b4e9", "#cc79a7", REST];
    if light.contains(&colour) { INK } else { "#ffffff" }
}
