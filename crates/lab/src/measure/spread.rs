// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the latencies of a repeat consist of, so that it can be told why repeats differ.
//!
//! While an input is answered, threads of the application or of its display server run, or are ready and others have the
//! CPU, or all of them wait. The three sum to the time in which answers were awaited.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use tipme_analysis::{CpuOwner, Recording, cpu_intervals, thread_times};
use tipme_measure::{ms, spread_shares};
use tipme_record::Tid;
use tipme_report::measure::{RepeatSpread, Rival};

/// From one time to another, in nanoseconds.
pub type Span = (u64, u64);

/// Who had the CPU most is told, so many of them.
const RIVALS_MAX: usize = 5;

/// Who had a CPU for which a thread that answers was ready.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CpuUse {
    pub running: Vec<Span>,
    pub ready: Vec<Span>,
    pub rivals: Vec<(String, Span)>,
}

/// The time of a repeat's answers, in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AnswerTime {
    pub running: u64,
    pub ready: u64,
    pub waiting: u64,
    pub rivals: BTreeMap<String, u64>,
}

impl CpuUse {
    /// That of some threads.
    pub fn of(recording: &Recording, threads: &BTreeSet<Tid>) -> CpuUse {
        let times = thread_times(recording, threads);
        let mut rivals = Vec::new();
        for (cpu, from, to) in &times.ready {
            let others = cpu_intervals(recording, *cpu, *from, *to).into_iter();
            rivals.extend(others.filter_map(|one| Some((rival(&one.owner, threads)?, (one.from.0, one.to.0)))));
        }
        CpuUse {
            running: times.running.iter().map(|(from, to)| (from.0, to.0)).collect(),
            ready: times.ready.iter().map(|(_, from, to)| (from.0, to.0)).collect(),
            rivals,
        }
    }

    /// Both together.
    pub fn add(&mut self, other: CpuUse) {
        self.running.extend(other.running);
        self.ready.extend(other.ready);
        self.rivals.extend(other.rivals);
    }

    /// What the times in which answers were awaited consist of.
    pub fn within(self, answers: Vec<Span>) -> AnswerTime {
        let answers = merged(answers);
        let running = common(&merged(self.running.clone()), &answers);
        let busy = common(&merged([self.running, self.ready].concat()), &answers);
        let mut rivals: BTreeMap<String, u64> = BTreeMap::new();
        for (name, span) in self.rivals {
            *rivals.entry(name).or_default() += common(&[span], &answers);
        }
        let whole = answers.iter().map(|(from, to)| to - from).sum::<u64>();
        AnswerTime { running, ready: busy.saturating_sub(running), waiting: whole.saturating_sub(busy), rivals }
    }
}

/// The name of who had the CPU, where it is none of these threads and something was recorded.
fn rival(owner: &CpuOwner, threads: &BTreeSet<Tid>) -> Option<String> {
    match owner {
        CpuOwner::Thread { tid, .. } | CpuOwner::Work { tid, .. } if threads.contains(tid) => None,
        CpuOwner::Work { function, .. } => Some(function.clone()),
        CpuOwner::Thread { name, .. } | CpuOwner::Interrupt { name } | CpuOwner::Softirq { name } => Some(name.clone()),
        CpuOwner::Idle | CpuOwner::Unknown => None,
    }
}

/// In the order of time, none overlapping another.
pub fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|(from, to)| from < to);
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::new();
    for (from, to) in spans {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// The length of what two lists have in common, each in the order of time.
fn common(one: &[Span], other: &[Span]) -> u64 {
    let within = |span: &Span| {
        let first = other.partition_point(|(_, to)| *to <= span.0);
        let near = other[first..].iter().take_while(|(from, _)| *from < span.1);
        near.map(|(from, to)| span.1.min(*to) - span.0.max(*from)).sum::<u64>()
    };
    one.iter().map(within).sum()
}

/// What the repeats differ by; `None` where nothing was recorded, or nothing differs.
pub fn spread(times: &[Option<&AnswerTime>]) -> Option<RepeatSpread> {
    let times: Vec<&AnswerTime> = times.iter().copied().collect::<Option<_>>()?;
    let part = |of: fn(&AnswerTime) -> u64| times.iter().map(|time| ms(of(time))).collect::<Vec<f64>>();
    let (running_ms, ready_ms, waiting_ms) = (part(|of| of.running), part(|of| of.ready), part(|of| of.waiting));
    let shares = spread_shares(&[running_ms.clone(), ready_ms.clone(), waiting_ms.clone()])?;
    let [running_share, ready_share, waiting_share] = shares.try_into().ok()?;
    let rivals = rivals(&times);
    Some(RepeatSpread { running_ms, ready_ms, waiting_ms, running_share, ready_share, waiting_share, rivals })
}

/// Who had the CPU most, over all repeats.
fn rivals(times: &[&AnswerTime]) -> Vec<Rival> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, time) in times.iter().flat_map(|time| &time.rivals) {
        *sums.entry(name).or_default() += time;
    }
    let mut rivals: Vec<Rival> =
        sums.into_iter().map(|(name, time)| Rival { name: name.to_owned(), ms: ms(time) }).collect();
    rivals.retain(|rival| rival.ms > 0.0);
    rivals.sort_by(|one, other| other.ms.total_cmp(&one.ms));
    rivals.truncate(RIVALS_MAX);
    rivals
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn spans(spans: &[Span]) -> Vec<Span> {
        spans.iter().map(|(from, to)| (from * MS, to * MS)).collect()
    }

    #[test]
    fn running_ready_and_waiting_sum_to_the_awaited_time() {
        let cpu_use = CpuUse {
            running: spans(&[(0, 12), (20, 25)]),
            ready: spans(&[(12, 16), (18, 21), (40, 90)]),
            rivals: vec![("hog".to_owned(), (12 * MS, 16 * MS)), ("late".to_owned(), (60 * MS, 90 * MS))],
        };
        let time = cpu_use.within(spans(&[(10, 30), (15, 30)]));
        assert_eq!((time.running, time.ready, time.waiting), (7 * MS, 6 * MS, 7 * MS));
        assert_eq!(time.rivals["hog"], 4 * MS);
        assert_eq!(time.rivals["late"], 0);
    }

    #[test]
    fn what_differs_is_told_with_who_had_the_cpu() {
        let time = |ready: u64| AnswerTime {
            running: 100 * MS,
            ready: ready * MS,
            waiting: 0,
            rivals: BTreeMap::from([("hog".to_owned(), ready * MS), ("nobody".to_owned(), 0)]),
        };
        let (one, other) = (time(0), time(30));
        let spread = spread(&[Some(&one), Some(&other)]).expect("they differ");
        assert_eq!((spread.running_share, spread.ready_share), (0.0, 1.0));
        assert_eq!(spread.rivals, [Rival { name: "hog".to_owned(), ms: 30.0 }]);
        assert!(super::spread(&[Some(&one), None]).is_none() && super::spread(&[Some(&one), Some(&one)]).is_none());
    }
}
