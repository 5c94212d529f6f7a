// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detection of the kernel's timer tick by its period among gaps: it has no record, and needs none.

use super::observed::Gap;
use std::collections::VecDeque;

/// Common tick rates of kernels in Hz, for kernels that do not report theirs.
const RATES: [u32; 4] = [1_000, 300, 250, 100];

/// Maximum length of a gap with a tick; a longer one contains more and hardly shows when the tick
/// came.
const LENGTH_MAX_NS: u64 = 200_000;

/// Ticks vary by less than this fraction of the period.
const SHARPNESS: u64 = 40;

/// Minimum share of the expected ticks that must be seen.
const SEEN_MIN: f64 = 0.5;

/// Minimum number of ticks that must be seen.
const TICKS_MIN: usize = 20;

/// Tick at multiples of a period of CLOCK_MONOTONIC, shifted by a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tick {
    pub period_ns: u64,
    /// Earliest time after a multiple of the period.
    pub phase_ns: u64,
    /// Number of gaps that showed it.
    pub seen: usize,
}

impl Tick {
    /// Maximum time of a gap attributed to one tick; the rest has another owner.
    pub(crate) const LENGTH_MAX_NS: u64 = 100_000;

    /// Returns `true` if a tick may have begun at this time. By chance this holds for one time in
    /// forty.
    pub(crate) fn begins_at(&self, at_ns: u64) -> bool {
        (at_ns % self.period_ns + self.period_ns - self.phase_ns) % self.period_ns
            < self.period_ns / SHARPNESS
    }
}

/// Finds the tick in the gaps of one CPU: at one phase, there is a gap in at least half of all
/// periods.
pub fn tick(gaps: &[Gap], wall_ns: u64, hertz: Option<u32>) -> Option<Tick> {
    let known = hertz.filter(|hertz| *hertz > 0);
    let rates = known.as_ref().map_or(&RATES[..], std::slice::from_ref);
    rates.iter().find_map(|hertz| at_rate(gaps, wall_ns, 1_000_000_000 / u64::from(*hertz)))
}

fn at_rate(gaps: &[Gap], wall_ns: u64, period_ns: u64) -> Option<Tick> {
    let short = gaps.iter().filter(|gap| gap.length_ns <= LENGTH_MAX_NS);
    let mut places: Vec<u64> = short.map(|gap| gap.start_ns % period_ns).collect();
    places.sort_unstable();
    let (phase_ns, seen) = densest(&places, period_ns, period_ns / SHARPNESS)?;
    let enough = seen >= TICKS_MIN && seen as f64 >= SEEN_MIN * (wall_ns / period_ns) as f64;
    enough.then_some(Tick { period_ns, phase_ns, seen })
}

/// Returns the start of the window of this width with the most places, and their number; the period
/// is circular.
fn densest(places: &[u64], period: u64, width: u64) -> Option<(u64, usize)> {
    let around = places.iter().copied().chain(places.iter().map(|place| place + period));
    let mut window: VecDeque<u64> = VecDeque::new();
    let mut best = None;
    for place in around {
        window.push_back(place);
        while window.front().is_some_and(|first| place - first >= width) {
            window.pop_front();
        }
        if best.is_none_or(|(_, count)| window.len() > count) {
            best = window.front().map(|first| (first % period, window.len()));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn gap(start_ns: u64) -> Gap {
        Gap { start_ns, length_ns: 5_000 }
    }

    /// Returns gaps of a tick with up to 20 µs of jitter, and as many gaps at other times.
    fn gaps(period: u64, phase: u64) -> Vec<Gap> {
        let ticks = SECOND / period;
        let regular = (0..ticks).map(|at| gap(SECOND + at * period + phase + at * 7_919 % 20_000));
        let other = (0..ticks).map(|at| gap(SECOND + at * 7_368_787 % SECOND));
        let mut gaps: Vec<Gap> = regular.chain(other).collect();
        gaps.sort_by_key(|gap| gap.start_ns);
        gaps
    }

    #[test]
    fn the_rate_need_not_be_known() {
        for (hertz, phase) in [(100, 3_000_000), (250, 3_995_000), (1_000, 0)] {
            let period = SECOND / hertz;
            for known in [None, Some(hertz as u32)] {
                let found = tick(&gaps(period, phase), SECOND, known).expect("there is one");
                assert_eq!(found.period_ns, period);
                assert!(found.begins_at(5 * SECOND + phase + 10_000), "{found:?}");
                assert!(!found.begins_at(5 * SECOND + phase + period / 2), "{found:?}");
            }
        }
    }

    #[test]
    fn gaps_at_irregular_times_are_no_tick() {
        let gaps: Vec<Gap> = (0..400).map(|at| gap(at * 7_368_787 % SECOND)).collect();
        assert_eq!(tick(&gaps, SECOND, None), None);
        assert_eq!(tick(&[], SECOND, Some(250)), None);
        assert_eq!(tick(&[], SECOND, Some(0)), None);
    }
}
