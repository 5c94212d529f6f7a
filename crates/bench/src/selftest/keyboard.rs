// SPDX-License-Identifier: MIT OR Apache-2.0
//! Typing at an application, and what somebody in front of it would see.

use crate::interrupt::InterruptFlag;
use crate::kernel_text::cpu_ticks;
use crate::priority::Priority;
use crate::seen::{DrawingSource, DrawingWatch, latencies};
use anyhow::Result;
use std::time::Duration;
use tipme_desktop::clock;
use tipme_desktop::inject::{Pace, Typist};
use tipme_record::Nanos;

/// Typed over and over; needs no Shift.
const KEYS: &str = "thequickbrownfoxjumpsoverthelazydog";
/// Ten keys a second.
pub(super) const PACE: Pace = Pace { words_per_minute: 120.0, variation: 0.3, seed: 7 };
/// A window that has drawn nothing for so long has worked everything off.
const QUIET: Duration = Duration::from_millis(300);
/// How long the answer to a key is waited for.
const ANSWER: Nanos = Nanos::from_secs(6);
/// How often a waiter looks for the answer.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A keyboard at the application's window, and an eye on it.
pub(super) struct Keyboard {
    typist: Typist,
    seen: DrawingWatch,
    keys: std::iter::Cycle<std::str::Chars<'static>>,
    /// Presses while nothing was wrong.
    calm: Vec<Nanos>,
    /// Presses after that.
    later: Vec<Nanos>,
    /// When the wait for the answers ended.
    given_up: Nanos,
    /// Share of all CPUs that was busy during the calm typing.
    calm_load: Option<f64>,
}

/// What was seen on the screen.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Latency {
    /// From the slowest of the later presses to the first drawing after it, or to the end of the wait.
    pub ms: f64,
    /// The median of the calm ones.
    pub usual_ms: f64,
    /// Share of all CPUs that was busy meanwhile, 0 to 1: mostly with what is none of ours.
    pub usual_load: Option<f64>,
}

impl Keyboard {
    /// Begins to watch the window, once it has been quiet.
    pub(super) fn open(typist: Typist, window: Box<dyn DrawingSource>) -> Result<Keyboard> {
        // The thread that watches is ahead of the fault as well.
        let _priority = Priority::raised();
        let seen = DrawingWatch::watch(window, QUIET)?;
        let (calm, later) = (Vec::new(), Vec::new());
        Ok(Keyboard { typist, seen, keys: KEYS.chars().cycle(), calm, later, given_up: Nanos(0), calm_load: None })
    }

    /// Types so many keys while nothing is wrong.
    pub(super) fn type_calmly(&mut self, count: usize, interrupt: &InterruptFlag) -> Result<()> {
        let before = CpuTime::now();
        self.calm = self.type_on(count, interrupt)?;
        self.calm_load = before.zip(CpuTime::now()).and_then(|(before, after)| before.busy_until(after));
        Ok(())
    }

    /// Types so many keys, and waits until the last one was answered and the window is quiet, at most six seconds.
    pub(super) fn type_and_wait(&mut self, count: usize, interrupt: &InterruptFlag) -> Result<()> {
        self.later = self.type_on(count, interrupt)?;
        let _priority = Priority::raised();
        let last = self.later.last().copied().unwrap_or_default();
        while clock::now().since(last) < ANSWER && !(self.seen.answered(last) && self.seen.quiet_for() >= QUIET) {
            interrupt.sleep(POLL_INTERVAL)?;
        }
        self.given_up = clock::now();
        Ok(())
    }

    fn type_on(&mut self, count: usize, interrupt: &InterruptFlag) -> Result<Vec<Nanos>> {
        let _priority = Priority::raised();
        let mut presses = Vec::new();
        for key in self.keys.by_ref().take(count) {
            interrupt.check()?;
            presses.push(self.typist.key(key)?);
        }
        Ok(presses)
    }

    /// Ends the watch.
    pub(super) fn finish(self) -> Result<Latency> {
        let drawn = self.seen.finish()?;
        let calm = latencies(&self.calm, &drawn).into_iter().flatten().map(Nanos::millis).collect();
        let later = self.later.iter().zip(latencies(&self.later, &drawn));
        let slowest = later.map(|(press, latency)| latency.unwrap_or(self.given_up.since(*press)).millis());
        let (ms, usual_ms) = (slowest.fold(0.0, f64::max), median(calm).unwrap_or_default());
        Ok(Latency { ms, usual_ms, usual_load: self.calm_load })
    }
}

/// Ticks of all CPUs since the machine started.
#[derive(Clone, Copy, PartialEq, Debug)]
struct CpuTime {
    busy: u64,
    idle: u64,
}

impl CpuTime {
    fn now() -> Option<CpuTime> {
        CpuTime::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(stat: &str) -> Option<CpuTime> {
        let ticks = cpu_ticks(stat)?;
        let idle = ticks.get(3)? + ticks.get(4)?;
        Some(CpuTime { busy: ticks.iter().sum::<u64>() - idle, idle })
    }

    fn busy_until(self, later: CpuTime) -> Option<f64> {
        let (busy, idle) = (later.busy.checked_sub(self.busy)?, later.idle.checked_sub(self.idle)?);
        (busy + idle > 0).then(|| busy as f64 / (busy + idle) as f64)
    }
}

/// The lower one of the two in the middle where their number is even; `None` of nothing.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::{CpuTime, median};

    #[test]
    fn the_load_is_what_was_not_idle() {
        let before = CpuTime::parse("cpu  10 0 5 100 5 0 0 0 0 0\ncpu0 1").expect("eight numbers");
        let after = CpuTime::parse("cpu  20 5 10 150 15 0 0 0 0 0\n").expect("eight numbers");
        assert_eq!(before, CpuTime { busy: 15, idle: 105 });
        assert_eq!((before.busy_until(after), after.busy_until(before)), (Some(0.25), None));
        assert_eq!(CpuTime::parse("cpu0 1 2"), None);
    }

    #[test]
    fn the_median_is_one_of_the_values() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.0));
        assert_eq!(median(Vec::new()), None);
    }
}
