// SPDX-License-Identifier: MIT OR Apache-2.0
//! Long interrupts: time lost to the running thread.

use std::collections::BTreeMap;
use tipme_record::records::Irq;
use tipme_record::{Cpu, Nanos};

/// Interrupt or softirq on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupt {
    pub cpu: Cpu,
    pub start: Nanos,
    pub end: Nanos,
    pub source: Source,
}

/// Source of an interrupt: IRQ number or softirq vector.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Source {
    pub number: u32,
    pub soft: bool,
}

/// All recorded interrupts by CPU and start, without overlaps.
#[derive(Debug, Default)]
pub struct Interrupts {
    sorted: Vec<Interrupt>,
}

/// Names of the kernel's softirq vectors.
const SOFT_NAMES: [&str; 10] = [
    "high tasklet",
    "timer",
    "network send",
    "network receive",
    "block",
    "poll",
    "tasklet",
    "scheduler",
    "hrtimer",
    "RCU",
];

/// Pseudo numbers in the records for interrupts without an IRQ number.
const UNNUMBERED: [(u32, &str); 2] =
    [(0xffff_fff0, "timer of the CPU"), (0xffff_fff1, "call by another CPU")];

impl Interrupts {
    pub fn new(records: &[(Cpu, Irq)]) -> Interrupts {
        let mut sorted: Vec<Interrupt> = records.iter().map(read).collect();
        sorted.sort_by_key(|interrupt| (interrupt.cpu, interrupt.start, interrupt.end));
        let mut busy_until = (Cpu(0), Nanos(0));
        for interrupt in &mut sorted {
            if busy_until.0 == interrupt.cpu {
                interrupt.start = interrupt.start.max(busy_until.1);
            }
            busy_until = (interrupt.cpu, interrupt.end.max(interrupt.start));
        }
        sorted.retain(|interrupt| interrupt.start < interrupt.end);
        Interrupts { sorted }
    }

    /// All interrupts, by CPU and start.
    pub fn all(&self) -> &[Interrupt] {
        &self.sorted
    }

    /// Returns the recorded softirq with the most time on a CPU in `lo..hi`.
    pub(crate) fn main_softirq(&self, cpu: Cpu, lo: Nanos, hi: Nanos) -> Option<Source> {
        let mut times: BTreeMap<Source, u64> = BTreeMap::new();
        for interrupt in self.within(cpu, lo, hi).filter(|interrupt| interrupt.source.soft) {
            *times.entry(interrupt.source).or_default() += interrupt.length().0;
        }
        times.into_iter().max_by_key(|(_, nanos)| *nanos).map(|(source, _)| source)
    }

    /// Returns the interrupts on a CPU that overlap `lo..hi`, clipped to it, in chronological
    /// order.
    pub fn within(&self, cpu: Cpu, lo: Nanos, hi: Nanos) -> impl Iterator<Item = Interrupt> {
        let first =
            self.sorted.partition_point(|interrupt| (interrupt.cpu, interrupt.end) <= (cpu, lo));
        let rest = self.sorted.get(first..).unwrap_or_default();
        rest.iter().take_while(move |interrupt| interrupt.cpu == cpu && interrupt.start < hi).map(
            move |interrupt| Interrupt {
                start: interrupt.start.max(lo),
                end: interrupt.end.min(hi),
                ..*interrupt
            },
        )
    }

    /// Returns the interrupt, unclipped, that took at least half of `lo..hi` on a CPU.
    pub(crate) fn most_of(&self, cpu: Cpu, lo: Nanos, hi: Nanos) -> Option<&Interrupt> {
        let longest = self.within(cpu, lo, hi).max_by_key(Interrupt::length)?;
        let whole = self.sorted.partition_point(|one| (one.cpu, one.end) <= (cpu, longest.start));
        self.sorted.get(whole).filter(|_| longest.length().0 >= hi.since(lo).0 / 2)
    }

    /// Tiles `lo..hi` on a CPU with the interrupts; `None` for the gaps between them.
    pub(crate) fn tiles(
        &self,
        cpu: Cpu,
        lo: Nanos,
        hi: Nanos,
    ) -> Vec<(Option<Source>, Nanos, Nanos)> {
        let (mut at, mut tiles) = (lo, Vec::new());
        for interrupt in self.within(cpu, lo, hi) {
            tiles.push((None, at, interrupt.start));
            tiles.push((Some(interrupt.source), interrupt.start, interrupt.end));
            at = interrupt.end;
        }
        tiles.push((None, at, hi));
        tiles.retain(|(_, lo, hi)| lo < hi);
        tiles
    }
}

impl Interrupt {
    pub(crate) fn length(&self) -> Nanos {
        self.end.since(self.start)
    }
}

fn read((cpu, irq): &(Cpu, Irq)) -> Interrupt {
    let source = Source { number: irq.number, soft: irq.soft != 0 };
    Interrupt { cpu: *cpu, start: irq.head.ts.before(irq.nanos), end: irq.head.ts, source }
}

impl Source {
    /// Returns the name of the device or softirq.
    pub fn name(self, irq_names: &[(u32, String)]) -> String {
        if self.soft {
            let known = SOFT_NAMES.get(self.number as usize);
            return known.map_or_else(
                || format!("softirq {}", self.number),
                |name| format!("softirq {name}"),
            );
        }
        if let Some((_, name)) = UNNUMBERED.iter().find(|(number, _)| *number == self.number) {
            return format!("interrupt ({name})");
        }
        let known = irq_names.iter().find(|(number, _)| *number == self.number);
        known.map_or_else(
            || format!("interrupt {}", self.number),
            |(_, name)| format!("interrupt {} ({name})", self.number),
        )
    }
}
