// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs with known work, to validate the loops.
//!
//! They write nothing while they work, and report each event on a line at the end.

use crate::cpu_work::{cpu_time, spin_for};
use crate::timer::sleep_until;
use anyhow::{Context, Result, bail};
use fastrand::Rng;
use std::io::{Read, Write};
use std::time::Duration;
use tipme_desktop::clock;
use tipme_measure::idle::Injection;

/// Minimum and maximum CPU time of an event.
pub(super) const WORK_NS: (u64, u64) = (50_000, 10_000_000);
/// Minimum and maximum pause between events: the CPU is idle before each of them.
const PAUSE_NS: (u64, u64) = (8_000_000, 24_000_000);
/// CPU time between a character and its echo.
const ECHO: Duration = Duration::from_millis(5);
/// Maximum number of events, to bound the programs.
const EVENTS_MAX: u64 = 10_000;
/// Maximum time for which a hog computes.
const HOG_MAX: Duration = Duration::from_secs(60);
/// Random seed, fixed so that the events are the same each time.
const SEED: u64 = 0x5eed_1996;

/// Runs one of the programs: `inject COUNT`, `echo COUNT`, or `hog MILLISECONDS`.
pub(crate) fn work(name: &str, number: &str) -> Result<()> {
    let number = number.parse::<u64>().with_context(|| format!("invalid number \"{number}\""))?;
    match name {
        "inject" => inject(number.min(EVENTS_MAX)),
        "echo" => echo(number.min(EVENTS_MAX)),
        "hog" => {
            spin_for(Duration::from_millis(number).min(HOG_MAX));
            Ok(())
        }
        _ => bail!("there is no program \"{name}\""),
    }
}

/// Returns a uniformly distributed number in the range.
fn evenly(random: &mut Rng, (least, most): (u64, u64)) -> u64 {
    least + (random.f64() * (most - least) as f64) as u64
}

/// Returns a log-uniform number in the range: as many between one and two as between two and four.
fn by_size(random: &mut Rng, (least, most): (u64, u64)) -> u64 {
    (least as f64 * (most as f64 / least as f64).powf(random.f64())) as u64
}

/// Sleeps and computes in turn. The CPU time of an event runs from its wakeup to the next one.
fn inject(count: u64) -> Result<()> {
    let mut random = Rng::with_seed(SEED);
    let mut events = Vec::with_capacity(count as usize);
    let mut due_ns = wake_after(evenly(&mut random, PAUSE_NS));
    for _ in 0..count {
        let (began_ns, begun) = (clock::now().0, cpu_time());
        compute(begun + Duration::from_nanos(by_size(&mut random, WORK_NS)));
        let ended_ns = clock::now().0;
        let next = wake_after(evenly(&mut random, PAUSE_NS));
        events.push(Injection {
            due_ns,
            began_ns,
            ended_ns,
            cpu_ns: (cpu_time() - begun).as_nanos() as u64,
        });
        due_ns = next;
    }
    report(std::io::stdout().lock(), &events)
}

/// Reads a character, computes, and echoes it, like the program of the paper; reports on the error
/// output.
fn echo(count: u64) -> Result<()> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut events = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let mut character = [0];
        input.read_exact(&mut character).context("there is no character to echo")?;
        let (began_ns, begun) = (clock::now().0, cpu_time());
        compute(begun + ECHO);
        output
            .write_all(&character)
            .and_then(|()| output.flush())
            .context("cannot write the echo")?;
        let ended_ns = clock::now().0;
        events.push(Injection {
            due_ns: began_ns,
            began_ns,
            ended_ns,
            cpu_ns: (cpu_time() - begun).as_nanos() as u64,
        });
    }
    report(std::io::stderr().lock(), &events)
}

/// Sleeps for a time; returns the time at which the sleep was due to end.
fn wake_after(pause_ns: u64) -> u64 {
    let due = clock::now().0 + pause_ns;
    sleep_until(due);
    due
}

/// Computes until this thread has used `until` of CPU time.
fn compute(until: Duration) {
    while cpu_time() < until {
        std::hint::black_box((0..200_u64).fold(0, |sum, turn| sum ^ std::hint::black_box(turn)));
    }
}

fn report(mut output: impl Write, events: &[Injection]) -> Result<()> {
    let lines = events.iter().map(|Injection { due_ns, began_ns, ended_ns, cpu_ns }| {
        format!("{due_ns} {began_ns} {ended_ns} {cpu_ns}\n")
    });
    let text = lines.collect::<String>() + &format!("{}\n", cpu_time().as_nanos());
    output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
        .context("cannot report the events")
}

/// Parses the report of a program. Other lines are skipped.
pub(super) fn reported(text: &str) -> Vec<Injection> {
    text.lines().filter_map(event).collect()
}

/// Returns the total CPU time of a program, in nanoseconds.
pub(super) fn whole_cpu_ns(text: &str) -> Option<u64> {
    text.lines().next_back()?.parse().ok()
}

fn event(line: &str) -> Option<Injection> {
    let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [due_ns, began_ns, ended_ns, cpu_ns] = numbers.try_into().ok()?;
    Some(Injection { due_ns, began_ns, ended_ns, cpu_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_reported_and_read_back() {
        let event = Injection { due_ns: 1, began_ns: 2, ended_ns: 3, cpu_ns: 4 };
        let mut text = Vec::new();
        report(&mut text, &[event, event]).expect("memory can be written to");
        assert!(whole_cpu_ns(&String::from_utf8_lossy(&text)).is_some_and(|time| time > 0));
        text.extend(b"noise\n1 2 3\n1 2 3 4 5\n");
        assert_eq!(reported(&String::from_utf8_lossy(&text)), [event, event]);
        assert_eq!((whole_cpu_ns(&String::from_utf8_lossy(&text)), whole_cpu_ns("")), (None, None));
    }

    #[test]
    fn sizes_are_spread_over_the_decades() {
        let mut random = Rng::with_seed(SEED);
        let sizes: Vec<u64> = (0..1_000).map(|_| by_size(&mut random, WORK_NS)).collect();
        assert!(sizes.iter().all(|size| (WORK_NS.0..=WORK_NS.1).contains(size)));
        let below = sizes.iter().filter(|size| **size < 707_107).count();
        assert!((400..600).contains(&below), "{below} of 1000 are below the middle of the decades");
    }

    #[test]
    fn only_known_programs_run() {
        assert!(work("dance", "3").is_err() && work("hog", "").is_err());
        assert!(work("hog", "1").is_ok());
    }
}
