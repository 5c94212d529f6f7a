// SPDX-License-Identifier: MIT OR Apache-2.0
//! Synthetic load: processes that compete for CPU time and touch pages of memory meanwhile.
//!
//! A process of a load works in rounds of a fixed amount: about a millisecond of CPU time, in which
//! it touches as many different pages as its *page demand*. The *page reuse* is the share of these
//! that the previous round had touched too; the others are the next pages of its buffer, which
//! wraps around at its end. Evans et al. (1993, section 5.1) classify background loads by these two
//! figures, and their four types have names here. The completed rounds are the work of a load, so
//! that "throughput lost" is a number.
//!
//! The processes are in sessions of their own, like the jobs of terminals, since the kernel may
//! divide CPU time by session. Each ends with its parent, after a time, and after a maximum of CPU
//! time. Together they use no more memory than requested, and the kernel kills them first when
//! memory runs out.

mod achieved;
mod kind;
mod ledger;
mod options;
mod programs;
mod rounds_sampler;
mod table;
mod work;

pub use achieved::Achieved;
pub(crate) use kind::{DEMAND_MAX, LEVEL_MAX};
pub use kind::{LoadKind, PageOptions, Pages};
pub use ledger::LedgerReading;
pub use options::{LoadArguments, LoadOutcome};
pub(crate) use programs::run;
pub use rounds_sampler::{RoundsSampler, WINDOW};
pub use table::text;

use crate::interrupt::InterruptFlag;
use crate::kernel_text::memory_field;
use crate::process::{ProcessGroup, family};
use crate::units::in_unit;
use crate::worker::{self, WorkerLauncher};
use anyhow::{Context, Result, anyhow, ensure};
use ledger::LoadLedger;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use std::io::{PipeReader, PipeWriter};
use std::path::{Path, PathBuf};
use std::time::Duration;
pub use work::Speed;

/// Default memory: this share of the available memory, as a divisor, and at most so many bytes.
const MEMORY_SHARE: u64 = 4;
const MEMORY_DEFAULT_MAX: u64 = 1 << 30;
/// Maximum memory of one process.
const MEMORY_EACH_MAX: u64 = 1 << 30;
/// Largest memory that can be requested, as a share of what is available, swap included: numerator
/// and divisor.
const MEMORY_MOST: Share = (3, 4);
/// Repeats the check when a load that was accepted starts: other memory use may have grown.
const MEMORY_MOST_AT_START: Share = (7, 8);
/// Part of a whole: numerator and divisor.
type Share = (u64, u64);
/// Lifetime of a process beyond the time to fill its memory and the requested time, if nothing ends
/// it.
const SPARE: Duration = Duration::from_secs(60);
/// Maximum time for the processes to fill their memory.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum wait for the end of the processes.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between checks while waiting for the load to run.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Options of a load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    pub kind: LoadKind,
    /// Number of processes that are runnable at any time: the load average to reach.
    pub level: u32,
    pub pages: Pages,
    /// Total memory of all processes, in bytes; see [`default_memory`].
    pub memory: u64,
    /// Maximum number of sessions over which the processes are spread; 0 leaves them in the
    /// caller's session.
    pub sessions: u32,
    /// Puts each session into a systemd unit of its own.
    pub units: bool,
    /// Nice value of the processes; with 0 they keep the caller's.
    pub nice: i32,
    /// Uses the idle I/O class.
    pub idle_io: bool,
    /// `cgroup.procs` of the control group that the processes enter.
    pub procs_file: Option<PathBuf>,
    /// Maximum run time.
    pub time: Duration,
    /// Folder in which `stream` writes files instead of memory.
    pub folder: Option<PathBuf>,
    /// Speed of this CPU, so that rounds are the same for all compared loads.
    pub speed: Speed,
    pub launcher: WorkerLauncher,
}

/// Order for the first process, passed as one word.
#[derive(Serialize, Deserialize)]
struct LoadOrder {
    kind: LoadKind,
    /// Accounts of its processes, one each.
    accounts: Vec<u32>,
    pages: Pages,
    /// Memory of each process.
    bytes: u64,
    sessions: u32,
    nice: i32,
    idle_io: bool,
    procs_file: Option<PathBuf>,
    life_s: u64,
    /// Arithmetic of one round.
    spin: u64,
    folder: Option<PathBuf>,
    ledger: PathBuf,
}

impl LoadOptions {
    /// Returns the usual load of a kind, in one session of its own.
    pub fn usual(
        kind: LoadKind,
        level: u32,
        time: Duration,
        speed: Speed,
        launcher: &WorkerLauncher,
    ) -> LoadOptions {
        LoadOptions {
            kind,
            level,
            pages: kind.pages(),
            memory: default_memory(),
            sessions: 1,
            units: false,
            nice: 0,
            idle_io: false,
            procs_file: None,
            time,
            folder: None,
            speed,
            launcher: launcher.clone(),
        }
    }

