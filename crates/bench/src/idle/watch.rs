// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the loops, one on each CPU.

use super::interrupts::Counts;
use super::options::IdleOptions;
use super::{classic, spin};
use crate::cpus::expect_allowed;
use crate::interrupt::InterruptFlag;
use anyhow::{Context, Result};
use rustix::thread::{Timespec, nanosleep};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};
use tipme_measure::idle::{InterruptCount, Observed};

/// Maximum delay of a sleeper in noticing a signal that came right before its sleep.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Extra time for the loops to end by themselves: they start slightly one after the other.
const SLACK: Duration = Duration::from_millis(5);

/// Observations of the loops.
#[derive(Debug)]
pub(super) struct LoopOutcome {
    pub observed: Vec<Observed>,
    /// Interrupts that the kernel counted, for each CPU.
    pub counted: Vec<Vec<InterruptCount>>,
}

/// Runs a loop on every CPU for the given time.
pub(super) fn measure(options: &IdleOptions, interrupt: &InterruptFlag) -> Result<LoopOutcome> {
    let before = Counts::read();
    let (observed, ()) =
        observe(options, || sleep_until(Instant::now() + options.duration + SLACK, interrupt))?;
    let after = Counts::read();
    let counted = options.cpus.iter().map(|cpu| after.since(&before, *cpu)).collect();
    Ok(LoopOutcome { observed, counted })
}

/// Runs the loops during `meanwhile`; they end with it, and after the given time at the latest.
pub(super) fn observe<T>(
    options: &IdleOptions,
    meanwhile: impl FnOnce() -> Result<T>,
) -> Result<(Vec<Observed>, T)> {
    expect_allowed(&options.cpus)?;
    let stop = AtomicBool::new(false);
    let gate = RwLock::new(());
    let (observed, done) = std::thread::scope(|scope| {
        let closed = gate.write();
        let (ready, all) = mpsc::channel();
        let started =
            options.cpus.iter().map(|cpu| start(scope, *cpu, options, &stop, &gate, ready.clone()));
        let threads = started.collect::<Result<Vec<_>>>();
        drop(ready);
        while all.recv().is_ok() {}
        stop.store(threads.is_err(), Ordering::Relaxed);
        drop(closed);
        let threads = threads?;
        let done = meanwhile();
        stop.store(true, Ordering::Relaxed);
        let observed =
            threads.into_iter().map(|thread| thread.join().expect("a loop does not panic"));
        anyhow::Ok((observed.collect::<Result<Vec<_>>>(), done))
    })?;
    Ok((classic::settle(observed?, options)?, done?))
}

/// Starts the loop of one CPU. It signals that it is ready by dropping `ready`, and waits at the
/// gate.
fn start<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    cpu: usize,
    options: &'env IdleOptions,
    stop: &'env AtomicBool,
    gate: &'env RwLock<()>,
    ready: Sender<()>,
) -> Result<ScopedJoinHandle<'scope, Result<Observed>>> {
    let builder = std::thread::Builder::new().name("tipme-idle".to_owned());
    let thread = builder.spawn_scoped(scope, move || {
        let prepared = spin::prepare(cpu, options);
        drop(ready);
        drop(gate.read());
        prepared?.run(stop)
    });
    thread.with_context(|| format!("cannot start a thread for CPU {cpu}"))
}

/// Sleeps; fails early on Ctrl-C. Wakes up seldom, since the loops would notice.
pub(super) fn sleep_until(end: Instant, interrupt: &InterruptFlag) -> Result<()> {
    loop {
        interrupt.check()?;
        let left = end.saturating_duration_since(Instant::now()).min(POLL_INTERVAL);
        if left.is_zero() {
            return Ok(());
        }
        let time =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        // A signal ends the sleep early, and is checked above.
        let _ = nanosleep(&time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpus::allowed_cpus;

    fn options(classic: bool) -> IdleOptions {
        let cpus = allowed_cpus().expect("they can be asked for");
        IdleOptions {
            duration: Duration::from_millis(300),
            resolution: Duration::from_millis(1),
            classic,
            cpus,
        }
    }

    #[test]
    fn every_cpu_is_seen_and_all_its_time_accounted_for() {
        let options = options(false);
        let outcome = measure(&options, &InterruptFlag::default()).expect("it needs no right");
        assert_eq!(outcome.observed.iter().map(|one| one.cpu).collect::<Vec<_>>(), options.cpus);
        for one in &outcome.observed {
            assert!(one.wall_ns() > 0 && one.stolen_ns() <= one.wall_ns(), "{}", one.wall_ns());
            let apart = one.gaps.windows(2).all(|pair| pair[0].end_ns() <= pair[1].start_ns);
            assert!(apart && one.gaps.iter().all(|gap| gap.length_ns >= 900), "{:?}", one.gaps);
            assert!(one.records_ns.windows(2).all(|pair| pair[1] - pair[0] >= 990_000));
            let ran = one.wall_ns() - one.stolen_ns();
            assert!(
                one.records().abs_diff(ran / 1_000_000) <= 1,
                "{} records in {ran} ns",
                one.records()
            );
        }
    }

    #[test]
    fn the_classic_loop_makes_records_of_its_length() {
        let options = IdleOptions {
            cpus: vec![allowed_cpus().expect("they can be asked for")[0]],
            ..options(true)
        };
        let outcome = measure(&options, &InterruptFlag::default()).expect("it needs no right");
        let one = &outcome.observed[0];
        let classic = one.classic.expect("it was calibrated");
        assert!(classic.iterations > 1_000 && classic.begin_ns > 100_000, "{classic:?}");
        assert!(one.records() > 0 && one.stolen_ns() <= one.wall_ns());
    }

    #[test]
    fn an_interrupt_ends_it() {
        let interrupt = InterruptFlag::default();
        interrupt.set();
        let options = IdleOptions { duration: Duration::from_secs(3_600), ..options(false) };
        let error = measure(&options, &interrupt).expect_err("it is interrupted");
        assert_eq!(error.to_string(), "interrupted; everything that was started has been ended");
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let nowhere = IdleOptions { cpus: vec![1_000_000], ..options(false) };
        let error = measure(&nowhere, &InterruptFlag::default()).expect_err("there is no such CPU");
        assert!(error.to_string().contains("CPU 1000000"), "{error:#}");
        assert!(IdleOptions { cpus: vec![], ..options(false) }.check().is_err());
        assert!(
            IdleOptions { resolution: Duration::from_micros(2), ..options(false) }.check().is_err()
        );
        assert!(
            IdleOptions { resolution: Duration::from_secs(2), ..options(false) }.check().is_err()
        );
        assert!(options(false).check().is_ok());
    }
}
