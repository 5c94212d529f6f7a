// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme agent`: the session's hot keys, and the response to a mark.
//!
//! The key thread only waits for keys. Each press gets a thread that calls the recorder; one more
//! thread diagnoses incidents in the order in which they are written, one shows notifications, and
//! each notification button starts a thread of its own. Marks in quick succession thus never wait
//! for a dialog, a diagnosis or a notification daemon. The agent takes the focus only on request;
//! if it may show no notifications, a mark opens a dialog for a note.

mod choices;
mod ending;
mod keys;
mod messages;
mod place;
mod popups;
mod press;
mod serve;
mod wayland;
mod workers;

pub use serve::run;

use crate::arguments;
use crate::diagnose::{self, Conclusion};
use crate::incidents::cache::{VerdictFolder, VerdictSummary};
use crate::incidents::lookup::find;
use crate::judge;
use crate::report::browser;
use crate::status::resuming;
use anyhow::{Context, Error, Result, bail, ensure};
use choices::Choice;
use messages::{Chosen, Message, MessageQueue};
use place::AgentPlace;
use popups::Popups;
use press::PressNumber;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tipme_control::journal::{self, Field};
use tipme_control::{
    CallError, Client, DEFAULT_STATE_DIR, RecorderRequest, RecorderResponse, RecorderStatus,
    Trigger,
};
use tipme_desktop::clipboard::Clipboard;
use tipme_desktop::dialog::{Dialog, DialogProgram};
use tipme_desktop::hotkeys::{HotKeyAction, HotKeys};
use tipme_desktop::{DisplayTarget, clock};
use tipme_record::Nanos;
use tipme_recorder::StateDirs;
use tipme_report::{Layout, Notice};
use tipme_store::{IncidentFolder, id_ago};
use workers::Workers;

/// Time between two checks for an incident that the recorder marked by itself.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of marks being written or described; a further press is refused.
const MARKS_MAX: usize = 8;
/// Maximum number of incidents queued for diagnosis; the next one is left to `tipme diagnose`.
const DIAGNOSES_MAX: usize = 16;
/// Time for which a dialog stays open.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);
/// Time for which the details of a verdict stay open.
const READ_TIMEOUT: Duration = Duration::from_secs(3600);
/// Longest single wait for a clipboard request; repeating the wait does no harm.
const CLIPBOARD_POLL_INTERVAL: Nanos = Nanos::from_secs(3600);
/// Maximum time by which the recorder sees its own hot keys before the agent does.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(1);
/// Timeout for the incident that the recorder marks by itself.
const MARK_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of a status request about the recorder's window and hot keys; a mark waits no longer,
/// and the press gets its response within 300 ms.
const STATUS_TIMEOUT: Duration = Duration::from_millis(150);

/// Time within which the recorder refuses a mark, if it does.
const REFUSED_WITHIN: Duration = Duration::from_millis(60);

/// A response of the recorder.
type Answer = Result<RecorderResponse, CallError>;

/// Shared state for handling presses.
struct Agent {
    client: Client,
    display: String,
    asker: Option<DialogProgram>,
    /// Queue of incidents to diagnose.
    diagnoses: SyncSender<(PathBuf, PressNumber, bool)>,
    messages: MessageQueue,
    marks: Workers,
    /// Threads for dialogs and details of verdicts.
    choices: Workers,
    presses: AtomicU64,
    /// The recorder's folder of incidents.
    incidents: IncidentFolder,
    /// Key that restarts the recording of input.
    restart_key: String,
    /// Last incident with a noticeable delay.
    last_answered: Mutex<Option<PathBuf>>,
}

impl Agent {
    fn start(arguments: &arguments::AgentArguments, display: String) -> Arc<Agent> {
        let (diagnoses, waiting) = mpsc::sync_channel(DIAGNOSES_MAX);
        let asker = if arguments.no_dialog { None } else { DialogProgram::find() };
        let target = if arguments.no_dialog { None } else { DisplayTarget::parse(&display).ok() };
        let (messages, chosen) =
            MessageQueue::new(!arguments.no_notification, target.map(Popups::on));
        let agent = Arc::new(Agent {
            client: Client::new(
                arguments.state_dir.as_deref().unwrap_or(Path::new(DEFAULT_STATE_DIR)),
            ),
            display,
            asker,
            diagnoses,
            messages,
            marks: Workers::new(MARKS_MAX),
            choices: Workers::new(MARKS_MAX),
            presses: AtomicU64::new(0),
            incidents: IncidentFolder::at(
                StateDirs::choose(arguments.state_dir.as_deref()).incidents(),
            ),
            restart_key: arguments.keys.start_keys_key.to_string(),
            last_answered: Mutex::default(),
        });
        let (judge, chooser) = (Arc::clone(&agent), Arc::clone(&agent));
        std::thread::spawn(move || {
            for (incident, press, stopped) in waiting {
                judge.show_cause(incident, press, stopped);
            }
        });
        std::thread::spawn(move || chosen.iter().for_each(|chosen| chooser.choose(chosen)));
        agent
    }

