// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steal time: the column `steal` of /proc/stat for the machine and each CPU, and the CPU pressure
//! from /proc/pressure/cpu.
//!
//! The recorder reads the counters ten times a second while a thread has to wait, else once. Steal
//! time is spread evenly between two samples.

use crate::decode::events::CPU_LIMIT;
use crate::decode::samples::samples;
use std::collections::BTreeMap;
use tipme_record::proc_text::stalled_us;
use tipme_record::{Cpu, Nanos};

/// Source numbers of samples.
const PRESSURE_CPU: u32 = 0;
const STAT: u32 = 3;

/// Unit of /proc/stat: USER_HZ is 100 on all supported machines.
const TICK: Nanos = Nanos::from_millis(10);

/// Index of the column `steal`, after the name of the CPU.
const COLUMN: usize = 7;

/// Maximum number of samples read.
const SAMPLES_MAX: usize = 100_000;

/// Samples of a growing time counter.
#[derive(Debug, Default)]
struct TimeCounter {
    points: Vec<(Nanos, Nanos)>,
}

/// Steal time and CPU pressure, as far as the hypervisor accounts it.
#[derive(Debug, Default)]
pub struct Steal {
    /// All CPUs together.
    total: TimeCounter,
    cpus: BTreeMap<u32, TimeCounter>,
    pressure: TimeCounter,
    /// Number of CPUs.
    count: usize,
}

impl Steal {
    /// Reads the samples section of a machine with this number of CPUs.
    pub fn read(section: &[u8], cpus: usize) -> Steal {
        let mut steal = Steal { count: cpus, ..Steal::default() };
        let wanted =
            samples(section).filter(|(_, source, _)| [PRESSURE_CPU, STAT].contains(source));
        for (at, source, text) in wanted.take(SAMPLES_MAX) {
            match source {
                STAT => steal.add(at, text),
                _ => {
                    let waited = stalled_us(text).map(|us| Nanos(us.saturating_mul(1_000)));
                    steal.pressure.points.extend(waited.map(|waited| (at, waited)));
                }
            }
        }
        let counters =
            [&mut steal.total, &mut steal.pressure].into_iter().chain(steal.cpus.values_mut());
        counters.for_each(|counter| counter.points.sort());
        steal
    }

    /// Skips lines without an end, which the recorder truncated.
    fn add(&mut self, at: Nanos, text: &str) {
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        for (name, stolen) in lines.map_while(stolen) {
            match name.parse::<u32>() {
                Ok(cpu) if (cpu as usize) < CPU_LIMIT => {
                    self.cpus.entry(cpu).or_default().points.push((at, stolen))
                }
                Ok(_) => {}
                Err(_) => self.total.points.push((at, stolen)),
            }
        }
    }

    /// Returns `true` if the hypervisor accounts steal time: the counter has grown since boot.
    pub(crate) fn is_accounted(&self) -> bool {
        self.total.points.last().is_some_and(|(_, stolen)| *stolen > Nanos(0))
    }

    /// Returns the steal time of all CPUs together in `lo..hi`; `None` without samples of that
    /// time.
    pub fn stolen(&self, lo: Nanos, hi: Nanos) -> Option<Nanos> {
        self.total.grown(lo, hi)
    }

    /// Returns the share of the machine's CPU time that was stolen in `lo..hi`, 0 to 1.
    pub fn share(&self, lo: Nanos, hi: Nanos) -> Option<f64> {
        let all = hi.since(lo).0 as f64 * self.count.max(1) as f64;
        Some((self.stolen(lo, hi)?.0 as f64 / all.max(1.0)).min(1.0))
    }

    /// Returns the share of one CPU's time that was stolen in `lo..hi`, 0 to 1; 0 if unknown.
    pub(crate) fn share_of(&self, cpu: Cpu, lo: Nanos, hi: Nanos) -> f64 {
        let stolen =
            self.cpus.get(&cpu.0).and_then(|counter| counter.grown(lo, hi)).unwrap_or_default();
        (stolen.0 as f64 / hi.since(lo).0.max(1) as f64).min(1.0)
    }

    /// Returns the time in `lo..hi` in which some task waited for a CPU; `None` if unknown.
    pub fn waited(&self, lo: Nanos, hi: Nanos) -> Option<Nanos> {
        self.pressure.grown(lo, hi)
    }
}

