// SPDX-License-Identifier: MIT OR Apache-2.0
//! Think time and wait time: the user waits for the machine, or the machine for the user.
//!
//! Four signals decide: a CPU is busy for the interactive set, an event is queued, synchronous I/O
//! is outstanding, an event was dequeued and is not finished. Thoughts are not observable, so a
//! wait is a time in which the machine owed an answer. All times are nanoseconds.

use serde::{Deserialize, Serialize};

/// Length of an idle record. Shorter gaps inside an event do not end a wait: animations pace
/// themselves this way.
pub const RECORD_NS: u64 = 1_000_000;

/// Maximum time without a wait that counts as interaction; beyond it the user is away.
pub(crate) const AWAY_NS: u64 = 30_000_000_000;

/// Signals at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThinkSignals {
    /// C: a CPU is busy for the interactive set.
    pub computing: bool,
    /// Q: an event is queued.
    pub queued: bool,
    /// S: synchronous I/O is outstanding.
    pub synchronous_io: bool,
    /// E: an event was dequeued and is not finished.
    pub handling: bool,
}

/// Phase of an interaction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The machine waits for the user.
    Think,
    /// The user waits: the machine owes an answer.
    Wait,
    /// The machine waits for the user while it does work that nobody waits for.
    Background,
}

/// One of the signals.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Signal {
    Computing,
    Queued,
    SynchronousIo,
    Handling,
}

/// Value of a signal from a given time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignalChange {
    pub at: u64,
    pub signal: Signal,
    pub on: bool,
}

/// Time between two changes of phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PhaseInterval {
    pub phase: Phase,
    pub from: u64,
    pub to: u64,
}

/// Input with the threshold from which its answer is noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expectation {
    pub at: u64,
    pub threshold: u64,
}

/// Wait with the threshold from which it is noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    pub from: u64,
    pub to: u64,
    /// Shortest threshold of the inputs that it answers; `None` if no input came before its end.
    pub threshold: Option<u64>,
}

/// Time by phase; the three sum to the whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Balance {
    pub think: u64,
    pub wait: u64,
    pub background: u64,
}

impl ThinkSignals {
    /// Returns the phase: WAIT iff Q or S or (C and E); BACKGROUND iff C and none of Q, S, E; THINK
    /// otherwise.
    pub fn phase(self) -> Phase {
        match self {
            ThinkSignals { queued: true, .. } | ThinkSignals { synchronous_io: true, .. } => {
                Phase::Wait
            }
            ThinkSignals { computing: true, handling: true, .. } => Phase::Wait,
            ThinkSignals { computing: true, .. } => Phase::Background,
            _ => Phase::Think,
        }
    }

    fn set(&mut self, signal: Signal, on: bool) {
        match signal {
            Signal::Computing => self.computing = on,
            Signal::Queued => self.queued = on,
            Signal::SynchronousIo => self.synchronous_io = on,
            Signal::Handling => self.handling = on,
        }
    }
}

