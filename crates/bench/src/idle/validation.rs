// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work of known length for the loops to observe: events, echoes, and load.

use super::options::IdleOptions;
use super::watch::{POLL_INTERVAL, observe, sleep_until};
use super::{echo, injector, trace};
use crate::alone::MachineLock;
use crate::cpus::{allowed_cpus, stay_on};
use crate::interrupt::InterruptFlag;
use crate::kernel_text::steal_of;
use crate::process::ProcessGroup;
use crate::programs::{SidecarRecorder, finish};
use crate::worker::WorkerLauncher;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tipme_measure::idle::{Injection, Observed, Taken};

/// Events of one trial.
const EVENTS: u64 = 240;
/// Maximum number of attempts at a trial that other processes disturb.
const TRIES: usize = 3;
/// Number of characters that are echoed.
const CHARACTERS: u64 = 100;
/// Duration of the measurement of a share.
const CHECK: Duration = Duration::from_secs(3);
/// Time from the start of a program to its observation.
const SETTLE: Duration = Duration::from_millis(300);
/// Maximum duration of a round.
const ROUND_MAX: Duration = Duration::from_secs(60);
/// Maximum time from the end of a program's work to its exit.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Path of a recorded incident, with its folder, which is removed with the value.
pub(super) type IdleIncident = (PathBuf, TempDir);

/// Setup of a validation.
#[derive(Clone, Debug)]
pub(super) struct ValidationSetup {
    /// Path of this program.
    pub tipme: PathBuf,
    pub launcher: WorkerLauncher,
    pub resolution: Duration,
    pub cpus: Vec<usize>,
    /// Records one trial too.
    pub trace: bool,
}

/// Method of observing a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Method {
    Gaps,
    /// With the recorder beside the loops.
    Traced,
    Classic,
}

/// Work of a round and its observation.
pub(super) enum Round {
    /// Events of one program on the first observed CPU.
    Events(EventsRound),
    /// Characters echoed on that CPU; `due_ns` is the time at which each was sent.
    Echoes { method: Method, observed: Observed, events: Vec<Injection> },
    /// All CPUs, with a program of normal priority on each if `loaded`; `steal_share` is the
    /// hypervisor's largest share of one of them.
    Share {
        method: Method,
        observed: Vec<Observed>,
        loaded: bool,
        steal_share: f64,
        incident: Option<IdleIncident>,
    },
}

impl Round {
    /// Returns the observations with their methods.
    pub(super) fn watched(&self) -> Vec<(Method, &Observed)> {
        match self {
            Round::Events(EventsRound { method, observed, .. })
            | Round::Echoes { method, observed, .. } => {
                vec![(*method, observed)]
            }
            Round::Share { method, observed, .. } => {
                observed.iter().map(|one| (*method, one)).collect()
            }
        }
    }
}

/// Events of one program on the first observed CPU.
pub(super) struct EventsRound {
    pub method: Method,
    pub observed: Observed,
    pub events: Vec<Injection>,
    pub pid: u32,
    pub taken: Taken,
    pub incident: Option<IdleIncident>,
}

const METHODS: [Method; 3] = [Method::Gaps, Method::Traced, Method::Classic];

impl Method {
    /// Name in the result.
    pub(super) fn name(self) -> &'static str {
        match self {
            Method::Gaps => "gaps",
            Method::Traced => "gaps with names",
            Method::Classic => "classic",
        }
    }
}

