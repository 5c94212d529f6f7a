// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work of known length for the loops to see: events, echoes, and load.

use super::options::IdleOptions;
use super::trace::{IdleIncident, Tracer};
use super::watch::{POLL_INTERVAL, observe, sleep_until};
use super::{echo, injector, place};
use crate::alone::MachineLock;
use crate::interrupt::InterruptFlag;
use crate::process::ProcessGroup;
use crate::worker::WorkerLauncher;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tipme_measure::idle::{Injection, Observed};

/// Events of one trial.
const EVENTS: u64 = 240;
/// Characters that are echoed.
const CHARACTERS: u64 = 100;
/// How long a share is looked at.
const CHECK: Duration = Duration::from_secs(3);
/// From the start of a program on, before it is looked at.
const SETTLE: Duration = Duration::from_millis(300);
/// No round takes longer.
const ROUND_MAX: Duration = Duration::from_secs(60);
/// How long a program may take to end once its work is done.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// What is needed.
#[derive(Clone, Debug)]
pub(super) struct ValidationSetup {
    /// This program.
    pub tipme: PathBuf,
    pub launcher: WorkerLauncher,
    pub resolution: Duration,
    pub cpus: Vec<usize>,
    /// Whether one trial is recorded too.
    pub trace: bool,
}

/// How a round was watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Method {
    Gaps,
    /// With the recorder beside it.
    Traced,
    Classic,
}

/// What happened and what was seen of it.
pub(super) enum Round {
    /// Events of one program on one CPU, the first that was watched.
    Events { method: Method, observed: Observed, events: Vec<Injection>, pid: u32, incident: Option<IdleIncident> },
    /// Characters that were echoed there; `due_ns` is when each was sent.
    Echoes { method: Method, observed: Observed, events: Vec<Injection> },
    /// All CPUs, with a program of normal priority on each where `loaded`.
    Share { method: Method, observed: Vec<Observed>, loaded: bool, incident: Option<IdleIncident> },
}

const METHODS: [Method; 3] = [Method::Gaps, Method::Traced, Method::Classic];

impl Method {
    /// As in the result.
    pub(super) fn name(self) -> &'static str {
        match self {
            Method::Gaps => "gaps",
            Method::Traced => "gaps with names",
            Method::Classic => "classic",
        }
    }
}

