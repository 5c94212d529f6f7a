// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread that follows the display. A display grabbed by a client, or with a stopped server, does
//! not answer, and neither signals nor requests to the manager may wait for it.

use crate::display::{AttendedDisplay, DisplayAddress};
use crate::own_cpu::thread_time;
use crate::schedule::{RECENT, SLACK};
use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tipme_control::journal;
use tipme_desktop::attention::{AttentionChange, Core, Dropped};
use tipme_desktop::{DisplayError, clock};
use tipme_policy::Identity;
use tipme_record::Nanos;
use tipme_sched::processes;

/// Time between two polls of state for which the display sends no events, and between two attempts
/// to reach it.
const LOOK: Nanos = Nanos::from_millis(1_000);
/// The same while the user is active: input is noticed before it is forgotten, see [`RECENT`].
const LOOK_AT_WORK: Nanos = Nanos::from_millis(2_000);
/// Maximum number of queued reports. Later changes wait at the display, which reports only the last
/// state of a window.
const REPORTS_MAX: usize = 1;

/// Changes since the previous report.
pub(crate) struct DisplayReport {
    /// Time at which the display reported them.
    pub(crate) at: Nanos,
    pub(crate) changes: Vec<AttentionChange>,
}

/// State of the display apart from its changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DisplayFacts {
    pub(crate) core: Core,
    /// Counts of state dropped at the bounds.
    pub(crate) dropped: Dropped,
    /// Time of the last user input; `None` if no source reports it.
    pub(crate) input: Option<Nanos>,
    /// Time since which the display has not answered.
    pub(crate) silent: Option<Nanos>,
    /// CPU time of the thread that follows the display.
    pub(crate) own_cpu: Nanos,
}

/// A display followed by a thread for the lifetime of this value.
pub(crate) struct FollowedDisplay {
    /// The last item is the reason why the display is gone.
    reports: Receiver<Result<DisplayReport, String>>,
    facts: Arc<Mutex<DisplayFacts>>,
    /// Readable when there are reports, or when the thread has ended.
    news: OwnedFd,
    /// Closing it ends the thread.
    _held: OwnedFd,
}

impl FollowedDisplay {
    /// Starts to follow a display that has already reported `first`.
    ///
    /// # Errors
    /// Fails if the kernel has no thread or descriptor left.
    pub(crate) fn start(
        display: AttendedDisplay,
        first: &[AttentionChange],
        address: &DisplayAddress,
        proc: &Path,
    ) -> Result<FollowedDisplay> {
        let ((news, wake), (released, held)) = (pipe()?, pipe()?);
        let (sender, reports) = sync_channel(REPORTS_MAX);
        let (core, dropped) = (display.core(), display.dropped());
        let facts = DisplayFacts { core, dropped, input: None, silent: None, own_cpu: Nanos(0) };
        let facts = Arc::new(Mutex::new(facts));
        let mut follower = DisplayFollower {
            server: server_of(&display, proc),
            display,
            address: address.clone(),
            proc: proc.to_owned(),
            windows: BTreeSet::new(),
            next_look: clock::now(),
            reports: sender,
            facts: Arc::clone(&facts),
            wake,
            released,
        };
        follower.note_windows(first);
        let thread = std::thread::Builder::new().name("display".to_owned());
        thread
            .spawn(move || follower.run())
            .context("cannot start the thread that follows the display")?;
        Ok(FollowedDisplay { reports, facts, news, _held: held })
    }

    /// Descriptor that becomes readable when there may be reports.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }

    /// Returns the reports since the last call, in order.
    ///
    /// # Errors
    /// Returns the reason why the display is gone.
    pub(crate) fn reports(&self) -> Result<Vec<DisplayReport>, String> {
        // Drain first, so that a later report wakes the next call.
        rustix::io::read(&self.news, &mut [0; 64]).ok();
        let mut all = Vec::new();
        loop {
            match self.reports.try_recv() {
                Ok(report) => all.push(report?),
                Err(TryRecvError::Empty) => return Ok(all),
                Err(TryRecvError::Disconnected) => {
                    return Err("the thread that follows the display has ended".to_owned());
                }
            }
        }
    }

