// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units of systemd: programs are started in one each, as a desktop starts its applications.

use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};

/// Begins a scope in the slice that desktops have their programs in, and becomes the command behind it: so the process
/// that was started is the program's, and a child of who started it.
const PROGRAM: &str = "systemd-run";
const OPTIONS: [&str; 6] = ["--scope", "--quiet", "--collect", "--no-ask-password", "--slice=app.slice", "--"];
const REMEDY: &str = "leave out --units, or measure as root on a machine that systemd runs";

/// The same command in a unit of its own; its environment, folder and files are to be set afterwards.
pub(crate) fn in_unit(command: &Command) -> Command {
    let mut scope = Command::new(PROGRAM);
    scope.args(OPTIONS).arg(command.get_program()).args(command.get_args());
    scope
}

/// Fails where no unit can be begun, with what systemd says of it, and the remedy.
pub(crate) fn check_units() -> Result<()> {
    let mut command = in_unit(&Command::new("true"));
    let tried = command.stdin(Stdio::null()).output();
    let tried = tried.with_context(|| format!("cannot start {PROGRAM}; {REMEDY}"))?;
    let said = String::from_utf8_lossy(&tried.stderr);
    ensure!(tried.status.success(), "systemd begins no unit here ({}); {REMEDY}", said.trim());
    Ok(())
}
