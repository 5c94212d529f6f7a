// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder's only loop: requests, signals, and a tick ten times a second, or twice while it is
//! idle.

mod days;
mod detail;
mod keys;
mod pause;
mod status;
mod suggestions;

use crate::answered::LastPresses;
use crate::authorization::{self, AttributedPress};
use crate::auto::{AutoMarker, AutoMode, AutoOptions, Suspicion};
use crate::capture::{Capture, CaptureSources, Mark};
use crate::counter::CounterProcess;
use crate::day::Days;
use crate::descriptions::Descriptions;
use crate::details::Details;
use crate::displays::Displays;
use crate::focus::Focuses;
use crate::hot_keys::{Causes, HotKeyOptions};
use crate::identity::command_lines;
use crate::ids::IncidentIds;
use crate::inputs::Inputs;
use crate::inquiry::Inquiries;
use crate::learning::Learning;
use crate::look::{self, LookQueue};
use crate::losses::LossWatch;
use crate::outcome::{self, refuse};
use crate::rights;
use crate::sampler::{PERIOD, Sampler};
use crate::seal::{RawIncident, Sealer};
use crate::sealing::{Sealing, Turn};
use crate::state::StateDirs;
use crate::tap::Tap;
use crate::tolerances::Tolerances;
use crate::unrecorded::Unrecorded;
use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::{Duration, Instant};
use tipme_control::journal::{self, JournalEvent};
use tipme_control::life::{SIGINT, SIGTERM, SIGUSR1, SignalStream, Watchdog};
use tipme_control::{
    Call, Caller, Gate, Rates, RecorderRequest, RecorderResponse, RecorderStatus, Server,
};
use tipme_desktop::clock;
use tipme_kernel::{Detail, Kernel, KernelOptions, Storage};
use tipme_record::Nanos;
use tipme_record::incident::Words;
use tipme_store::{FolderBounds, IncidentFolder};

/// Maximum burst of marks by one user other than root, and the time after which one more is
/// allowed.
const MARKS_BURST: u32 = 8;
const MARK_EVERY: Duration = Duration::from_secs(5);

/// Tick period while nobody waits and nothing is suspected: wakeups are half the cost of an idle
/// recorder.
const CALM_PERIOD: Nanos = Nanos::from_millis(500);

/// Maximum time that a stopping recorder waits for incidents being sealed.
const FINISH_MAX: Duration = Duration::from_secs(10);

const NO_THREAD: &str = "cannot start the thread that checks permissions to mark";

/// Options of the recorder.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    pub dirs: StateDirs,
    /// Time that an incident reaches back, memory permitting.
    pub window: Nanos,
    /// Locked memory in bytes.
    pub memory: u64,
    pub tap: Tap,
    /// Classes to leave out.
    pub without: Vec<String>,
    /// Details to record from the start.
    pub details: Vec<Detail>,
    /// Users that may mark besides root.
    pub allowed: Vec<u32>,
    /// Count each user's latencies.
    pub day: bool,
    /// Options of automatic marks; `None` to disable them.
    pub auto: Option<AutoOptions>,
    /// Hot keys read from the keyboards; `None` to disable them.
    pub hot_keys: Option<HotKeyOptions>,
    /// Limits of the incident folder.
    pub kept: FolderBounds,
    pub sealer: Sealer,
}

/// Records until SIGINT or SIGTERM. Prints a line that starts with `recording` once it is armed.
///
/// # Errors
/// If the kernel, missing privileges or another recorder prevent it; the message includes the
/// remedy.
pub fn run(options: &RecorderOptions) -> Result<()> {
    let lock = options.dirs.lock()?;
    let folder = IncidentFolder::open(options.dirs.incidents())?.with_bounds(options.kept);
    let server = Server::bind(
        &options.dirs.socket(),
        authorization::processes(&options.allowed).context(NO_THREAD)?,
    )?;
    let signals =
        SignalStream::catch(&[SIGUSR1, SIGINT, SIGTERM]).context("cannot catch signals")?;
    let mut storage = Storage::default();
    let kernel = Kernel::arm(&mut storage, &kernel_options(options))?;
    let counter =
        CounterProcess::start(&options.sealer, &kernel.standby()?, kernel.sample_clock()?);
    rights::settle(&kernel)?;
    let mut recorder = Recorder::new(options, kernel, folder, counter)?;
    recorder.announce()?;
    recorder.serve(server, &signals)?;
    recorder.finish();
    journal::info(format!("stopped; incidents stay in {}", options.dirs.incidents().display()))
        .show();
    drop(lock);
    Ok(())
}