    /// Announces the keys on standard error and on screen; uses a fallback if the mark key is
    /// unavailable.
    fn announce(&self, keys: &mut HotKeys, place: &AgentPlace) -> Result<()> {
        let held = keys::choose_mark_key(keys)?;
        place.publish(&held.to_string());
        let manager = place.window_manager();
        for line in held.complaints(manager.as_deref()) {
            journal::warning(line).tell();
        }
        journal::info(format!("ready: {held} on {}", self.display)).tell();
        if let Some(notice) = held.notice(manager.as_deref()) {
            self.messages.send(notice);
        }
        Ok(())
    }

    /// Warns at startup if a press would fail.
    fn warn_without_recorder(&self) {
        if let Err(error) = self.quick_status() {
            journal::warning(format!("{error}; until then a press finds no cause")).tell();
        }
    }

    /// Queries the recorder without waiting long.
    fn quick_status(&self) -> Answer {
        self.client.clone().with_timeout(STATUS_TIMEOUT).call(&RecorderRequest::Status)
    }

    /// Handles a key on a thread of its own.
    fn press(self: &Arc<Agent>, action: HotKeyAction) {
        let (agent, press) =
            (Arc::clone(self), PressNumber(self.presses.fetch_add(1, Ordering::Relaxed)));
        let begun = self.marks.start(move || {
            if let Err(error) = agent.act(action, press) {
                agent.fail(failure(action), &error, Some(press));
            }
        });
        if !begun {
            let why = "marks are still being written or described; answer the open dialogs first";
            self.fail(failure(action), &Error::msg(format!("{MARKS_MAX} {why}")), Some(press));
        }
    }

    /// Reports a failure and its reason.
    fn fail(&self, what: &str, why: &Error, press: Option<PressNumber>) {
        journal::error(format!("{why:#}")).tell();
        let notice = Notice::new(what, format!("{why:#}"));
        self.messages.send(Message { press, ..notice.into() });
    }

    /// Reports a completed action.
    fn done(&self, summary: &str, body: &str, press: PressNumber) {
        journal::info(summary.to_lowercase()).tell();
        self.messages.send(Message { press: Some(press), ..Notice::new(summary, body).into() });
    }

    fn act(&self, action: HotKeyAction, press: PressNumber) -> Result<()> {
        match action {
            HotKeyAction::Mark => return self.mark(press),
            HotKeyAction::Start => {
                self.client.call(&RecorderRequest::Start)?;
                self.done("Recording", &self.state(), press);
            }
            HotKeyAction::StopKeys => {
                self.client.call(&RecorderRequest::Keys { record: false })?;
                self.done("Input is no longer recorded", &self.without_input(), press);
            }
            HotKeyAction::StartKeys => {
                self.client.call(&RecorderRequest::Keys { record: true })?;
                self.done("Input is recorded again", &self.state(), press);
            }
        }
        Ok(())
    }

    /// Describes the recorder's state in a sentence.
    fn state(&self) -> String {
        match self.client.call(&RecorderRequest::Status) {
            Ok(RecorderResponse::Status(status)) if status.input_stopped_s > 0.0 => {
                let (held, stopped) = (held(&status), status.input_stopped_s);
                format!(
                    "The last {held:.0} s are in memory, without input for {stopped:.1} s of them."
                )
            }
            Ok(RecorderResponse::Status(status)) => {
                format!("The last {:.0} s are in memory.", held(&status))
            }
            _ => String::new(),
        }
    }

    fn without_input(&self) -> String {
        format!(
            "Verdicts cannot name the key or click that was late; press {} to record input again.",
            self.restart_key
        )
    }

    /// Describes a mark without input, with the remedy that this user has.
    fn input_stopped(&self) -> String {
        let remedy = match self.quick_status() {
            Ok(RecorderResponse::Status(status)) => {
                resuming::without_input(&status, &self.restart_key)
            }
            _ => "not recorded".to_owned(),
        };
        format!(
            "Input is {remedy}. Without it, verdicts cannot name the key or click that was late."
        )
    }