    pub(crate) fn facts(&self) -> DisplayFacts {
        *lock(&self.facts)
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).context("cannot follow the display")
}

fn server_of(display: &AttendedDisplay, proc: &Path) -> Option<Identity> {
    processes::identity(proc, display.core().server_pid)
}

/// Never held during a query or a send.
fn lock(facts: &Mutex<DisplayFacts>) -> MutexGuard<'_, DisplayFacts> {
    facts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State of the thread. Fields are dropped in this order: a reader woken by the end finds the
/// sender gone.
struct DisplayFollower {
    reports: SyncSender<Result<DisplayReport, String>>,
    wake: OwnedFd,
    display: AttendedDisplay,
    /// Process of the display server.
    server: Option<Identity>,
    address: DisplayAddress,
    proc: PathBuf,
    /// Windows reported so far.
    windows: BTreeSet<u32>,
    next_look: Nanos,
    facts: Arc<Mutex<DisplayFacts>>,
    released: OwnedFd,
}

/// Reason why the thread ends.
enum FollowingEnd {
    /// The manager has dropped the display.
    Released,
    Gone(String),
}

impl DisplayFollower {
    fn run(mut self) {
        if let FollowingEnd::Gone(why) = self.follow() {
            self.send(Err(why)).ok();
        }
    }

    fn follow(&mut self) -> FollowingEnd {
        loop {
            let outcome = self.wait(self.next_look, true).and_then(|()| match self.ask() {
                Ok(outcome) => outcome,
                Err(error) => self.reconnect(error),
            });
            lock(&self.facts).own_cpu = thread_time();
            if let Err(end) = outcome {
                return end;
            }
        }
    }

