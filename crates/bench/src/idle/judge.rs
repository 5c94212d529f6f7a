// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme idle --validate`: compares the observations with programs of known work.

use super::options::IdleOptions;
use super::validation::{EventsRound, IdleIncident, Method, Round, ValidationSetup, validate};
use crate::driver::BenchDriver;
use crate::experiment::MeasuredRepeats;
use crate::programs::recording;
use anyhow::Result;
use tipme_analysis::{CpuOwner, Recording, cpu_intervals};
use tipme_measure::idle::{
    Check, Echo, Gap, IdleDetails, Injection, Observed, Trial, Validation, errors, stolen_by_gaps,
    stolen_by_records,
};
use tipme_measure::{Events, Run, Share, Summary, ms};
use tipme_record::{Cpu, Nanos};

/// Class of the events: difference between observed and actual CPU time.
pub(super) const ERROR: &str = "error";
/// Limits for the default loop, in microseconds, and with names.
const P50_US_MAX: f64 = 35.0;
const P90_US_MAX: f64 = 100.0;
const TRACED_P50_US_MAX: f64 = 15.0;
/// Limits for its shares, in percentage points.
const QUIET_POINTS_MAX: f64 = 1.0;
const LOADED_POINTS_MAX: f64 = 2.0;

/// Thread id 0: the CPU is idle, or its owner is unknown.
const NOBODY: u32 = 0;

/// Observes the programs, and reports the accuracy.
pub(super) fn run(
    options: &IdleOptions,
    trace: bool,
    driver: &mut dyn BenchDriver,
) -> Result<MeasuredRepeats<IdleDetails>> {
    let (programs, interrupt) = (driver.programs(), driver.interrupt());
    let setup = ValidationSetup {
        launcher: programs.launcher,
        tipme: programs.tipme,
        resolution: options.resolution,
        cpus: options.cpus.clone(),
        trace,
    };
    let rounds = validate(&setup, &interrupt, &mut |text| driver.line(text))?;
    let (mut validation, mut runs) = (Validation::default(), Vec::new());
    for round in &rounds {
        judge(round, setup.trace, &mut validation, &mut runs)?;
    }
    Ok(MeasuredRepeats { runs, figures: details(options, validation, &rounds) })
}

fn details(options: &IdleOptions, validation: Validation, rounds: &[Round]) -> IdleDetails {
    let watched =
        rounds.iter().flat_map(Round::watched).filter(|(method, _)| *method != Method::Classic);
    IdleDetails {
        method: "gaps".to_owned(),
        resolution_ns: options.resolution.as_nanos() as u64,
        gap_min_ns: watched.map(|(_, observed)| observed.gap_min_ns).max(),
        no_names_because: Some("--validate looks at known work only".to_owned()),
        validation: Some(validation),
        ..IdleDetails::default()
    }
}

/// Adds the results of a round.
fn judge(
    round: &Round,
    traced: bool,
    validation: &mut Validation,
    runs: &mut Vec<Run>,
) -> Result<()> {
    match round {
        Round::Events(EventsRound { method, observed, events, pid, taken, incident }) => {
            let recording = decoded(incident)?;
            let pairs: Vec<(u64, u64)> = events
                .iter()
                .map(|event| {
                    (stolen(*method, observed, event, recording.as_ref(), *pid), event.cpu_ns)
                })
                .collect();
            validation.trials.push(Trial { taken: Some(*taken), ..trial(*method, &pairs) });
            runs.push(as_run(*method, observed, events, &pairs));
        }
        Round::Echoes { method, observed, events } => {
            let pairs = events.iter().map(|event| {
                let conventional = event.ended_ns.saturating_sub(event.began_ns);
                (stolen(*method, observed, event, None, 0), conventional)
            });
            validation.echoes.push(echo(*method, &pairs.collect::<Vec<_>>()));
        }
        Round::Share { method, observed, loaded, steal_share, incident } => {
            let recording = decoded(incident)?;
            let most = points_max(*method, *loaded, traced);
            let checked = check(*method, observed, *loaded, most, recording.as_ref());
            validation.checks.push(Check { steal_share: *steal_share, ..checked });
        }
    }
    Ok(())
}

fn decoded(incident: &Option<IdleIncident>) -> Result<Option<Recording>> {
    incident.as_ref().map(|(path, _)| recording(path)).transpose()
}

