// SPDX-License-Identifier: MIT OR Apache-2.0
//! Components of a repeat's latencies, to explain the differences between repeats.
//!
//! While an input awaits its answer, threads of the application or of its display server run, or
//! are runnable while other threads have the CPU, or all of them wait. The three parts sum to the
//! total time of awaited answers.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use tipme_analysis::{CpuOwner, Recording, cpu_intervals, thread_times};
use tipme_measure::{ms, spread_shares};
use tipme_record::Tid;
use tipme_report::measure::{RepeatSpread, Rival, Runner};

/// Start and end in nanoseconds.
pub type Span = (u64, u64);

/// Maximum number of listed rivals.
const RIVALS_MAX: usize = 5;

/// CPU use of answering threads, and of others while an answering thread was runnable.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CpuUse {
    /// With the name of the thread.
    pub running: Vec<(String, Span)>,
    pub ready: Vec<Span>,
    pub rivals: Vec<(String, Span)>,
}

/// Total time of a repeat's answers, in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AnswerTime {
    pub running: u64,
    pub ready: u64,
    pub waiting: u64,
    /// Running time by name; two threads at a time count twice.
    pub runners: BTreeMap<String, u64>,
    pub rivals: BTreeMap<String, u64>,
}

impl CpuUse {
    /// Returns the CPU use of some threads.
    pub fn of(recording: &Recording, threads: &BTreeSet<Tid>) -> CpuUse {
        let times = thread_times(recording, threads);
        let mut rivals = Vec::new();
        for (cpu, from, to) in &times.ready {
            let others = cpu_intervals(recording, *cpu, *from, *to).into_iter();
            rivals.extend(
                others
                    .filter_map(|one| Some((rival(&one.owner, threads)?, (one.from.0, one.to.0)))),
            );
        }
        CpuUse {
            running: times
                .running
                .into_iter()
                .map(|(name, from, to)| (name, (from.0, to.0)))
                .collect(),
            ready: times.ready.iter().map(|(_, from, to)| (from.0, to.0)).collect(),
            rivals,
        }
    }

    /// Appends another recording.
    pub fn add(&mut self, other: CpuUse) {
        self.running.extend(other.running);
        self.ready.extend(other.ready);
        self.rivals.extend(other.rivals);
    }

    /// Returns the components of the time in which answers were awaited.
    pub fn within(self, answers: Vec<Span>) -> AnswerTime {
        let answers = merged(answers);
        let spans: Vec<Span> = self.running.iter().map(|(_, span)| *span).collect();
        let running = common(&merged(spans.clone()), &answers);
        let busy = common(&merged([spans, self.ready].concat()), &answers);
        let whole = answers.iter().map(|(from, to)| to - from).sum::<u64>();
        AnswerTime {
            running,
            ready: busy.saturating_sub(running),
            waiting: whole.saturating_sub(busy),
            runners: by_name(self.running, &answers),
            rivals: by_name(self.rivals, &answers),
        }
    }
}

/// Returns the time of each name within the answers.
fn by_name(spans: Vec<(String, Span)>, answers: &[Span]) -> BTreeMap<String, u64> {
    let mut times = BTreeMap::new();
    for (name, span) in spans {
        *times.entry(name).or_default() += common(&[span], answers);
    }
    times
}

/// Returns the name of the CPU's owner, if it is known and none of these threads.
fn rival(owner: &CpuOwner, threads: &BTreeSet<Tid>) -> Option<String> {
    match owner {
        CpuOwner::Thread { tid, .. } | CpuOwner::Work { tid, .. } if threads.contains(tid) => None,
        CpuOwner::Work { function, .. } => Some(function.clone()),
        CpuOwner::Thread { name, .. }
        | CpuOwner::Interrupt { name }
        | CpuOwner::Softirq { name } => Some(name.clone()),
        CpuOwner::Idle | CpuOwner::Unknown => None,
    }
}

/// Sorts spans by time and merges overlapping ones.
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

/// Returns the total overlap of two sorted lists.
fn common(one: &[Span], other: &[Span]) -> u64 {
    let mut total = 0;
    for span in one {
        let first = other.partition_point(|(_, to)| *to <= span.0);
        for (from, to) in other[first..].iter().take_while(|(from, _)| *from < span.1) {
            total += span.1.min(*to) - span.0.max(*from);
        }
    }
    total
}

/// Explains the differences between repeats; `None` if nothing was recorded or nothing differs.
/// `work` is the CPU time of a fixed piece of work in each repeat.
pub fn spread(times: &[Option<&AnswerTime>], work: &[u64]) -> Option<RepeatSpread> {
    let times: Vec<&AnswerTime> = times.iter().copied().collect::<Option<_>>()?;
    let running_ms: Vec<f64> = times.iter().map(|time| ms(time.running)).collect();
    let ready_ms: Vec<f64> = times.iter().map(|time| ms(time.ready)).collect();
    let waiting_ms: Vec<f64> = times.iter().map(|time| ms(time.waiting)).collect();
    let shares = spread_shares(&[running_ms.clone(), ready_ms.clone(), waiting_ms.clone()])?;
    let [running_share, ready_share, waiting_share] = shares.try_into().ok()?;
    let work_ms: Vec<f64> = work.iter().copied().map(ms).collect();
    let total: Vec<f64> =
        times.iter().map(|time| ms(time.running + time.ready + time.waiting)).collect();
    let speed_share = share(&at_speed(&running_ms, &work_ms), &total)?;
    let (runners, rivals) = (runners(&times, &total), longest(sums(&times, |of| &of.rivals)));
    Some(RepeatSpread {
        running_ms,
        ready_ms,
        waiting_ms,
        running_share,
        ready_share,
        waiting_share,
        work_ms,
        speed_share,
        runners,
        rivals,
    })
}