impl PhaseInterval {
    pub fn length(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

impl Wait {
    pub fn length(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Returns `true` if the wait is at least as long as its threshold, or no input explains it.
    pub fn is_noticeable(&self) -> bool {
        self.threshold.is_none_or(|threshold| self.length() >= threshold)
    }
}

/// Returns the phases between two times, without gaps: each begins at the end of the previous one,
/// and adjacent ones differ.
///
/// Changes are in order of time; those before `from` determine the initial state, those after `to`
/// are ignored. A gap inside an event that is shorter than `record` and lies between two waits is
/// part of the wait.
pub fn phases(changes: &[SignalChange], from: u64, to: u64, record: u64) -> Vec<PhaseInterval> {
    let moments = moments(changes, from, to);
    let mut intervals: Vec<PhaseInterval> = Vec::new();
    for (index, (signals, interval)) in moments.iter().enumerate() {
        let next = moments.get(index + 1).map(|(_, next)| next.phase);
        let paced =
            signals.handling && interval.phase == Phase::Think && interval.length() < record;
        let waited = intervals.last().is_some_and(|last| last.phase == Phase::Wait);
        let phase =
            if paced && waited && next == Some(Phase::Wait) { Phase::Wait } else { interval.phase };
        match intervals.last_mut() {
            Some(last) if last.phase == phase => last.to = interval.to,
            _ => intervals.push(PhaseInterval { phase, ..*interval }),
        }
    }
    intervals
}

/// Returns non-empty stretches of equal signals.
fn moments(changes: &[SignalChange], from: u64, to: u64) -> Vec<(ThinkSignals, PhaseInterval)> {
    let mut signals = ThinkSignals::default();
    let mut moments: Vec<(ThinkSignals, PhaseInterval)> = Vec::new();
    let mut now = from;
    let end = SignalChange { at: to, signal: Signal::Computing, on: false };
    for change in
        changes.iter().take_while(|change| change.at < to).chain((from < to).then_some(&end))
    {
        let at = change.at.max(now);
        match moments.last_mut() {
            Some((same, last)) if at > now && *same == signals => last.to = at,
            _ if at > now => {
                moments.push((signals, PhaseInterval { phase: signals.phase(), from: now, to: at }))
            }
            _ => {}
        }
        now = at;
        signals.set(change.signal, change.on);
    }
    moments
}

/// Returns the waits among the phases, each with the threshold of the inputs that it answers.
///
/// Those are the inputs within it, or else the last one before it. Both lists are in order of time.
pub fn waits(phases: &[PhaseInterval], inputs: &[Expectation]) -> Vec<Wait> {
    let waits = phases.iter().filter(|interval| interval.phase == Phase::Wait).map(|interval| {
        let (first, end) = (before(inputs, interval.from), before(inputs, interval.to));
        let answered = if first < end { first..end } else { first.saturating_sub(1)..first };
        let threshold =
            inputs.get(answered).unwrap_or_default().iter().map(|input| input.threshold).min();
        Wait { from: interval.from, to: interval.to, threshold }
    });
    waits.collect()
}

/// Returns the number of inputs before a time.
fn before(inputs: &[Expectation], at: u64) -> usize {
    inputs.partition_point(|input| input.at < at)
}

/// Sums up the time by phase.
pub fn balance(phases: &[PhaseInterval]) -> Balance {
    let mut balance = Balance::default();
    for interval in phases {
        let sum = match interval.phase {
            Phase::Think => &mut balance.think,
            Phase::Wait => &mut balance.wait,
            Phase::Background => &mut balance.background,
        };
        *sum = sum.saturating_add(interval.length());
    }
    balance
}

/// Returns the time of interaction between two times: all except gaps of over `AWAY_NS` between
/// waits.
///
/// `awaited` are waits, or events from input to end, as start and end in order of their start; they
/// may overlap.
pub fn interactive(awaited: &[(u64, u64)], from: u64, to: u64) -> u64 {
    let (mut now, mut away) = (from, 0u64);
    let end = (to, to);
    for (begin, end) in awaited.iter().chain([&end]) {
        let gap = (*begin).min(to).saturating_sub(now);
        away = away.saturating_add(if gap > AWAY_NS { gap } else { 0 });
        now = now.max(*end);
    }
    to.saturating_sub(from).saturating_sub(away)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_truth_table() {
        use Phase::{Background, Think, Wait};
        // C, Q, S, E.
        let table = [
            ([0, 0, 0, 0], Think),
            ([0, 0, 0, 1], Think),
            ([0, 0, 1, 0], Wait),
            ([0, 0, 1, 1], Wait),
            ([0, 1, 0, 0], Wait),
            ([0, 1, 0, 1], Wait),
            ([0, 1, 1, 0], Wait),
            ([0, 1, 1, 1], Wait),
            ([1, 0, 0, 0], Background),
            ([1, 0, 0, 1], Wait),
            ([1, 0, 1, 0], Wait),
            ([1, 0, 1, 1], Wait),
            ([1, 1, 0, 0], Wait),
            ([1, 1, 0, 1], Wait),
            ([1, 1, 1, 0], Wait),
            ([1, 1, 1, 1], Wait),
        ];
        for ([c, q, s, e], phase) in table {
            let signals = ThinkSignals {
                computing: c == 1,
                queued: q == 1,
                synchronous_io: s == 1,
                handling: e == 1,
            };
            assert_eq!(signals.phase(), phase, "{signals:?}");
        }
    }

    /// Parses signal changes: `C`, `Q`, `S` or `E` switch a signal on at a millisecond, lower-case
    /// letters off.
    fn changes(text: &[(u64, &str)]) -> Vec<SignalChange> {
        let mut changes = Vec::new();
        for (at, letters) in text {
            for letter in letters.chars() {
                let signal = match letter.to_ascii_uppercase() {
                    'C' => Signal::Computing,
                    'Q' => Signal::Queued,
                    'S' => Signal::SynchronousIo,
                    _ => Signal::Handling,
                };
                changes.push(SignalChange { at: at * MS, signal, on: letter.is_uppercase() });
            }
        }
        changes
    }

    /// Formats `T 0-5, W 5-9` in milliseconds.
    fn text(intervals: &[PhaseInterval]) -> String {
        let mut texts = Vec::new();
        for PhaseInterval { phase, from, to } in intervals {
            let letter = match phase {
                Phase::Think => 'T',
                Phase::Wait => 'W',
                Phase::Background => 'B',
            };
            texts.push(format!("{letter} {}-{}", from / MS, to / MS));
        }
        texts.join(", ")
    }

    #[test]
    fn a_key_press_is_a_wait_from_queue_to_answer() {
        let changes = changes(&[(10, "Q"), (12, "CqE"), (20, "ce"), (40, "C"), (50, "c")]);
        assert_eq!(
            text(&phases(&changes, 0, 60 * MS, RECORD_NS)),
            "T 0-10, W 10-20, T 20-40, B 40-50, T 50-60"
        );
        assert_eq!(
            text(&phases(&changes, 15 * MS, 45 * MS, RECORD_NS)),
            "W 15-20, T 20-40, B 40-45"
        );
    }

    #[test]
    fn synchronous_io_is_a_wait_with_an_idle_cpu() {
        let changes = changes(&[(5, "CE"), (10, "cS"), (30, "sC"), (35, "ce")]);
        assert_eq!(text(&phases(&changes, 0, 40 * MS, RECORD_NS)), "T 0-5, W 5-35, T 35-40");
    }

    #[test]
    fn short_gaps_inside_an_event_do_not_end_the_wait() {
        let animation =
            changes(&[(10, "CE"), (20, "c"), (24, "C"), (30, "c"), (35, "C"), (40, "ce")]);
        assert_eq!(
            text(&phases(&animation, 0, 50 * MS, 5 * MS)),
            "T 0-10, W 10-30, T 30-35, W 35-40, T 40-50"
        );
        let outside = changes(&[(10, "CE"), (20, "ce"), (24, "CE"), (30, "ce")]);
        assert_eq!(
            text(&phases(&outside, 0, 40 * MS, 5 * MS)),
            "T 0-10, W 10-20, T 20-24, W 24-30, T 30-40"
        );
        let open = changes(&[(10, "CE"), (38, "c")]);
        assert_eq!(text(&phases(&open, 0, 40 * MS, 5 * MS)), "T 0-10, W 10-38, T 38-40");
    }

    #[test]
    fn waits_have_the_thresholds_of_their_inputs() {
        let phases = [(1, 5), (10, 109), (200, 300), (400, 550)].map(|(from, to)| PhaseInterval {
            phase: Phase::Wait,
            from: from * MS,
            to: to * MS,
        });
        let inputs = [(10, 100), (200, 1_000), (250, 100), (350, 4_000)]
            .map(|(at, threshold)| Expectation { at: at * MS, threshold: threshold * MS });
        let judged = waits(&phases, &inputs);
        let thresholds: Vec<Option<u64>> =
            judged.iter().map(|wait| wait.threshold.map(|limit| limit / MS)).collect();
        assert_eq!(thresholds, [None, Some(100), Some(100), Some(4_000)]);
        let noticeable: Vec<bool> = judged.iter().map(Wait::is_noticeable).collect();
        assert_eq!(noticeable, [true, false, true, false]);
    }

    #[test]
    fn absence_is_no_interaction() {
        const S: u64 = 1_000_000_000;
        assert_eq!(
            interactive(&[(10 * S, 11 * S), (50 * S, 52 * S), (60 * S, 61 * S)], 0, 70 * S),
            31 * S
        );
        assert_eq!(interactive(&[(10 * S, 60 * S), (20 * S, 25 * S)], 0, 90 * S), 90 * S);
        assert_eq!(interactive(&[], 0, 30 * S), 30 * S);
        assert_eq!(interactive(&[], 0, 31 * S), 0);
        assert_eq!(interactive(&[(5, 9)], 9, 3), 0);
        assert_eq!(interactive(&[(100 * S, 200 * S)], 0, 20 * S), 20 * S);
    }

    fn change() -> impl Strategy<Value = SignalChange> {
        let signal = prop_oneof![
            Just(Signal::Computing),
            Just(Signal::Queued),
            Just(Signal::SynchronousIo),
            Just(Signal::Handling)
        ];
        (prop_oneof![0..100_u64, any::<u64>()], signal, any::<bool>())
            .prop_map(|(at, signal, on)| SignalChange { at, signal, on })
    }

    proptest! {
        #[test]
        fn phases_tile_the_time(
            changes in proptest::collection::vec(change(), 0..60),
            sorted in any::<bool>(),
            ends in [0..120_u64, 0..120_u64],
            record in 0..20_u64,
        ) {
            let mut changes = changes;
            if sorted {
                changes.sort_by_key(|change| change.at);
            }
            let (from, to) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            let phases = phases(&changes, from, to, record);
            let end = phases
                .iter()
                .try_fold(from, |at, one| (one.from == at && one.to > at).then_some(one.to));
            prop_assert_eq!(end, Some(to));
            prop_assert!(phases.windows(2).all(|pair| pair[0].phase != pair[1].phase));
            let balance = balance(&phases);
            prop_assert_eq!(balance.think + balance.wait + balance.background, to - from);
        }

        #[test]
        fn longer_records_only_lengthen_waits(
            mut changes in proptest::collection::vec(change(), 0..60),
        ) {
            changes.sort_by_key(|change| change.at);
            let waits =
                [0, 2, 8, 100].map(|record| balance(&phases(&changes, 0, 100, record)).wait);
            prop_assert!(waits.is_sorted(), "{:?}", waits);
        }

        #[test]
        fn any_times_have_an_interactive_part(
            awaited in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..10),
            from in any::<u64>(),
            to in any::<u64>(),
        ) {
            prop_assert!(interactive(&awaited, from, to) <= to.saturating_sub(from));
        }
    }
}