/// Returns the time that the loop missed during an event. With a recording, counts only the
/// program's own time.
fn stolen(
    method: Method,
    observed: &Observed,
    event: &Injection,
    recording: Option<&Recording>,
    pid: u32,
) -> u64 {
    if method == Method::Classic {
        let record_ns = observed.classic.map_or(0, |classic| classic.begin_ns);
        return stolen_by_records(observed, event, record_ns);
    }
    stolen_by_gaps(&observed.gaps, event, |gap| {
        recording
            .map_or(gap.length_ns, |recording| time_of(recording, observed, gap, |tid| tid == pid))
    })
}

/// Returns the CPU time of some threads in a gap, without other threads and without kernel entry
/// and exit.
///
/// Interrupts count for the thread that they interrupt, as in most kernels.
fn time_of(
    recording: &Recording,
    observed: &Observed,
    gap: &Gap,
    counts: impl Fn(u32) -> bool,
) -> u64 {
    let (from, to) = (Nanos(gap.start_ns), Nanos(gap.end_ns()));
    let cpu_intervals = cpu_intervals(recording, Cpu(observed.cpu as u32), from, to);
    let mut running = observed.tid;
    let own = cpu_intervals.iter().filter(|one| {
        running = match &one.owner {
            CpuOwner::Thread { tid, .. } | CpuOwner::Work { tid, .. } => tid.0,
            CpuOwner::Interrupt { .. } | CpuOwner::Softirq { .. } => running,
            CpuOwner::Idle | CpuOwner::Unknown => NOBODY,
        };
        counts(running)
    });
    own.map(|one| one.time().0).sum()
}

fn trial(method: Method, pairs: &[(u64, u64)]) -> Trial {
    let (p50_us_max, p90_us_max) = match method {
        Method::Gaps => (Some(P50_US_MAX), Some(P90_US_MAX)),
        Method::Traced => (Some(TRACED_P50_US_MAX), Some(P90_US_MAX)),
        Method::Classic => (None, None),
    };
    let injected = Summary::new(pairs.iter().map(|(_, injected)| *injected).collect());
    Trial {
        method: method.name().to_owned(),
        injected_ms_min: ms(injected.value(Share(0)).unwrap_or_default()),
        injected_ms_max: ms(injected.max().unwrap_or_default()),
        errors: errors(pairs),
        p50_us_max,
        p90_us_max,
        taken: None,
    }
}

fn echo(method: Method, pairs: &[(u64, u64)]) -> Echo {
    let pairs = pairs.iter();
    Echo {
        method: method.name().to_owned(),
        n: pairs.len(),
        conventional_ms: median(pairs.clone().map(|pair| pair.1)) / 1e6,
        stolen_ms: median(pairs.clone().map(|pair| pair.0)) / 1e6,
        missed_us: median(pairs.map(|pair| pair.0.saturating_sub(pair.1))) / 1e3,
    }
}

fn median(values: impl Iterator<Item = u64>) -> f64 {
    Summary::new(values.collect()).value(Share::P50).unwrap_or_default() as f64
}

/// Returns the limit of a check. On a quiet machine, interrupts and a hypervisor make up much of
/// the stolen time, and only names reveal time that the kernel does not count as stolen.
fn points_max(method: Method, loaded: bool, traced: bool) -> Option<f64> {
    match (method, loaded) {
        (Method::Classic, _) => None,
        (_, true) => Some(LOADED_POINTS_MAX),
        (Method::Gaps, false) if traced => None,
        (_, false) => Some(QUIET_POINTS_MAX),
    }
}

/// Compares all stolen time with the kernel's accounting or, with a recording, the part of other
/// threads: interrupts and hypervisor time are charged to the loop.
fn check(
    method: Method,
    observed: &[Observed],
    loaded: bool,
    most: Option<f64>,
    recording: Option<&Recording>,
) -> Check {
    let load = if loaded { "loaded" } else { "quiet" };
    let Some(recording) = recording else { return Check::of(method.name(), load, observed, most) };
    let others = observed.iter().map(|one| {
        let gaps = one.gaps.iter();
        gaps.map(|gap| time_of(recording, one, gap, |tid| tid != one.tid && tid != NOBODY)).sum()
    });
    Check::of_part(method.name(), load, observed, &others.collect::<Vec<u64>>(), most)
}

/// Returns the absolute errors of a trial as events.
fn as_run(method: Method, observed: &Observed, events: &[Injection], pairs: &[(u64, u64)]) -> Run {
    let mut class = Events::of(ERROR, None);
    for (event, (stolen, injected)) in events.iter().zip(pairs) {
        class.push(event.due_ns, stolen.abs_diff(*injected));
    }
    let (name, duration_ns) = (method.name().to_owned(), observed.wall_ns());
    Run { name, duration_ns, interactive_ns: None, lost: observed.gaps_lost, classes: vec![class] }
}
