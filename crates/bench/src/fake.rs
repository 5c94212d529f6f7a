// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulated machine for tests of benchmarks. It answers as late as the test says, on a clock that
//! advances only while a benchmark waits.

use crate::arms::{Arm, ArmTurn};
use crate::driver::{
    BackgroundJob, BenchDriver, BenchStage, Clock, Habits, Programs, TurnSetup, User,
};
use crate::experiment::MeasuredRepeats;
use crate::interrupt::InterruptFlag;
use crate::load::{Achieved, Speed};
use crate::progress::ProgressListener;
use crate::screen::Place;
use crate::session::SessionOptions;
use crate::typist::nanos;
use crate::worker::WorkerLauncher;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tipme_desktop::DisplayTarget;
use tipme_measure::{Document, MeasuredMachine, SCHEMA};
use tipme_record::Nanos;

/// Characters per word.
const WORD: f64 = 5.0;
/// Duration of a click with its change of focus.
const CLICK: Duration = Duration::from_millis(250);
/// Interval between drawings of a terminal that keeps drawing.
const BETWEEN_DRAWINGS: Duration = Duration::from_millis(50);

/// State of the current turn; empty before the first one.
#[derive(Clone, Copy, Default)]
pub(crate) struct FakeTurn {
    pub arm: Option<Arm>,
    /// Level of the load.
    pub level: u32,
}

/// Latency of a key by its number since the user began; `None` if it is never answered.
type Answers = Box<dyn FnMut(FakeTurn, usize) -> Option<Duration>>;

pub(crate) struct FakeDriver {
    answers: Answers,
    interrupt: InterruptFlag,
    folder: TempDir,
    now: Nanos,
    turn: FakeTurn,
    interval: Duration,
    keys: usize,
    drawn: Vec<Nanos>,
    /// Time at which the terminal's program records that it has read a file.
    taken_at: Option<Nanos>,
    taken_after: Duration,
    drawing_for: Duration,
    page_ins: u64,
    page_ins_each_key: u64,
    interrupt_at: Option<usize>,
    fails: Option<(usize, &'static str)>,
    turns: Vec<(String, Duration)>,
    slept: Vec<Duration>,
}

impl FakeDriver {
    pub(crate) fn answering(
        answers: impl FnMut(FakeTurn, usize) -> Option<Duration> + 'static,
    ) -> FakeDriver {
        FakeDriver {
            answers: Box::new(answers),
            interrupt: InterruptFlag::default(),
            folder: tempfile::tempdir().expect("there is room"),
            now: Nanos::from_secs(1_000),
            turn: FakeTurn::default(),
            interval: Duration::ZERO,
            keys: 0,
            drawn: Vec::new(),
            taken_at: None,
            taken_after: Duration::ZERO,
            drawing_for: Duration::ZERO,
            page_ins: 0,
            page_ins_each_key: 0,
            interrupt_at: None,
            fails: None,
            turns: Vec::new(),
            slept: Vec::new(),
        }
    }

    /// Sets the time from the first drawing of an answer until the program has read all of it.
    pub(crate) fn taken_after(&mut self, time: Duration) -> &mut FakeDriver {
        self.taken_after = time;
        self
    }

    /// Sets the time from the first drawing of an answer to the last one.
    pub(crate) fn drawing_for(&mut self, time: Duration) {
        self.drawing_for = time;
    }

    pub(crate) fn page_ins_each_key(&mut self, page_ins: u64) {
        self.page_ins_each_key = page_ins;
    }

    /// Simulates Ctrl-C before this key.
    pub(crate) fn interrupt_at_key(&mut self, key: usize) {
        self.interrupt_at = Some(key);
    }

    /// Fails the turn of this number, counted from 1, with this reason.
    pub(crate) fn fail_in_turn(&mut self, number: usize, because: &'static str) {
        self.fails = Some((number, because));
    }

    /// Names of the turns so far.
    pub(crate) fn turns(&self) -> Vec<String> {
        self.turns.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Duration of each turn so far.
    pub(crate) fn turn_times(&self) -> Vec<Duration> {
        self.turns.iter().map(|(_, time)| *time).collect()
    }

    /// Returns the number of sleeps of this length.
    pub(crate) fn slept(&self, time: Duration) -> usize {
        self.slept.iter().filter(|slept| **slept == time).count()
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now.after(nanos(time));
        if self.taken_at.is_some_and(|at| at <= self.now) {
            self.taken_at = None;
            std::fs::write(self.folder.path().join("marks"), "g".repeat(self.turns.len()))
                .expect("there is room");
        }
    }

    fn answer(&mut self, latency: Duration) {
        let first = self.now.after(nanos(latency));
        let more = (self.drawing_for.as_nanos() / BETWEEN_DRAWINGS.as_nanos()) as u32;
        self.drawn.extend((0..=more).map(|number| first.after(nanos(BETWEEN_DRAWINGS * number))));
        self.taken_at = Some(first.after(nanos(self.taken_after)));
    }
}

/// Makes a document from a measurement on an unknown machine.
pub(crate) fn document<F>(measured: MeasuredRepeats<F>) -> Document<F> {
    Document {
        schema: SCHEMA,
        kind: "test".to_owned(),
        version: String::new(),
        machine: MeasuredMachine::default(),
        runs: measured.runs,
        details: measured.figures,
    }
}

impl ProgressListener for FakeDriver {
    fn line(&mut self, _: &str) {}
}

impl BenchDriver for FakeDriver {
    fn programs(&self) -> Programs {
        Programs { tipme: "tipme".into(), launcher: WorkerLauncher(Vec::new()) }
    }

