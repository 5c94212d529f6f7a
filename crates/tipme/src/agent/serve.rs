// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop of the agent: keys of an X display, or what a Wayland desktop binds.

use super::place::AgentPlace;
use super::{Agent, POLL_INTERVAL, wayland};
use crate::arguments;
use anyhow::{Context, Result, ensure};
use std::process::ExitCode;
use tipme_control::interrupt::InterruptFlag;
use tipme_control::journal;
use tipme_desktop::hotkeys::{HotKeyEvent, HotKeys};
use tipme_desktop::{DisplayTarget, portal};

/// Serves the keys until SIGINT or SIGTERM.
///
/// Prints `ready: …` once the keys are held that can be had, `marked PATH` for each incident, and then its cause.
pub fn run(arguments: arguments::AgentArguments) -> Result<ExitCode> {
    let interrupt = InterruptFlag::install()?;
    if arguments.display.is_none() && portal::is_wayland() {
        return wayland::run(&arguments, &interrupt);
    }
    ensure!(
        arguments.press.is_none(),
        "--press is for Wayland, where the desktop has the keys; here the agent has them"
    );
    let name = arguments.display.clone().or_else(|| std::env::var("DISPLAY").ok());
    let name = name.context("no display is named; set DISPLAY or give --display")?;
    let target = DisplayTarget::parse(&name)?;
    let mut place = AgentPlace::take(&target)?;
    let mut keys = HotKeys::grab(&target, arguments.keys.bindings())?;
    let agent = Agent::start(&arguments, name);
    agent.announce(&mut keys, &place)?;
    agent.look_for_recorder();
    while interrupt.check().is_ok() {
        match keys.next(POLL_INTERVAL)? {
            Some(HotKeyEvent::Pressed { action, .. }) => agent.press(action),
            Some(HotKeyEvent::Lost(why)) => {
                journal::warning(format!("{why}; waiting for the display to come back")).tell();
            }
            Some(HotKeyEvent::Restored) => {
                place = AgentPlace::take(&target)?;
                agent.announce(&mut keys, &place)?;
            }
            Some(HotKeyEvent::Changed) => agent.announce(&mut keys, &place)?,
            None => {}
        }
    }
    Ok(ExitCode::SUCCESS)
}
