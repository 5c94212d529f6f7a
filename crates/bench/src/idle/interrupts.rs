// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts as the kernel counts them, by kind; those of devices, which have numbers, are one kind.

use std::collections::BTreeMap;
use tipme_measure::idle::InterruptCount;

/// Lines that are looked at, at most.
const LINES_MAX: usize = 4_096;

/// The kind of all interrupts that have a number.
const DEVICES: &str = "interrupts of devices";

/// Counts by kind and CPU since the machine was started.
#[derive(Default)]
pub(super) struct Counts(BTreeMap<String, BTreeMap<usize, u64>>);

impl Counts {
    /// Of this machine; nothing where the kernel does not tell.
    pub(super) fn read() -> Counts {
        Counts::parse(&std::fs::read_to_string("/proc/interrupts").unwrap_or_default())
    }

    /// The head names the CPUs; a line has a number or a short name, counts, and what it means.
    fn parse(text: &str) -> Counts {
        let mut lines = text.lines();
        let head = lines.next().unwrap_or_default();
        let cpus: Vec<usize> =
            head.split_whitespace().filter_map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
        let mut counts = Counts::default();
        for (kind, row) in lines.take(LINES_MAX).filter_map(|line| row(line, &cpus)) {
            let sums = counts.0.entry(kind).or_default();
            row.into_iter().for_each(|(cpu, count)| *sums.entry(cpu).or_default() += count);
        }
        counts
    }

    /// What came on a CPU since then, the most frequent first.
    pub(super) fn since(&self, before: &Counts, cpu: usize) -> Vec<InterruptCount> {
        let count = |counts: &Counts, name: &str| counts.0.get(name).and_then(|row| row.get(&cpu)).copied();
        let came = self.0.keys().filter_map(|name| {
            let came = count(self, name)?.checked_sub(count(before, name)?)?;
            (came > 0).then(|| InterruptCount { name: name.clone(), count: came })
        });
        let mut came: Vec<InterruptCount> = came.collect();
        came.sort_by_key(|counted| std::cmp::Reverse(counted.count));
        came
    }
}

/// The kind of interrupts of a line, and how many came on each CPU.
fn row(line: &str, cpus: &[usize]) -> Option<(String, BTreeMap<usize, u64>)> {
    let (name, rest) = line.split_once(':')?;
    let mut words = rest.split_whitespace();
    let counts =
        cpus.iter().map(|cpu| Some((*cpu, words.next()?.parse().ok()?))).collect::<Option<BTreeMap<_, _>>>()?;
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
            &TEXT.replace("200", "450").replace("  6 ", "  7 ").replace("          7   PCI", "         10   PCI"),
        );
        let told: Vec<(String, u64)> = after.since(&before, 2).into_iter().map(|one| (one.name, one.count)).collect();
        let came = [("local timer interrupts", 250), ("interrupts of devices", 3), ("rescheduling interrupts", 1)];
        assert_eq!(told, came.map(|(name, count)| (name.to_owned(), count)));
        assert_eq!((after.since(&before, 0), after.since(&before, 1)), (vec![], vec![]));
        assert_eq!(Counts::parse("").since(&before, 0), vec![]);
    }
}