    fn interrupt(&self) -> InterruptFlag {
        self.interrupt.clone()
    }

    fn stage(
        &mut self,
        _: &Place,
        _: SessionOptions,
        _: &[&str],
    ) -> Result<Box<dyn BenchStage + '_>> {
        Ok(Box::new(self))
    }
}

impl ProgressListener for &mut FakeDriver {
    fn line(&mut self, _: &str) {}
}

impl Clock for &mut FakeDriver {
    fn now(&self) -> Nanos {
        self.now
    }

    fn sleep(&mut self, time: Duration) -> Result<()> {
        self.slept.push(time);
        self.wait(time);
        self.interrupt.check()
    }
}

impl BenchStage for &mut FakeDriver {
    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn target(&self) -> Result<DisplayTarget> {
        Ok(DisplayTarget::new(0))
    }

    fn record_focus(&mut self) -> Result<()> {
        Ok(())
    }

    fn speed(&self) -> Speed {
        Speed::NONE
    }

    fn open_terminal(&mut self, _: &[OsString]) -> Result<()> {
        Ok(())
    }

    fn open_program(&mut self, _: &str, _: Command) -> Result<()> {
        Ok(())
    }

    fn open_window(&mut self, _: &'static str, _: Command) -> Result<()> {
        Ok(())
    }

    fn prepare_build(&mut self) -> Result<String> {
        Ok("nothing is built".to_owned())
    }

    fn user(&mut self, habits: Habits) -> Result<Box<dyn User + '_>> {
        (self.keys, self.interval) =
            (0, Duration::from_secs_f64(60.0 / (habits.pace.words_per_minute * WORD)));
        self.drawn.clear();
        self.wait(habits.quiet);
        Ok(Box::new(&mut **self))
    }

    fn turn(
        &mut self,
        setup: &TurnSetup<'_>,
        measure: &mut dyn FnMut(&mut dyn BenchStage) -> Result<()>,
    ) -> Result<Option<Achieved>> {
        let level = match &setup.job {
            None => 0,
            Some(BackgroundJob::Load(load)) => load.level,
            Some(BackgroundJob::Build { .. }) => 1,
        };
        let (arm, begun) = (setup.arm, self.now);
        self.turn = FakeTurn { arm: Some(arm), level };
        self.turns.push((ArmTurn { level, arm }.name(), Duration::ZERO));
        measure(self)?;
        let time = Duration::from_nanos(self.now.since(begun).0);
        self.turns.last_mut().context("it has just begun")?.1 = time;
        match self.fails.filter(|(number, _)| *number == self.turns.len()) {
            Some((_, because)) => bail!(because),
            None => Ok((level > 0)
                .then(|| Achieved { runnable_mean: f64::from(level), ..Achieved::default() })),
        }
    }
}

impl User for &mut FakeDriver {
    fn key(&mut self, _: char) -> Result<Nanos> {
        if self.interrupt_at == Some(self.keys) {
            self.interrupt.set();
        }
        self.interrupt.check()?;
        self.wait(self.interval);
        self.page_ins += self.page_ins_each_key;
        let (turn, key) = (self.turn, self.keys);
        self.keys += 1;
        if let Some(latency) = (self.answers)(turn, key) {
            self.answer(latency);
        }
        Ok(self.now)
    }

    fn focus(&mut self, _: &'static str, _: (i16, i16)) -> Result<()> {
        self.wait(CLICK);
        Ok(())
    }

    fn last_drawing(&self) -> Nanos {
        self.drawn.iter().copied().filter(|at| *at <= self.now).max().unwrap_or_default()
    }

    fn page_ins(&self) -> u64 {
        self.page_ins
    }

    /// A tenth of the elapsed time.
    fn run_queue_delay(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.now.0 / 10))
    }

    fn drawings(self: Box<Self>) -> Result<Vec<Nanos>> {
        let mut drawn: Vec<Nanos> =
            self.drawn.iter().copied().filter(|at| *at <= self.now).collect();
        drawn.sort_unstable();
        Ok(drawn)
    }
}
