// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts that have no number: the kernel counts them, and nothing records them.

use std::collections::BTreeMap;
use tipme_measure::idle::Counted;

/// Kinds of interrupts that are looked at, at most.
const KINDS_MAX: usize = 100;

/// Counts by kind and CPU since the machine was started.
#[derive(Default)]
pub(super) struct Counts(BTreeMap<String, BTreeMap<usize, u64>>);

impl Counts {
    /// Of this machine; nothing where the kernel does not tell.
    pub(super) fn read() -> Counts {
        Counts::parse(&std::fs::read_to_string("/proc/interrupts").unwrap_or_default())
    }

    /// The head names the CPUs; a line without a number has a short name, counts, and what it means.
    fn parse(text: &str) -> Counts {
        let mut lines = text.lines();
        let head = lines.next().unwrap_or_default();
        let cpus: Vec<usize> =
            head.split_whitespace().filter_map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
        Counts(lines.filter_map(|line| row(line, &cpus)).take(KINDS_MAX).collect())
    }

    /// What came on a CPU since then, the most frequent first.
    pub(super) fn since(&self, before: &Counts, cpu: usize) -> Vec<Counted> {
        let count = |counts: &Counts, name: &str| counts.0.get(name).and_then(|row| row.get(&cpu)).copied();
        let came = self.0.keys().filter_map(|name| {
            let came = count(self, name)?.checked_sub(count(before, name)?)?;
            (came > 0).then(|| Counted { name: name.clone(), count: came })
        });
        let mut came: Vec<Counted> = came.collect();
        came.sort_by_key(|counted| std::cmp::Reverse(counted.count));
        came
    }
}

fn row(line: &str, cpus: &[usize]) -> Option<(String, BTreeMap<usize, u64>)> {
    let (name, rest) = line.split_once(':')?;
    if name.trim().parse::<u32>().is_ok() {
        return None;
    }
    let mut words = rest.split_whitespace();
    let counts =
        cpus.iter().map(|cpu| Some((*cpu, words.next()?.parse().ok()?))).collect::<Option<BTreeMap<_, _>>>()?;
    let meaning = words.collect::<Vec<_>>().join(" ").to_lowercase();
    (!meaning.is_empty()).then_some((meaning, counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "           CPU0       CPU2
  1:          9          0   IO-APIC   1-edge      i8042
LOC:        100        200   Local timer interrupts
RES:          5          6   Rescheduling interrupts
ERR:          0
MIS:          7
";

    #[test]
    fn what_came_meanwhile_is_counted() {
        let before = Counts::parse(TEXT);
        let after = Counts::parse(&TEXT.replace("200", "450").replace("  6 ", "  7 "));
        let told: Vec<(String, u64)> = after.since(&before, 2).into_iter().map(|one| (one.name, one.count)).collect();
        assert_eq!(told, [("local timer interrupts".to_owned(), 250), ("rescheduling interrupts".to_owned(), 1)]);
        assert_eq!((after.since(&before, 0), after.since(&before, 1)), (vec![], vec![]));
        assert_eq!(Counts::parse("").since(&before, 0), vec![]);
    }
}