/// Returns the share of a part in the variance of the total.
fn share(part: &[f64], total: &[f64]) -> Option<f64> {
    let rest = total.iter().zip(part).map(|(total, part)| total - part).collect();
    spread_shares(&[part.to_vec(), rest])?.first().copied()
}

/// Returns the running time of each repeat if only the CPU's speed differed.
fn at_speed(running_ms: &[f64], work_ms: &[f64]) -> Vec<f64> {
    let (running, work) = (mean(running_ms), mean(work_ms));
    let relative = work_ms.iter().map(|one| if work > 0.0 { one / work } else { 1.0 });
    relative.map(|relative| running * relative).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the running threads of application and display server, those with the largest share in
/// the differences first.
fn runners(times: &[&AnswerTime], total: &[f64]) -> Vec<Runner> {
    let names: BTreeSet<&String> = times.iter().flat_map(|time| time.runners.keys()).collect();
    let mut runners = Vec::new();
    for name in names {
        let part: Vec<f64> = times
            .iter()
            .map(|time| ms(time.runners.get(name).copied().unwrap_or_default()))
            .collect();
        if let Some(share) = share(&part, total) {
            runners.push(Runner { name: name.to_owned(), ms: part.iter().sum(), share });
        }
    }
    runners.sort_by(|one, other| other.share.total_cmp(&one.share));
    runners.truncate(RIVALS_MAX);
    runners
}

/// Returns the total of each name over all repeats.
fn sums<'a>(
    times: &[&'a AnswerTime],
    of: fn(&AnswerTime) -> &BTreeMap<String, u64>,
) -> BTreeMap<&'a str, u64> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, time) in times.iter().copied().flat_map(of) {
        *sums.entry(name).or_default() += time;
    }
    sums
}

/// Returns the rivals with the most CPU time.
fn longest(times: BTreeMap<&str, u64>) -> Vec<Rival> {
    let mut rivals: Vec<Rival> = times
        .into_iter()
        .map(|(name, time)| Rival { name: name.to_owned(), ms: ms(time) })
        .collect();
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
            running: vec![
                ("app".to_owned(), (0, 12 * MS)),
                ("server".to_owned(), (20 * MS, 25 * MS)),
            ],
            ready: spans(&[(12, 16), (18, 21), (40, 90)]),
            rivals: vec![
                ("hog".to_owned(), (12 * MS, 16 * MS)),
                ("late".to_owned(), (60 * MS, 90 * MS)),
            ],
        };
        let time = cpu_use.within(spans(&[(10, 30), (15, 30)]));
        assert_eq!((time.running, time.ready, time.waiting), (7 * MS, 6 * MS, 7 * MS));
        assert_eq!((time.runners["app"], time.runners["server"]), (2 * MS, 5 * MS));
        assert_eq!(time.rivals["hog"], 4 * MS);
        assert_eq!(time.rivals["late"], 0);
    }

    #[test]
    fn a_difference_in_ready_time_names_the_rival() {
        let [one, other] = [0, 30].map(|ready| AnswerTime {
            running: 100 * MS,
            ready: ready * MS,
            waiting: 0,
            runners: BTreeMap::from([("app".to_owned(), 100 * MS)]),
            rivals: BTreeMap::from([("hog".to_owned(), ready * MS), ("nobody".to_owned(), 0)]),
        });
        let spread = spread(&[Some(&one), Some(&other)], &[MS, MS]).expect("they differ");
        assert_eq!((spread.running_share, spread.ready_share, spread.speed_share), (0.0, 1.0, 0.0));
        assert_eq!(spread.rivals, [Rival { name: "hog".to_owned(), ms: 30.0 }]);
        assert_eq!(super::spread(&[Some(&one), None], &[MS, MS]), None);
        assert_eq!(super::spread(&[Some(&one), Some(&one)], &[MS, MS]), None);
    }

    #[test]
    fn a_difference_in_running_time_names_the_thread_and_the_speed() {
        let [one, other] = [80, 100].map(|app| AnswerTime {
            running: (app + 20) * MS,
            runners: BTreeMap::from([("app".to_owned(), app * MS), ("server".to_owned(), 20 * MS)]),
            ..AnswerTime::default()
        });
        // A fifth slower, relative to the middle of both: exactly their difference.
        for (work, speed_share) in [([MS, MS], 0.0), ([10 * MS, 12 * MS], 1.0)] {
            let spread = spread(&[Some(&one), Some(&other)], &work).expect("they differ");
            assert_eq!(
                (spread.runners[0].name.as_str(), spread.runners[0].share, spread.runners[0].ms),
                ("app", 1.0, 180.0)
            );
            assert_eq!((spread.running_share, spread.runners[1].share), (1.0, 0.0));
            assert!((spread.speed_share - speed_share).abs() < 1e-9, "{spread:?}");
        }
    }
}
