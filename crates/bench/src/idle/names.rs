// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attribution of the gaps by a recording.

use super::watch::LoopOutcome;
use std::collections::BTreeMap;
use tipme_analysis::{
    CpuInterval, CpuOwner, Recording, cpu_intervals, is_recorder, may_be_taken, outsider,
    outsider_words,
};
use tipme_measure::idle::{
    Basis, Exclusion, Gap, GapPiece, GapPortion, Holder, HolderKind, NamedGap, NamedTime, Observed,
    Resident, Residents, Seen, StolenShares, Tick, attribute, tick,
};
use tipme_measure::{MeasuredMachine, ms};
use tipme_record::{Cpu, Nanos};

/// Number of long gaps that are listed.
const LARGEST: usize = 20;

/// Attribution of a measurement.
pub(super) struct Named {
    /// `None` without a recording.
    pub share: Option<StolenShares>,
    pub residents: Vec<Resident>,
    pub largest: Vec<NamedGap>,
    /// For each CPU.
    pub cpus: Vec<NamedCpu>,
}

/// Further results for a CPU.
#[derive(Clone, Copy, Default)]
pub(super) struct NamedCpu {
    /// Rate of the timer tick, if it is visible in the gaps.
    pub ticks_per_s: Option<f64>,
    /// `None` without a recording.
    pub exclusion: Option<Exclusion>,
    /// Percentage points of the stolen time that may be charged to the loop; `None` without a
    /// recording.
    pub charged_points: Option<f64>,
}

/// Inputs for the attribution of one CPU's gaps.
struct Namer<'a> {
    recording: Option<&'a Recording>,
    observed: &'a Observed,
    tick: Option<Tick>,
    exclusion: Option<Exclusion>,
}

/// Names all gaps. Without a recording only the timer tick has a name.
pub(super) fn name(
    recording: Option<&Recording>,
    outcome: &LoopOutcome,
    machine: &MeasuredMachine,
) -> Named {
    let mut residents = Residents::default();
    let mut largest = Vec::new();
    let mut cpus = Vec::new();
    for (one, counted) in outcome.observed.iter().zip(&outcome.counted) {
        let counted = counted.iter().map(|counted| counted.count).sum();
        let namer = Namer::new(recording, one, counted, machine);
        let mut charged_ns = 0;
        for gap in &one.gaps {
            let portions = namer.portions(gap);
            residents.add(&portions);
            charged_ns += tipme_measure::idle::charged_ns(&portions);
        }
        let longest = tipme_measure::idle::longest(&one.gaps, LARGEST);
        largest.extend(longest.iter().map(|gap| {
            let portions = if recording.is_some() { namer.portions(gap) } else { Vec::new() };
            named_gap(one, gap, &portions)
        }));
        cpus.push(namer.figures(charged_ns));
    }
    largest.sort_by(|one, other| other.length_ms.total_cmp(&one.length_ms));
    largest.truncate(LARGEST);
    let shares = shares(&residents);
    let residents = residents.finish();
    let share = recording.map(|_| StolenShares { recorder: recorder_share(&residents), ..shares });
    Named { share, residents, largest, cpus }
}

