// SPDX-License-Identifier: MIT OR Apache-2.0
//! Owners of the time in gaps, by the records, and periodic owners.
//!
//! Records do not cover everything: neither the timer interrupt nor the entry to and exit from the
//! kernel. Time of a gap in which records show the loop's own thread is therefore attributed to its
//! successor in the same gap, or else to its predecessor, up to a limit; or to the timer tick, if
//! the gap begins when one is due. The rest is unexplained, unless it can be shown to lie outside
//! the kernel (see [`super::Exclusion`]).

use super::observed::{Gap, share};
use super::tick::Tick;
use crate::periodicity::period;
use crate::units::ms;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum time of one entry to or exit from recorded work.
const BESIDE_MAX_NS: u64 = 50_000;

/// Maximum number of times kept per holder; holders with more have no period.
const TIMES_MAX: usize = 100_000;

/// Maximum distance between turns of one activation.
const MERGE_NS: u64 = 5_000_000;

/// Kind of a holder of stolen time.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum HolderKind {
    /// Recorder that was started for these names.
    Recorder,
    Thread,
    Interrupt,
    Softirq,
    TimerTick,
    Hypervisor,
    /// Firmware of a machine without a hypervisor.
    Firmware,
    /// Device that the kernel waited for.
    Device,
    /// Firmware, hypervisor or device; which one is not known.
    Outside,
    Unexplained,
}

impl HolderKind {
    /// Returns `true` if the kernel may charge the time to the thread that had the CPU before: it
    /// need not account for interrupts, and does not see time outside of it.
    fn may_be_charged(self) -> bool {
        !matches!(self, HolderKind::Recorder | HolderKind::Thread | HolderKind::Unexplained)
    }

    /// Returns the name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            HolderKind::Recorder => "recorder",
            HolderKind::Thread => "thread",
            HolderKind::Interrupt => "interrupt",
            HolderKind::Softirq => "softirq",
            HolderKind::TimerTick => "timer-tick",
            HolderKind::Hypervisor => "hypervisor",
            HolderKind::Firmware => "firmware",
            HolderKind::Device => "device",
            HolderKind::Outside => "outside",
            HolderKind::Unexplained => "unexplained",
        }
    }
}

/// Holder of stolen time.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
pub struct Holder {
    pub kind: HolderKind,
    pub name: String,
}

/// Evidence for a holder.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Basis {
    /// A record names it.
    Recorded,
    /// It is adjacent to recorded work in the same gap.
    Beside,
    /// It occurs when the tick is due.
    Period,
    /// Nothing in the kernel can have taken the time.
    Excluded,
    /// Unknown: the records show no owner.
    Unexplained,
    /// Unknown: there are no records.
    NoRecords,
}

/// Content of the records for a piece of a gap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    Holder(Holder),
    /// The loop's own thread had the CPU, but did not run.
    Own,
    /// There are no records.
    Nothing,
}

/// Piece of a gap. The pieces of a gap are consecutive and make it up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GapPiece {
    pub seen: Seen,
    pub start_ns: u64,
    pub length_ns: u64,
}

/// Piece of a gap with its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GapPortion {
    pub holder: Holder,
    pub basis: Basis,
    pub start_ns: u64,
    pub length_ns: u64,
}

impl Holder {
    /// Creates a holder from kind and name.
    pub fn new(kind: HolderKind, name: impl Into<String>) -> Holder {
        Holder { kind, name: name.into() }
    }

    fn tick() -> Holder {
        Holder::new(HolderKind::TimerTick, "timer tick")
    }

    fn unexplained(what: &str) -> Holder {
        Holder::new(HolderKind::Unexplained, what)
    }
}

