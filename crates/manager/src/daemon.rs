// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager's single event loop: display changes, requests, signals, and timers.

use crate::actuator::{self, Actuator};
use crate::busy;
use crate::desktop_state::DesktopState;
use crate::display::AttendedDisplay;
use crate::display_thread::{DisplayReport, FollowedDisplay};
use crate::helper_service::messages::AppliedCounts;
use crate::memory::{MemoryWatch, ProcessFacts};
use crate::own_cpu::{Chore, OwnCpu};
use crate::prefetch::Prefetch;
use crate::preload::Preload;
use crate::schedule::{SLACK, Schedule, TERMINALS, TICK};
use crate::session;
use crate::setting::{ManageOptions, Setting};
use crate::times::Recent;
use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use tipme_control::life::{SIGINT, SIGTERM, SignalStream};
use tipme_control::manager::{ManagerCounts, ManagerResponse, Server};
use tipme_control::{Gate, journal};
use tipme_desktop::attention::{AttentionChange, Core};
use tipme_desktop::clock;
use tipme_policy::{Action, Assignment, DesktopEvent, Identity, Policy, SetId, Strength};
use tipme_record::Nanos;
use tipme_sched::{LATER_MS, Restored, processes};

/// Time without input after which the user may be away; the policy waits another minute.
const AWAY_AFTER: Nanos = Nanos::from_secs(4 * 60);
/// Number of ticks between two searches for sound servers and input methods.
const CORE_TICKS: u64 = 60;

/// Reason why the manager ended, after it restored everything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Ended by a signal.
    Stopped,
    /// The display is gone, for this reason.
    DisplayGone(String),
}

/// Manages a display until SIGINT or SIGTERM, or until the display is gone. Prints a line that
/// starts with `managing` once it is ready, and restores all changes before it returns.
///
/// # Errors
/// Fails if the display, the user's privileges or another manager forbid it; the message names the
/// remedy.
pub fn run(options: &ManageOptions) -> Result<Ended> {
    let lock = options.state.lock()?;
    let signals = SignalStream::catch(&[SIGINT, SIGTERM]).context("cannot catch signals")?;
    let begun = begin(options);
    if begun.is_err() {
        take_back_without_display(options);
    }
    let (mut manager, mut server, first) = begun?;
    let ended = manager.begin(first).and_then(|()| manager.serve(&mut server, &signals));
    report_restored("this manager", &manager.actuator.restore());
    drop(lock);
    ended
}

/// Creates a manager of the display and its request socket; also returns the first changes of the
/// display.
fn begin(options: &ManageOptions) -> Result<(Manager, Server, Vec<AttentionChange>)> {
    let address = session::display_address(options.display.as_deref(), &options.recorder)?;
    let mut attention = AttendedDisplay::open(&address, Path::new("/proc"))?;
    let first = attention.changes()?;
    let helper = actuator::find(options)?;
    // The helper, not this process, has to be able to use the requested backend.
    let asked = ManageOptions {
        backend: options.backend.filter(|_| !helper.is_helper()),
        ..options.clone()
    };
    let mut setting = Setting::find(&asked, address, &attention)?;
    let server = Server::bind(&options.state.socket(), Gate::new(&[setting.user]))?;
    let (actuator, restored) =
        Actuator::open(options, helper, &mut setting, attention.core().server_pid)?;
    report_restored("a killed manager", &restored);
    tipme_confine::be_urgent();
    let attention = FollowedDisplay::start(attention, &first, &setting.address, &setting.proc)?;
    Ok((Manager::new(options, setting, attention, actuator), server, first))
}

/// Restores what a killed manager may have left changed; the display that it managed may be gone or
/// hang.
fn take_back_without_display(options: &ManageOptions) {
    match tipme_sched::take_back(&options.state.journal(), Path::new("/proc")) {
        Ok(restored) => report_restored("a killed manager", &restored),
        Err(error) => {
            journal::warning(format!("cannot undo the changes of a killed manager: {error}")).tell()
        }
    }
}