fn kernel_options(options: &RecorderOptions) -> KernelOptions {
    let mut without = options.without.clone();
    if options.tap == Tap::Off {
        without.push("display".to_owned());
    }
    let display = options.tap.only();
    let details = options.details.clone();
    KernelOptions {
        memory: options.memory,
        without,
        display,
        window: options.window,
        hertz: 99,
        details,
    }
}

struct Recorder<'a> {
    options: &'a RecorderOptions,
    kernel: Kernel<'a>,
    folder: IncidentFolder,
    ids: IncidentIds,
    displays: Displays,
    inputs: Inputs,
    sampler: Sampler,
    watch: LossWatch,
    learning: Learning,
    days: Option<Days>,
    auto: Option<(AutoMarker, LookQueue)>,
    hot_keys: Option<(&'a HotKeyOptions, Causes)>,
    /// Hot-key presses with a pending authorization.
    presses: Gate<u32, AttributedPress>,
    /// Suspicions to examine, pending the authorization of the program's user to own the incident.
    suspicions: Gate<Caller, Suspicion>,
    armed: Nanos,
    /// Time of the next 2 Hz turn.
    next_calm: Nanos,
    /// Time of the last mark by hot key, here or in the session.
    hot_marked: Option<Nanos>,
    answered: LastPresses,
    unrecorded: Unrecorded,
    /// CPUs that changed state before the last check.
    moved_cpus: Vec<u16>,
    sealing: Sealing,
    /// Rate limits of marks by users other than root.
    marks: Rates,
    inquiries: Inquiries,
    descriptions: Descriptions,
    focuses: Focuses,
    details: Details,
    /// Uid that paused recording, and the time.
    paused: Option<(u32, Nanos)>,
}