    /// Fails with the accepted range if an option is out of range.
    pub fn check(&self) -> Result<()> {
        self.check_within(MEMORY_MOST)
    }

    fn check_within(&self, share: Share) -> Result<()> {
        ensure!((1..=LEVEL_MAX).contains(&self.level), "choose a level from 1 to {LEVEL_MAX}");
        let demand = self.pages.demand;
        ensure!(
            (1..=DEMAND_MAX).contains(&demand),
            "choose a page demand from 1 to {DEMAND_MAX} pages per ms"
        );
        ensure!((0.0..=1.0).contains(&self.pages.reuse), "choose a page reuse from 0 to 1");
        self.check_folder()?;
        if self.kind.is_large() {
            self.check_memory(share)?;
        }
        self.check_pages()
    }

    /// Checks the folder once, before each process would fail on it.
    fn check_folder(&self) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        ensure!(self.kind == LoadKind::Stream, "only the load \"stream\" writes files");
        if let Err(error) = tempfile::tempfile_in(folder) {
            let folder = folder.display();
            let remedy = match error.kind() {
                std::io::ErrorKind::NotFound => format!("make it: mkdir -p {folder}"),
                _ => "name one with --folder that can be written to".to_owned(),
            };
            return Err(error).with_context(|| format!("cannot make a file in {folder}; {remedy}"));
        }
        Ok(())
    }

    fn check_memory(&self, share: Share) -> Result<()> {
        let (most, each) = (memory_most_here(share), self.bytes_each());
        ensure!(
            self.memory <= most,
            "{} MiB of memory are more than the {} MiB that a load may have here; choose less with --memory",
            self.memory >> 20,
            most >> 20
        );
        ensure!(
            each <= MEMORY_EACH_MAX,
            "{} MiB of memory are {} MiB for each of {} processes, which may have {} MiB; choose less with --memory, \
             or more processes",
            self.memory >> 20,
            each >> 20,
            self.level,
            MEMORY_EACH_MAX >> 20
        );
        Ok(())
    }

    /// Checks that two consecutive rounds have room: pages that are not reused must differ from
    /// those of the round before.
    fn check_pages(&self) -> Result<()> {
        let demand = f64::from(self.pages.demand);
        let (needed, there) =
            ((demand * (2.0 - self.pages.reuse)).ceil() as u64, work::pages(self.bytes_each()));
        let remedy = if self.kind.is_large() { " or more memory with --memory" } else { "" };
        ensure!(
            needed <= there,
            "a page demand of {demand} with a reuse of {} takes {needed} pages, and a process of this load has {there}; \
             choose less with --demand{remedy}",
            self.pages.reuse
        );
        Ok(())
    }

    /// Memory of each process, in bytes.
    pub(crate) fn bytes_each(&self) -> u64 {
        if self.kind.is_large() {
            self.memory / u64::from(self.level.max(1))
        } else {
            work::SMALL_BYTES
        }
    }

    /// Describes the sessions of the processes.
    pub fn place(&self) -> String {
        match self.sessions.min(self.level) {
            0 => "in the session that they were started from".to_owned(),
            1 => "in one session of their own".to_owned(),
            many => format!("spread over {many} sessions of their own"),
        }
    }

    /// Returns the order of each first process: one for all sessions, or one per session with
    /// units.
    fn orders(&self, ledger: &Path) -> impl Iterator<Item = LoadOrder> {
        let parts = if self.units { self.sessions.clamp(1, self.level) } else { 1 };
        (0..parts).map(move |part| {
            self.order((part..self.level).step_by(parts as usize).collect(), parts, ledger)
        })
    }

    fn order(&self, accounts: Vec<u32>, parts: u32, ledger: &Path) -> LoadOrder {
        LoadOrder {
            kind: self.kind,
            accounts,
            pages: self.pages,
            bytes: self.bytes_each(),
            sessions: self.sessions.div_ceil(parts),
            nice: self.nice,
            idle_io: self.idle_io,
            procs_file: self.procs_file.clone(),
            life_s: (TIMEOUT + self.time + SPARE).as_secs(),
            spin: self.speed.spin(self.kind, self.pages),
            folder: self.folder.clone(),
            ledger: ledger.to_owned(),
        }
    }
}

/// A quarter of the available memory, at most a gibibyte.
pub(crate) fn default_memory() -> u64 {
    (memory_field("MemAvailable") / MEMORY_SHARE).min(MEMORY_DEFAULT_MAX)
}

