// SPDX-License-Identifier: MIT OR Apache-2.0
//! Main loop of the agent: keys of an X display, or key bindings of a Wayland desktop.

use super::ending::AgentEnd;
use super::place::AgentPlace;
use super::{Agent, wayland};
use crate::arguments;
use anyhow::{Context, Result, ensure};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tipme_control::journal;
use tipme_desktop::hotkeys::{HotKeyEvent, HotKeys};
use tipme_desktop::{DisplayTarget, portal};

/// Longest single wait for a key: nothing is polled, since the end of the agent wakes it.
const KEY_TIMEOUT: Duration = Duration::from_secs(3600);

/// Serves the keys until SIGINT, SIGTERM, or the end of the session, i.e. of its display, its
/// compositor or its message bus.
///
/// Prints `ready: …` once the available keys are grabbed, `marked PATH` for each incident, and then
/// its cause.
pub fn run(arguments: arguments::AgentArguments) -> Result<ExitCode> {
    let end = Arc::new(AgentEnd::watch()?);
    if arguments.display.is_none() && portal::is_wayland() {
        return wayland::run(&arguments, &end);
    }
    ensure!(
        arguments.press.is_none(),
        "--press works only under Wayland; here the agent itself serves the keys"
    );
    let name = arguments.display.clone().or_else(|| std::env::var("DISPLAY").ok());
    let name = name.context("no display is given; set DISPLAY or give --display")?;
    let target = DisplayTarget::parse(&name)?;
    let place = AgentPlace::take(&target)?;
    let mut keys = HotKeys::grab(&target, arguments.keys.bindings())?;
    keys.wake_by(end.wakeup()?);
    let agent = Agent::start(&arguments, name);
    agent.announce(&mut keys, &place)?;
    agent.warn_without_recorder();
    while !end.is_due() {
        match keys.next(KEY_TIMEOUT)? {
            Some(HotKeyEvent::Pressed { action, .. }) => agent.press(action),
            Some(HotKeyEvent::Lost(why)) => {
                journal::warning(format!("{why}; waiting for it")).tell()
            }
            Some(HotKeyEvent::Gone(why)) => {
                journal::info(format!("{why}; the agent ends with its display")).tell();
                return Ok(ExitCode::SUCCESS);
            }
            Some(HotKeyEvent::Restored | HotKeyEvent::Changed) => {
                agent.announce(&mut keys, &place)?
            }
            None => {}
        }
    }
    end.log_reason();
    Ok(ExitCode::SUCCESS)
}