impl<'a> Recorder<'a> {
    fn new(
        options: &'a RecorderOptions,
        kernel: Kernel<'a>,
        folder: IncidentFolder,
        counter: CounterProcess,
    ) -> Result<Recorder<'a>> {
        let armed = clock::now();
        look::tidy(&folder)?;
        let auto = options.auto.as_ref().map(|auto| {
            let marker = AutoMarker::new(auto.clone(), Tolerances::open(options.dirs.tolerances()));
            LookQueue::open(&folder, &auto.judge, &options.sealer).map(|looks| (marker, looks))
        });
        let chords = options.hot_keys.as_ref().map(HotKeyOptions::chords).transpose()?;
        let inputs = match (options.tap, chords) {
            (Tap::Off, None) => Inputs::default(),
            (_, chords) => Inputs::open(chords.unwrap_or_default()),
        };
        let descriptions = Descriptions::start(&folder);
        let days =
            options.day.then(|| Days::open(options.dirs.days(), &kernel, armed)).transpose()?;
        Ok(Recorder {
            options,
            kernel,
            ids: IncidentIds::new(folder.clone()),
            folder,
            displays: Displays::default(),
            inputs,
            sampler: Sampler::open(options.window),
            watch: LossWatch::new(armed, counter),
            learning: Learning::open(options.dirs.baselines(), armed),
            days,
            auto: auto.transpose()?,
            hot_keys: options.hot_keys.as_ref().map(|keys| (keys, Causes::start(&keys.judge))),
            presses: authorization::presses(&options.allowed).context(NO_THREAD)?,
            suspicions: authorization::processes(&options.allowed).context(NO_THREAD)?,
            armed,
            next_calm: armed,
            hot_marked: None,
            answered: LastPresses::default(),
            unrecorded: Unrecorded::default(),
            moved_cpus: Vec::new(),
            sealing: Sealing::default(),
            marks: Rates::new(MARKS_BURST, MARK_EVERY),
            inquiries: Inquiries::default(),
            descriptions,
            focuses: Focuses::default(),
            details: Details::new(&options.details),
            paused: None,
        })
    }

    /// Reads the state from before the start, and announces that recording has begun.
    fn announce(&mut self) -> Result<()> {
        for line in command_lines() {
            self.kernel.remember_command_line(&line)?;
        }
        let displays =
            if self.options.tap == Tap::Off { Vec::new() } else { self.displays.refresh() };
        let names = self.recorded(&displays);
        let mut lines = vec![format!(
            "recording the last {} s in {} MiB, displays: {}, marks in {}",
            self.options.window.0 / 1_000_000_000,
            self.options.memory >> 20,
            if names.is_empty() { "none yet".to_owned() } else { names.join(" ") },
            self.folder.path().display()
        )];
        lines.extend(self.options.auto.as_ref().map(|auto| {
            let what = if auto.mode == AutoMode::Mark { "marking" } else { "reporting" };
            format!("{what} hitches automatically, at most {} an hour", auto.per_hour)
        }));
        if self.days.is_some() {
            lines.push("counting each user's latencies (tipme day)".to_owned());
        }
        if let Some(dir) = self.options.dirs.chosen() {
            lines.push(format!("other commands find it by --state-dir {}", dir.display()));
        }
        lines.extend(self.hot_keys.as_ref().map(|(keys, _)| keys.announce(self.inputs.count())));
        journal::info(lines.join("\n")).event(JournalEvent::Recording).tell();
        let missing = self.kernel.missing().iter();
        missing.for_each(|missing| {
            let words = format!("not recorded: {} ({})", missing.what, missing.why);
            journal::info(words).event(JournalEvent::NotRecorded).tell();
        });
        Ok(())
    }

    fn serve(&mut self, mut server: Server, signals: &SignalStream) -> Result<()> {
        let (mut next_tick, mut watchdog) = (clock::now(), Watchdog::ready());
        loop {
            watchdog.go_on();
            let now = clock::now();
            if now >= next_tick {
                self.turn(now)?;
                next_tick = now.after(self.period());
            }
            let rest = server
                .timeout(Instant::now())
                .map_or(Nanos(u64::MAX), |rest| Nanos(rest.as_nanos() as u64));
            let ready =
                wait(&server, signals, &self.kernel, next_tick.since(clock::now()).min(rest))?;
            self.focuses.update(self.kernel.focus_changes());
            // A silent connection still has to be polled: its timeout may end.
            if !ready && server.timeout(Instant::now()).is_none() {
                continue;
            }
            for signal in signals.arrived() {
                if signal != SIGUSR1 {
                    return Ok(());
                }
                self.mark_by_signal();
            }
            for call in server.calls(Instant::now()) {
                self.answer(call);
            }
        }
    }

    /// Does the 10 Hz work. A hot-key press is answered before any examination that follows.
    fn turn(&mut self, now: Nanos) -> Result<()> {
        self.tick(now)?;
        if now >= self.next_calm {
            self.next_calm = now.after(CALM_PERIOD);
            self.calm_turn(now);
        }
        self.answer_keys();
        self.notice(now);
        self.inputs.forget(now.before(self.options.window));
        Ok(())
    }

    /// Does the work for which twice a second suffices.
    fn calm_turn(&mut self, now: Nanos) {
        self.follow_cpus();
        self.know_servers();
        self.settle_details(now);
        self.learning.tick(&self.kernel, now);
        if let Some(days) = &mut self.days {
            days.tick(&self.kernel, &mut self.learning, now);
        }
        self.focuses.update(self.kernel.focuses());
    }

    /// Orders samples of CPUs that changed state before the previous call: a new CPU is ready some
    /// milliseconds later.
    fn follow_cpus(&mut self) {
        let moved = std::mem::replace(&mut self.moved_cpus, self.kernel.moved_cpus());
        for cpu in self.watch.counter_mut().sample(moved) {
            self.kernel.miss_samples(cpu);
        }
    }

    /// Updates the kernel programs with the drawing requests of X servers.
    fn know_servers(&mut self) {
        if let Some((display, listener)) = self.kernel.unknown_server()
            && self.options.tap.takes(display)
        {
            self.displays.ask(display, listener);
        }
        if let Some(found) = self.displays.news()
            && let Err(error) = self.kernel.know_servers(&found)
        {
            journal::warning(format!("cannot recognize drawing requests of X servers: {error:#}"))
                .show();
        }
    }

    /// Returns the time to the next tick. Input devices are drained at 10 Hz, since they buffer few
    /// events.
    fn period(&self) -> Nanos {
        let suspects =
            self.auto.as_ref().is_some_and(|(auto, looks)| auto.suspects() || looks.running());
        let suspects = suspects || self.suspicions.waiting().next().is_some();
        let busy = suspects
            || self.sampler.is_busy()
            || self.watch.is_measuring()
            || self.inputs.count() > 0;
        if busy { PERIOD } else { CALM_PERIOD }
    }

    /// Waits for incidents being sealed: a user may mark and then stop the recorder.
    fn finish(&mut self) {
        let begun = Instant::now();
        while (self.sealing.any()
            || self.descriptions.any()
            || self.auto.as_ref().is_some_and(|(_, looks)| looks.running()))
            && begun.elapsed() < FINISH_MAX
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.settle_looks(clock::now());
        if let Some((_, looks)) = &self.auto {
            looks.stop();
        }
        if let Some((_, causes)) = self.hot_keys.take() {
            causes.stop();
        }
        self.learning.merge(&self.kernel, clock::now());
        self.learning.save();
        if let Some(days) = &mut self.days {
            days.take(&self.kernel, &mut self.learning, clock::now());
            days.save();
        }
    }

    fn tick(&mut self, now: Nanos) -> Result<()> {
        if self.paused.is_none() {
            self.sampler.sample(now);
        }
        self.watch.tick(&self.kernel, self.inputs.overruns(), now)?;
        if !self.unrecorded.is_stopped() && self.options.tap != Tap::Off && self.paused.is_none() {
            self.inputs.drain();
        } else {
            self.inputs.discard();
        }
        Ok(())
    }

    fn answer(&mut self, call: Call) {
        let uid = call.caller.uid;
        let response = match call.request.clone() {
            RecorderRequest::Mark { text, trigger } => {
                let mark = Mark { text, trigger: trigger.name().to_owned(), uid, at: None };
                return self.mark(mark, move |response| call.answer(&response));
            }
            RecorderRequest::Describe { incident, text, right } => {
                let words = Words { text, right, at_ns: clock::now().0 };
                self.apply_verdict(&incident, uid, right);
                return self.descriptions.add(incident, words, call);
            }
            RecorderRequest::Remove { id } => self.remove(&id, uid),
            RecorderRequest::Pin { id, pinned } => done(self.folder.pin(&id, uid, pinned)),
            RecorderRequest::Keys { record } => self.record_keys(uid, record),
            RecorderRequest::Status => {
                let (because, focus) = (call.entitled.to_string(), self.focuses.seen_by(uid));
                let (suggested, tolerances) = self.feedback_of(uid);
                RecorderResponse::Status(RecorderStatus {
                    because,
                    focus,
                    suggested,
                    tolerances,
                    ..self.status()
                })
            }
            RecorderRequest::Day { from_s, to_s, user } => {
                self.day_figures(uid, user.unwrap_or(uid), from_s, to_s)
            }
            RecorderRequest::ForgetDays => {
                self.days_of(|days| days.forget(uid).map(|()| RecorderResponse::Done))
            }
            RecorderRequest::Follow => return self.focuses.follow(call),
            RecorderRequest::Start => self.start_again(uid),
            RecorderRequest::Pause => self.pause(uid),
            RecorderRequest::Detail { details, seconds } => {
                self.record_closely(uid, &details, seconds)
            }
        };
        call.answer(&response);
    }

    /// Returns the owner of incidents that no particular user asked for.
    fn owner(&self) -> u32 {
        self.options.allowed.first().copied().unwrap_or(0)
    }

    fn mark_by_signal(&mut self) {
        let mark =
            Mark { text: String::new(), trigger: "signal".to_owned(), uid: self.owner(), at: None };
        self.mark(mark, |response| match response {
            RecorderResponse::Marked { incident, .. } => {
                journal::info(format!("incident {}", incident.display())).show()
            }
            RecorderResponse::Error(why) => journal::error(why).show(),
            _ => {}
        });
    }

    /// Captures at once, seals in a thread, and answers when the file is complete.
    fn mark(&mut self, mark: Mark, answer: impl FnOnce(RecorderResponse) + Send + 'static) {
        let begun = Instant::now();
        let turn = match self.turn_of(mark.uid) {
            Ok(turn) => turn,
            Err(why) => {
                let response = RecorderResponse::Error(why);
                // Clients report their own refusals.
                if mark.is_own() {
                    outcome::log_mark(&mark, &response);
                }
                return answer(response);
            }
        };
        if let Some((auto, _)) = &mut self.auto {
            auto.marked_by_hand(&self.kernel, &mut self.learning, mark.uid, clock::now());
        }
        if mark.is_press() {
            let now = clock::now();
            self.hot_marked = Some(mark.at.map_or(now, |at| at.min(now)));
        }
        let (capture, input_stopped) = (self.capture(&mark), self.unrecorded.is_stopped());
        let answered = self.answered.clone();
        let pressed =
            capture.as_ref().ok().filter(|_| mark.is_press()).map(|capture| &capture.meta);
        let pressed = pressed.map(|meta| (Nanos(meta.mark_ns), Nanos(meta.answered_ns)));
        pressed.into_iter().for_each(|(at, _)| answered.add(mark.uid, at));
        let (displays, inquiries) = (self.displays.clone(), self.inquiries.clone());
        let (folder, sealer) = (self.folder.clone(), self.options.sealer.clone());
        std::thread::spawn(move || {
            let raw = capture
                .and_then(|capture| RawIncident::gather(capture, &displays, &inquiries, &sealer));
            let sealed = raw.and_then(|raw| raw.seal_or_rescue(&folder, &sealer));
            if let (Some((at, before)), Err(_)) = (pressed, &sealed) {
                answered.withdraw(mark.uid, at, before);
            }
            let response = match sealed {
                Ok(path) => marked(path, begun, input_stopped),
                Err(error) => refuse(format!("{error:#}")),
            };
            outcome::log_mark(&mark, &response);
            answer(response);
            drop(turn);
        });
    }

    /// Returns the right to one mark now, or the reason for its refusal.
    fn turn_of(&mut self, uid: u32) -> Result<Turn, String> {
        self.without_recording().map_or(Ok(()), Err)?;
        let turn = self.sealing.begin(uid)?;
        if uid != 0
            && let Some(wait) = self.marks.take(uid, Instant::now())
        {
            let seconds = wait.as_secs() + 1;
            return Err(format!("user {uid} marks too often; wait {seconds} s, or mark as root"));
        }
        Ok(turn)
    }

    fn capture(&mut self, mark: &Mark) -> Result<Capture> {
        let now = clock::now();
        self.sampler.read_files_soon();
        self.tick(now).ok();
        self.learning.merge(&self.kernel, now);
        let sources = CaptureSources {
            kernel: &mut self.kernel,
            sampler: &self.sampler,
            watch: &mut self.watch,
            inputs: &self.inputs,
            unrecorded: &self.unrecorded,
            learning: &self.learning,
            armed: self.armed,
            window: self.options.window,
            details: &self.details,
            ids: &mut self.ids,
            answered: &self.answered,
        };
        Capture::take(sources, mark)
    }
}

fn done(result: Result<(), tipme_store::WriteError>) -> RecorderResponse {
    result.map_or_else(refuse, |()| RecorderResponse::Done)
}

fn marked(incident: std::path::PathBuf, begun: Instant, input_stopped: bool) -> RecorderResponse {
    let id = incident.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    RecorderResponse::Marked { incident, id, seconds: begun.elapsed().as_secs_f64(), input_stopped }
}

/// Waits for a request, a signal, a focus change or the next tick; returns `true` unless the wait
/// timed out.
fn wait(
    server: &Server,
    signals: &SignalStream,
    kernel: &Kernel<'_>,
    until_tick: Nanos,
) -> Result<bool> {
    let mut fds: Vec<PollFd<'_>> =
        server.fds().into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    fds.extend(
        [signals.fd(), kernel.focus_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
    );
    let timeout = Timespec { tv_sec: 0, tv_nsec: until_tick.0.min(999_999_999) as i64 };
    match poll(&mut fds, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(error).context("cannot wait for requests"),
    }
}

#[cfg(test)]
mod tests {
    mod hot_keys;
}
