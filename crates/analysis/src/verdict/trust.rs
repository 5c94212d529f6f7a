// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the explanation of an interval can be trusted: what it leaves open, and what was lost meanwhile.

use crate::model::{Kind, Piece};
use crate::timeline::recording::Recording;
use tipme_record::Nanos;

/// How sure a finding is at most, and where records were lost in the interval.
pub const TRUST: f64 = 0.95;
pub const TRUST_LOSSES: f64 = 0.5;

/// The time that no record explains.
pub fn unattributed_ms(partition: &[Piece]) -> f64 {
    let open = partition.iter().filter(|piece| piece.kind == Kind::Unattributed);
    open.map(|piece| piece.ms).fold(0.0, |sum, ms| sum + ms)
}

/// The share of an interval that is explained, 0 to 1.
pub fn explained(unattributed_ms: f64, interval: Nanos) -> f64 {
    1.0 - (unattributed_ms / interval.millis().max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
}

/// How many records were lost in the seconds that `lo..hi` reaches into.
pub fn lost(recording: &Recording, lo: Nanos, hi: Nanos) -> u64 {
    let second = Nanos::from_secs(1);
    let losses = recording.losses.per_second.iter();
    let within = losses.filter(|loss| Nanos(loss.until_ns) > lo && Nanos(loss.until_ns).before(second) < hi);
    within.fold(0, |sum, loss| sum.saturating_add(loss.count))
}