/// Reports the result of a restore unless everything was restored.
pub(crate) fn report_restored(owner: &str, restored: &Restored) {
    if restored.failed > 0 || restored.unreadable > 0 {
        let words = format!(
            "{} changes of {owner} could not be undone, and {} could not be read",
            restored.failed, restored.unreadable
        );
        journal::warning(words).event(journal::JournalEvent::NotRestored).tell();
    }
}

/// State of a manager.
pub(crate) struct Manager {
    pub(crate) setting: Setting,
    pub(crate) attention: FollowedDisplay,
    /// Display server and window manager, as last added to the core.
    pub(crate) parts: Core,
    window_manager: Option<Identity>,
    pub(crate) desktop: DesktopState,
    pub(crate) policy: Policy,
    pub(crate) actuator: Actuator,
    pub(crate) memory: MemoryWatch,
    busy: busy::BusyWatch,
    pub(crate) prefetch: Prefetch,
    pub(crate) preload: Preload,
    schedule: Schedule,
    pub(crate) focus_times: Recent,
    /// Role of each set, as last assigned.
    pub(crate) assigned: BTreeMap<SetId, Assignment>,
    pub(crate) core: Vec<Identity>,
    pub(crate) present: Option<bool>,
    pub(crate) strength: Strength,
    pub(crate) counts: ManagerCounts,
    /// Memory actions deferred to the end of this turn.
    waiting: Vec<Action>,
    /// Time at which the manager was ready, and the CPU time used until then.
    pub(crate) since: Nanos,
    pub(crate) own_cpu: Nanos,
    pub(crate) chores: OwnCpu,
    ticks: u64,
}

/// Event sources that may be ready.
struct ReadyFor {
    display: bool,
    signals: bool,
    requests: bool,
}

impl Manager {
    fn new(
        options: &ManageOptions,
        setting: Setting,
        attention: FollowedDisplay,
        actuator: Actuator,
    ) -> Manager {
        let now = clock::now();
        Manager {
            parts: attention.facts().core,
            window_manager: None,
            attention,
            desktop: DesktopState::new(
                setting.proc.clone(),
                setting.user,
                setting.server_knows,
                setting.server,
            ),
            policy: Policy::new(options.strength),
            actuator,
            memory: MemoryWatch::new(setting.proc.clone(), now),
            busy: busy::BusyWatch::new(setting.proc.clone()),
            prefetch: Prefetch::new(options.predict),
            preload: Preload::begin(options, &setting.proc),
            schedule: Schedule::new(now),
            focus_times: Recent::default(),
            assigned: BTreeMap::new(),
            core: Vec::new(),
            present: None,
            strength: options.strength,
            counts: ManagerCounts::default(),
            waiting: Vec::new(),
            since: now,
            own_cpu: Nanos(0),
            chores: OwnCpu::new(),
            ticks: 0,
            setting,
        }
    }

    /// Handles the state that exists already, and reports that managing has begun.
    fn begin(&mut self, first: Vec<AttentionChange>) -> Result<()> {
        self.find_core();
        self.take(first, clock::now(), clock::now());
        self.report_missing();
        (self.since, self.own_cpu, self.chores) = (clock::now(), own_cpu(), OwnCpu::new());
        self.focus_times = Recent::default();
        let words = format!(
            "managing {} with {}, {}",
            self.setting.display, self.setting.backend, self.strength
        );
        journal::info(words).event(journal::JournalEvent::Managing).tell();
        Ok(())
    }

    fn serve(&mut self, server: &mut Server, signals: &SignalStream) -> Result<Ended> {
        loop {
            let ready = self.wait(server, signals)?;
            let now = clock::now();
            if ready.signals && !signals.arrived().is_empty() {
                return Ok(Ended::Stopped);
            }
            self.chores.begin(Chore::Display);
            if ready.display
                && let Err(gone) = self.attend(now)
            {
                return Ok(Ended::DisplayGone(gone));
            }
            self.chores.begin(Chore::Processes);
            self.keep_time(now, if ready.display { Nanos(0) } else { SLACK });
            self.finish_turn();
            self.chores.begin(Chore::Requests);
            // Idle connections are checked as well, since their timeout may have passed.
            if ready.requests || server.timeout(Instant::now()).is_some() {
                self.answer_calls(server);
            }
            self.chores.begin(Chore::Waiting);
        }
    }

