// SPDX-License-Identifier: MIT OR Apache-2.0
//! Idle loop of Endo, Wang, Chen and Seltzer (1996, section 2.3): a fixed number of iterations that
//! take a millisecond on an idle CPU. Any excess of a record is stolen time.
//!
//! The loop needs no clock that is fast to read. A CPU that changes its clock, or shares its
//! units with another one, changes the loop's length too: the loop is timed again at the end, and
//! the difference is reported.

use super::options::IdleOptions;
use super::plan::LoopNotes;
use crate::cpus::stay_on;
use anyhow::{Context, Result};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use tipme_desktop::clock;
use tipme_measure::idle::{ClassicLoop, Gap, Observed};

/// Number of turns, of which the median counts.
const TURNS: usize = 51;

/// A loop is lengthened until it takes 1/20 of a record; its final length is extrapolated from
/// that.
const PART: u64 = 20;

/// Limit of plausible iterations.
const ITERATIONS_MAX: u64 = 1 << 40;

#[inline(never)]
fn turn(iterations: u64) {
    for iteration in 0..iterations {
        black_box(iteration);
    }
}

/// Returns the median length of a turn; at most every fourth turn meets a timer tick.
fn median_turn(iterations: u64, turns: usize) -> u64 {
    let mut lengths: Vec<u64> = (0..turns).map(|_| timed(iterations)).collect();
    lengths.sort_unstable();
    lengths[lengths.len() / 2]
}

fn timed(iterations: u64) -> u64 {
    let before = clock::now();
    turn(iterations);
    clock::now().since(before).0
}

/// Returns the loop with the length closest to that of a record.
pub(super) fn calibrate(record: u64) -> ClassicLoop {
    let mut iterations = 1_000;
    while iterations < ITERATIONS_MAX && median_turn(iterations, 5) < record / PART {
        iterations *= 2;
    }
    for _ in 0..2 {
        let took = median_turn(iterations, TURNS).max(1);
        iterations = (iterations as f64 * record as f64 / took as f64)
            .clamp(1.0, ITERATIONS_MAX as f64) as u64;
    }
    let begin_ns = median_turn(iterations, TURNS);
    ClassicLoop { iterations, begin_ns, ..ClassicLoop::default() }
}

/// Runs until the end; each turn is a record.
pub(super) fn watch(iterations: u64, end: u64, stop: &AtomicBool, notes: &mut LoopNotes) -> u64 {
    loop {
        turn(iterations);
        let at = clock::now().0;
        notes.records.push(at);
        if at >= end || stop.load(Ordering::Relaxed) {
            return at;
        }
    }
}

/// Times the loops again at normal priority, and derives gaps from the records.
pub(super) fn settle(observed: Vec<Observed>, options: &IdleOptions) -> Result<Vec<Observed>> {
    if !options.classic {
        return Ok(observed);
    }
    observed.into_iter().map(settle_one).collect()
}

fn settle_one(mut observed: Observed) -> Result<Observed> {
    let known = observed.classic.unwrap_or_default();
    let again =
        std::thread::scope(|scope| scope.spawn(|| time_at(observed.cpu, known.iterations)).join());
    let end_ns = again.ok().context("the loop could not be timed again")??;
    let drift_percent = 100.0 * (end_ns as f64 / known.begin_ns.max(1) as f64 - 1.0);
    observed.classic = Some(ClassicLoop { end_ns, drift_percent, ..known });
    observed.gaps = gaps(&observed, known.begin_ns);
    Ok(observed)
}

/// Returns the length of a turn on a CPU, in nanoseconds.
fn time_at(cpu: usize, iterations: u64) -> Result<u64> {
    stay_on(cpu)?;
    Ok(median_turn(iterations, TURNS))
}

/// Returns the excess of each record as a gap at the record's start.
fn gaps(observed: &Observed, record_ns: u64) -> Vec<Gap> {
    let begins = std::iter::once(observed.begin_ns).chain(observed.records_ns.iter().copied());
    let records = begins.zip(&observed.records_ns);
    let gaps = records.map(|(start_ns, end)| Gap {
        start_ns,
        length_ns: (end - start_ns).saturating_sub(record_ns),
    });
    gaps.filter(|gap| gap.length_ns > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_record_is_a_gap() {
        let records_ns = vec![1_000, 2_050, 12_810, 13_700];
        let observed = Observed { end_ns: 13_700, records_ns, ..Observed::default() };
        let expected =
            [(1_000, 50), (2_050, 9_760)].map(|(start_ns, length_ns)| Gap { start_ns, length_ns });
        assert_eq!(gaps(&observed, 1_000), expected);
    }

    #[test]
    fn a_longer_loop_takes_longer() {
        let ClassicLoop { iterations, begin_ns, .. } = calibrate(1_000_000);
        assert!(iterations > 0 && begin_ns > 0, "{iterations} {begin_ns}");
        let [short, long] = [iterations, 10 * iterations]
            .map(|iterations| (0..20).map(|_| timed(iterations)).min());
        assert!(long > short);
    }
}
