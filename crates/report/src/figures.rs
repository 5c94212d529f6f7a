// SPDX-License-Identifier: MIT OR Apache-2.0
//! Durations for display, and shares of an interval.

use tipme_analysis::model::{Interval, Verdict};

/// Returns a time as a percentage of the latency.
pub(crate) fn percent(ms: f64, interval: &Interval) -> f64 {
    100.0 * ms / interval.latency_ms.max(f64::MIN_POSITIVE)
}

/// Returns the part of the latency that is neither in a finding nor unattributed.
pub(crate) fn rest_ms(verdict: &Verdict, interval: &Interval) -> f64 {
    let found: f64 = verdict.findings.iter().map(|finding| finding.ms).sum();
    interval.latency_ms - found - verdict.unattributed_ms
}

/// Formats a duration for display: `2.31 s`, `14 ms`, `0.32 ms`.
pub fn span(ms: f64) -> String {
    match ms {
        999.5.. => format!("{:.2} s", ms / 1_000.0),
        9.95.. => format!("{ms:.0} ms"),
        1.0.. => format!("{ms:.1} ms"),
        _ => format!("{ms:.2} ms"),
    }
}