impl TimeCounter {
    /// Returns the growth of the counter in `lo..hi`; `None` if no two samples enclose any part of
    /// it.
    fn grown(&self, lo: Nanos, hi: Nanos) -> Option<Nanos> {
        let first = self.points.partition_point(|(at, _)| *at <= lo).saturating_sub(1);
        let windows = self.points.get(first..)?.windows(2).take_while(|pair| pair[0].0 < hi);
        let overlaps = windows.filter_map(|pair| overlap(pair[0], pair[1], lo, hi));
        let grown = overlaps.reduce(|all, grown| all + grown)?;
        Some(Nanos(grown.round() as u64))
    }
}

/// Returns the share of the growth between two samples that falls into `lo..hi`; `None` if they do
/// not overlap it.
fn overlap(from: (Nanos, Nanos), to: (Nanos, Nanos), lo: Nanos, hi: Nanos) -> Option<f64> {
    let within = hi.min(to.0).since(lo.max(from.0)).0;
    let part = within as f64 / to.0.since(from.0).0.max(1) as f64;
    (within > 0).then(|| to.1.since(from.1).0 as f64 * part)
}

/// Parses the number of the CPU, empty for all, and its steal time; `None` after the CPU lines.
fn stolen(line: &str) -> Option<(&str, Nanos)> {
    let mut words = line.split_whitespace();
    let name = words.next()?.strip_prefix("cpu")?;
    let ticks: u64 = words.nth(COLUMN)?.parse().ok()?;
    Some((name, Nanos(ticks.saturating_mul(TICK.0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ms: u64, source: u32, text: &str) -> Vec<u8> {
        let mut bytes = Nanos::from_millis(at_ms).0.to_le_bytes().to_vec();
        bytes.extend(source.to_le_bytes());
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn stat(at_ms: u64, ticks: [u64; 2]) -> Vec<u8> {
        let lines = [("cpu ", ticks[0] + ticks[1]), ("cpu0", ticks[0]), ("cpu1", ticks[1])];
        let lines = lines.map(|(name, ticks)| format!("{name} 9 0 9 900 0 0 1 {ticks} 0 0\n"));
        sample(at_ms, STAT, &format!("{}intr 99 0 7", lines.concat()))
    }

    fn ms(at: u64) -> Nanos {
        Nanos::from_millis(at)
    }

    #[test]
    fn growth_is_shared_out_between_samples() {
        let steal = Steal::read(
            &[stat(1_000, [5, 7]), stat(2_000, [85, 7]), stat(3_000, [85, 7])].concat(),
            2,
        );
        assert!(steal.is_accounted());
        assert_eq!(steal.stolen(ms(1_000), ms(3_000)), Some(ms(800)));
        assert_eq!(steal.stolen(ms(1_500), ms(1_750)), Some(ms(200)));
        assert_eq!(steal.share(ms(1_000), ms(2_000)), Some(0.4));
        let shares = [0, 1, 2].map(|cpu| steal.share_of(Cpu(cpu), ms(1_000), ms(2_000)));
        assert_eq!(shares, [0.8, 0.0, 0.0]);
        assert_eq!(
            (steal.stolen(ms(100), ms(900)), steal.stolen(ms(3_100), ms(9_000))),
            (None, None)
        );
    }

    #[test]
    fn a_machine_without_a_hypervisor_accounts_nothing() {
        let steal = Steal::read(&[stat(1_000, [0, 0]), stat(2_000, [0, 0])].concat(), 2);
        assert!(!steal.is_accounted());
        assert_eq!(steal.stolen(ms(1_000), ms(2_000)), Some(Nanos(0)));
        assert!(!Steal::read(b"rubbish", 0).is_accounted());
    }

    #[test]
    fn cut_lines_and_falling_counters_are_ignored() {
        let cut = sample(2_000, STAT, "cpu  9 0 9 900 0 0 1 9 0 0\ncpu0 9 0 9 900 0 0 1 9");
        let steal = Steal::read(&[stat(1_000, [20, 0]), cut].concat(), 2);
        assert_eq!(steal.stolen(ms(1_000), ms(2_000)), Some(Nanos(0)));
        assert_eq!(steal.share_of(Cpu(0), ms(1_000), ms(2_000)), 0.0);
    }

    #[test]
    fn pressure_is_the_time_for_which_a_task_waited() {
        let samples = [(1_000, 7), (2_000, 500_007)].map(|(at, us)| {
            sample(at, PRESSURE_CPU, &format!("some avg10=0.00 avg300=0.00 total={us}\nfull x\n"))
        });
        let steal = Steal::read(&samples.concat(), 2);
        assert_eq!(steal.waited(ms(1_000), ms(1_500)), Some(ms(250)));
        assert_eq!(steal.waited(ms(3_000), ms(4_000)), None);
    }
}
