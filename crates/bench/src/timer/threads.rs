// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measuring threads.
//!
//! Before its first deadline, a thread is pinned, its memory allocated and its policy set. While it
//! measures, it does nothing but sleep, read the clock and store a number. A late thread continues
//! as in cyclictest: deadlines that have passed are skipped and counted.

use super::policy::SchedPolicy;
use super::sleeper::{Sleeper, sleep_until};
use crate::cpus::stay_on;
use crate::interrupt::InterruptFlag;
use crate::locked_buffer::LockedBuffer;
use anyhow::{Context, Result, bail};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::Duration;
use tipme_desktop::clock;
use tipme_measure::timer::{LATENESS, MeasuredThread, TimerMechanism};
use tipme_measure::{Events, Run};

/// Minimum period: below it a thread would do nothing but wake up.
pub(super) const PERIOD_MIN: Duration = Duration::from_micros(10);
/// Maximum period: an interrupt is noticed at the next wakeup.
pub(super) const PERIOD_MAX: Duration = Duration::from_secs(1);
/// Maximum number of deadlines of one thread; a sample takes 16 bytes.
const DEADLINES_MAX: u64 = 8_000_000;
/// Wakeups before the first counted one, so that all code and pages are in use before.
const WARM_UPS: u64 = 5;
/// Time from the readiness of all threads to the first warm-up.
const START_DELAY_NS: u64 = 5_000_000;

/// Options of a measurement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TimerOptions {
    pub period: Duration,
    pub duration: Duration,
    pub policy: SchedPolicy,
    /// CPUs to measure, see [`cpus`].
    pub cpus: Vec<usize>,
}

/// Results of one thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ThreadWakeUps {
    pub thread: MeasuredThread,
    pub run: Run,
}

impl TimerOptions {
    /// Returns the number of deadlines of one thread; fails if its memory would not suffice.
    pub(super) fn deadlines(&self) -> Result<u64> {
        if self.period < PERIOD_MIN || self.period > PERIOD_MAX {
            bail!(
                "cannot measure a period of {:?}; choose one from {PERIOD_MIN:?} to {PERIOD_MAX:?}",
                self.period
            );
        }
        let count = (self.duration.as_nanos() / self.period.as_nanos()) as u64;
        match count {
            0 => bail!(
                "{:?} is shorter than a period of {:?}; measure longer",
                self.duration,
                self.period
            ),
            _ if count > DEADLINES_MAX => bail!(
                "{count} samples of each CPU are too many (at most {DEADLINES_MAX}); measure shorter, or with a longer period"
            ),
            _ => Ok(count),
        }
    }

    pub(super) fn period_ns(&self) -> u64 {
        self.period.as_nanos() as u64
    }
}

/// Runs one thread on each CPU; the tracks are in the order of the CPUs.
///
/// # Errors
/// Fails if a policy or a CPU is refused, or on an interrupt: there are no partial results.
pub(super) fn measure(
    options: &TimerOptions,
    mechanism: TimerMechanism,
    interrupt: &InterruptFlag,
) -> Result<Vec<ThreadWakeUps>> {
    let deadlines = options.deadlines()?;
    let tracks = std::thread::scope(|scope| {
        let (ready, all_ready) = mpsc::channel();
        let mut threads = Vec::new();
        for (number, cpu) in options.cpus.iter().copied().enumerate() {
            let (go, start) = mpsc::channel();
            let phase = options.period_ns() * number as u64 / options.cpus.len() as u64;
            let thread = MeasuringThread { options, mechanism, cpu, deadlines, phase, interrupt };
            let ready = ready.clone();
            let builder = Builder::new().name(format!("tipme-timer/{cpu}"));
            let handle = builder.spawn_scoped(scope, move || thread.run(&ready, &start));
            threads.push((go, handle.context("cannot start a thread")?));
        }
        start_and_join(threads, &all_ready)
    })?;
    interrupt.check()?;
    Ok(tracks)
}

/// Deadlines and wakeups in order of time; those without room are missing in the end.
type Samples = LockedBuffer<(u64, u64)>;

type Worked<'scope> = ScopedJoinHandle<'scope, Result<Option<ThreadWakeUps>>>;

/// Releases the threads once all are ready; if one is not, none begins.
fn start_and_join(
    threads: Vec<(Sender<u64>, Worked<'_>)>,
    all_ready: &Receiver<bool>,
) -> Result<Vec<ThreadWakeUps>> {
    let ready = threads.iter().all(|_| all_ready.recv() == Ok(true));
    let begin = clock::now().0 + START_DELAY_NS;
    let mut handles = Vec::new();
    for (go, handle) in threads {
        if ready {
            // A thread that has ended reports the reason when it is joined.
            let _ = go.send(begin);
        }
        handles.push(handle);
    }
    let mut tracks = Vec::new();
    let mut failed = None;
    for handle in handles {
        match handle.join() {
            Ok(Ok(track)) => tracks.extend(track),
            Ok(Err(error)) => failed = failed.or(Some(error)),
            Err(_) => bail!("a measuring thread ended early"),
        }
    }
    failed.map_or(Ok(tracks), Err)
}

/// Task of one thread.
#[derive(Clone, Copy)]
struct MeasuringThread<'a> {
    options: &'a TimerOptions,
    mechanism: TimerMechanism,
    cpu: usize,
    deadlines: u64,
    /// Delay of its start relative to the others, so that they do not all wake up at once.
    phase: u64,
    interrupt: &'a InterruptFlag,
}

