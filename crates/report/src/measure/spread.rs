// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs by which repeats differ too much for a comparison.

use super::MeasureDetails;
use crate::plot::words::{duration, plain};
use std::collections::BTreeMap;
use tipme_measure::{InputClass, spread_shares};

/// Maximum number of parts listed.
const PARTS: usize = 3;
/// Maximum number of characters of a label.
const LABEL_CHARS: usize = 24;
/// Minimum share of the differences for a label to be listed.
const SHARE_MIN: f64 = 0.05;

/// Part of the awaited time: its share of the differences, its description, and its time in each
/// repeat.
type Part = (f64, String, Vec<f64>);

/// Describes the differences between the repeats; empty if the repeats are usable.
pub(super) fn text(details: &MeasureDetails) -> String {
    if details.cumulative.usable == Some(false) { lines(by_label(details)) } else { String::new() }
}

/// Formats a share; adding zero removes the sign of a rounded negative zero.
fn percent(share: f64) -> String {
    format!("{:.0}%", (100.0 * share).round() + 0.0)
}

/// Returns the parts by inputs that took longer, except the start.
fn by_label(details: &MeasureDetails) -> Vec<Part> {
    let repeats = details.cumulative.repeats_ms.len();
    let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for event in details.events.iter().filter(|event| event.class != InputClass::Start.name()) {
        let sums = times.entry(&event.label).or_insert_with(|| vec![0.0; repeats]);
        if let Some(sum) = event.repeat.checked_sub(1).and_then(|at| sums.get_mut(at)) {
            *sum += event.latency_ms.unwrap_or(0.0);
        }
    }
    let (labels, times): (Vec<&str>, Vec<Vec<f64>>) = times.into_iter().unzip();
    let shares = spread_shares(&times).unwrap_or_default();
    let parts = shares.into_iter().zip(labels).zip(times);
    let listed = parts.filter(|((share, _), _)| *share >= SHARE_MIN);
    let parts = listed.map(|((share, label), times)| {
        // A share above 1 is offset by unlisted parts that fall as it rises.
        (share.min(1.0), format!("inputs labelled {}", plain(label, LABEL_CHARS)), times)
    });
    parts.collect()
}

/// Formats the parts, the largest first.
fn lines(mut parts: Vec<Part>) -> String {
    parts.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut out = String::new();
    for (share, what, times) in parts.iter().take(PARTS) {
        let least = duration(times.iter().copied().fold(f64::INFINITY, f64::min));
        let most = duration(times.iter().copied().fold(0.0, f64::max));
        out += &format!("  {} of the differences: {what}, {least} to {most}\n", percent(*share));
    }
    out
}