/// Assigns a holder to every piece of a gap. The portions sum to the pieces exactly.
pub fn attribute(pieces: &[GapPiece], tick: Option<&Tick>) -> Vec<GapPortion> {
    let mut portions = Vec::with_capacity(pieces.len() + 1);
    for (at, piece) in pieces.iter().enumerate() {
        match &piece.seen {
            Seen::Holder(holder) => push(
                &mut portions,
                holder.clone(),
                Basis::Recorded,
                piece.start_ns,
                piece.length_ns,
            ),
            Seen::Nothing => {
                let holder = Holder::unexplained("no records");
                push(&mut portions, holder, Basis::NoRecords, piece.start_ns, piece.length_ns);
            }
            Seen::Own => {
                let due = at == 0 && tick.is_some_and(|tick| tick.begins_at(piece.start_ns));
                let named = if due {
                    Some((Holder::tick(), Basis::Period, Tick::LENGTH_MAX_NS))
                } else {
                    neighbour(pieces, at)
                        .map(|holder| (holder.clone(), Basis::Beside, BESIDE_MAX_NS))
                };
                split_own(&mut portions, piece, named);
            }
        }
    }
    portions
}

/// Returns the holder after a piece, or else the one before it.
fn neighbour(pieces: &[GapPiece], at: usize) -> Option<&Holder> {
    let (before, after) = pieces.split_at(at);
    after.iter().chain(before.iter().rev()).find_map(|piece| match &piece.seen {
        Seen::Holder(holder) => Some(holder),
        Seen::Own | Seen::Nothing => None,
    })
}

/// Splits a piece of the loop's own thread: up to a limit it belongs to a holder, and the rest is
/// unexplained.
fn split_own(
    portions: &mut Vec<GapPortion>,
    piece: &GapPiece,
    named: Option<(Holder, Basis, u64)>,
) {
    let mut named_ns = 0;
    if let Some((holder, basis, most)) = named {
        named_ns = piece.length_ns.min(most);
        push(portions, holder, basis, piece.start_ns, named_ns);
    }
    let rest = Holder::unexplained("hardware, hypervisor, or an interrupt without a record");
    push(
        portions,
        rest,
        Basis::Unexplained,
        piece.start_ns.saturating_add(named_ns),
        piece.length_ns - named_ns,
    );
}

fn push(
    portions: &mut Vec<GapPortion>,
    holder: Holder,
    basis: Basis,
    start_ns: u64,
    length_ns: u64,
) {
    if length_ns > 0 {
        portions.push(GapPortion { holder, basis, start_ns, length_ns });
    }
}

/// Holder with all time that it took.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Resident {
    pub kind: HolderKind,
    pub name: String,
    pub total_ms: f64,
    /// Share of all stolen time, from 0 to 1.
    pub share_of_stolen: f64,
    /// Number of gaps in which it had a part.
    pub gaps: u64,
    /// Maximum time that it took of one gap.
    pub longest_ms: f64,
    /// Period, if it is regular.
    pub period_ms: Option<f64>,
}

#[derive(Default)]
struct StolenTime {
    total_ns: u64,
    gaps: u64,
    longest_ns: u64,
    begins_ns: Vec<u64>,
}

/// Holders collected from gaps.
#[derive(Default)]
pub struct Residents {
    stolen: BTreeMap<Holder, StolenTime>,
    by_basis: BTreeMap<Basis, u64>,
}

/// Returns the time of a gap that the kernel may charge to the loop although it belongs to others.
pub fn charged_ns(portions: &[GapPortion]) -> u64 {
    portions
        .iter()
        .filter(|portion| portion.holder.kind.may_be_charged())
        .map(|portion| portion.length_ns)
        .sum()
}

impl Residents {
    /// Adds the portions of one gap.
    pub fn add(&mut self, portions: &[GapPortion]) {
        let mut parts: BTreeMap<&Holder, (u64, u64)> = BTreeMap::new();
        for portion in portions {
            *self.by_basis.entry(portion.basis).or_default() += portion.length_ns;
            parts.entry(&portion.holder).or_insert((portion.start_ns, 0)).1 += portion.length_ns;
        }
        for (holder, (start_ns, length_ns)) in parts {
            self.stolen.entry(holder.clone()).or_default().add(start_ns, length_ns);
        }
    }