    /// Waits until `due`, and for display events if `listen` is set.
    fn wait(&self, due: Nanos, listen: bool) -> Result<(), FollowingEnd> {
        let mut fds = vec![PollFd::new(&self.released, PollFlags::IN)];
        let display = if listen { self.display.fds() } else { Vec::new() };
        fds.extend(display.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let time = Duration::from_nanos(due.since(clock::now()).0);
        let timeout =
            Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                return Err(FollowingEnd::Gone(format!(
                    "cannot wait for events of the display: {error}"
                )));
            }
        }
        if fds[0].revents().is_empty() { Ok(()) } else { Err(FollowingEnd::Released) }
    }

    /// Reports changes before it queries the display again, and polls when that is due.
    fn ask(&mut self) -> Result<Result<(), FollowingEnd>, DisplayError> {
        let now = clock::now();
        let changes = self.display.changes()?;
        if let Err(end) = self.report(now, changes) {
            return Ok(Err(end));
        }
        if now.after(SLACK) < self.next_look {
            return Ok(Ok(()));
        }
        self.next_look = now.after(LOOK);
        let changes = self.display.look()?;
        if let Err(end) = self.report(now, changes) {
            return Ok(Err(end));
        }
        let idle = self.display.idle_ms()?;
        Ok(self.note_input(idle.map(|idle_ms| clock::now().before(Nanos::from_millis(idle_ms)))))
    }

    /// Records the last input; a returning user is worth a report of its own.
    fn note_input(&mut self, input: Option<Nanos>) -> Result<(), FollowingEnd> {
        let now = clock::now();
        let before = std::mem::replace(&mut lock(&self.facts).input, input);
        if input.is_some_and(|at| now.since(at) < LOOK) {
            self.next_look = now.after(LOOK_AT_WORK);
        }
        let [is_recent, was_recent] =
            [input, before].map(|input| input.is_some_and(|at| now.since(at) < RECENT));
        if is_recent && !was_recent { self.send_changes(now, Vec::new()) } else { Ok(()) }
    }

    /// Reports changes, if there are any.
    fn report(&mut self, at: Nanos, changes: Vec<AttentionChange>) -> Result<(), FollowingEnd> {
        let (core, dropped) = (self.display.core(), self.display.dropped());
        let before = {
            let mut facts = lock(&self.facts);
            facts.dropped = dropped;
            std::mem::replace(&mut facts.core, core)
        };
        if changes.is_empty() && core == before { Ok(()) } else { self.send_changes(at, changes) }
    }

    fn send_changes(
        &mut self,
        at: Nanos,
        changes: Vec<AttentionChange>,
    ) -> Result<(), FollowingEnd> {
        self.note_windows(&changes);
        self.send(Ok(DisplayReport { at, changes }))
    }

    fn send(&self, report: Result<DisplayReport, String>) -> Result<(), FollowingEnd> {
        self.reports.send(report).map_err(|_| FollowingEnd::Released)?;
        // Fails only if the pipe is readable already.
        rustix::io::write(&self.wake, &[0]).ok();
        Ok(())
    }

    fn note_windows(&mut self, changes: &[AttentionChange]) {
        for change in changes {
            match change {
                AttentionChange::Window(state) => drop(self.windows.insert(state.window)),
                AttentionChange::Gone(window) => drop(self.windows.remove(window)),
                AttentionChange::Keyboard(_) | AttentionChange::Pointer(_) => {}
            }
        }
    }

    /// Reconnects to the display for as long as its server lives; until then the reported state
    /// stays unchanged.
    fn reconnect(&mut self, mut error: DisplayError) -> Result<(), FollowingEnd> {
        loop {
            if matches!(error, DisplayError::Hung { .. }) {
                self.note_silence();
            }
            match AttendedDisplay::open(&self.address, &self.proc)
                .and_then(|display| self.switch_to(display))
            {
                Ok(all) => return self.report_all(all),
                Err(again) => error = again,
            }
            let is_gone = match self.server {
                Some(server) => !processes::lives(&self.proc, server),
                None => matches!(
                    error,
                    DisplayError::NoServer { .. } | DisplayError::NoCompositor { .. }
                ),
            };
            if is_gone {
                return Err(FollowingEnd::Gone(error.to_string()));
            }
            self.note_silence();
            self.wait(clock::now().after(LOOK), false)?;
        }
    }

    /// Switches to another connection to the same server and returns its first changes. Another
    /// server has other users and programs.
    fn switch_to(
        &mut self,
        display: AttendedDisplay,
    ) -> Result<Vec<AttentionChange>, DisplayError> {
        if self.server != server_of(&display, &self.proc) {
            return Err(display.gone("its server has ended, and another one has its place"));
        }
        self.display = display;
        self.display.changes()
    }

    fn note_silence(&self) {
        let before = {
            let mut facts = lock(&self.facts);
            (facts.own_cpu, facts.input) = (thread_time(), None);
            let before = facts.silent;
            facts.silent = before.or_else(|| Some(clock::now()));
            before
        };
        if before.is_none() {
            journal::warning(format!(
                "{} does not answer; nothing is changed until it does",
                self.address
            ))
            .tell();
        }
    }

    /// Reports the complete state of a new connection: everything reported earlier and missing now
    /// is gone.
    fn report_all(&mut self, all: Vec<AttentionChange>) -> Result<(), FollowingEnd> {
        let silent = lock(&self.facts).silent.take();
        if silent.is_some() {
            journal::info(format!("{} answers again", self.address)).tell();
        }
        self.next_look = clock::now();
        let there = all.iter().filter_map(|change| match change {
            AttentionChange::Window(state) => Some(state.window),
            _ => None,
        });
        let there: BTreeSet<u32> = there.collect();
        let gone = self.windows.difference(&there).copied().map(AttentionChange::Gone);
        let changes = gone.chain(all).collect();
        self.report(clock::now(), changes)
    }
}
