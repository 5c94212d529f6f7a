// SPDX-License-Identifier: MIT OR Apache-2.0
//! Very late wakeups: found in a measurement, explained from a recording.

use super::threads::ThreadWakeUps;
use crate::interrupt::InterruptFlag;
use crate::programs::{self, SidecarRecorder};
use anyhow::Result;
use tipme_analysis::{Lateness, Recording, lateness};
use tipme_measure::timer::{
    OUTLIERS_MAX, Outlier, TimerMechanism, WakeUpSeries, budget, outlier_threshold,
};
use tipme_record::{Cpu, Nanos, Pid, Tid};

/// Maximum number of threads to name that are hidden from the recorder.
const HIDDEN_MAX: usize = 1_000;

/// Latest wakeups of one mechanism.
pub(super) struct LatestWakeUps {
    mechanism: TimerMechanism,
    /// Limit above which wakeups are outliers.
    pub threshold_ns: u64,
    /// Number of outliers.
    pub over: u64,
    /// Latest outliers.
    worst: Vec<tipme_analysis::Late>,
}

/// Finds the wakeups later than the threshold, or than the usual lateness if none is given.
pub(super) fn find(
    tracks: &[ThreadWakeUps],
    mechanism: TimerMechanism,
    period_ns: u64,
    threshold_ns: Option<u64>,
) -> LatestWakeUps {
    let mut all: Vec<tipme_analysis::Late> =
        tracks.iter().flat_map(|track| wakes(track, mechanism, period_ns)).collect();
    let threshold_ns = threshold_ns
        .unwrap_or_else(|| outlier_threshold(&all.iter().map(lateness_ns).collect::<Vec<u64>>()));
    all.retain(|late| lateness_ns(late) > threshold_ns);
    all.sort_by_key(|late| std::cmp::Reverse(lateness_ns(late)));
    let over = all.len() as u64;
    all.truncate(OUTLIERS_MAX);
    LatestWakeUps { mechanism, threshold_ns, over, worst: all }
}

fn lateness_ns(late: &tipme_analysis::Late) -> u64 {
    late.wake.since(late.deadline).0
}

fn wakes(
    track: &ThreadWakeUps,
    mechanism: TimerMechanism,
    period_ns: u64,
) -> Vec<tipme_analysis::Late> {
    let (tid, cpu) = (Tid(track.thread.tid), Cpu(track.thread.cpu));
    let asked = WakeUpSeries::new(&track.run, period_ns)
        .map(|series| series.asked(mechanism))
        .unwrap_or_default();
    let wakes = asked.into_iter().map(|(deadline, wake)| tipme_analysis::Late {
        tid,
        cpu,
        deadline: Nanos(deadline),
        wake: Nanos(wake),
    });
    wakes.collect()
}

/// Explains them if there is a recorder; saves nothing if no wakeup is that late.
pub(super) fn explain(
    late: &LatestWakeUps,
    trace: Option<&SidecarRecorder>,
    interrupt: &InterruptFlag,
) -> Result<Vec<Outlier>> {
    let recording = trace
        .filter(|_| !late.worst.is_empty())
        .map(|trace| recorded(trace, interrupt))
        .transpose()?;
    let outliers = late.worst.iter().map(|one| {
        let explained = recording.as_ref().and_then(|recording| lateness(recording, one));
        outlier(late.mechanism, one, explained)
    });
    Ok(outliers.collect())
}

fn recorded(trace: &SidecarRecorder, interrupt: &InterruptFlag) -> Result<Recording> {
    let path = trace.mark(interrupt)?;
    let mut recording = programs::recording(&path)?;
    // Its folder is removed anyway; until then the next incidents need the room.
    let _ = std::fs::remove_file(&path);
    name_hidden(&mut recording);
    Ok(recording)
}

/// Names by /proc the threads that are hidden from programs in the kernel, like those of the first
/// process on some machines.
fn name_hidden(recording: &mut Recording) {
    for tid in recording.nameless().into_iter().take(HIDDEN_MAX) {
        let Some((pid, name)) = identity(tid) else { continue };
        recording.tasks.add_living(tid, pid, name);
        let main = Tid(pid.0);
        if let Some((_, name)) =
            identity(main).filter(|_| recording.tasks.life(main, recording.mark).is_none())
        {
            recording.tasks.add_living(main, pid, name);
        }
    }
}

/// Returns process and name of a live thread.
fn identity(tid: Tid) -> Option<(Pid, String)> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let [pid, name] = ["Tgid:", "Name:"]
        .map(|field| text.lines().find_map(|line| Some(line.strip_prefix(field)?.trim())));
    Some((Pid(pid?.parse().ok()?), name?.to_owned()))
}

fn outlier(
    mechanism: TimerMechanism,
    late: &tipme_analysis::Late,
    explained: Option<Lateness>,
) -> Outlier {
    let whole = late.wake.since(late.deadline);
    let budget = explained.as_ref().map(|Lateness { portions, .. }| {
        let times = portions.iter().map(|(cause, name, time)| (*cause, name.clone(), time.0));
        budget(&times.collect::<Vec<_>>(), whole.0)
    });
    Outlier {
        mechanism,
        cpu: late.cpu.0,
        deadline_ns: late.deadline.0,
        lateness_us: whole.0 as f64 / 1e3,
        budget,
        culprit_begin_ns: explained.map(|lateness| lateness.begin.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_measure::timer::{LATENESS, MeasuredThread};
    use tipme_measure::{Events, Run};

    const PERIOD: u64 = 1_000_000;

    /// Returns a thread with one late wakeup among many.
    fn track(late_ns: u64) -> ThreadWakeUps {
        let mut events = Events::of(LATENESS, None);
        (1..=100).for_each(|number| {
            events.push(number * PERIOD, if number == 50 { late_ns } else { 50_000 })
        });
        let thread = MeasuredThread {
            mechanism: TimerMechanism::Absolute,
            cpu: 1,
            tid: 7,
            locked: true,
            slack_ns: None,
        };
        ThreadWakeUps {
            thread,
            run: Run { duration_ns: 100 * PERIOD, classes: vec![events], ..Run::default() },
        }
    }

    #[test]
    fn outliers_are_found_by_what_is_usual_or_asked_for() {
        let tracks = [track(900_000), track(3_000_000)];
        let usual = find(&tracks, TimerMechanism::Absolute, PERIOD, None);
        assert_eq!((usual.threshold_ns, usual.over, usual.worst.len()), (1_000_000, 1, 1));
        let asked = find(&tracks, TimerMechanism::Absolute, PERIOD, Some(10_000));
        assert_eq!((asked.over, asked.worst.len()), (200, OUTLIERS_MAX));
        assert_eq!(asked.worst[0].wake.since(asked.worst[0].deadline), Nanos(3_000_000));
    }

    #[test]
    fn a_living_thread_is_known_by_proc() {
        let own = Tid(rustix::process::getpid().as_raw_nonzero().get().unsigned_abs());
        let (pid, name) = identity(own).expect("it lives");
        assert_eq!((pid.0, name.is_empty()), (own.0, false));
        assert_eq!(identity(Tid(u32::MAX)), None);
    }

    #[test]
    fn without_a_recorder_there_is_no_budget() {
        let late = find(&[track(3_000_000)], TimerMechanism::Absolute, PERIOD, None);
        let outliers =
            explain(&late, None, &InterruptFlag::default()).expect("there is nothing to fail");
        assert_eq!(
            (outliers[0].lateness_us, outliers[0].cpu, &outliers[0].budget),
            (3_000.0, 1, &None)
        );
    }
}
