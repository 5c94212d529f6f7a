// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme agent`: the session's hot keys, and what follows a mark.
//!
//! The thread with the keys does nothing but wait for keys. Each mark has a thread that asks the
//! recorder for the incident and then for the user's words; one more thread diagnoses incidents in
//! the order in which they are written, and each cause has a thread that tells it. So several marks in a row never
//! wait for a dialog, a diagnosis or a notification daemon.

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
use std::sync::mpsc::{self, SyncSender};
use std::time::Duration;
use teller::Teller;
use tipme_bench::interrupt::Interrupt;
use tipme_control::{Client, DEFAULT_STATE_DIR, Request, Response, Trigger};
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
    let agent = Arc::new(Agent::new(&arguments, name));
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
    diagnoses: SyncSender<PathBuf>,
    teller: Teller,
    marks: Crew,
}

impl Agent {
    fn new(arguments: &arguments::Agent, display: String) -> Agent {
        let (diagnoses, waiting) = mpsc::sync_channel::<PathBuf>(DIAGNOSES_MAX);
        let asker = if arguments.no_dialog { None } else { Asker::find() };
        let teller = Teller::new(!arguments.no_notification, asker.clone(), &display);
        let of_causes = teller.clone();
        std::thread::spawn(move || waiting.into_iter().for_each(|incident| tell_cause(&incident, &of_causes)));
        Agent {
            client: Client::new(arguments.state_dir.as_deref().unwrap_or(Path::new(DEFAULT_STATE_DIR))),
            display,
            asker,
            diagnoses,
            teller,
            marks: Crew::new(MARKS_MAX),
        }
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
        let agent = Arc::clone(self);
        let begun = self.marks.start(move || {
            if let Err(error) = agent.act(action) {
                agent.fail(failure(action), &error);
            }
        });
        if !begun {
            let why = "marks are still being written or described; answer the open dialogs first";
            self.fail(failure(action), &Error::msg(format!("{MARKS_MAX} {why}")));
        }
    }

    /// Tells what failed, and why.
    fn fail(&self, what: &str, why: &Error) {
        eprintln!("tipme: {why:#}");
        self.teller.tell(Notice::new(what, format!("{why:#}")));
    }

    fn act(&self, action: Action) -> Result<()> {
        match action {
            Action::Mark => self.mark(),
            Action::Start => self.start(),
            Action::StopKeys => self.record_keys(false),
            Action::StartKeys => self.record_keys(true),
        }
    }

    fn start(&self) -> Result<()> {
        self.client.call(&Request::Start)?;
        say("recording");
        Ok(())
    }

    fn record_keys(&self, record: bool) -> Result<()> {
        self.client.call(&Request::Keys { record })?;
        say(if record { "input is recorded again" } else { "input is no longer recorded" });
        Ok(())
    }

    fn mark(&self) -> Result<()> {
        let request = Request::Mark { text: String::new(), trigger: Trigger::Hotkey };
        let Response::Marked { incident, .. } = self.client.call(&request)? else {
            bail!("the recorder answered a mark with something else; restart it")
        };
        say(&format!("marked {}", incident.display()));
        if self.diagnoses.try_send(incident.clone()).is_err() {
            let why = format!("too many incidents wait for a diagnosis; run: tipme diagnose {}", incident.display());
            self.fail("Marked, but not yet diagnosed", &Error::msg(why));
        }
        if let Err(error) = self.describe(incident) {
            self.fail("Marked, but without a description", &error);
        }
        Ok(())
    }

    /// Asks for the user's words and adds them to the incident; without a program that asks, there are none.
    fn describe(&self, incident: PathBuf) -> Result<()> {
        let Some(asker) = &self.asker else { return Ok(()) };
        let dialog = Dialog::open(asker, "What was slow?", &self.display)?;
        let Some(text) = dialog.answer(ANSWER_PATIENCE) else { return Ok(()) };
        self.client.call(&Request::Describe { incident, text })?;
        Ok(())
    }
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

/// Diagnoses an incident and tells the cause.
fn tell_cause(incident: &Path, teller: &Teller) {
    let notice = diagnose::notice(incident);
    say(&format!("{}\n{}", notice.summary, notice.body));
    teller.tell(notice);
}

/// A line on the standard output; a reader that is gone is no reason to stop serving keys.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
