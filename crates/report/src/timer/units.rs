// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times in a suitable unit.

/// Formats a time in a suitable unit.
pub(super) fn duration_us(us: f64) -> String {
    match us {
        1_000_000.0.. => format!("{} s", short(us / 1e6)),
        1_000.0.. => format!("{} ms", short(us / 1e3)),
        1.0.. | 0.0 => format!("{} µs", short(us)),
        _ => format!("{} ns", short(us * 1e3)),
    }
}

/// Formats with at most three decimals, without trailing zeros.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