impl<'a> Namer<'a> {
    /// Derives the properties of a CPU that only all its gaps together show.
    fn new(
        recording: Option<&'a Recording>,
        observed: &'a Observed,
        counted: u64,
        machine: &MeasuredMachine,
    ) -> Namer<'a> {
        let tick = tick(&observed.gaps, observed.wall_ns(), machine.hz);
        let mut namer = Namer { recording, observed, tick, exclusion: None };
        if recording.is_some() {
            let mut exclusion = Exclusion::new(counted, observed.faults);
            observed.gaps.iter().for_each(|gap| exclusion.add(&namer.portions(gap)));
            namer.exclusion = Some(exclusion);
        }
        namer
    }

    fn figures(&self, charged_ns: u64) -> NamedCpu {
        let wall_ns = self.observed.wall_ns() as f64;
        NamedCpu {
            ticks_per_s: self.tick.map(|tick| tick.seen as f64 / wall_ns * 1e9),
            exclusion: self.exclusion,
            charged_points: self.recording.map(|_| 100.0 * charged_ns as f64 / wall_ns),
        }
    }

    /// Attributes the time of a gap.
    fn portions(&self, gap: &Gap) -> Vec<GapPortion> {
        let Some(recording) = self.recording else {
            return attribute(&[GapPiece::from(gap)], self.tick.as_ref())
                .into_iter()
                .map(unrecorded)
                .collect();
        };
        let mut portions = attribute(&pieces(recording, self.observed, gap), self.tick.as_ref());
        if let Some(exclusion) = &self.exclusion {
            exclusion.apply(&mut portions, |one| {
                let end = one.start_ns.saturating_add(one.length_ns);
                outside(recording, self.observed, Nanos(one.start_ns), Nanos(end))
            });
        }
        portions
    }
}

fn shares(residents: &Residents) -> StolenShares {
    let [recorded, beside, tick, outside] =
        [Basis::Recorded, Basis::Beside, Basis::Period, Basis::Excluded]
            .map(|basis| residents.share(basis));
    StolenShares {
        named: recorded + beside + tick + outside,
        recorded,
        beside,
        tick,
        outside,
        recorder: 0.0,
    }
}

fn recorder_share(residents: &[Resident]) -> f64 {
    let own = residents.iter().filter(|one| one.kind == HolderKind::Recorder);
    own.map(|one| one.share_of_stolen).sum()
}

/// Returns the recorded pieces of a gap.
fn pieces(recording: &Recording, observed: &Observed, gap: &Gap) -> Vec<GapPiece> {
    let (from, to) = (Nanos(gap.start_ns), Nanos(gap.end_ns()));
    let cpu_intervals = cpu_intervals(recording, Cpu(observed.cpu as u32), from, to);
    cpu_intervals.into_iter().map(|one| piece(recording, observed, one)).collect()
}

/// Marks time without a record as unattributed.
fn unrecorded(portion: GapPortion) -> GapPortion {
    match portion.holder.kind {
        HolderKind::Unexplained => GapPortion {
            holder: Holder::new(HolderKind::Unexplained, "anybody: nothing was recorded"),
            ..portion
        },
        _ => portion,
    }
}

fn piece(recording: &Recording, observed: &Observed, interval: CpuInterval) -> GapPiece {
    let (cpu, from, to) = (Cpu(observed.cpu as u32), interval.from, interval.to);
    let length_ns = interval.time().0;
    let seen = match interval.owner {
        CpuOwner::Interrupt { .. } | CpuOwner::Softirq { .. }
            if may_be_taken(recording, cpu, from, to) =>
        {
            Seen::Holder(outside(recording, observed, from, to))
        }
        // An interrupt that was due found the loop, which cannot delay interrupts.
        CpuOwner::Thread { tid, .. }
            if tid.0 == observed.tid
                && (recording.withdrawals.explains(cpu, from, to)
                    || recording.overdue.away(cpu, from, to) > Nanos(0)) =>
        {
            Seen::Holder(outside(recording, observed, from, to))
        }
        CpuOwner::Thread { tid, .. } if tid.0 == observed.tid => Seen::Own,
        CpuOwner::Unknown => Seen::Nothing,
        owner => Seen::Holder(holder(recording, owner, from)),
    };
    GapPiece { seen, start_ns: from.0, length_ns }
}

/// Names the owner of a CPU at a time.
fn holder(recording: &Recording, owner: CpuOwner, at: Nanos) -> Holder {
    match owner {
        CpuOwner::Thread { tid, .. } if is_recorder(recording, tid, at) => {
            Holder::new(HolderKind::Recorder, "tipme record, which finds these names")
        }
        CpuOwner::Thread { name, .. } => Holder::new(HolderKind::Thread, name),
        CpuOwner::Work { function, .. } => {
            Holder::new(HolderKind::Thread, format!("work item {function}"))
        }
        CpuOwner::Interrupt { name } => Holder::new(HolderKind::Interrupt, name),
        CpuOwner::Softirq { name } => Holder::new(HolderKind::Softirq, name),
        // The loop never waits, so the quota of its control group throttles it.
        CpuOwner::Idle | CpuOwner::Unknown => {
            Holder::new(HolderKind::Thread, "nobody: the loop was held back by a quota")
        }
    }
}