    fn answer_calls(&mut self, server: &mut Server) {
        for call in server.calls(Instant::now()) {
            // Account the time so far, so that the status includes it.
            self.chores.begin(Chore::Requests);
            let response = self.answer(&call.request);
            call.answer(&response.unwrap_or_else(ManagerResponse::Error));
        }
    }

    /// Waits for a display change, a request, a signal, or a timer.
    fn wait(&self, server: &Server, signals: &SignalStream) -> Result<ReadyFor> {
        let own = [self.attention.fd(), signals.fd()].into_iter();
        let mut fds: Vec<PollFd<'_>> =
            own.chain(server.fds()).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let now = clock::now();
        let due = self.policy.next().into_iter().fold(self.schedule.next(now), Nanos::min);
        let timeout = server.timeout(Instant::now()).unwrap_or(Duration::MAX);
        let time = Duration::from_nanos(due.since(now).0).min(timeout);
        let timeout =
            Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for events"),
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let (display, signals) = (ready.next() == Some(true), ready.next() == Some(true));
        Ok(ReadyFor { display, signals, requests: ready.any(|ready| ready) })
    }

    /// Handles changes of the display. This is the only path from a change of focus to the knobs.
    ///
    /// # Errors
    /// Returns the reason why the display is gone.
    fn attend(&mut self, now: Nanos) -> Result<(), String> {
        let (reports, facts) = (self.attention.reports()?, self.attention.facts());
        if facts.core != self.parts {
            self.find_core();
        }
        facts.input.into_iter().for_each(|input| self.schedule.input(input));
        for DisplayReport { at, changes } in
            reports.into_iter().filter(|report| !report.changes.is_empty())
        {
            self.take(changes, at, now);
        }
        Ok(())
    }

    /// Handles changes that the display reported at that time.
    fn take(&mut self, changes: Vec<AttentionChange>, reported: Nanos, now: Nanos) {
        let before = self.desktop.focused();
        let events = self.desktop.take(changes, now);
        self.handle(now, events);
        let focused = self.desktop.focused();
        if focused != before {
            self.focus_times.push(clock::now().since(reported));
            let young = focused.filter(|set| self.desktop.is_young(*set, now));
            self.schedule.focus(before, young, now);
            if self.memory.bring_look_forward(now) {
                self.schedule.tick = self.schedule.tick.min(self.memory.due());
            }
            let before = self.chores.begin(Chore::Files);
            let program = focused.and_then(|set| session::program(&self.setting.proc, set.0.pid));
            self.preload.focus(program.as_deref(), focused, now);
            self.prefetch.focus(focused, now);
            self.chores.begin(before);
        }
    }

    /// Passes events to the policy and applies all its decisions in one step; memory actions wait
    /// until the end of the turn.
    pub(crate) fn handle(&mut self, now: Nanos, events: Vec<DesktopEvent>) {
        let known = &self.assigned;
        if events
            .iter()
            .any(|event| matches!(event, DesktopEvent::Set { id, .. } if !known.contains_key(id)))
        {
            self.preload.pause_for_start(now);
        }
        let actions: Vec<Action> =
            events.into_iter().flat_map(|event| self.policy.handle(now, event)).collect();
        self.perform(actions);
    }

    fn perform(&mut self, actions: Vec<Action>) {
        let (memory, knobs): (Vec<Action>, Vec<Action>) =
            actions.into_iter().partition(|action| matches!(action, Action::Memory(_)));
        for action in &knobs {
            match action {
                Action::Assign(assignment) => {
                    drop(self.assigned.insert(assignment.set, assignment.clone()))
                }
                Action::Forget(set) => drop(self.assigned.remove(set)),
                Action::Memory(_) => {}
            }
        }
        if !knobs.is_empty() {
            self.apply(&knobs);
        }
        self.waiting.extend(memory);
    }