    fn mark(&self, press: PressNumber) -> Result<()> {
        let status = self.quick_status();
        if matches!(&status, Ok(RecorderResponse::Status(status)) if status.any_keyboard) {
            return self.follow(press, &status);
        }
        let (client, request) = (
            self.client.clone(),
            RecorderRequest::Mark { text: String::new(), trigger: Trigger::Hotkey },
        );
        let marking = std::thread::spawn(move || client.call(&request));
        // A refusal comes at once, and nothing is captured then.
        let soon = Instant::now() + REFUSED_WITHIN;
        while !marking.is_finished() && Instant::now() < soon {
            std::thread::sleep(REFUSED_WITHIN / 10);
        }
        if !marking.is_finished() {
            self.show_capture(press, &status);
        }
        let answer = marking.join().map_err(|_| Error::msg("the mark ended early; press again"))?;
        let RecorderResponse::Marked { incident, input_stopped, .. } = answer? else {
            bail!("unexpected reply from the recorder; restart it")
        };
        self.marked(incident, press, input_stopped)
    }

    /// Queues an incident for diagnosis, and opens a dialog for a note if no verdict is shown.
    fn marked(&self, incident: PathBuf, press: PressNumber, input_stopped: bool) -> Result<()> {
        journal::info(format!("marked {}", incident.display())).tell();
        if self.diagnoses.try_send((incident.clone(), press, input_stopped)).is_err() {
            let why = format!(
                "too many incidents wait for a diagnosis; run: tipme diagnose {}",
                incident.display()
            );
            self.fail("Marked, but not yet diagnosed", &Error::msg(why), Some(press));
        }
        if !self.messages.shows() {
            self.describe(&incident)?;
        }
        Ok(())
    }

