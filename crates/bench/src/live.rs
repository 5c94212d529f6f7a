// SPDX-License-Identifier: MIT OR Apache-2.0
//! Driver for benchmarks on the real machine.

mod limit;
mod weights;

use crate::alone::MachineLock;
use crate::arms::{Arm, BenchManager, ManagerProgram, SETTLING};
use crate::compositor::unobservable;
use crate::display::PrivateDisplay;
use crate::driver::{
    BackgroundJob, BenchDriver, BenchStage, Clock, Habits, Programs, TurnSetup, User,
    WINDOW_TIMEOUT, Watch,
};
use crate::interrupt::InterruptFlag;
use crate::load::{Achieved, LoadOptions, RoundsSampler, RunningJob, RunningLoad, Speed};
use crate::locked_memory::LockedMemory;
use crate::priority::Priority;
use crate::process::{
    ProcessGroup, cpu_times, family, is_group_member, major_faults, run_queue_delay,
};
use crate::programs::{SidecarRecorder, recorder_of};
use crate::progress::ProgressListener;
use crate::screen::Place;
use crate::seen::DrawingWatch;
use crate::session::{self, SessionOptions};
use crate::system::{Build, Tree};
use crate::units::check_units;
use anyhow::{Context, Result};
use limit::LoadLimit;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tipme_desktop::inject::{Pace, Typist};
use tipme_desktop::window::{DamageWatch, Watcher};
use tipme_desktop::{DisplayTarget, clock};
use tipme_record::Nanos;
use weights::Weights;

/// Drives this machine.
pub struct LiveDriver<P> {
    pub programs: Programs,
    pub interrupt: InterruptFlag,
    pub progress: P,
}

impl<P: ProgressListener> ProgressListener for LiveDriver<P> {
    fn line(&mut self, text: &str) {
        self.progress.line(text);
    }
}

impl<P: ProgressListener> BenchDriver for LiveDriver<P> {
    fn programs(&self) -> Programs {
        self.programs.clone()
    }

    fn interrupt(&self) -> InterruptFlag {
        self.interrupt.clone()
    }

    /// Measures the speed of this CPU while no other measurement runs.
    fn stage(
        &mut self,
        place: &Place,
        options: SessionOptions,
        needed: &[&str],
    ) -> Result<Box<dyn BenchStage + '_>> {
        session::require(needed)?;
        if options.units {
            check_units()?;
        }
        let alone = MachineLock::wait_in_turn(&self.interrupt, &mut self.progress)?;
        let speed = Speed::try_out()?;
        drop(alone);
        let display = PrivateDisplay::open(place, options)?;
        let typist = display.screen().typist(Pace::default())?;
        Ok(Box::new(LiveStage {
            programs: &self.programs,
            interrupt: &self.interrupt,
            progress: &mut self.progress,
            speed,
            display,
            typist,
            recorder: None,
            watched: Vec::new(),
            windows: None,
            build: None,
        }))
    }
}

/// A private display on this machine. Fields are dropped in order: the programs, then the display.
struct LiveStage<'a> {
    windows: Option<Windows>,
    /// Files of a build.
    build: Option<Tree>,
    programs: &'a Programs,
    interrupt: &'a InterruptFlag,
    progress: &'a mut dyn ProgressListener,
    speed: Speed,
    display: PrivateDisplay,
    /// Shared by all turns: a compositor drops the focus when its last keyboard is unplugged.
    typist: Typist,
    /// Reports the focus on a compositor to the manager.
    recorder: Option<SidecarRecorder>,
    /// Processes of display server, terminal and its program.
    watched: Vec<u32>,
}

/// Further programs with windows, and the watcher of the focus.
struct Windows {
    watcher: Watcher,
    open: Vec<(&'static str, ProcessGroup)>,
}

impl Windows {
    fn wait_for_focus(&self, name: &'static str) -> Result<()> {
        let found = self.open.iter().find(|(window, _)| *window == name);
        let group = found.with_context(|| format!("{name} is not open"))?.1.pid();
        let focused =
            self.watcher.wait_for_focus_of(|pid| is_group_member(pid, group), WINDOW_TIMEOUT);
        focused.with_context(|| format!("the window of {name} does not get the focus"))?;
        Ok(())
    }
}

impl ProgressListener for LiveStage<'_> {
    fn line(&mut self, text: &str) {
        self.progress.line(text);
    }
}