    /// Applies the deferred memory actions: a prefetch can take long, and knobs must not wait for
    /// it.
    fn finish_turn(&mut self) {
        let memory = std::mem::take(&mut self.waiting);
        if !memory.is_empty() {
            self.memory.count_actions(memory.len());
            self.apply_as(Chore::Memory, &memory);
        }
    }

    fn apply(&mut self, actions: &[Action]) {
        self.apply_as(Chore::Knobs, actions);
    }

    fn apply_as(&mut self, chore: Chore, actions: &[Action]) {
        let before = self.chores.begin(chore);
        let applied = self.actuator.apply(actions);
        self.chores.begin(before);
        self.note(&applied);
    }

    /// Counts applied actions, and schedules a retry for those that had to wait.
    fn note(&mut self, applied: &AppliedCounts) {
        self.counts.changed += applied.changed as u64;
        self.counts.skipped += applied.skipped as u64;
        let wait = Nanos::from_millis(LATER_MS);
        if applied.later {
            self.schedule.later = Some(clock::now().after(wait));
        }
    }

    /// Runs everything that is due; periodic looks also if they are due within `slack`.
    fn keep_time(&mut self, now: Nanos, slack: Nanos) {
        for set in self.schedule.due(now) {
            self.refresh(set, now);
        }
        if self.policy.next().is_some_and(|due| due <= now) {
            self.handle(now, vec![DesktopEvent::Time]);
        }
        if self.schedule.later.take_if(|due| *due <= now).is_some() {
            self.apply(&[]);
        }
        let soon = now.after(slack);
        if self.schedule.terminals <= soon && self.schedule.is_busy(now) {
            self.schedule.terminals = now.after(TERMINALS);
            self.follow_terminals(now);
            self.look_at_cpus(now);
        }
        if self.schedule.tick <= soon {
            self.schedule.tick = now.after(TICK);
            self.tick(now);
        }
    }

    fn refresh(&mut self, set: SetId, now: Nanos) {
        let events = self.desktop.refresh(set, now);
        self.handle(now, events);
    }

    fn follow_terminals(&mut self, now: Nanos) {
        let Some(set) = self.desktop.focused() else { return };
        let events = self.desktop.follow(set, now);
        self.handle(now, events);
    }

    /// Reports unavailable functions on standard error.
    fn report_missing(&self) {
        if self.actuator.helper().is_none() {
            return self.setting.report_missing();
        }
        for missing in &self.setting.missing {
            journal::warning(missing).tell();
        }
    }

    /// Repeats all assignments if a lost helper is back.
    fn revive_helper(&mut self, now: Nanos) {
        if self.actuator.revive(now) {
            let actions: Vec<Action> =
                self.assigned.values().cloned().map(Action::Assign).collect();
            self.apply(&actions);
        }
    }

    /// Runs the periodic looks of each second.
    fn tick(&mut self, now: Nanos) {
        self.revive_helper(now);
        let present = self.update_presence(now);
        if present {
            let jobs = self.desktop.focused().map(|set| self.desktop.follow_jobs(set, now));
            self.handle(now, jobs.unwrap_or_default());
            let events = self.desktop.refresh_stalest(now);
            self.handle(now, events);
        }
        self.look_at_cpus(now);
        self.chores.begin(Chore::Memory);
        self.look_at_memory(now);
        self.chores.begin(Chore::Files);
        self.look_at_files(now);
        self.ticks += 1;
        self.chores.begin(Chore::Display);
        if self.ticks.is_multiple_of(CORE_TICKS) {
            self.find_core();
        }
    }

