// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clock of a loop: the time-stamp counter if it is invariant, else CLOCK_MONOTONIC.

use std::time::Duration;
use tipme_desktop::clock;
use tipme_measure::idle::{Calibration, ClockFigures};

/// Duration of the first calibration of a counter, before the measurement.
const LOOK: Duration = Duration::from_millis(20);

/// Maximum number of attempts to read counter and clock without an interruption in between.
const ATTEMPTS: usize = 100;

/// Maximum time between the two readings of an uninterrupted pair, in ticks of the counter: some
/// microseconds.
const PAIR_TICKS_MAX: u64 = 3_000;

/// Turns of a loop, of which the median counts: some milliseconds if the clock is slow, so that all
/// loops read it at once.
const TURNS: usize = 1_001;

/// Clock that a loop reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Counter {
    /// Time-stamp counter of the CPU.
    #[cfg(target_arch = "x86_64")]
    Tsc,
    /// CLOCK_MONOTONIC.
    Clock,
}

impl Counter {
    /// Chooses the best counter of this machine.
    pub(super) fn choose() -> Counter {
        #[cfg(target_arch = "x86_64")]
        if has_even_tsc(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()) {
            return Counter::Tsc;
        }
        Counter::Clock
    }

    /// Name in the result.
    fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Counter::Tsc => "tsc",
            Counter::Clock => "clock_gettime",
        }
    }

    /// Reads the counter.
    #[inline(always)]
    pub(super) fn read(self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the instruction reads a register and is allowed wherever Linux lets programs
            // have a vDSO clock.
            Counter::Tsc => unsafe { core::arch::x86_64::_rdtsc() },
            Counter::Clock => clock::now().0,
        }
    }

    /// Reads counter and clock at the same instant; `None` if something interrupted.
    pub(super) fn pair(self) -> Option<(u64, u64)> {
        if self == Counter::Clock {
            let now = self.read();
            return Some((now, now));
        }
        let before = self.read();
        let now = clock::now().0;
        let after = self.read();
        let took = after.saturating_sub(before);
        (took <= PAIR_TICKS_MAX).then_some((before + took / 2, now))
    }

    /// Retries an interrupted [`Counter::pair`].
    pub(super) fn sure_pair(self) -> (u64, u64) {
        let pair = (0..ATTEMPTS).find_map(|_| self.pair());
        pair.unwrap_or_else(|| (self.read(), clock::now().0))
    }

    /// Measures the longest time from one reading of a loop to the next, in ticks: a pair with the
    /// clock and a reading. Returns the median of several in direct succession.
    pub(super) fn turn(self) -> u64 {
        let mut lengths = [0; TURNS];
        let mut last = self.read();
        for length in &mut lengths {
            self.pair();
            let now = self.read();
            *length = now.saturating_sub(last);
            last = now;
        }
        lengths.sort_unstable();
        lengths[TURNS / 2]
    }

    /// Makes a first, rough calibration.
    pub(super) fn look(self) -> (Vec<(u64, u64)>, f64) {
        let first = self.sure_pair();
        std::thread::sleep(LOOK);
        let last = self.sure_pair();
        let ticks_per_ns = (last.0 - first.0) as f64 / (last.1 - first.1).max(1) as f64;
        (vec![first, last], ticks_per_ns)
    }

    /// Calibrates ticks against nanoseconds by pairs taken during the measurement.
    pub(super) fn calibrate(self, pairs: &[(u64, u64)]) -> (Calibration, ClockFigures) {
        let source = self.name().to_owned();
        match Calibration::new(pairs) {
            Some(found) if self != Counter::Clock => {
                let figures = ClockFigures {
                    source,
                    mhz: Some(found.hertz() / 1e6),
                    drift_ppm: found.drift_ppm(),
                    bend_ns: Some(found.bend_ns()),
                    classic: None,
                };
                (found, figures)
            }
            _ => (Calibration::identity(), ClockFigures { source, ..ClockFigures::default() }),
        }
    }
}

/// Returns `true` if the counter runs at a constant rate in all states of the CPU.
#[cfg(target_arch = "x86_64")]
fn has_even_tsc(cpus: &str) -> bool {
    let flags = cpus.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    flags.split_whitespace().any(|flag| flag == "constant_tsc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn an_uneven_counter_is_not_used() {
        assert!(has_even_tsc("processor\t: 0\nflags\t\t: fpu tsc constant_tsc nonstop_tsc\n"));
        assert!(!has_even_tsc("flags\t\t: fpu tsc\n") && !has_even_tsc(""));
    }

    #[test]
    fn the_counter_follows_the_clock() {
        for counter in [Counter::choose(), Counter::Clock] {
            let (mut pairs, ticks_per_ns) = counter.look();
            pairs.push(counter.sure_pair());
            let (calibration, figures) = counter.calibrate(&pairs);
            let (ticks, now) = counter.sure_pair();
            assert!(calibration.ns(ticks).abs_diff(now) < 1_000_000, "{figures:?}");
            assert!(ticks_per_ns > 0.0);
            assert!(counter.turn() > 0);
        }
    }
}