    /// Shows the cause of an incident that the recorder marked by itself; it sees the keys in any
    /// session, and one press is one mark.
    fn follow(&self, press: PressNumber, status: &Answer) -> Result<()> {
        let earliest = id_ago(FOLLOWED_WITHIN);
        self.show_capture(press, status);
        let deadline = Instant::now() + MARK_TIMEOUT;
        while Instant::now() < deadline {
            if let Ok(incident) = find(&self.incidents, None)
                && incident.file_stem().is_some_and(|id| *id.to_string_lossy() >= *earliest)
            {
                return self.marked(incident, press, false);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        bail!("the recorder reads the keys itself, but wrote no incident; see: tipme incidents")
    }

    /// Acknowledges the press at once. The recorder responds to a mark only after it has copied the
    /// records.
    fn show_capture(&self, press: PressNumber, status: &Answer) {
        let (summary, body) = match status {
            Ok(RecorderResponse::Status(status)) => (
                format!("Captured the last {:.0} s, looking for the cause", held(status)),
                String::new(),
            ),
            Err(CallError::Silent { .. }) => (
                "The recorder does not answer yet".to_owned(),
                format!(
                    "Waiting for up to {} s: it is busy or stopped, or the disk hangs.",
                    MARK_TIMEOUT.as_secs()
                ),
            ),
            // The mark itself reports the reason.
            _ => return,
        };
        self.messages.send(Message {
            press: Some(press),
            passing: true,
            ..Notice::new(summary, body).into()
        });
    }

    /// Diagnoses an incident and shows the cause.
    fn show_cause(&self, incident: PathBuf, press: PressNumber, input_stopped: bool) {
        let (mut notice, conclusion) = diagnose::notice(&incident);
        if input_stopped {
            notice.body = format!("{}\n{}", self.input_stopped(), notice.body);
        }
        log_verdict(&incident, &notice);
        if matches!(conclusion, Conclusion::Cause | Conclusion::DoubtfulCause) {
            *self.last_answered() = Some(incident.clone());
        }
        let choices = choices::for_conclusion(conclusion).iter().copied();
        let choices = choices
            .filter(|one| *one != Choice::Earlier || self.last_answered().is_some())
            .collect();
        self.messages.send(Message {
            press: Some(press),
            verdict: Some(incident),
            choices,
            ..notice.into()
        });
    }

    fn last_answered(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.last_answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a notification button on a thread of its own.
    fn choose(self: &Arc<Agent>, (choice, incident, press): Chosen) {
        let agent = Arc::clone(self);
        let begun = self.choices.start(move || {
            if let Err(error) = agent.answer(choice, &incident, press) {
                agent.fail("The action failed", &error, None);
            }
        });
        if !begun {
            self.fail(
                "Too many windows are open",
                &Error::msg("close some, and press again"),
                None,
            );
        }
    }

    fn answer(&self, choice: Choice, incident: &Path, press: PressNumber) -> Result<()> {
        match choice {
            Choice::Details => self.details(incident),
            Choice::Note => self.describe(incident),
            Choice::Right => self.judge(incident, true, press),
            Choice::Wrong => self.judge(incident, false, press),
            Choice::Copy => self.copy(incident),
            Choice::Earlier => {
                let earlier = self.last_answered().clone();
                let why = "the earlier verdict is no longer known; see: tipme incidents";
                self.details(&earlier.context(why)?)
            }
        }
    }

    /// Shows the details as a page in the browser, or as text if no browser opens.
    fn details(&self, incident: &Path) -> Result<()> {
        let Err(why) = browser::open(incident, Some(&self.display)) else { return Ok(()) };
        journal::warning(format!("{why:#}")).tell();
        let asker = self.asker.as_ref().with_context(|| {
            format!("no dialog program is installed; run: tipme diagnose {}", incident.display())
        })?;
        let page = Dialog::page(
            asker,
            &tipme_report::text(&diagnose::verdict(incident)?, &Layout::default()),
            &self.display,
        )?;
        drop(page.answer(READ_TIMEOUT));
        Ok(())
    }

    /// Serves the verdict from the clipboard until something else is copied, regardless of the
    /// notification.
    fn copy(&self, incident: &Path) -> Result<()> {
        let text = tipme_report::text(&judge::verdict(incident)?, &Layout::default());
        let mut clipboard = Clipboard::take(&self.display, &text)?;
        journal::info("copied").tell();
        self.messages.send(Notice::new(
            "Copied",
            "The verdict can be pasted, until something else is copied.",
        ));
        while clipboard.serve(clock::now().after(CLIPBOARD_POLL_INTERVAL))? {}
        Ok(())
    }

    /// Records the user's answer about the cause.
    fn judge(&self, incident: &Path, right: bool, press: PressNumber) -> Result<()> {
        self.client.call(&RecorderRequest::Describe {
            incident: incident.to_owned(),
            text: String::new(),
            right: Some(right),
        })?;
        let summary = if right { "Noted: it was this" } else { "Noted: it was something else" };
        journal::info(summary.to_lowercase()).tell();
        let notice = Notice::new(summary, "tipme incidents counts these answers.");
        let (choices, verdict) = (choices::after_answer(right).to_vec(), Some(incident.to_owned()));
        self.messages.send(Message { press: Some(press), verdict, choices, ..notice.into() });
        Ok(())
    }

    /// Asks for a note and adds it to the incident; does nothing without a dialog program.
    fn describe(&self, incident: &Path) -> Result<()> {
        let Some(asker) = &self.asker else {
            ensure!(
                !self.messages.shows(),
                "no dialog program is installed; run: tipme incidents note {} WORDS",
                incident.display()
            );
            return Ok(());
        };
        let dialog = Dialog::open(asker, "What was slow?", &self.display)?;
        let Some(text) = dialog.answer(ANSWER_TIMEOUT) else { return Ok(()) };
        self.client.call(&RecorderRequest::Describe {
            incident: incident.to_owned(),
            text,
            right: None,
        })?;
        Ok(())
    }
}

/// Seconds that a mark reaches back now.
fn held(status: &RecorderStatus) -> f64 {
    status.held_s.min(status.window_s)
}

/// Summary for a failed press.
fn failure(action: HotKeyAction) -> &'static str {
    match action {
        HotKeyAction::Mark => "The mark failed",
        HotKeyAction::Start => "Starting the recording failed",
        HotKeyAction::StopKeys => "Stopping the recording of input failed",
        HotKeyAction::StartKeys => "Restarting the recording of input failed",
    }
}

/// Reports a verdict in the journal, or on the terminal. The cause is available if the diagnosis
/// has cached it.
fn log_verdict(incident: &Path, notice: &Notice) {
    let entry = journal::info(format!("{}\n{}", notice.summary, notice.body))
        .event(journal::JournalEvent::Judged);
    let entry = entry.field(Field::Incident, incident.file_stem().unwrap_or_default().display());
    match VerdictFolder::open().get(incident) {
        Some(VerdictSummary { kind: Some(kind), culprit, application, .. }) => {
            let entry = entry.field(Field::Kind, kind).field(Field::Culprit, culprit);
            entry.field(Field::Application, application).tell();
        }
        _ => entry.tell(),
    }
}