/// Runs all rounds; `tell` hears of each before it begins.
pub(super) fn validate(
    setup: &ValidationSetup,
    interrupt: &InterruptFlag,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Round>> {
    let waited = MachineLock::wait(interrupt, || tell("waiting for another test to end"));
    interrupt.check()?;
    // An ordinary user may not take the lock that root has made, and takes the chance.
    let _alone = waited.ok();
    let mut rounds = Vec::new();
    let methods = || METHODS.into_iter().filter(|method| *method != Method::Traced || setup.trace);
    for method in methods() {
        for loaded in [false, true] {
            tell(&format!("{}: shares, {}", method.name(), if loaded { "loaded" } else { "quiet" }));
            rounds.push(setup.share(method, loaded, interrupt)?);
        }
    }
    for method in methods() {
        tell(&format!("{}: {EVENTS} events of 0.05 to 10 ms", method.name()));
        rounds.push(setup.events(method, interrupt)?);
    }
    for method in [Method::Gaps, Method::Classic] {
        tell(&format!("{}: {CHARACTERS} echoes", method.name()));
        rounds.push(setup.echoes(method, interrupt)?);
    }
    Ok(rounds)
}

impl ValidationSetup {
    fn options(&self, method: Method, duration: Duration, cpus: &[usize]) -> IdleOptions {
        let classic = method == Method::Classic;
        IdleOptions { duration, resolution: self.resolution, classic, cpus: cpus.to_vec() }
    }

    /// The CPU that programs work on.
    fn cpu(&self) -> Result<usize> {
        self.cpus.first().copied().context("there is no CPU to measure")
    }

    fn command(&self, name: &str, number: u64) -> Result<Command> {
        let words = ["idle-work", name, &number.to_string()].map(OsString::from);
        let mut command = self.launcher.command(None, &words)?;
        command.stdin(Stdio::null());
        Ok(command)
    }

    fn tracer(&self, method: Method, interrupt: &InterruptFlag) -> Result<Option<Tracer>> {
        (method == Method::Traced).then(|| Tracer::start(&self.tipme, ROUND_MAX, interrupt)).transpose()
    }

    fn share(&self, method: Method, loaded: bool, interrupt: &InterruptFlag) -> Result<Round> {
        let time = ROUND_MAX.as_millis() as u64;
        let loads: Vec<usize> = if loaded { self.cpus.clone() } else { Vec::new() };
        let start = |cpu: &usize| ProcessGroup::start("a load", self.command("hog", time)?, Some(*cpu));
        let mut hogs = loads.iter().map(start).collect::<Result<Vec<ProcessGroup>>>()?;
        interrupt.sleep(SETTLE)?;
        let tracer = self.tracer(method, interrupt)?;
        let options = self.options(method, CHECK, &self.cpus);
        let (observed, ()) = observe(&options, || sleep_until(Instant::now() + CHECK, interrupt))?;
        hogs.iter_mut().try_for_each(ProcessGroup::expect_alive)?;
        let incident = tracer.map(|tracer| tracer.mark(interrupt)).transpose()?;
        Ok(Round::Share { method, observed, loaded, incident })
    }

    fn events(&self, method: Method, interrupt: &InterruptFlag) -> Result<Round> {
        let cpu = self.cpu()?;
        let tracer = self.tracer(method, interrupt)?;
        let (observed, (pid, events)) = observe(&self.options(method, ROUND_MAX, &[cpu]), || {
            let mut command = self.command("inject", EVENTS)?;
            command.stdout(Stdio::piped());
            let mut program = ProcessGroup::start("the injector", command, Some(cpu))?;
            let pipe = program.child().stdout.take().context("the injector has no output")?;
            let text = finish("the injector", &mut program, pipe, ROUND_MAX, interrupt)?;
            Ok((program.pid(), injector::told(&text)))
        })?;
        if events.len() as u64 != EVENTS {
            bail!("the injector told of {} events, not of {EVENTS}", events.len());
        }
        let incident = tracer.map(|tracer| tracer.mark(interrupt)).transpose()?;
        let observed = observed.into_iter().next().context("nothing was observed")?;
        Ok(Round::Events { method, observed, events, pid, incident })
    }

    fn echoes(&self, method: Method, interrupt: &InterruptFlag) -> Result<Round> {
        let cpu = self.cpu()?;
        let (mut terminal, inner) = echo::terminal()?;
        let mut command = self.command("echo", CHARACTERS)?;
        command.stdin(inner.try_clone().context("cannot share the terminal")?).stdout(inner).stderr(Stdio::piped());
        let mut program = ProcessGroup::start("the echo", command, Some(cpu))?;
        let pipe = program.child().stderr.take().context("the echo has no error output")?;
        interrupt.sleep(SETTLE)?;
        let options = self.options(method, ROUND_MAX, &[cpu]);
        let (observed, sent) =
            observe(&options, || elsewhere(cpu, || echo::type_characters(&mut terminal, CHARACTERS, interrupt)))?;
        let text = finish("the echo", &mut program, pipe, END_TIMEOUT, interrupt)?;
        let timed = injector::told(&text).into_iter().zip(sent);
        let events = timed.map(|(event, due_ns)| Injection { due_ns, ..event }).collect();
        let observed = observed.into_iter().next().context("nothing was observed")?;
        Ok(Round::Echoes { method, observed, events })
    }
}

/// Waits for the end of a program, and returns what it told.
fn finish(
    name: &str,
    program: &mut ProcessGroup,
    mut pipe: impl Read + Send + 'static,
    timeout: Duration,
    interrupt: &InterruptFlag,
) -> Result<String> {
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).map(|_| text)
    });
    let deadline = Instant::now() + timeout;
    while program.ended()?.is_none() {
        if Instant::now() >= deadline {
            bail!("{name} did not end within {timeout:?}; is the machine busy?");
        }
        interrupt.check()?;
        program.wait(POLL_INTERVAL)?;
    }
    let text = reader.join().ok().with_context(|| format!("what {name} told was lost"))?;
    text.with_context(|| format!("what {name} told cannot be read"))
}

/// Does something in a thread on other CPUs than the one that is watched, where there are others.
fn elsewhere<T: Send>(cpu: usize, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let other = place::allowed_cpus()?.into_iter().find(|allowed| *allowed != cpu);
    let there = || {
        other.map_or(Ok(()), place::pin)?;
        work()
    };
    let done = std::thread::scope(|scope| scope.spawn(there).join());
    done.ok().context("the work elsewhere was lost")?
}
