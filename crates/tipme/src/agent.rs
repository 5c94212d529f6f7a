// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme agent`: the session's hot keys, and what follows a mark.
//!
//! The thread with the keys does nothing but wait for keys. Each mark has a thread that asks the
//! recorder for the incident and then for the user's words; one more thread diagnoses incidents in
//! the order in which they are written. So several marks in a row never wait for a dialog or a
//! diagnosis.

use crate::arguments;
use crate::diagnose;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::time::Duration;
use tipme_bench::interrupt::Interrupt;
use tipme_control::{Client, DEFAULT_STATE_DIR, Request, Response, Trigger};
use tipme_desktop::Target;
use tipme_desktop::dialog::{Asker, Dialog};
use tipme_desktop::hotkeys::{Action, Event, HotKeys};
use tipme_desktop::notify::notify;

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
/// Prints `ready: …` once the keys are held, and `marked PATH` for each incident.
pub fn run(arguments: arguments::Agent) -> Result<ExitCode> {
    let name = arguments.display.clone().or_else(|| std::env::var("DISPLAY").ok());
    let name = name.context("no display is named; set DISPLAY or give --display")?;
    let target = Target::parse(&name)?;
    let interrupt = Interrupt::install()?;
    let mut keys = HotKeys::grab(&target, arguments.keys.bindings())?;
    say(&format!("ready: {} marks on {name}", arguments.keys.mark_key));
    let agent = Arc::new(Agent::new(&arguments, name));
    while interrupt.check().is_ok() {
        match keys.next(GLANCE)? {
            Some(Event::Pressed { action, .. }) => agent.press(action),
            Some(Event::Lost(why)) => eprintln!("tipme: {why}; waiting for the display to come back"),
            Some(Event::Restored) => say("ready: the display is back"),
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
    marks: AtomicUsize,
}

impl Agent {
    fn new(arguments: &arguments::Agent, display: String) -> Agent {
        let (diagnoses, waiting) = mpsc::sync_channel::<PathBuf>(DIAGNOSES_MAX);
        let notification = !arguments.no_notification;
        std::thread::spawn(move || waiting.into_iter().for_each(|incident| tell_cause(&incident, notification)));
        Agent {
            client: Client::new(arguments.state_dir.as_deref().unwrap_or(Path::new(DEFAULT_STATE_DIR))),
            display,
            asker: if arguments.no_dialog { None } else { Asker::find() },
            diagnoses,
            marks: AtomicUsize::new(0),
        }
    }

    /// Answers a key on a thread of its own.
    fn press(self: &Arc<Agent>, action: Action) {
        if self.marks.fetch_add(1, Ordering::Relaxed) >= MARKS_MAX {
            self.marks.fetch_sub(1, Ordering::Relaxed);
            eprintln!("tipme: {MARKS_MAX} marks are still being written or described; answer the open dialogs first");
            return;
        }
        let agent = Arc::clone(self);
        std::thread::spawn(move || {
            if let Err(error) = agent.act(action) {
                eprintln!("tipme: {error:#}");
            }
            agent.marks.fetch_sub(1, Ordering::Relaxed);
        });
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
            eprintln!("tipme: too many incidents wait for a diagnosis; run: tipme diagnose {}", incident.display());
        }
        self.describe(incident)
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

/// Diagnoses an incident and shows the verdict.
fn tell_cause(incident: &Path, notification: bool) {
    let (summary, body) = diagnose::headline(incident);
    say(&summary);
    if notification && let Err(error) = notify(&summary, &body) {
        eprintln!("tipme: {error}");
    }
}

/// A line on the standard output; a reader that is gone is no reason to stop serving keys.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
