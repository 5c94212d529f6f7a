// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel's clocks offer, asked of the kernel itself: its configuration is not always there to read.

use rustix::thread::current_timer_slack;
use rustix::time::{ClockId, clock_getres};
use tipme_measure::timer::Clocks;

const CLOCKS: [(&str, ClockId); 4] = [
    ("monotonic", ClockId::Monotonic),
    ("realtime", ClockId::Realtime),
    ("boottime", ClockId::Boottime),
    ("monotonic-coarse", ClockId::MonotonicCoarse),
];

/// Resolutions, ticks and slack as the calling thread has them.
pub fn clocks() -> Clocks {
    let resolution = |clock| {
        let step = clock_getres(clock);
        step.tv_sec.unsigned_abs() * 1_000_000_000 + step.tv_nsec.unsigned_abs()
    };
    Clocks {
        hz: hz(resolution(ClockId::MonotonicCoarse)),
        resolutions_ns: CLOCKS.map(|(name, clock)| (name.to_owned(), resolution(clock))).to_vec(),
        // The kernel tells a whole tick where it has no timers between ticks.
        high_resolution: resolution(ClockId::Monotonic) == 1,
        slack_ns: current_timer_slack().ok(),
    }
}

/// The coarse clock is advanced at ticks.
fn hz(tick_ns: u64) -> Option<u64> {
    (tick_ns > 1_000).then(|| (1_000_000_000 + tick_ns / 2) / tick_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_rounded_to_whole_numbers_a_second() {
        assert_eq!((hz(4_000_000), hz(3_333_333), hz(1_000_250)), (Some(250), Some(300), Some(1_000)));
        assert_eq!(hz(1), None);
    }

    #[test]
    fn this_kernel_tells() {
        let clocks = clocks();
        assert!(clocks.hz.is_some_and(|hz| (24..=10_000).contains(&hz)), "{clocks:?}");
        assert!(clocks.resolutions_ns.iter().all(|(_, step)| *step > 0), "{clocks:?}");
    }
}