/// Returns the largest memory that can be requested, given the available memory and free swap.
pub(crate) fn memory_most(available: u64, swap_free: u64) -> u64 {
    part(available + swap_free, MEMORY_MOST)
}

fn memory_most_here(share: Share) -> u64 {
    part(memory_field("MemAvailable") + memory_field("SwapFree"), share)
}

fn part(whole: u64, (numerator, divisor): Share) -> u64 {
    whole / divisor * numerator
}

/// A load or another job that runs beside a measurement. Dropping it ends it.
pub(crate) trait RunningJob {
    /// Reads the work done so far.
    fn reading(&self) -> LedgerReading;

    /// Returns its known processes.
    fn pids(&self) -> Vec<u32>;

    /// Starts sampling the progress of each process; `None` if the processes have no counts.
    fn sample_rounds(&self) -> Result<Option<RoundsSampler>>;

    /// Fails if the job or one of its processes has ended by itself, since that makes the
    /// measurement invalid.
    fn expect_whole(&mut self) -> Result<()>;
}

/// A running load. Dropping it ends its processes and waits until they are gone.
pub struct RunningLoad {
    /// Processes that started the others.
    first: Vec<ProcessGroup>,
    ledger: LoadLedger,
    level: u32,
    /// Closed once the last process has ended: each holds the other end.
    gone: PipeReader,
}

impl RunningLoad {
    /// Starts the processes, and waits until each has its memory and works.
    pub fn start(options: &LoadOptions) -> Result<RunningLoad> {
        options.check_within(MEMORY_MOST_AT_START)?;
        let ledger = LoadLedger::make(options.level as usize)?;
        let (gone, held) = std::io::pipe().context("cannot make a pipe")?;
        // If the start fails, dropping this also waits for the end of all processes.
        let mut load = RunningLoad { first: Vec::new(), ledger, level: options.level, gone };
        load.begin(options, held)?;
        Ok(load)
    }

    fn begin(&mut self, options: &LoadOptions, held: PipeWriter) -> Result<()> {
        for order in options.orders(&self.ledger.path()) {
            let order = serde_json::to_string(&order).context("a path is not UTF-8 text")?;
            let command = options.launcher.command(None, &["load".into(), order.into()])?;
            let mut command = if options.units { in_unit(&command) } else { command };
            command.stdin(held.try_clone().context("cannot share a pipe")?);
            self.first.push(
                worker::start_saying(worker::READY, "the load", command, None, TIMEOUT)?.process,
            );
        }
        Ok(())
    }

    /// Fails if the load has ended by itself.
    pub fn expect_alive(&mut self) -> Result<()> {
        let casualties = self.reading().casualties;
        let alive = self.first.iter_mut().try_for_each(ProcessGroup::expect_alive);
        alive.map_err(|error| match casualties {
            0 => error.context("the process that started the load exited, and the load with it"),
            _ => anyhow!("{}", lost(casualties, self.level)),
        })
    }

    /// Runs the load for the given time.
    pub fn run(&mut self, time: Duration, interrupt: &InterruptFlag) -> Result<()> {
        let begun = std::time::Instant::now();
        while begun.elapsed() < time {
            self.expect_alive()?;
            interrupt.sleep(POLL_INTERVAL.min(time.saturating_sub(begun.elapsed())))?;
        }
        Ok(())
    }
}

impl RunningJob for RunningLoad {
    fn reading(&self) -> LedgerReading {
        self.ledger.reading()
    }

    fn pids(&self) -> Vec<u32> {
        self.first.iter().flat_map(|process| family(process.pid())).collect()
    }

    fn sample_rounds(&self) -> Result<Option<RoundsSampler>> {
        Ok(Some(RoundsSampler::begin(LoadLedger::open(&self.ledger.path())?)))
    }

    fn expect_whole(&mut self) -> Result<()> {
        self.expect_alive()?;
        let casualties = self.reading().casualties;
        ensure!(casualties == 0, "{}", lost(casualties, self.level));
        Ok(())
    }
}

fn lost(casualties: u64, level: u32) -> String {
    format!(
        "{casualties} processes of the load ended early ({level} run at a time); see their messages above. If memory ran out \
         (see dmesg), choose less of it, or fewer processes"
    )
}

