// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager's one loop: the display's news, requests, signals, and what is due.

use crate::actuator::{self, Actuator};
use crate::busy;
use crate::desktop_state::DesktopState;
use crate::display::AttendedDisplay;
use crate::helper_service::messages::{AppliedCounts, RestoredCounts};
use crate::memory::{MemoryWatch, ProcessFacts};
use crate::prefetch::Prefetch;
use crate::preload::Preload;
use crate::schedule::{Schedule, TERMINALS, TICK};
use crate::session;
use crate::setting::{ManageOptions, Setting};
use crate::signals::TerminationSignals;
use crate::times::Recent;
use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use tipme_control::manager::{ManagerCounts, ManagerResponse, Server};
use tipme_control::{Gate, journal};
use tipme_desktop::attention::{AttentionChange, Core};
use tipme_desktop::{DisplayError, clock};
use tipme_policy::{Action, Assignment, DesktopEvent, Identity, Policy, SetId, Strength};
use tipme_record::Nanos;
use tipme_sched::{LATER_MS, processes};

/// Without input for so long, nobody may be at the desk; the policy waits another minute.
const AWAY_AFTER_MS: u64 = 4 * 60 * 1000;
/// Ticks from one look for sound servers and input methods to the next.
const CORE_TICKS: u64 = 60;
/// Ticks from one time that the history of focus changes is written down to the next.
const SAVE_TICKS: u64 = 600;
/// How often a display that does not answer is asked again, each time with the target's timeout.
const RECONNECTS_MAX: usize = 5;

/// Why the manager ended, having taken everything back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// By a signal.
    Stopped,
    /// The display is gone, for this reason.
    DisplayGone(String),
}

/// Manages a display until SIGINT or SIGTERM, or until the display is gone. Prints a line that starts with
/// `managing` once it is ready. Whatever was changed is taken back before it returns.
///
/// # Errors
/// Where the display, the user's rights or another manager forbid it; the message names the remedy.
pub fn run(options: &ManageOptions) -> Result<Ended> {
    let lock = options.state.lock()?;
    let signals = TerminationSignals::catch()?;
    let address = session::display_address(options.display.as_deref(), &options.recorder)?;
    let mut attention = AttendedDisplay::open(&address, Path::new("/proc"))?;
    let first = attention.changes()?;
    let helper = actuator::find(options)?;
    // What the helper can use is not asked of this process.
    let asked = ManageOptions { backend: options.backend.filter(|_| !helper.is_helper()), ..options.clone() };
    let mut setting = Setting::find(&asked, address, &attention)?;
    let mut server = Server::bind(&options.state.socket(), Gate::of(&[setting.user]))?;
    let (actuator, restored) = Actuator::open(options, helper, &mut setting, attention.core().server_pid)?;
    tell_restored("a manager that was killed", &restored);
    tipme_confine::be_urgent();
    let mut manager = Manager::new(options, setting, attention, actuator);
    let ended = manager.begin(first).and_then(|()| manager.serve(&mut server, &signals));
    tell_restored("this manager", &manager.actuator.restore());
    manager.prefetch.save();
    drop(lock);
    ended
}

/// Says what taking back has done, where that is not simply everything.
pub(crate) fn tell_restored(whose: &str, restored: &RestoredCounts) {
    if restored.failed > 0 || restored.unreadable > 0 {
        let words = format!(
            "of the changes of {whose}, {} could not be taken back and {} could not be read",
            restored.failed, restored.unreadable
        );
        journal::warning(words).event(journal::JournalEvent::NotRestored).tell();
    }
}

/// The state of a manager.
pub(crate) struct Manager {
    pub(crate) setting: Setting,
    attention: AttendedDisplay,
    /// The display server and the window manager, as they were taken into the core.
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
    /// The role of each set, as it was last assigned.
    pub(crate) assigned: BTreeMap<SetId, Assignment>,
    pub(crate) core: Vec<Identity>,
    pub(crate) present: Option<bool>,
    pub(crate) strength: Strength,
    pub(crate) counts: ManagerCounts,
    /// What is to be done about memory at the end of this turn.
    waiting: Vec<Action>,
    /// When it was ready, and the CPU time that it had taken until then.
    pub(crate) since: Nanos,
    pub(crate) own_cpu: Nanos,
    ticks: u64,
}

