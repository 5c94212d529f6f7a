// SPDX-License-Identifier: MIT OR Apache-2.0
//! The agent under Wayland: the desktop binds the keys, where it has the portal for that. Nothing is grabbed on Xwayland
//! besides, or one press would mark twice.

use super::place::Place;
use super::{Agent, POLL_INTERVAL, popups};
use crate::arguments;
use anyhow::{Error, Result, bail};
use std::process::ExitCode;
use std::sync::mpsc::sync_channel;
use tipme_control::interrupt::Interrupt;
use tipme_control::{Client, DEFAULT_STATE_DIR, Request, Response, journal};
use tipme_desktop::Target;
use tipme_desktop::notify::{Note, Notifier};
use tipme_desktop::portal::Shortcuts;

/// What helps where the desktop binds nothing.
const REMEDY: &str = "Try: sudo tipme record --hot-keys always";

/// Serves the desktop's shortcuts until SIGINT or SIGTERM.
pub fn run(arguments: &arguments::Agent, interrupt: &Interrupt) -> Result<ExitCode> {
    let display = std::env::var("DISPLAY").unwrap_or_default();
    let target = Target::parse(&display).ok();
    let place = target.as_ref().map(Place::take).transpose()?;
    let bound = Shortcuts::bind(&arguments.keys.bindings(), &|| interrupt.check().is_ok());
    let shortcuts = match bound {
        Ok(shortcuts) => shortcuts,
        Err(_) if recorder_takes_keys(arguments) => {
            journal::info("ready: the recorder takes the keys itself").tell();
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return refuse(arguments, target.as_ref(), interrupt, &error.into()),
    };
    let agent = Agent::start(arguments, display.clone());
    let words = format!("{} marks", shortcuts.mark_key().unwrap_or("a shortcut of the desktop"));
    place.iter().for_each(|place| place.say(&words));
    journal::info(format!("ready: {words}, bound by the desktop")).tell();
    while interrupt.check().is_ok() {
        match shortcuts.next(POLL_INTERVAL) {
            Ok(action) => action.into_iter().for_each(|action| agent.press(action)),
            Err(error) => return refuse(arguments, target.as_ref(), interrupt, &error.into()),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn recorder_takes_keys(arguments: &arguments::Agent) -> bool {
    let client = Client::new(arguments.state_dir.as_deref().unwrap_or(DEFAULT_STATE_DIR.as_ref()));
    matches!(client.call(&Request::Status), Ok(Response::Status(status)) if status.any_keyboard)
}

/// Says at the screen that no key marks. An agent that starts at login has nobody who reads its errors.
fn refuse(
    arguments: &arguments::Agent,
    target: Option<&Target>,
    interrupt: &Interrupt,
    why: &Error,
) -> Result<ExitCode> {
    let (summary, body) = ("No key marks under Wayland", format!("{why:#}.\n{REMEDY}"));
    if !arguments.no_notification {
        let note = Note { summary, body: &body, ..Note::default() };
        if let Err(refused) = Notifier::new(sync_channel(1).0).show(&note) {
            journal::warning(refused.to_string()).tell();
            let text = format!("{summary}\n\n{body}");
            let target = target.filter(|_| !arguments.no_dialog);
            let shown = target.map(|target| popups::show_alone(target, &text, &|| interrupt.check().is_ok()));
            if let Some(Err(error)) = shown {
                journal::warning(error).tell();
            }
        }
    }
    bail!("{}; {body}", summary.to_lowercase().replace("wayland", "Wayland"))
}