impl MeasuringThread<'_> {
    /// Returns `None` if the thread was not released.
    fn run(&self, ready: &Sender<bool>, start: &Receiver<u64>) -> Result<Option<ThreadWakeUps>> {
        let prepared = self.prepare();
        // Nobody waits any more if another thread failed.
        let _ = ready.send(prepared.is_ok());
        let mut samples = prepared?;
        let Ok(begin) = start.recv() else { return Ok(None) };
        self.track(begin, WARM_UPS, &mut samples)?;
        samples.clear();
        sleep_until(clock::now().0 + self.phase);
        let begin = clock::now().0;
        let overruns = self.track(begin, self.deadlines, &mut samples)?;
        Ok(Some(ThreadWakeUps {
            thread: self.thread(&samples),
            run: self.describe(&samples, overruns),
        }))
    }

    /// Does everything that takes time or can be refused.
    fn prepare(&self) -> Result<Samples> {
        stay_on(self.cpu)?;
        let samples = LockedBuffer::new(self.deadlines as usize, (u64::MAX, u64::MAX));
        self.options.policy.apply()?;
        Ok(samples)
    }

    /// Wakes up for each deadline, the first one a period after `begin`; returns the number of
    /// missed deadlines.
    fn track(&self, begin: u64, deadlines: u64, samples: &mut Samples) -> Result<u64> {
        let period = self.options.period_ns();
        // Only relative sleeping ends by time: it has fewer wakeups than there are deadlines.
        let end = if self.mechanism == TimerMechanism::Relative {
            begin + deadlines * period
        } else {
            u64::MAX
        };
        sleep_until(begin);
        let mut sleeper = Sleeper::new(self.mechanism, begin, period)?;
        let (mut number, mut overruns, mut now) = (1, 0, begin);
        while number <= deadlines && now < end && self.interrupt.check().is_ok() {
            let deadline = begin + number * period;
            let counted = sleeper.wait(deadline)?;
            now = clock::now().0;
            samples.push((deadline, now));
            let passed = counted.unwrap_or_else(|| 1 + now.saturating_sub(deadline + 1) / period);
            overruns += passed.max(1).min(deadlines + 1 - number) - 1;
            number += passed.max(1);
        }
        Ok(overruns + (deadlines + 1).saturating_sub(number))
    }

    fn thread(&self, samples: &Samples) -> MeasuredThread {
        MeasuredThread {
            mechanism: self.mechanism,
            cpu: self.cpu as u32,
            tid: rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(),
            locked: samples.is_locked(),
            slack_ns: rustix::thread::current_timer_slack().ok(),
        }
    }

    fn describe(&self, samples: &Samples, overruns: u64) -> Run {
        let mut events = Events::of(LATENESS, None);
        for (deadline, now) in samples.items() {
            events.push(*deadline, now.saturating_sub(*deadline));
        }
        let answered = samples.items().len() as u64 + overruns;
        Run {
            name: format!("{}/{}/cpu{}", self.mechanism.name(), self.options.policy, self.cpu),
            duration_ns: self.deadlines * self.options.period_ns(),
            interactive_ns: None,
            lost: self.deadlines.saturating_sub(answered),
            classes: vec![events],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpus::allowed_cpus;
    use tipme_measure::timer::WakeUpSeries;

    fn options(period: Duration, duration: Duration) -> TimerOptions {
        let cpus = allowed_cpus().expect("there are CPUs");
        TimerOptions { period, duration, policy: SchedPolicy::Other, cpus }
    }

    #[test]
    fn what_cannot_be_held_is_refused() {
        for (period_us, duration_ms, deadlines) in [
            (1_000, 10_000, Some(10_000)),
            (300, 1, Some(3)),
            (5, 1_000, None),
            (2_000_000, 10_000, None),
            (1_000, 0, None),
            (10, 80_000, Some(DEADLINES_MAX)),
            (10, 80_001, None),
        ] {
            let (period, duration) =
                (Duration::from_micros(period_us), Duration::from_millis(duration_ms));
            assert_eq!(options(period, duration).deadlines().ok(), deadlines, "{period:?}");
        }
    }

    #[test]
    fn a_mechanism_that_is_late_skips_and_counts() {
        // No thread keeps up with it: each wakeup takes longer than a period.
        let options = options(PERIOD_MIN, Duration::from_millis(20));
        for mechanism in TimerMechanism::ALL {
            for track in
                measure(&options, mechanism, &InterruptFlag::default()).expect("it can be measured")
            {
                let series =
                    WakeUpSeries::new(&track.run, options.period_ns()).expect("there is lateness");
                assert_eq!((series.expected(), track.run.lost), (2_000, 0), "{mechanism:?}");
                assert!(series.n() > 0 && series.n() + series.overruns() == 2_000, "{mechanism:?}");
            }
        }
    }

    #[test]
    fn an_interrupt_leaves_no_half_result() {
        let interrupt = InterruptFlag::default();
        interrupt.set();
        let options = options(Duration::from_millis(1), Duration::from_secs(3_600));
        assert!(measure(&options, TimerMechanism::Absolute, &interrupt).is_err());
    }
}
