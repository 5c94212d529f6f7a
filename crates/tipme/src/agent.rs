// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme agent`: the session's hot keys, and what follows a mark.
//!
//! The thread with the keys does nothing but wait for keys. Each press has a thread that asks the recorder; one more
//! thread diagnoses incidents in the order in which they are written, one tells, and each button that is pressed has a
//! thread again. So several marks in a row never wait for a dialog, a diagnosis or a notification daemon. Nothing takes the
//! focus that was not asked for, where a notification daemon runs.

mod crew;
mod keys;
mod place;
mod teller;

use crate::arguments;
use crate::diagnose;
use anyhow::{Context, Error, Result, bail};
use crew::Crew;
use place::Place;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::time::Duration;
use teller::{Choice, Chosen, Message, Press, Teller};
use tipme_bench::interrupt::Interrupt;
use tipme_control::{CallError, Client, DEFAULT_STATE_DIR, Request, Response, Status, Trigger};
use tipme_desktop::Target;
use tipme_desktop::dialog::{Asker, Dialog};
use tipme_desktop::hotkeys::{Action, Event, HotKeys};
use tipme_report::Notice;

/// The longest that an interrupt waits to be seen.
const GLANCE: Duration = Duration::from_millis(250);
/// Marks that are being written or described at a time; a further press is refused.
const MARKS_MAX: usize = 8;
/// Incidents that wait for their diagnosis; the next one is left to `tipme diagnose`.
const DIAGNOSES_MAX: usize = 16;
/// How long a dialog stays open.
const ANSWER_PATIENCE: Duration = Duration::from_secs(300);
/// How long the details of a verdict stay open.
const READ_PATIENCE: Duration = Duration::from_secs(3600);
/// By so much a mark comes before the question how far it reaches, which must not hold it up.
const HEAD_START: Duration = Duration::from_millis(20);
/// How long the recorder may take to say how far it reaches: the press is answered within 300 ms.
const STATUS_PATIENCE: Duration = Duration::from_millis(150);

