// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attribution of time outside the kernel by exclusion.
//!
//! If the loop's own thread had the CPU during a gap, without an interrupt and without a page
//! fault, this kernel did not cause the gap: the hardware stood still, or the firmware or a
//! hypervisor ran. This needs proof that nothing ran without a record. The kernel counts every
//! interrupt, and the faults of each thread. If fewer than one of these per twenty unnamed gaps
//! lacks a record, they cannot have caused the gaps.

use super::naming::{Basis, GapPortion, Holder, HolderKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of unnamed gaps per counted event without a record that is tolerated.
const GAPS_PER_MISSING: u64 = 20;

/// The proof for one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Exclusion {
    /// Interrupts counted by the kernel meanwhile.
    pub counted: u64,
    /// Interrupts with a record in the gaps.
    pub recorded: u64,
    /// Page faults of the loop.
    pub faults: u64,
    /// Gaps not fully explained by records.
    pub gaps: u64,
}

impl Exclusion {
    /// Creates the proof from the kernel's counts, before any gap is added.
    pub fn new(counted: u64, faults: u64) -> Exclusion {
        Exclusion { counted, faults, ..Exclusion::default() }
    }

    /// Adds the portions of a gap.
    pub fn add(&mut self, gap: &[GapPortion]) {
        let interrupts = gap.iter().filter(|portion| {
            portion.holder.kind == HolderKind::Interrupt && portion.basis == Basis::Recorded
        });
        self.recorded += interrupts.count() as u64;
        self.gaps += u64::from(gap.iter().any(|portion| portion.basis == Basis::Unexplained));
    }

    /// Returns the number of counted events without a record.
    pub fn missing(&self) -> u64 {
        self.counted.saturating_sub(self.recorded).saturating_add(self.faults)
    }

    /// Returns `true` if the unnamed time lies outside the kernel.
    pub fn holds(&self) -> bool {
        self.missing().saturating_mul(GAPS_PER_MISSING) <= self.gaps
    }

    /// Attributes the unexplained portions of a gap to their owner outside the kernel, if the proof
    /// holds.
    pub fn apply(&self, gap: &mut [GapPortion], outside: impl Fn(&GapPortion) -> Holder) {
        if !self.holds() {
            return;
        }
        for portion in gap.iter_mut().filter(|portion| portion.basis == Basis::Unexplained) {
            portion.holder = outside(portion);
            portion.basis = Basis::Excluded;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn portion(kind: HolderKind, basis: Basis) -> GapPortion {
        GapPortion { holder: Holder::new(kind, "it"), basis, start_ns: 5, length_ns: 10 }
    }

    fn outside(_: &GapPortion) -> Holder {
        Holder::new(HolderKind::Hypervisor, "the hypervisor")
    }

    /// Returns this many unnamed gaps, and one gap for each interrupt.
    fn gaps(open: usize, interrupts: usize) -> Vec<Vec<GapPortion>> {
        let unknown = vec![portion(HolderKind::Unexplained, Basis::Unexplained)];
        let way = portion(HolderKind::Interrupt, Basis::Beside);
        let known = vec![way, portion(HolderKind::Interrupt, Basis::Recorded)];
        std::iter::repeat_n(unknown, open).chain(std::iter::repeat_n(known, interrupts)).collect()
    }

    fn exclusion(counted: u64, faults: u64, gaps: &[Vec<GapPortion>]) -> Exclusion {
        let mut exclusion = Exclusion::new(counted, faults);
        gaps.iter().for_each(|gap| exclusion.add(gap));
        exclusion
    }

    #[test]
    fn unnamed_gaps_lie_outside_if_the_proof_holds() {
        let mut gaps = gaps(100, 250);
        let exclusion = exclusion(253, 2, &gaps);
        assert_eq!(exclusion, Exclusion { counted: 253, recorded: 250, faults: 2, gaps: 100 });
        assert_eq!((exclusion.missing(), exclusion.holds()), (5, true));
        gaps.iter_mut().for_each(|gap| exclusion.apply(gap, outside));
        assert!(gaps[..100].iter().all(|gap| gap[0].basis == Basis::Excluded));
        for (at, gap) in gaps.iter().enumerate() {
            let kind = if at < 100 { HolderKind::Hypervisor } else { HolderKind::Interrupt };
            assert_eq!(gap[0].holder.kind, kind, "{at}");
        }
    }

    #[test]
    fn events_without_a_record_may_be_the_cause() {
        for (counted, faults) in [(256, 0), (250, 6), (u64::MAX, u64::MAX)] {
            let mut gaps = gaps(100, 250);
            let before = gaps.clone();
            let exclusion = exclusion(counted, faults, &gaps);
            assert!(!exclusion.holds(), "{exclusion:?}");
            gaps.iter_mut().for_each(|gap| exclusion.apply(gap, outside));
            assert_eq!(gaps, before);
        }
    }

    #[test]
    fn gaps_without_records_stay_unknown() {
        let mut gap = [portion(HolderKind::Unexplained, Basis::NoRecords)];
        let before = gap.clone();
        Exclusion::default().apply(&mut gap, outside);
        assert_eq!(gap, before);
    }
}
