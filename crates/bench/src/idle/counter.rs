// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock that a loop reads: the time-stamp counter where it runs evenly, else CLOCK_MONOTONIC itself.

use std::time::Duration;
use tipme_desktop::clock;
use tipme_measure::idle::{Calibration, ClockFigures};

/// How long the rate of a counter is looked at before the measuring.
const LOOK: Duration = Duration::from_millis(20);

/// Attempts to read counter and clock without an interruption in between.
const ATTEMPTS: usize = 100;

/// A pair that took longer to read was interrupted, in ticks of the counter: at most some microseconds.
const PAIR_TICKS_MAX: u64 = 3_000;

/// Turns of a loop of which the median counts: some milliseconds where the clock is slow, so that all loops read at once.
const TURNS: usize = 1_001;

/// Which clock is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Counter {
    /// The time-stamp counter of the CPU.
    #[cfg(target_arch = "x86_64")]
    Tsc,
    /// CLOCK_MONOTONIC.
    Clock,
}

impl Counter {
    /// The best that this machine has.
    pub(super) fn choose() -> Counter {
        #[cfg(target_arch = "x86_64")]
        if has_even_tsc(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()) {
            return Counter::Tsc;
        }
        Counter::Clock
    }

    /// As in the result.
    fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Counter::Tsc => "tsc",
            Counter::Clock => "clock_gettime",
        }
    }

    /// The counter now.
    #[inline(always)]
    pub(super) fn read(self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the instruction reads a register and is allowed wherever Linux lets programs have a vDSO clock.
            Counter::Tsc => unsafe { core::arch::x86_64::_rdtsc() },
            Counter::Clock => clock::now().0,
        }
    }

    /// Counter and clock at the same instant, where nothing came between.
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

    /// The same, tried again where something came between.
    pub(super) fn sure_pair(self) -> (u64, u64) {
        let pair = (0..ATTEMPTS).find_map(|_| self.pair());
        pair.unwrap_or_else(|| (self.read(), clock::now().0))
    }

    /// What a loop takes from one reading to the next at most, in ticks: a pair with the clock and a reading. The median of some,
    /// one right after the other.
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

    /// A first, rough calibration.
    pub(super) fn look(self) -> (Vec<(u64, u64)>, f64) {
        let first = self.sure_pair();
        std::thread::sleep(LOOK);
        let last = self.sure_pair();
        let ticks_per_ns = (last.0 - first.0) as f64 / (last.1 - first.1).max(1) as f64;
        (vec![first, last], ticks_per_ns)
    }

    /// From ticks to nanoseconds by pairs that were taken along the way.
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

/// Whether the counter runs at one rate whatever the CPU does.
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