impl Clock for LiveStage<'_> {
    fn now(&self) -> Nanos {
        clock::now()
    }

    fn sleep(&mut self, time: Duration) -> Result<()> {
        self.interrupt.sleep(time)
    }
}

impl BenchStage for LiveStage<'_> {
    fn folder(&self) -> &Path {
        self.display.screen().folder()
    }

    fn target(&self) -> Result<DisplayTarget> {
        Ok(self.display.session()?.target())
    }

    fn speed(&self) -> Speed {
        self.speed
    }

    fn open_terminal(&mut self, program: &[OsString]) -> Result<()> {
        self.display.screen_mut().open_terminal(&mut self.typist, &[], program)?;
        self.watch()
    }

    fn open_program(&mut self, name: &str, mut command: Command) -> Result<()> {
        self.display.session()?.prepare(&mut command);
        command.stderr(Stdio::inherit());
        self.display.session_mut()?.open_program(name, command)?;
        self.watch()
    }

    fn open_window(&mut self, name: &'static str, mut command: Command) -> Result<()> {
        self.interrupt.check()?;
        let session = self.display.session()?;
        if self.windows.is_none() {
            self.windows =
                Some(Windows { watcher: Watcher::open(&session.target())?, open: Vec::new() });
        }
        let windows = self.windows.as_mut().context("windows are not watched")?;
        session.prepare(&mut command);
        windows.open.push((name, ProcessGroup::start(name, command, None)?));
        windows.wait_for_focus(name)
    }

    fn prepare_build(&mut self) -> Result<String> {
        let tree = Tree::make(&self.programs.launcher)?;
        let work = tree.work().name();
        self.build = Some(tree);
        Ok(work)
    }

    fn record_focus(&mut self) -> Result<()> {
        if matches!(self.display, PrivateDisplay::Wayland(_)) {
            let command = recorder_of(&self.programs.tipme, self.display.screen());
            self.recorder = Some(SidecarRecorder::start(command, self.interrupt)?);
        }
        Ok(())
    }

    fn user(&mut self, habits: Habits) -> Result<Box<dyn User + '_>> {
        let _priority = Priority::realtime();
        let seen = match habits.watch {
            Watch::Terminal => {
                let screen = self.display.screen();
                DrawingWatch::watch(
                    screen.watch()?.with_context(|| unobservable(&screen.name()))?,
                    habits.quiet,
                )?
            }
            Watch::Screen => {
                let target = self.display.session()?.target();
                DrawingWatch::watch(Box::new(DamageWatch::open_screen(&target)?), habits.quiet)?
            }
        };
        self.typist.set_pace(habits.pace);
        let (interrupt, watched, windows) =
            (self.interrupt, &self.watched[..], self.windows.as_ref());
        let (progress, typist) = (&mut *self.progress, &mut self.typist);
        Ok(Box::new(LiveUser { interrupt, watched, windows, progress, typist, seen, _priority }))
    }

    /// Holds the lock, so that no other measurement runs meanwhile.
    fn turn(
        &mut self,
        setup: &TurnSetup<'_>,
        measure: &mut dyn FnMut(&mut dyn BenchStage) -> Result<()>,
    ) -> Result<Option<Achieved>> {
        let _alone = MachineLock::wait_in_turn(self.interrupt, self.progress)?;
        self.interrupt.check()?;
        let managed = setup.arm == Arm::Managed;
        let recorder = self.recorder.as_ref().map(|recorder| recorder.folder().to_owned());
        let program = ManagerProgram { recorder, ..setup.manager.clone() };
        let manager = managed
            .then(|| BenchManager::start(&program, self.display.screen(), self.interrupt))
            .transpose()?;
        let limit = (setup.arm == Arm::Limit)
            .then(|| LoadLimit::make(&self.programs.launcher))
            .transpose()?;
        let mut background =
            setup.job.as_ref().map(|job| self.start(job, limit.as_ref())).transpose()?;
        let weights = match setup.arm {
            Arm::Weight => Some(Weights::set(
                self.display.screen(),
                background.as_deref(),
                &self.programs.launcher,
            )?),
            _ => None,
        };
        self.interrupt.sleep(SETTLING)?;
        let pid = manager.as_ref().map(BenchManager::pid);
        let load = observed(background.as_deref_mut(), pid, || measure(self))?;
        drop(background);
        drop((weights, limit));
        manager.map_or(Ok(()), BenchManager::stop)?;
        Ok(load)
    }
}

