// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histogram on one line of a terminal.

use crate::plot::buckets::{counts, place, usable};
use crate::plot::values::is_time;
use crate::plot::words::{count, number};

/// Maximum length of the line in characters.
const LINE_MAX: usize = 100;
/// Bucket counts to try, starting with the largest that leaves room for the words.
const COLUMNS: [usize; 5] = [60, 50, 40, 30, 20];
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Counts latencies in buckets, from the first to the last non-empty one, and draws them with a
/// logarithmic height: a single one is `▁`, the fullest bucket `█`, an empty one blank.
///
/// `10 ms ▁█▃▁ ▁ 120 ms (10 ms each, █=31, n=63)`. Buckets are widened if there are too many. The
/// line includes the width of the buckets and the number of invalid times that are left out.
pub fn strip(values_ms: &[f64], bucket_ms: f64) -> String {
    let mut values: Vec<f64> = values_ms.iter().copied().filter(|value| is_time(*value)).collect();
    values.sort_unstable_by(f64::total_cmp);
    let left_out = values_ms.len() - values.len();
    let lines = COLUMNS.iter().map(|columns| line(&values, bucket_ms, *columns, left_out));
    let fitting = lines.map(|line| cut(&line)).find(|(_, whole)| *whole);
    fitting.map_or_else(|| cut(&line(&values, bucket_ms, 10, left_out)).0, |(line, _)| line)
}

/// Cuts a line to the maximum length; returns `true` with it if nothing was lost.
fn cut(line: &str) -> (String, bool) {
    (line.chars().take(LINE_MAX).collect(), line.chars().count() <= LINE_MAX)
}

fn line(ascending: &[f64], bucket_ms: f64, columns: usize, left_out: usize) -> String {
    let missing =
        if left_out > 0 { format!(", {} left out", count(left_out)) } else { String::new() };
    let (Some(least), Some(most)) = (ascending.first(), ascending.last()) else {
        return format!("no events{missing}");
    };
    let width = width_for(*least, *most, usable(bucket_ms), columns);
    let counts = counts(ascending, width);
    let fullest = counts.iter().map(|(_, count)| *count).max().unwrap_or(1);
    let (first, last) = (place(*least, width), place(*most, width));
    let scale =
        format!("{} ms each, █={fullest}, n={}{missing}", number(width), count(ascending.len()));
    format!(
        "{} ms {} {} ms  ({scale})",
        number(first as f64 * width),
        blocks(&counts, fullest),
        number(last.saturating_add(1) as f64 * width)
    )
}

/// Returns the bucket width, or the smallest round multiple of it that needs at most `columns`
/// buckets.
fn width_for(least: f64, most: f64, bucket: f64, columns: usize) -> f64 {
    let factors =
        (0..40).flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(exponent)));
    factors
        .map(|factor| factor * bucket)
        .find(|width| place(most, *width) - place(least, *width) < columns as u64)
        .unwrap_or(most + 1.0)
}

pub(crate) fn blocks(counts: &[(u64, u64)], fullest: u64) -> String {
    let mut out = String::new();
    let mut next = counts.first().map_or(0, |(at, _)| *at);
    for (at, count) in counts {
        out.extend((next..*at).map(|_| ' '));
        out.push(block(*count, fullest));
        next = at + 1;
    }
    out
}

/// Returns the block for a count; full height if every bucket holds one.
fn block(count: u64, fullest: u64) -> char {
    let most = BLOCKS.len() - 1;
    let share = if fullest > 1 { (count as f64).ln() / (fullest as f64).ln() } else { 1.0 };
    BLOCKS[((share * most as f64).round() as usize).min(most)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_strip_has_its_scale_and_range() {
        let mut values = vec![12.0; 31];
        values.extend([21.0, 25.0, 29.0, 33.0, 118.0]);
        insta::assert_snapshot!(strip(&values, 10.0), @"10 ms █▃▁       ▁ 120 ms  (10 ms each, █=31, n=36)");
        insta::assert_snapshot!(strip(&[5.0, 5.0, f64::NAN], 10.0), @"0 ms █ 10 ms  (10 ms each, █=2, n=2, 1 left out)");
        insta::assert_snapshot!(strip(&[0.051, 0.052, 0.061], 0.001), @"0.051 ms ██        █ 0.062 ms  (0.001 ms each, █=1, n=3)");
    }

    #[test]
    fn no_events_are_no_strip() {
        assert_eq!(strip(&[], 10.0), "no events");
        assert_eq!(strip(&[f64::NAN, -1.0], 10.0), "no events, 2 left out");
    }

    #[test]
    fn buckets_widen_if_there_are_too_many() {
        let strip = strip(&(0..10_000).map(f64::from).collect::<Vec<_>>(), 10.0);
        insta::assert_snapshot!(strip, @"0 ms ██████████████████████████████████████████████████ 10,000 ms  (200 ms each, █=200, n=10,000)");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_line_is_too_long(values in prop::collection::vec(any::<f64>(), 0..200), bucket in any::<f64>(), few in 0f64..1e7) {
            let mut values = values;
            values.push(few);
            let strip = strip(&values, bucket);
            prop_assert!(strip.chars().count() <= LINE_MAX && !strip.contains(char::is_control));
            prop_assert!(strip.ends_with(')'), "cut: {strip}");
        }
    }
}