/// Runs all rounds; calls `progress` before each.
pub(super) fn validate(
    setup: &ValidationSetup,
    interrupt: &InterruptFlag,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Round>> {
    let waited = MachineLock::wait(interrupt, || progress("waiting for another test to end"));
    interrupt.check()?;
    // An unprivileged user cannot take root's lock, and goes on without it.
    let _alone = waited.ok();
    let mut rounds = Vec::new();
    let methods: &[Method] = if setup.trace { &METHODS } else { &[Method::Gaps, Method::Classic] };
    for method in methods {
        for loaded in [false, true] {
            let load = if loaded { "loaded" } else { "quiet" };
            progress(&format!("{}: shares, {load}", method.name()));
            rounds.push(setup.share(*method, loaded, interrupt)?);
        }
    }
    for method in methods {
        rounds.push(Round::Events(setup.undisturbed_events(*method, interrupt, progress)?));
    }
    for method in [Method::Gaps, Method::Classic] {
        progress(&format!("{}: {CHARACTERS} echoes", method.name()));
        rounds.push(setup.echoes(method, interrupt)?);
    }
    Ok(rounds)
}

impl ValidationSetup {
    fn options(&self, method: Method, duration: Duration, cpus: &[usize]) -> IdleOptions {
        let classic = method == Method::Classic;
        IdleOptions { duration, resolution: self.resolution, classic, cpus: cpus.to_vec() }
    }

    /// CPU that the programs use.
    fn cpu(&self) -> Result<usize> {
        self.cpus.first().copied().context("there is no CPU to measure")
    }

    fn command(&self, name: &str, number: u64) -> Result<Command> {
        let words = ["idle-work", name, &number.to_string()].map(OsString::from);
        let mut command = self.launcher.command(None, &words)?;
        command.stdin(Stdio::null());
        Ok(command)
    }

    fn tracer(&self, method: Method, interrupt: &InterruptFlag) -> Result<Option<SidecarRecorder>> {
        (method == Method::Traced)
            .then(|| trace::start(&self.tipme, ROUND_MAX, interrupt))
            .transpose()
    }

    fn share(&self, method: Method, loaded: bool, interrupt: &InterruptFlag) -> Result<Round> {
        let time = ROUND_MAX.as_millis() as u64;
        let mut hogs = Vec::new();
        for cpu in self.cpus.iter().filter(|_| loaded) {
            hogs.push(ProcessGroup::start("a load", self.command("hog", time)?, Some(*cpu))?);
        }
        interrupt.sleep(SETTLE)?;
        let tracer = self.tracer(method, interrupt)?;
        let options = self.options(method, CHECK, &self.cpus);
        let before = StealClock::read(&self.cpus);
        let (observed, ()) = observe(&options, || sleep_until(Instant::now() + CHECK, interrupt))?;
        let steal_share = before.share_since(CHECK.as_nanos() as u64);
        hogs.iter_mut().try_for_each(ProcessGroup::expect_alive)?;
        let incident = tracer.map(|tracer| tracer.last_mark(interrupt)).transpose()?;
        Ok(Round::Share { method, observed, loaded, steal_share, incident })
    }

    /// Repeats a round until other processes leave the CPU alone; otherwise returns the least
    /// disturbed one. The paper's loop has no limits, so it gets one attempt.
    fn undisturbed_events(
        &self,
        method: Method,
        interrupt: &InterruptFlag,
        progress: &mut dyn FnMut(&str),
    ) -> Result<EventsRound> {
        let mut best: Option<EventsRound> = None;
        for number in 1..=if method == Method::Classic { 1 } else { TRIES } {
            let again = if number > 1 {
                format!(", try {number} of {TRIES}: others had the CPU")
            } else {
                String::new()
            };
            progress(&format!("{}: {EVENTS} events of 0.05 to 10 ms{again}", method.name()));
            let round = self.events(method, interrupt)?;
            if best.as_ref().is_none_or(|best| round.taken.share() < best.taken.share()) {
                best = Some(round);
            }
            if best.as_ref().is_some_and(|best| !best.taken.is_disturbing()) {
                break;
            }
        }
        best.context("no round of events")
    }

    fn events(&self, method: Method, interrupt: &InterruptFlag) -> Result<EventsRound> {
        let cpu = self.cpu()?;
        let tracer = self.tracer(method, interrupt)?;
        let before = StealClock::read(&[cpu]);
        let (observed, (pid, text)) = observe(&self.options(method, ROUND_MAX, &[cpu]), || {
            let mut command = self.command("inject", EVENTS)?;
            command.stdout(Stdio::piped());
            let mut program = ProcessGroup::start("the injector", command, Some(cpu))?;
            let pipe = program.child().stdout.take().context("the injector has no output")?;
            let times = (ROUND_MAX, POLL_INTERVAL);
            let (text, _) = finish(&mut program, pipe, times, interrupt)?;
            Ok((program.pid(), text))
        })?;
        let events = injector::reported(&text);
        if events.len() as u64 != EVENTS {
            bail!("the injector reported {} events instead of {EVENTS}", events.len());
        }
        let incident = tracer.map(|tracer| tracer.last_mark(interrupt)).transpose()?;
        let observed = observed.into_iter().next().context("nothing was observed")?;
        let own = observed.cpu_time_ns
            + injector::whole_cpu_ns(&text).context("the injector reported no CPU time")?;
        let others_share =
            observed.wall_ns().saturating_sub(own) as f64 / observed.wall_ns().max(1) as f64;
        let taken = Taken { others_share, steal_share: before.share_since(observed.wall_ns()) };
        Ok(EventsRound { method, observed, events, pid, taken, incident })
    }

    fn echoes(&self, method: Method, interrupt: &InterruptFlag) -> Result<Round> {
        let cpu = self.cpu()?;
        let (mut terminal, inner) = echo::terminal()?;
        let mut command = self.command("echo", CHARACTERS)?;
        command
            .stdin(inner.try_clone().context("cannot share the terminal")?)
            .stdout(inner)
            .stderr(Stdio::piped());
        let mut program = ProcessGroup::start("the echo", command, Some(cpu))?;
        let pipe = program.child().stderr.take().context("the echo has no error output")?;
        interrupt.sleep(SETTLE)?;
        let options = self.options(method, ROUND_MAX, &[cpu]);
        let (observed, sent) = observe(&options, || {
            elsewhere(cpu, || echo::type_characters(&mut terminal, CHARACTERS, interrupt))
        })?;
        let times = (END_TIMEOUT, POLL_INTERVAL);
        let (text, _) = finish(&mut program, pipe, times, interrupt)?;
        let timed = injector::reported(&text).into_iter().zip(sent);
        let events = timed.map(|(event, due_ns)| Injection { due_ns, ..event }).collect();
        let observed = observed.into_iter().next().context("nothing was observed")?;
        Ok(Round::Echoes { method, observed, events })
    }
}

/// Steal time of some CPUs.
struct StealClock(Vec<(usize, Duration)>);

impl StealClock {
    fn read(cpus: &[usize]) -> StealClock {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        StealClock(cpus.iter().filter_map(|cpu| Some((*cpu, steal_of(&text, *cpu)?))).collect())
    }

    /// Returns the largest steal share of a CPU in the `wall_ns` nanoseconds since then.
    fn share_since(&self, wall_ns: u64) -> f64 {
        let now = StealClock::read(&self.0.iter().map(|(cpu, _)| *cpu).collect::<Vec<usize>>());
        let taken =
            self.0.iter().zip(&now.0).map(|((_, before), (_, now))| now.saturating_sub(*before));
        taken.max().unwrap_or_default().as_nanos() as f64 / wall_ns.max(1) as f64
    }
}

/// Runs `work` in a thread on a CPU other than the observed one, if there is one.
fn elsewhere<T: Send>(cpu: usize, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let other = allowed_cpus()?.into_iter().find(|allowed| *allowed != cpu);
    let done = std::thread::scope(|scope| {
        let thread = scope.spawn(|| other.map_or(Ok(()), stay_on).and_then(|()| work()));
        thread.join()
    });
    done.ok().context("the thread on another CPU has failed")?
}