impl LiveStage<'_> {
    fn start(&self, job: &BackgroundJob, limit: Option<&LoadLimit>) -> Result<Box<dyn RunningJob>> {
        match job {
            BackgroundJob::Load(options) => {
                let options =
                    LoadOptions { procs_file: limit.map(LoadLimit::procs_file), ..options.clone() };
                Ok(Box::new(RunningLoad::start(&options)?))
            }
            BackgroundJob::Build { own_session } => {
                let tree = self.build.as_ref().context("there is nothing to build")?;
                let launcher = &self.programs.launcher;
                Ok(Box::new(Build::start(tree, *own_session, launcher)?))
            }
        }
    }

    fn watch(&mut self) -> Result<()> {
        let screen = self.display.screen();
        let server = screen.server_pid()?;
        let terminal = screen.terminal_pid().context("no terminal is open")?;
        self.watched = family(terminal).into_iter().chain([server]).collect();
        Ok(())
    }
}

/// Measures, and returns the work of the background job; fails if the job ended early.
fn observed(
    background: Option<&mut (dyn RunningJob + '_)>,
    manager: Option<u32>,
    measure: impl FnOnce() -> Result<()>,
) -> Result<Option<Achieved>> {
    let _locked = LockedMemory::new();
    let Some(background) = background else { return measure().map(|()| None) };
    let sampler = background.sample_rounds()?;
    let (before, manager_before) = (background.reading(), manager.and_then(cpu_times));
    measure()?;
    let achieved = Achieved::between(before, background.reading());
    let manager_cpu_s = manager_before
        .zip(manager.and_then(cpu_times))
        .map(|((before, _), (after, _))| after.saturating_sub(before).as_secs_f64());
    let window_rounds_min = sampler.map_or(Ok(None), RoundsSampler::finish)?;
    background.expect_whole().context("the measurement is invalid")?;
    Ok(Some(Achieved { window_rounds_min, manager_cpu_s, ..achieved }))
}

/// Presses keys through the display's input, and notes its drawings; both run at a raised priority.
struct LiveUser<'a> {
    interrupt: &'a InterruptFlag,
    watched: &'a [u32],
    windows: Option<&'a Windows>,
    progress: &'a mut dyn ProgressListener,
    typist: &'a mut Typist,
    seen: DrawingWatch,
    _priority: Priority,
}

impl ProgressListener for LiveUser<'_> {
    fn line(&mut self, text: &str) {
        self.progress.line(text);
    }
}

impl Clock for LiveUser<'_> {
    fn now(&self) -> Nanos {
        clock::now()
    }

    fn sleep(&mut self, time: Duration) -> Result<()> {
        self.interrupt.sleep(time)
    }
}

impl User for LiveUser<'_> {
    fn key(&mut self, letter: char) -> Result<Nanos> {
        self.interrupt.check()?;
        Ok(self.typist.key(letter)?)
    }

    fn focus(&mut self, window: &'static str, (x, y): (i16, i16)) -> Result<()> {
        self.interrupt.check()?;
        self.typist.click_at(x, y, 1)?;
        self.windows.context("no window is open")?.wait_for_focus(window)
    }

    fn last_drawing(&self) -> Nanos {
        self.seen.last()
    }

    fn page_ins(&self) -> u64 {
        major_faults(self.watched)
    }

    fn run_queue_delay(&self) -> Option<Duration> {
        run_queue_delay(self.watched)
    }

    fn drawings(self: Box<Self>) -> Result<Vec<Nanos>> {
        self.seen.finish()
    }
}