impl Drop for RunningLoad {
    fn drop(&mut self) {
        self.first.clear();
        let timeout = Timespec { tv_sec: END_TIMEOUT.as_secs() as i64, tv_nsec: 0 };
        // Nothing is written: the poll reports that the last writer is gone.
        let _ = poll(&mut [PollFd::new(&self.gone, PollFlags::empty())], Some(&timeout));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(kind: LoadKind, level: u32) -> LoadOptions {
        LoadOptions::usual(
            kind,
            level,
            Duration::from_secs(1),
            Speed::NONE,
            &WorkerLauncher(Vec::new()),
        )
    }

    #[test]
    fn what_cannot_run_is_refused() {
        assert!(
            options(LoadKind::Cpu, 0).check().is_err()
                && options(LoadKind::Cpu, LEVEL_MAX + 1).check().is_err()
        );
        let greedy = LoadOptions { memory: u64::MAX, ..options(LoadKind::Big, 2) };
        assert!(
            greedy.check().expect_err("too much").to_string().contains("choose less with --memory")
        );
        let odd = LoadOptions {
            pages: Pages { demand: 1, reuse: f64::NAN },
            ..options(LoadKind::Cpu, 1)
        };
        assert!(odd.check().is_err());
        let filed = LoadOptions { folder: Some("/tmp".into()), ..options(LoadKind::Cpu, 1) };
        assert!(filed.check().is_err());
        let nowhere =
            LoadOptions { folder: Some("/nonexistent/x".into()), ..options(LoadKind::Stream, 4) };
        assert!(
            format!("{:#}", nowhere.check().expect_err("no folder"))
                .contains("mkdir -p /nonexistent/x")
        );
        assert!(options(LoadKind::Cpu, 20).check().is_ok());
    }

    #[test]
    fn what_the_memory_does_not_hold_is_refused() {
        let small =
            LoadOptions { pages: Pages { demand: 150, reuse: 0.0 }, ..options(LoadKind::Cpu, 1) };
        let why = small.check().expect_err("256 pages").to_string();
        assert!(why.contains("takes 300 pages, and a process of this load has 256"), "{why}");
        assert!(
            LoadOptions { pages: Pages { demand: 150, reuse: 0.5 }, ..options(LoadKind::Cpu, 1) }
                .check()
                .is_ok()
        );
        let large = LoadOptions { memory: 1 << 20, ..options(LoadKind::Big, 4) };
        assert!(
            large
                .check()
                .expect_err("64 pages each")
                .to_string()
                .contains("or more memory with --memory")
        );
        let wide = LoadOptions { memory: 3 << 30, ..options(LoadKind::Big, 2) };
        assert!(wide.check().is_err(), "1.5 GiB for each process");
    }

    #[test]
    fn memory_is_shared_out() {
        let big = LoadOptions { memory: 100 << 20, ..options(LoadKind::Big, 20) };
        assert_eq!(big.bytes_each(), 5 << 20);
        assert_eq!(options(LoadKind::Cpu, 20).bytes_each(), work::SMALL_BYTES);
        assert!(default_memory() <= memory_most_here(MEMORY_MOST));
    }

    #[test]
    fn what_was_fine_before_may_start_where_a_little_less_is_there() {
        assert_eq!((part(1_600, MEMORY_MOST), part(1_600, MEMORY_MOST_AT_START)), (1_200, 1_400));
        let most = memory_most_here(MEMORY_MOST);
        let edge = LoadOptions { memory: most + most / 20, ..options(LoadKind::Big, 64) };
        assert!(edge.check().is_err() && edge.check_memory(MEMORY_MOST_AT_START).is_ok());
    }

    #[test]
    fn the_place_of_the_processes_is_described() {
        let places =
            [0, 1, 9].map(|sessions| LoadOptions { sessions, ..options(LoadKind::Cpu, 3) }.place());
        assert_eq!(
            places,
            [
                "in the session that they were started from",
                "in one session of their own",
                "spread over 3 sessions of their own",
            ]
        );
    }

    /// Returns accounts and sessions of each first process.
    fn orders(sessions: u32, units: bool) -> Vec<(Vec<u32>, u32)> {
        let options = LoadOptions { sessions, units, ..options(LoadKind::Cpu, 3) };
        let orders = options.orders(Path::new("/ledger"));
        orders.map(|order| (order.accounts, order.sessions)).collect()
    }

    #[test]
    fn each_session_in_a_unit_has_its_own_first_process() {
        assert_eq!(orders(2, false), [(vec![0, 1, 2], 2)]);
        assert_eq!(orders(2, true), [(vec![0, 2], 1), (vec![1], 1)]);
        assert_eq!(orders(9, true), [(vec![0], 3), (vec![1], 3), (vec![2], 3)]);
        assert_eq!(orders(1, true), [(vec![0, 1, 2], 1)]);
        assert_eq!(orders(0, true), [(vec![0, 1, 2], 0)]);
    }
}