/// Returns the owner of a CPU on which nothing of this machine ran.
fn outside(recording: &Recording, observed: &Observed, from: Nanos, to: Nanos) -> Holder {
    let cpu = Cpu(observed.cpu as u32);
    let kind = outsider(recording, cpu, from, to).into();
    Holder::new(kind, outsider_words(recording, cpu, from, to))
}

fn named_gap(observed: &Observed, gap: &Gap, portions: &[GapPortion]) -> NamedGap {
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for portion in portions {
        *times.entry(&portion.holder.name).or_default() += portion.length_ns;
    }
    let named = times.into_iter().map(|(name, ns)| NamedTime { name: name.to_owned(), ms: ms(ns) });
    let mut by: Vec<NamedTime> = named.collect();
    by.sort_by(|one, other| other.ms.total_cmp(&one.ms));
    NamedGap {
        cpu: observed.cpu,
        start_s: gap.start_ns.saturating_sub(observed.begin_ns) as f64 / 1e9,
        length_ms: ms(gap.length_ns),
        by,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed() -> Observed {
        let ticks = (0..250).map(|at| 1_000_000_000 + at * 4_000_000);
        let mut gaps: Vec<Gap> = ticks.map(|start_ns| Gap { start_ns, length_ns: 5_000 }).collect();
        gaps.push(Gap { start_ns: 2_002_000_000, length_ns: 1_250_000 });
        Observed { begin_ns: 1_000_000_000, end_ns: 2_010_000_000, gaps, ..Observed::default() }
    }

    fn outcome() -> LoopOutcome {
        LoopOutcome { observed: vec![observed()], counted: vec![Vec::new()] }
    }

    #[test]
    fn without_a_recording_the_tick_is_known_and_nothing_else() {
        let named = name(None, &outcome(), &MeasuredMachine::default());
        assert!(named.share.is_none());
        let residents: Vec<(HolderKind, u64)> =
            named.residents.iter().map(|one| (one.kind, one.gaps)).collect();
        assert_eq!(residents, [(HolderKind::TimerTick, 250), (HolderKind::Unexplained, 1)]);
        assert_eq!(named.residents[0].period_ms, Some(4.0));
        assert_eq!((named.largest[0].length_ms, named.largest[0].by.len()), (1.25, 0));
        assert_eq!(named.cpus[0].charged_points, None);
        let ticks = named.cpus[0].ticks_per_s;
        assert!(ticks.is_some_and(|ticks| (ticks - 247.5).abs() < 0.1), "{ticks:?}");
    }

    #[test]
    fn on_a_virtual_machine_what_lies_outside_is_the_hypervisor() {
        for (virtualized, kind, name) in [
            (false, HolderKind::Outside, "the firmware or the hardware"),
            (true, HolderKind::Hypervisor, "the hypervisor"),
        ] {
            let mut recording = Recording::default();
            recording.meta.machine.virtualized = virtualized;
            let holder = outside(&recording, &observed(), Nanos(1_000), Nanos(9_000));
            assert_eq!(holder, Holder::new(kind, name));
        }
    }

    #[test]
    fn what_is_not_held_has_no_name() {
        let named = name(Some(&Recording::default()), &outcome(), &MeasuredMachine::default());
        let share = named.share.expect("there is a recording");
        assert_eq!((share.named, share.recorder), (0.0, 0.0));
        assert_eq!(
            (named.largest[0].by[0].name.as_str(), named.cpus[0].charged_points),
            ("no records", Some(0.0))
        );
    }
}