    /// Returns all stolen time that was added.
    pub(crate) fn total_ns(&self) -> u64 {
        self.by_basis.values().sum()
    }

    /// Returns the share of the stolen time with this evidence.
    pub fn share(&self, basis: Basis) -> f64 {
        share(self.by_basis.get(&basis).copied().unwrap_or_default(), self.total_ns())
    }

    /// Returns the holders, the largest first.
    pub fn finish(self) -> Vec<Resident> {
        let total = self.total_ns();
        let stolen = self.stolen.into_iter();
        let mut residents: Vec<Resident> =
            stolen.map(|(holder, stolen)| stolen.resident(holder, total)).collect();
        residents.sort_by(|one, other| other.total_ms.total_cmp(&one.total_ms));
        residents
    }
}

impl StolenTime {
    fn add(&mut self, start_ns: u64, length_ns: u64) {
        self.total_ns += length_ns;
        self.gaps += 1;
        self.longest_ns = self.longest_ns.max(length_ns);
        if self.begins_ns.len() <= TIMES_MAX {
            self.begins_ns.push(start_ns);
        }
    }

    fn resident(mut self, holder: Holder, total: u64) -> Resident {
        self.begins_ns.sort_unstable();
        let many = matches!(
            holder.kind,
            HolderKind::Hypervisor | HolderKind::Outside | HolderKind::Unexplained
        );
        let regular = self.begins_ns.len() <= TIMES_MAX && !many;
        let every = regular
            .then(|| period(&self.begins_ns).or_else(|| period(&merged(&self.begins_ns))))
            .flatten();
        Resident {
            kind: holder.kind,
            name: holder.name,
            total_ms: ms(self.total_ns),
            share_of_stolen: share(self.total_ns, total),
            gaps: self.gaps,
            longest_ms: ms(self.longest_ns),
            period_ms: every.map(|every| ms(every.every_ns)),
        }
    }
}

/// Returns the starts of activations: each more than [`MERGE_NS`] after the previous turn.
fn merged(begins: &[u64]) -> Vec<u64> {
    let before =
        begins.iter().scan(None::<u64>, |last, begin| Some((last.replace(*begin), *begin)));
    let first = before.filter(|(last, begin)| last.is_none_or(|last| begin - last > MERGE_NS));
    first.map(|(_, begin)| begin).collect()
}

