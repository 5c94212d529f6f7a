// SPDX-License-Identifier: MIT OR Apache-2.0
//! The agent on Wayland: the desktop binds the keys, through the GlobalShortcuts portal or through
//! its own settings with commands that reach the agent over the session bus. Nothing is grabbed on
//! Xwayland in addition, or one press would mark twice.

use super::ending::AgentEnd;
use super::place::AgentPlace;
use super::{Agent, popups};
use crate::arguments;
use crate::desktop_keys::{KeySource, KeyState, agent_words, by_hand, spelled};
use anyhow::{Error, Result, bail};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;
use tipme_control::{Client, DEFAULT_STATE_DIR, RecorderRequest, RecorderResponse, journal};
use tipme_desktop::DisplayTarget;
use tipme_desktop::hotkeys::HotKeyAction;
use tipme_desktop::notify::{Note, Notifier};
use tipme_desktop::on_bus::{self, OnBus};
use tipme_desktop::portal::Shortcuts;

/// Description of the keys with a key that is bound by hand, and its beginning without any key.
const BY_DESKTOP: &str = "a key of the desktop marks";
const NO_KEY: &str = "no key marks";
/// Time from the loss of the shortcuts until the end of the session is noticed.
const SESSION_END_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves the desktop's keys until SIGINT, SIGTERM, or the end of the session. If the arguments
/// name a press, an existing agent handles it.
pub fn run(arguments: &arguments::AgentArguments, end: &Arc<AgentEnd>) -> Result<ExitCode> {
    if let Some(action) = arguments.press
        && matches!(on_bus::press(action), Ok(true))
    {
        return Ok(ExitCode::SUCCESS);
    }
    let display = std::env::var("DISPLAY").unwrap_or_default();
    let target = DisplayTarget::parse(&display).ok();
    let (on_bus, presses) = claim()?.map(|(on_bus, presses)| (Arc::new(on_bus), presses)).unzip();
    let place = target.as_ref().map(AgentPlace::take).transpose()?;
    let agent = Agent::start(arguments, display.clone());
    arguments.press.into_iter().for_each(|action| agent.press(action));
    on_bus.iter().zip(presses).for_each(|(on_bus, presses)| serve(&agent, on_bus, presses));
    let source = KeySource::of_session();
    let (shortcuts, words) = match bind(arguments, source, on_bus.is_some(), end) {
        Ok(bound) => bound,
        Err(_) if recorder_reads_keys(arguments) => {
            journal::info("ready: the recorder reads the keys itself").tell();
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => {
            let on_bus = on_bus.as_ref().filter(|_| matches!(source, KeySource::Portal));
            let Some(on_bus) = on_bus else {
                return refuse(arguments, target.as_ref(), end, &error);
            };
            return Ok(serve_bound_by_hand(arguments, target.as_ref(), end, on_bus, &error));
        }
    };
    on_bus.iter().for_each(|on_bus| on_bus.describe(&words));
    place.iter().for_each(|place| place.publish(&words));
    journal::info(format!("ready: {words}, bound by the desktop")).tell();
    match wait(&agent, shortcuts, end) {
        // A portal that ends with its session revokes its shortcuts first.
        Err(error) if !end.wait(Some(SESSION_END_TIMEOUT)) => {
            refuse(arguments, target.as_ref(), end, &error)
        }
        _ => {
            end.log_reason();
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Handles shortcuts of the portal until the agent must end.
///
/// # Errors
/// Fails if the desktop revokes them.
fn wait(agent: &Arc<Agent>, shortcuts: Option<Shortcuts>, end: &Arc<AgentEnd>) -> Result<()> {
    if let Some(shortcuts) = shortcuts {
        let (wake, ends) = (shortcuts.waker(), Arc::clone(end));
        std::thread::spawn(move || {
            while !ends.wait(None) {}
            wake();
        });
        while !end.is_due() {
            shortcuts.next()?.into_iter().for_each(|action| agent.press(action));
        }
    }
    while !end.wait(None) {}
    Ok(())
}

/// Claims the agent's name on the session bus; `None` if there is no bus.
///
/// # Errors
/// Fails if another agent owns the name.
fn claim() -> Result<Option<(OnBus, Receiver<HotKeyAction>)>> {
    match OnBus::claim() {
        Ok(Ok(claimed)) => Ok(Some(claimed)),
        Ok(Err(other)) => bail!(
            "another agent (process {0}) serves this session already: {1}; end it first: kill {0}",
            other.pid,
            other.words
        ),
        Err(error) => {
            journal::warning(error.to_string()).tell();
            Ok(None)
        }
    }
}

/// Handles commands of key bindings on a thread of its own. The first one shows that a key is
/// bound.
fn serve(agent: &Arc<Agent>, on_bus: &Arc<OnBus>, presses: Receiver<HotKeyAction>) {
    let (agent, on_bus) = (Arc::clone(agent), Arc::clone(on_bus));
    std::thread::spawn(move || {
        for action in presses {
            if on_bus.words().starts_with(NO_KEY) {
                on_bus.describe(BY_DESKTOP);
                remember(action);
            }
            agent.press(action);
        }
    });
}

/// Remembers a key that was bound by hand, so that the next login does not ask for one.
fn remember(action: HotKeyAction) {
    if action == HotKeyAction::Mark
        && let Err(error) = by_hand::remember()
    {
        journal::warning(format!("{error:#}")).tell();
    }
}

/// Serves the key that the user binds after a refusal of the portal; until its first press, the
/// agent's words name the reason and the remedy.
fn serve_bound_by_hand(
    arguments: &arguments::AgentArguments,
    target: Option<&DisplayTarget>,
    end: &AgentEnd,
    on_bus: &OnBus,
    why: &Error,
) -> ExitCode {
    let why = format!("{why}, and press it");
    on_bus.describe(&format!("{NO_KEY}: {why}"));
    journal::warning(format!("no key marks under Wayland; {why}")).tell();
    show_refusal(arguments, target, end, &why);
    while !end.wait(None) {}
    end.log_reason();
    ExitCode::SUCCESS
}

/// Binds the keys through the desktop's settings or its portal, and returns a description. If the
/// settings have the keys, the portal is not used, or one press would mark twice.
///
/// # Errors
/// Fails if no key marks, with the reason and the remedy.
fn bind(
    arguments: &arguments::AgentArguments,
    source: KeySource,
    on_bus: bool,
    end: &AgentEnd,
) -> Result<(Option<Shortcuts>, String)> {
    let (bindings, agent) =
        (arguments.keys.bindings(), agent_words(arguments.state_dir.as_deref(), None)?);
    let why = match source.state(&bindings, &agent) {
        KeyState::Works(key) if on_bus => return Ok((None, format!("{key} marks"))),
        state @ KeyState::AtNextLogin(_) if on_bus => return Ok((None, state.words())),
        // The service behind the keys may start after the agent at login.
        KeyState::Idle(why) if on_bus => {
            journal::warning(&why).tell();
            return Ok((None, BY_DESKTOP.to_owned()));
        }
        _ if on_bus && arguments.press.is_some() => {
            arguments.press.into_iter().for_each(remember);
            return Ok((None, BY_DESKTOP.to_owned()));
        }
        KeyState::OfAgent => match Shortcuts::bind(&bindings, &|| !end.is_due()) {
            Ok(shortcuts) => {
                let key = shortcuts
                    .mark_key()
                    .map_or_else(|| "a shortcut of the desktop".to_owned(), spelled);
                return Ok((Some(shortcuts), format!("{key} marks")));
            }
            Err(error) => format!("{error}; {}", source.by_hand(&bindings, &agent)),
        },
        KeyState::Works(_) | KeyState::AtNextLogin(_) => {
            "there is no session bus, over which the command of a key reaches the agent".to_owned()
        }
        other => other.hindrance().unwrap_or_default(),
    };
    bail!("{why}")
}

fn recorder_reads_keys(arguments: &arguments::AgentArguments) -> bool {
    let client = Client::new(arguments.state_dir.as_deref().unwrap_or(DEFAULT_STATE_DIR.as_ref()));
    let status = client.call(&RecorderRequest::Status);
    matches!(status, Ok(RecorderResponse::Status(status)) if status.any_keyboard)
}

/// Ends an agent without a key, with the reason.
fn refuse(
    arguments: &arguments::AgentArguments,
    target: Option<&DisplayTarget>,
    end: &AgentEnd,
    why: &Error,
) -> Result<ExitCode> {
    let why = format!("{why:#}");
    show_refusal(arguments, target, end, &why);
    bail!("no key marks under Wayland; {why}")
}

/// Reports on screen that no key marks. An agent started at login has no visible standard error.
fn show_refusal(
    arguments: &arguments::AgentArguments,
    target: Option<&DisplayTarget>,
    end: &AgentEnd,
    body: &str,
) {
    let summary = "No key marks under Wayland";
    if !arguments.no_notification {
        let note = Note { summary, body, ..Note::default() };
        if let Err(refused) = Notifier::new(sync_channel(1).0).show(&note) {
            journal::warning(refused.to_string()).tell();
            let text = format!("{summary}\n\n{body}");
            let target = target.filter(|_| !arguments.no_dialog);
            let shown = target.map(|target| popups::show_alone(target, &text, &|| !end.is_due()));
            if let Some(Err(error)) = shown {
                journal::warning(error).tell();
            }
        }
    }
}
