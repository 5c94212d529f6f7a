// SPDX-License-Identifier: MIT OR Apache-2.0
//! Colours that are distinguishable on white with any kind of colour vision, also when printed in
//! grey.

/// Eight colours; further lines are dashed.
pub(super) const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#806000"];
/// Colour of normal values.
pub(super) const CALM: &str = COLOURS[0];
/// Colour of values that are too long.
pub(super) const ALARM: &str = COLOURS[1];
/// Colour of summed-up or unimportant values.
pub(super) const REST: &str = "#b0b0b0";
/// Colour of grid lines.
pub(super) const GRID: &str = "#e2e2e2";
/// Colour of axes and texts.
pub(super) const INK: &str = "#222222";

/// Returns the colour of the n-th set.
pub(super) fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// Returns the dashes of the n-th line, as an attribute.
pub(super) fn dashes(index: usize) -> &'static str {
    if index < COLOURS.len() { "" } else { r#" stroke-dasharray="7 3""# }
}

/// Returns the text colour with the best contrast to a colour.
pub(super) fn ink_on(colour: &str) -> &'static str {
    let light = ["#e69f00", "#56b4e9", "#cc79a7", REST];
    if light.contains(&colour) { INK } else { "#ffffff" }
}
