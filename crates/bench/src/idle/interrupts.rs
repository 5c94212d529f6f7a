// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts by kind, as the kernel counts them; all numbered device interrupts are one kind.

use std::collections::BTreeMap;
use tipme_measure::idle::InterruptCount;

/// Maximum number of lines that are parsed.
const LINES_MAX: usize = 4_096;

/// Kind of all interrupts with a number.
const DEVICES: &str = "interrupts of devices";

/// Counts since boot, by kind and CPU.
#[derive(Default)]
pub(super) struct Counts(BTreeMap<String, BTreeMap<usize, u64>>);

impl Counts {
    /// Reads the counts of this machine; empty if the kernel has none.
    pub(super) fn read() -> Counts {
        Counts::parse(&std::fs::read_to_string("/proc/interrupts").unwrap_or_default())
    }

    /// Parses `/proc/interrupts`. The header names the CPUs; a line has a number or a short name,
    /// the counts, and a description.
    fn parse(text: &str) -> Counts {
        let mut lines = text.lines();
        let head = lines.next().unwrap_or_default();
        let cpus: Vec<usize> = head
            .split_whitespace()
            .filter_map(|word| word.strip_prefix("CPU")?.parse().ok())
            .collect();
        let mut counts = Counts::default();
        for (kind, row) in lines.take(LINES_MAX).filter_map(|line| row(line, &cpus)) {
            let sums = counts.0.entry(kind).or_default();
            row.into_iter().for_each(|(cpu, count)| *sums.entry(cpu).or_default() += count);
        }
        counts
    }

    /// Returns the interrupts of a CPU since `before`, the most frequent first.
    pub(super) fn since(&self, before: &Counts, cpu: usize) -> Vec<InterruptCount> {
        let count =
            |counts: &Counts, name: &str| counts.0.get(name).and_then(|row| row.get(&cpu)).copied();
        let came = self.0.keys().filter_map(|name| {
            let came = count(self, name)?.checked_sub(count(before, name)?)?;
            (came > 0).then(|| InterruptCount { name: name.clone(), count: came })
        });
        let mut came: Vec<InterruptCount> = came.collect();
        came.sort_by_key(|counted| std::cmp::Reverse(counted.count));
        came
    }
}

/// Returns the kind of a line's interrupts, with their number on each CPU.
fn row(line: &str, cpus: &[usize]) -> Option<(String, BTreeMap<usize, u64>)> {
    let (name, rest) = line.split_once(':')?;
    let mut words = rest.split_whitespace();
    let counts = cpus
        .iter()
        .map(|cpu| Some((*cpu, words.next()?.parse().ok()?)))
        .collect::<Option<BTreeMap<_, _>>>()?;
    let meaning = words.collect::<Vec<_>>().join(" ").to_lowercase();
    let kind = if name.trim().parse::<u32>().is_ok() { DEVICES.to_owned() } else { meaning };
    (!kind.is_empty()).then_some((kind, counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "           CPU0       CPU2
  1:          9          0   IO-APIC   1-edge      i8042
 24:          0          7   PCI-MSI   0-edge      virtio0
LOC:        100        200   Local timer interrupts
RES:          5          6   Rescheduling interrupts
ERR:          0
MIS:          7
";

    #[test]
    fn what_came_meanwhile_is_counted() {
        let before = Counts::parse(TEXT);
        let after = Counts::parse(
            &TEXT
                .replace("200", "450")
                .replace("  6 ", "  7 ")
                .replace("          7   PCI", "         10   PCI"),
        );
        let counts: Vec<(String, u64)> =
            after.since(&before, 2).into_iter().map(|one| (one.name, one.count)).collect();
        let came = [
            ("local timer interrupts", 250),
            ("interrupts of devices", 3),
            ("rescheduling interrupts", 1),
        ];
        assert_eq!(counts, came.map(|(name, count)| (name.to_owned(), count)));
        assert_eq!((after.since(&before, 0), after.since(&before, 1)), (vec![], vec![]));
        assert_eq!(Counts::parse("").since(&before, 0), vec![]);
    }
}