/// Serves the keys until SIGINT or SIGTERM.
///
/// Prints `ready: …` once the keys are held that can be had, `marked PATH` for each incident, and then its cause.
pub fn run(arguments: arguments::Agent) -> Result<ExitCode> {
    let name = arguments.display.clone().or_else(|| std::env::var("DISPLAY").ok());
    let name = name.context("no display is named; set DISPLAY or give --display")?;
    let target = Target::parse(&name)?;
    let interrupt = Interrupt::install()?;
    let mut place = Place::take(&target)?;
    let mut keys = HotKeys::grab(&target, arguments.keys.bindings())?;
    let agent = Agent::start(&arguments, name);
    agent.announce(&mut keys, &place)?;
    while interrupt.check().is_ok() {
        match keys.next(GLANCE)? {
            Some(Event::Pressed { action, .. }) => agent.press(action),
            Some(Event::Lost(why)) => eprintln!("tipme: {why}; waiting for the display to come back"),
            Some(Event::Restored) => {
                place = Place::take(&target)?;
                agent.announce(&mut keys, &place)?;
            }
            Some(Event::Changed) => agent.announce(&mut keys, &place)?,
            None => {}
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What presses are answered with.
struct Agent {
    client: Client,
    display: String,
    asker: Option<Asker>,
    /// Incidents to be diagnosed.
    diagnoses: SyncSender<(PathBuf, Press, bool)>,
    teller: Teller,
    marks: Crew,
    /// What is done with verdicts: dialogs and details.
    choices: Crew,
    presses: AtomicU64,
    /// The key that restarts the recording of input.
    restart_key: String,
}

impl Agent {
    fn start(arguments: &arguments::Agent, display: String) -> Arc<Agent> {
        let (diagnoses, waiting) = mpsc::sync_channel(DIAGNOSES_MAX);
        let asker = if arguments.no_dialog { None } else { Asker::find() };
        let (teller, chosen) = Teller::new(!arguments.no_notification, asker.clone(), &display);
        let agent = Arc::new(Agent {
            client: Client::new(arguments.state_dir.as_deref().unwrap_or(Path::new(DEFAULT_STATE_DIR))),
            display,
            asker,
            diagnoses,
            teller,
            marks: Crew::new(MARKS_MAX),
            choices: Crew::new(MARKS_MAX),
            presses: AtomicU64::new(0),
            restart_key: arguments.keys.start_keys_key.to_string(),
        });
        let (judge, chooser) = (Arc::clone(&agent), Arc::clone(&agent));
        std::thread::spawn(move || {
            waiting.iter().for_each(|(incident, press, stopped)| judge.tell_cause(incident, press, stopped));
        });
        std::thread::spawn(move || chosen.iter().for_each(|chosen| chooser.choose(chosen)));
        agent
    }

    /// Says which keys do what, here and at the screen; where the key that marks cannot be had, it takes another.
    fn announce(&self, keys: &mut HotKeys, place: &Place) -> Result<()> {
        let held = keys::settle(keys)?;
        place.say(&held);
        let manager = place.window_manager();
        for line in held.complaints(manager.as_deref()) {
            eprintln!("tipme: {line}");
        }
        say(&format!("ready: {held} on {}", self.display));
        held.notice(manager.as_deref()).into_iter().for_each(|notice| self.teller.tell(notice));
        Ok(())
    }

    /// Answers a key on a thread of its own.
    fn press(self: &Arc<Agent>, action: Action) {
        let (agent, press) = (Arc::clone(self), Press(self.presses.fetch_add(1, Ordering::Relaxed)));
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

    /// Tells what failed, and why.
    fn fail(&self, what: &str, why: &Error, press: Option<Press>) {
        eprintln!("tipme: {why:#}");
        let notice = Notice::new(what, format!("{why:#}"));
        self.teller.tell(Message { press, ..notice.into() });
    }

    /// Tells what was done.
    fn done(&self, summary: &str, body: &str, press: Press) {
        say(&summary.to_lowercase());
        self.teller.tell(Message { press: Some(press), ..Notice::new(summary, body).into() });
    }

    fn act(&self, action: Action, press: Press) -> Result<()> {
        match action {
            Action::Mark => return self.mark(press),
            Action::Start => {
                self.client.call(&Request::Start)?;
                self.done("Recording", &self.state(), press);
            }
            Action::StopKeys => {
                self.client.call(&Request::Keys { record: false })?;
                self.done("Input is no longer recorded", &self.without_input(), press);
            }
            Action::StartKeys => {
                self.client.call(&Request::Keys { record: true })?;
                self.done("Input is recorded again", &self.state(), press);
            }
        }
        Ok(())
    }

    /// What the recorder does now, in a sentence.
    fn state(&self) -> String {
        match self.client.call(&Request::Status) {
            Ok(Response::Status(status)) => format!("Of the last {:.0} s everything is held.", held(&status)),
            _ => String::new(),
        }
    }

    fn without_input(&self) -> String {
        format!(
            "What a mark finds cannot say which key or click had to wait; {} records input again.",
            self.restart_key
        )
    }

    fn mark(&self, press: Press) -> Result<()> {
        let (client, request) = (self.client.clone(), Request::Mark { text: String::new(), trigger: Trigger::Hotkey });
        let marking = std::thread::spawn(move || client.call(&request));
        self.tell_capture(press);
        let answer = marking.join().map_err(|_| Error::msg("the mark ended early; press again"))?;
        let Response::Marked { incident, input_stopped, .. } = answer? else {
            bail!("the recorder answered a mark with something else; restart it")
        };
        say(&format!("marked {}", incident.display()));
        if self.diagnoses.try_send((incident.clone(), press, input_stopped)).is_err() {
            let why = format!("too many incidents wait for a diagnosis; run: tipme diagnose {}", incident.display());
            self.fail("Marked, but not yet diagnosed", &Error::msg(why), Some(press));
        }
        if !self.teller.shows() {
            self.describe(&incident)?;
        }
        Ok(())
    }

    /// Says at once that the press was seen. The recorder answers after it has copied what the mark is about.
    fn tell_capture(&self, press: Press) {
        std::thread::sleep(HEAD_START);
        let asked = self.client.clone().with_patience(STATUS_PATIENCE).call(&Request::Status);
        let summary = match asked {
            Ok(Response::Status(status)) => format!("Captured the last {:.0} s, looking for the cause", held(&status)),
            Err(CallError::Silent { .. }) => "Capturing, and looking for the cause".to_owned(),
            // The mark itself tells why.
            _ => return,
        };
        self.teller.tell(Message { press: Some(press), passing: true, ..Notice::new(summary, "").into() });
    }

    /// Diagnoses an incident and tells the cause.
    fn tell_cause(&self, incident: PathBuf, press: Press, input_stopped: bool) {
        let mut notice = diagnose::notice(&incident);
        if input_stopped {
            notice.body = format!("Input is not recorded. {}\n{}", self.without_input(), notice.body);
        }
        say(&format!("{}\n{}", notice.summary, notice.body));
        self.teller.tell(Message { notice, press: Some(press), passing: false, verdict: Some(incident) });
    }

    /// Does what a button asks for, on a thread of its own.
    fn choose(self: &Arc<Agent>, (choice, incident, press): Chosen) {
        let agent = Arc::clone(self);
        let begun = self.choices.start(move || {
            if let Err(error) = agent.answer(choice, &incident, press) {
                agent.fail("That could not be done", &error, None);
            }
        });
        if !begun {
            self.fail("Too many windows are open", &Error::msg("close some, and press again"), None);
        }
    }

    fn answer(&self, choice: Choice, incident: &Path, press: Press) -> Result<()> {
        match choice {
            Choice::Details => self.details(incident),
            Choice::Note => self.describe(incident),
            Choice::Right => self.judge(incident, true, press),
            Choice::Wrong => self.judge(incident, false, press),
        }
    }

    fn details(&self, incident: &Path) -> Result<()> {
        let how = || format!("no program shows it; run: tipme diagnose {}", incident.display());
        let asker = self.asker.as_ref().with_context(how)?;
        let page = Dialog::page(asker, &diagnose::text(incident)?, &self.display)?;
        drop(page.answer(READ_PATIENCE));
        Ok(())
    }

    /// Keeps whether the cause was the one.
    fn judge(&self, incident: &Path, right: bool, press: Press) -> Result<()> {
        self.client.call(&Request::Describe {
            incident: incident.to_owned(),
            text: String::new(),
            right: Some(right),
        })?;
        let summary = if right { "Kept: it was this" } else { "Kept: it was something else" };
        self.done(summary, "tipme incidents counts these answers.", press);
        Ok(())
    }

    /// Asks for the user's words and adds them to the incident; without a program that asks, there are none.
    fn describe(&self, incident: &Path) -> Result<()> {
        let how = || format!("no program asks for words; run: tipme incidents note {} WORDS", incident.display());
        let asker = match &self.asker {
            None if !self.teller.shows() => return Ok(()),
            asker => asker.as_ref().with_context(how)?,
        };
        let dialog = Dialog::open(asker, "What was slow?", &self.display)?;
        let Some(text) = dialog.answer(ANSWER_PATIENCE) else { return Ok(()) };
        self.client.call(&Request::Describe { incident: incident.to_owned(), text, right: None })?;
        Ok(())
    }
}

/// Seconds that a mark reaches back now.
fn held(status: &Status) -> f64 {
    status.held_s.min(status.window_s)
}

/// What a press that failed was for.
fn failure(action: Action) -> &'static str {
    match action {
        Action::Mark => "The mark failed",
        Action::Start => "Starting the recording failed",
        Action::StopKeys => "Stopping the recording of input failed",
        Action::StartKeys => "Restarting the recording of input failed",
    }
}

/// A line on the standard output; a reader that is gone is no reason to stop serving keys.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