impl Manager {
    fn new(options: &ManageOptions, setting: Setting, attention: AttendedDisplay, actuator: Actuator) -> Manager {
        let (now, prefetch) = (clock::now(), Prefetch::open(options));
        Manager {
            parts: attention.core(),
            window_manager: None,
            attention,
            desktop: DesktopState::new(setting.proc.clone(), setting.user, setting.server_knows, setting.server),
            policy: Policy::new(options.strength),
            actuator,
            memory: MemoryWatch::new(setting.proc.clone(), now),
            busy: busy::BusyWatch::new(setting.proc.clone()),
            preload: Preload::begin(options, prefetch.after_login(), &setting.proc),
            prefetch,
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
            ticks: 0,
            setting,
        }
    }

    /// Takes in what is there already, and says that managing has begun.
    fn begin(&mut self, first: Vec<AttentionChange>) -> Result<()> {
        self.look_for_core();
        self.take(first, clock::now());
        self.tell_missing();
        (self.since, self.own_cpu) = (clock::now(), own_cpu());
        self.focus_times = Recent::default();
        let words = format!("managing {} with {}, {}", self.setting.display, self.setting.backend, self.strength);
        journal::info(words).event(journal::JournalEvent::Managing).tell();
        Ok(())
    }

    fn serve(&mut self, server: &mut Server, signals: &TerminationSignals) -> Result<Ended> {
        loop {
            let ready = self.wait(server, signals)?;
            let now = clock::now();
            if signals.have_come() {
                return Ok(Ended::Stopped);
            }
            let news = if ready { self.attend(now) } else { Ok(()) };
            if let Err(error) = news.and_then(|()| self.keep_time(now))
                && let Some(gone) = self.reconnect(&error)
            {
                return Ok(Ended::DisplayGone(gone));
            }
            self.finish_turn();
            for call in server.calls(Instant::now()) {
                let response = self.answer(&call.request);
                call.answer(&response.unwrap_or_else(ManagerResponse::Error));
            }
        }
    }