/// Converts a gap about which the caller knows nothing else.
impl From<&Gap> for GapPiece {
    fn from(gap: &Gap) -> GapPiece {
        GapPiece { seen: Seen::Own, start_ns: gap.start_ns, length_ns: gap.length_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TICK: Tick = Tick { period_ns: 4_000_000, phase_ns: 10_000, seen: 100 };

    fn thread(name: &str) -> Seen {
        Seen::Holder(Holder::new(HolderKind::Thread, name))
    }

    fn pieces(seen: &[(Seen, u64)], start: u64) -> Vec<GapPiece> {
        let mut start_ns = start;
        let mut pieces = Vec::new();
        for (seen, length_ns) in seen {
            pieces.push(GapPiece { seen: seen.clone(), start_ns, length_ns: *length_ns });
            start_ns += length_ns;
        }
        pieces
    }

    fn summed(portions: &[GapPortion]) -> Vec<(&str, Basis, u64)> {
        portions
            .iter()
            .map(|portion| (portion.holder.name.as_str(), portion.basis, portion.length_ns))
            .collect()
    }

    #[test]
    fn kernel_entry_and_exit_belong_to_recorded_work() {
        let gap =
            pieces(&[(Seen::Own, 3_000), (thread("jbd2"), 400_000), (Seen::Own, 2_000)], 1_000_000);
        let expected = [
            ("jbd2", Basis::Beside, 3_000),
            ("jbd2", Basis::Recorded, 400_000),
            ("jbd2", Basis::Beside, 2_000),
        ];
        assert_eq!(summed(&attribute(&gap, Some(&TICK))), expected);
    }

    #[test]
    fn a_gap_when_the_tick_is_due_is_the_tick_up_to_a_limit() {
        let at = 8_000_000 + 20_000;
        let short = attribute(&pieces(&[(Seen::Own, 9_000)], at), Some(&TICK));
        assert_eq!(summed(&short), [("timer tick", Basis::Period, 9_000)]);
        let long = attribute(&pieces(&[(Seen::Own, 5_000_000)], at), Some(&TICK));
        assert_eq!(
            (summed(&long)[0].2, summed(&long)[1].1, summed(&long)[1].2),
            (100_000, Basis::Unexplained, 4_900_000)
        );
        let elsewhere = attribute(&pieces(&[(Seen::Own, 9_000)], at + 2_000_000), Some(&TICK));
        assert_eq!(elsewhere[0].basis, Basis::Unexplained);
        let both = attribute(
            &pieces(&[(Seen::Own, 5_000), (thread("a"), 7_000), (Seen::Own, 60_000)], at),
            Some(&TICK),
        );
        let expected = [("timer tick", 5_000), ("a", 7_000), ("a", 50_000)];
        assert_eq!(
            summed(&both)[..3].iter().map(|one| (one.0, one.2)).collect::<Vec<_>>(),
            expected
        );
        assert_eq!((summed(&both)[3].1, summed(&both)[3].2), (Basis::Unexplained, 10_000));
    }

    #[test]
    fn residents_are_counted_once_for_each_gap() {
        let mut residents = Residents::default();
        for second in 1..=5_u64 {
            let turn = [
                (Seen::Own, 1_000),
                (thread("a"), second * 1_000),
                (thread("b"), 10),
                (thread("a"), 500),
            ];
            residents.add(&attribute(&pieces(&turn, second * 1_000_000_000), None));
        }
        assert_eq!(residents.total_ns(), 5 * 1_510 + 15_000);
        assert_eq!(residents.share(Basis::Unexplained), 0.0);
        let found = residents.finish();
        let a = &found[0];
        assert_eq!(
            (a.name.as_str(), a.gaps, a.longest_ms, a.period_ms),
            ("a", 5, 0.0065, Some(1_000.0))
        );
        assert!((found.iter().map(|one| one.share_of_stolen).sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn time_of_threads_is_not_charged_to_the_loop() {
        let kinds = [
            HolderKind::Thread,
            HolderKind::Interrupt,
            HolderKind::Recorder,
            HolderKind::Hypervisor,
        ];
        let portions: Vec<GapPortion> = (0..)
            .zip(kinds)
            .map(|(at, kind)| GapPortion {
                holder: Holder::new(kind, "it"),
                basis: Basis::Recorded,
                start_ns: at,
                length_ns: 1 << at,
            })
            .collect();
        assert_eq!(charged_ns(&portions), 0b1010);
    }

    #[test]
    fn turns_close_together_are_one_activation() {
        assert_eq!(merged(&[0, 1_000_000, 5_000_000, 20_000_000, 24_000_000]), [0, 20_000_000]);
        assert_eq!(merged(&[]), Vec::<u64>::new());
    }

    fn any_seen() -> impl Strategy<Value = Seen> {
        prop_oneof![Just(Seen::Own), Just(Seen::Nothing), Just(thread("a")), Just(thread("b"))]
    }

    proptest! {
        #[test]
        fn portions_sum_to_the_gap(
            seen in proptest::collection::vec((any_seen(), 0..400_000_u64), 0..8),
            start in 0..100_000_000_u64,
            ticking in any::<bool>(),
        ) {
            let gap = pieces(&seen, start);
            let portions = attribute(&gap, ticking.then_some(&TICK));
            let sum: u64 = portions.iter().map(|portion| portion.length_ns).sum();
            prop_assert_eq!(sum, seen.iter().map(|(_, length)| length).sum::<u64>());
            for pair in portions.windows(2) {
                prop_assert_eq!(pair[0].start_ns + pair[0].length_ns, pair[1].start_ns);
            }
        }
    }
}
