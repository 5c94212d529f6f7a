// SPDX-License-Identifier: MIT OR Apache-2.0
//! Colours that people with any kind of colour vision tell apart on white, also when printed in grey.

/// Eight, after which lines begin to be dashed.
pub const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#806000"];
/// What is usual.
pub const CALM: &str = COLOURS[0];
/// What is too long.
pub const ALARM: &str = COLOURS[1];
/// Summed up, or not of interest.
pub const REST: &str = "#b0b0b0";
/// Lines of the grid.
pub const GRID: &str = "#e2e2e2";
/// Axes and texts.
pub const INK: &str = "#222222";

/// The colour of the n-th set.
pub fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// The dashes of the n-th line, as an attribute.
pub fn dashes(index: usize) -> &'static str {
    if index < COLOURS.len() { "" } else { r#" stroke-dasharray="7 3""# }
}

/// What is read best on a colour.
pub fn ink_on(colour: &str) -> &'static str {
    let light = ["#e69f00", "#56b4e9", "#cc79a7", REST];
    if light.contains(&colour) { INK } else { "#ffffff" }
}