    /// Waits for news, a request, a signal, or what is due; whether there may be news of the display.
    fn wait(&self, server: &Server, signals: &TerminationSignals) -> Result<bool> {
        let mut fds: Vec<PollFd<'_>> =
            self.attention.fds().into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let of_display = fds.len();
        fds.push(PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN));
        fds.extend(server.fds().into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let now = clock::now();
        let due = self.policy.next().into_iter().fold(self.schedule.next(now), Nanos::min);
        let timeout = server.timeout(Instant::now()).unwrap_or(Duration::MAX);
        let time = Duration::from_nanos(due.since(now).0).min(timeout);
        let timeout = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => Ok(fds[..of_display].iter().any(|fd| !fd.revents().is_empty())),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error).context("cannot wait for news"),
        }
    }

    /// Acts on what the display tells. The way from a change of focus to the knobs is only here.
    fn attend(&mut self, now: Nanos) -> Result<(), DisplayError> {
        let changes = self.attention.changes()?;
        if self.attention.core() != self.parts {
            self.look_for_core();
        }
        if !changes.is_empty() {
            self.take(changes, now);
        }
        Ok(())
    }

    fn take(&mut self, changes: Vec<AttentionChange>, now: Nanos) {
        let before = self.desktop.focused();
        let events = self.desktop.take(changes, now);
        self.handle(now, events);
        let focused = self.desktop.focused();
        if focused != before {
            self.focus_times.push(clock::now().since(now));
            let young = focused.filter(|set| self.desktop.is_young(*set, now));
            self.schedule.focus(before, young, now);
            if self.memory.bring_look_forward(now) {
                self.schedule.tick = self.schedule.tick.min(self.memory.due());
            }
            let program = focused.and_then(|set| session::program(&self.setting.proc, set.0.pid));
            self.preload.focus(program.as_deref(), focused, now);
            self.prefetch.focus(program, now);
        }
    }

    /// Tells the policy, and does what it decides in one step; what it wants of memory waits for the end of the turn.
    pub(crate) fn handle(&mut self, now: Nanos, events: Vec<DesktopEvent>) {
        if events.iter().any(|event| matches!(event, DesktopEvent::Set { id, .. } if !self.assigned.contains_key(id))) {
            self.preload.make_way(now);
        }
        let actions: Vec<Action> = events.into_iter().flat_map(|event| self.policy.handle(now, event)).collect();
        self.perform(actions);
    }

    fn perform(&mut self, actions: Vec<Action>) {
        let (memory, knobs): (Vec<Action>, Vec<Action>) =
            actions.into_iter().partition(|action| matches!(action, Action::Memory(_)));
        for action in &knobs {
            match action {
                Action::Assign(assignment) => drop(self.assigned.insert(assignment.set, assignment.clone())),
                Action::Forget(set) => drop(self.assigned.remove(set)),
                Action::Memory(_) => {}
            }
        }
        if !knobs.is_empty() {
            self.apply(&knobs);
        }
        self.waiting.extend(memory);
    }

    /// Does what waited: it can take long to bring memory back, and a knob must not wait for that.
    fn finish_turn(&mut self) {
        let memory = std::mem::take(&mut self.waiting);
        if !memory.is_empty() {
            self.memory.count_actions(memory.len());
            self.apply(&memory);
        }
    }

    fn apply(&mut self, actions: &[Action]) {
        let applied = self.actuator.apply(actions);
        self.note(&applied);
    }

    /// Counts what was done, and comes back to what has to wait.
    fn note(&mut self, applied: &AppliedCounts) {
        self.counts.changed += applied.changed as u64;
        self.counts.skipped += applied.skipped as u64;
        let wait = Nanos::from_millis(LATER_MS);
        if applied.later {
            self.schedule.later = Some(clock::now().after(wait));
        }
    }

    /// Does what is due.
    fn keep_time(&mut self, now: Nanos) -> Result<(), DisplayError> {
        for set in self.schedule.due(now) {
            self.refresh(set, now);
        }
        if self.policy.next().is_some_and(|due| due <= now) {
            self.handle(now, vec![DesktopEvent::Time]);
        }
        if self.schedule.later.take_if(|due| *due <= now).is_some() {
            self.apply(&[]);
        }
        if self.schedule.terminals <= now && self.schedule.is_busy(now) {
            self.schedule.terminals = now.after(TERMINALS);
            self.follow_terminals(now);
            self.look_at_cpus(now);
        }
        if self.schedule.tick <= now {
            self.schedule.tick = now.after(TICK);
            self.tick(now)?;
        }
        Ok(())
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

    /// Says on the error output what cannot be done.
    fn tell_missing(&self) {
        if self.actuator.helper().is_none() {
            return self.setting.tell_missing();
        }
        for missing in &self.setting.missing {
            journal::warning(missing).tell();
        }
    }

    /// Assigns everything again where the helper was lost and is back.
    fn revive_helper(&mut self, now: Nanos) {
        if self.actuator.revive(now) {
            let actions: Vec<Action> = self.assigned.values().cloned().map(Action::Assign).collect();
            self.apply(&actions);
        }
    }

    /// What is looked at each second.
    fn tick(&mut self, now: Nanos) -> Result<(), DisplayError> {
        self.revive_helper(now);
        let changes = self.attention.look()?;
        if !changes.is_empty() {
            self.take(changes, now);
        }
        let idle_ms = self.attention.idle_ms()?;
        self.schedule.input(now.before(Nanos::from_millis(idle_ms.unwrap_or(0))));
        let present = idle_ms.is_none_or(|idle_ms| idle_ms < AWAY_AFTER_MS);
        if self.present.replace(present) != Some(present) {
            self.handle(now, vec![DesktopEvent::Presence(present)]);
        }
        if present {
            let jobs = self.desktop.focused().map(|set| self.desktop.follow_jobs(set, now));
            self.handle(now, jobs.unwrap_or_default());
            let events = self.desktop.refresh_stalest(now);
            self.handle(now, events);
        }
        self.look_at_cpus(now);
        self.look_at_memory(now);
        self.look_at_files(now);
        self.ticks += 1;
        if self.ticks.is_multiple_of(SAVE_TICKS) {
            self.prefetch.save();
        }
        if self.ticks.is_multiple_of(CORE_TICKS) {
            self.look_for_core();
        }
        Ok(())
    }

    fn look_at_cpus(&mut self, now: Nanos) {
        let setting = &self.setting;
        if let Some(busy) = self.busy.look(now, |process| setting.may_change(process)) {
            let mut events = self.desktop.place_unplaced(&busy, now);
            events.push(DesktopEvent::Busy(busy));
            self.handle(now, events);
        }
    }

    fn look_at_memory(&mut self, now: Nanos) {
        let facts = KnownProcesses { desktop: &self.desktop, setting: &self.setting, core: &self.core };
        if let Some(sample) = self.memory.look(now, &facts) {
            self.handle(now, vec![DesktopEvent::Memory(sample)]);
        }
        if self.memory.has_plenty() {
            let name = |set: SetId| Some((set, session::program(&self.setting.proc, set.0.pid)?));
            let programs = || self.desktop.clients().filter_map(name).collect();
            let actions = self.prefetch.actions(programs, self.desktop.focused(), now);
            self.perform(actions);
        }
    }

    /// Has the program in use remembered with the files of its processes, where it is due.
    fn look_at_files(&mut self, now: Nanos) {
        let (desktop, setting) = (&self.desktop, &self.setting);
        let processes = |set| {
            let members = desktop.members(set).into_iter().map(|member| member.who);
            members.filter(|who| setting.may_change(*who)).collect()
        };
        self.preload.keep_time(now, processes);
    }

    fn look_for_core(&mut self) {
        self.parts = self.attention.core();
        let (proc, user) = (&self.setting.proc, self.setting.user);
        let said = self.parts.manager.and_then(|pid| session::window_manager(proc, user, pid));
        // Who says so without being one does not push the one aside that is there.
        self.window_manager = said.or(self.window_manager.filter(|known| processes::lives(proc, *known)));
        let core = session::core(proc, user, self.parts.server_pid, self.window_manager);
        if core != self.core {
            let mut events = self.desktop.set_core(&core);
            self.core.clone_from(&core);
            events.push(DesktopEvent::Core(core));
            self.handle(clock::now(), events);
        }
    }

    /// What the display had of windows and helpers beyond the bounds.
    pub(crate) fn attention_dropped(&self) -> u64 {
        let dropped = self.attention.dropped();
        dropped.windows + dropped.helpers
    }

    /// Asks a display again that did not answer; the reason where it is gone.
    fn reconnect(&mut self, error: &DisplayError) -> Option<String> {
        let mut why = error.to_string();
        for _ in 0..RECONNECTS_MAX {
            match AttendedDisplay::open(&self.setting.address, &self.setting.proc) {
                Ok(attention) => {
                    self.attention = attention;
                    let events = self.desktop.clear();
                    self.handle(clock::now(), events);
                    // What is there already comes without news; what fails now fails again at the next turn.
                    let _ = self.attend(clock::now());
                    return None;
                }
                Err(error @ DisplayError::Hung { .. }) => why = error.to_string(),
                Err(error) => return Some(error.to_string()),
            }
        }
        Some(why)
    }

    /// Turns the user's knob.
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

/// What the manager knows of processes, for a look at memory.
struct KnownProcesses<'a> {
    desktop: &'a DesktopState,
    setting: &'a Setting,
    core: &'a [Identity],
}

impl ProcessFacts for KnownProcesses<'_> {
    /// The core is small, and every answer needs it; of the focused set the client comes first.
    fn most_favoured(&self) -> Vec<Identity> {
        let focused = self.desktop.focused().map(|set| self.desktop.members(set)).unwrap_or_default();
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