    /// Returns `true` if the user is present: the last known state while the display is silent.
    fn update_presence(&mut self, now: Nanos) -> bool {
        let facts = self.attention.facts();
        if let (Some(_), Some(present)) = (facts.silent, self.present) {
            return present;
        }
        let input = facts.input.unwrap_or(now);
        self.schedule.input(input);
        let present = now.since(input) < AWAY_AFTER;
        if self.present.replace(present) != Some(present) {
            self.handle(now, vec![DesktopEvent::Presence(present)]);
        }
        present
    }

    fn look_at_cpus(&mut self, now: Nanos) {
        let before = self.chores.begin(Chore::BusyProcesses);
        let setting = &self.setting;
        if let Some(busy) = self.busy.look(now, |process| setting.may_change(process)) {
            let mut events = self.desktop.place_unplaced(&busy, now);
            events.push(DesktopEvent::Busy(busy));
            self.handle(now, events);
        }
        self.chores.begin(before);
    }

    fn look_at_memory(&mut self, now: Nanos) {
        let facts =
            KnownProcesses { desktop: &self.desktop, setting: &self.setting, core: &self.core };
        if let Some(sample) = self.memory.look(now, &facts) {
            self.handle(now, vec![DesktopEvent::Memory(sample)]);
        }
        if self.memory.has_plenty() {
            let (focused, assigned) = (self.desktop.focused(), &self.assigned);
            let actions = self
                .prefetch
                .actions(|set| Some(set) != focused && assigned.contains_key(&set), now);
            self.perform(actions);
        }
    }

    /// Remembers the files of the program in use, if that is due.
    fn look_at_files(&mut self, now: Nanos) {
        let (desktop, setting) = (&self.desktop, &self.setting);
        self.preload.keep_time(now, |set| {
            let members = desktop.members(set).into_iter().map(|member| member.who);
            members.filter(|who| setting.may_change(*who)).collect()
        });
    }

    fn find_core(&mut self) {
        self.parts = self.attention.facts().core;
        let (proc, user) = (&self.setting.proc, self.setting.user);
        let new = self.parts.manager.and_then(|pid| session::window_manager(proc, user, pid));
        // A process that falsely claims to be the window manager does not displace the present one.
        self.window_manager =
            new.or(self.window_manager.filter(|known| processes::lives(proc, *known)));
        let core = session::core(proc, user, self.parts.server_pid, self.window_manager);
        if core != self.core {
            let mut events = self.desktop.set_core(&core);
            self.core.clone_from(&core);
            events.push(DesktopEvent::Core(core));
            self.handle(clock::now(), events);
        }
    }

    /// Number of windows and helpers that the display dropped at the bounds.
    pub(crate) fn attention_dropped(&self) -> u64 {
        let dropped = self.attention.facts().dropped;
        dropped.windows + dropped.helpers
    }

    /// Changes the user's strength setting.
    pub(crate) fn set_strength(&mut self, strength: Strength) {
        self.strength = strength;
        if strength == Strength::Off {
            self.preload.stop();
        }
        let applied = self.actuator.set_strength(strength);
        self.note(&applied);
        self.handle(clock::now(), vec![DesktopEvent::Strength(strength)]);
    }
}

/// The manager's knowledge of processes, for a look at memory.
struct KnownProcesses<'a> {
    desktop: &'a DesktopState,
    setting: &'a Setting,
    core: &'a [Identity],
}

impl ProcessFacts for KnownProcesses<'_> {
    /// Includes the core, which is small and needed by every response; the client comes first in
    /// the focused set.
    fn most_favoured(&self) -> Vec<Identity> {
        let focused =
            self.desktop.focused().map(|set| self.desktop.members(set)).unwrap_or_default();
        self.core.iter().copied().chain(focused.iter().map(|member| member.who)).collect()
    }

    fn may_change(&self, process: Identity) -> bool {
        self.setting.may_change(process)
    }

    fn set_of(&self, pid: u32) -> Option<SetId> {
        self.desktop.place(pid).map(|(set, _)| set)
    }
}

/// CPU time of this process.
pub(crate) fn own_cpu() -> Nanos {
    Nanos(tipme_control::life::own_cpu().as_nanos() as u64)
}
