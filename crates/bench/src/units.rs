// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts programs in systemd units of their own, as a desktop starts its applications.

use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};

/// Starts a scope in the slice of desktop applications, and executes the command in it: so the
/// started process is the program, and a child of its starter.
const PROGRAM: &str = "systemd-run";
const OPTIONS: [&str; 6] =
    ["--scope", "--quiet", "--collect", "--no-ask-password", "--slice=app.slice", "--"];
const REMEDY: &str = "leave out --units, or measure as root on a machine that systemd runs";

/// Wraps a command in a unit of its own; its environment, folder and files must be set afterwards.
pub(crate) fn in_unit(command: &Command) -> Command {
    let mut scope = Command::new(PROGRAM);
    scope.args(OPTIONS).arg(command.get_program()).args(command.get_args());
    scope
}

/// Fails if no unit can be started, with systemd's message and the remedy.
pub(crate) fn check_units() -> Result<()> {
    let mut command = in_unit(&Command::new("true"));
    let tried = command.stdin(Stdio::null()).output();
    let tried = tried.with_context(|| format!("cannot start {PROGRAM}; {REMEDY}"))?;
    let said = String::from_utf8_lossy(&tried.stderr);
    ensure!(tried.status.success(), "cannot start a systemd unit: {}; {REMEDY}", said.trim());
    Ok(())
}
