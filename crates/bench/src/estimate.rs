// SPDX-License-Identifier: MIT OR Apache-2.0
//! Estimated duration of a measurement, with its setup and cleanup, reported before it begins.

use crate::alone::OTHERS_MAX;
use std::fmt;
use std::ops::{Add, Mul};
use std::time::Duration;

/// Usual duration of an activity, and the time after which it is aborted.
///
/// Waits for other measurements on the machine are extra, since their number is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DurationEstimate {
    pub about: Duration,
    pub most: Duration,
}

impl DurationEstimate {
    /// Duration of an activity that is aborted after `most`.
    pub const fn new(about: Duration, most: Duration) -> DurationEstimate {
        DurationEstimate { about, most }
    }
}

impl Add for DurationEstimate {
    type Output = DurationEstimate;

    fn add(self, other: DurationEstimate) -> DurationEstimate {
        DurationEstimate { about: self.about + other.about, most: self.most + other.most }
    }
}

impl Mul<usize> for DurationEstimate {
    type Output = DurationEstimate;

    fn mul(self, times: usize) -> DurationEstimate {
        let times = u32::try_from(times).unwrap_or(u32::MAX);
        DurationEstimate {
            about: self.about.saturating_mul(times),
            most: self.most.saturating_mul(times),
        }
    }
}

impl fmt::Display for DurationEstimate {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (about, most, others) = (words(self.about), words(self.most), words(OTHERS_MAX));
        write!(
            to,
            "about {about} in all, {most} at most; each turn waits until no other measurement runs, {others} at most"
        )
    }
}

/// Formats seconds up to ten minutes, then minutes, rounded up.
fn words(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    if seconds <= 600 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_around_is_part_of_it() {
        let measured = DurationEstimate::new(Duration::from_millis(1_000), Duration::from_secs(40));
        let around = DurationEstimate::new(Duration::from_millis(500), Duration::from_secs(60));
        let text = ((measured + around) * 7).to_string();
        assert!(text.starts_with("about 11 s in all, 12 min at most; each turn waits"), "{text}");
        assert!((measured * 2).to_string().starts_with("about 2 s in all, 80 s at most"));
    }
}
