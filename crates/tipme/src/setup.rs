// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme setup`: sets up everything that a press of the key needs, and undoes it.
//!
//! The user runs it in the session, and it gains root privileges through sudo where necessary: only
//! the user writes the user's own files. Steps that are already done are left alone.

mod session;
mod settings;
mod step;
mod system;

use crate::arguments::Setup;
use crate::status::SystemState;
use anyhow::{Result, bail};
use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;
use step::SetupStep;

/// Sets up, or undoes it. Exit code 1 if a step failed or must be done by hand.
pub fn run(arguments: &Setup) -> Result<ExitCode> {
    let steps = if arguments.undo { undo(arguments)? } else { plan(arguments)? };
    steps.iter().for_each(|step| println!("{}", step.plan()));
    if arguments.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let pending = steps.iter().any(|step| step.is_to_do());
    if pending && !arguments.yes && !confirmed()? {
        bail!("nothing was done");
    }
    // A failed step does not prevent the others.
    let results: Vec<bool> = steps.into_iter().map(SetupStep::perform).collect();
    let mut whole = results.into_iter().all(|done| done);
    if !arguments.undo {
        let state = SystemState::read(arguments.state_dir.as_deref());
        println!("\n{}", closing(&state.headline(), whole));
        whole &= state.hindrance().is_none() && session::test_press(arguments, &state);
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn plan(arguments: &Setup) -> Result<Vec<SetupStep>> {
    let mut steps = system::plan(arguments)?;
    steps.extend(session::plan(arguments)?);
    Ok(steps)
}

fn undo(arguments: &Setup) -> Result<Vec<SetupStep>> {
    let mut steps = session::undo(arguments)?;
    steps.extend(system::undo(arguments)?);
    steps.push(SetupStep::note("incidents are kept; tipme incidents disk-usage shows where"));
    Ok(steps)
}

/// Formats the last line of a setup. One with a failed step does not refer to itself.
fn closing(headline: &str, whole: bool) -> String {
    match headline.strip_suffix("; run: tipme setup") {
        Some(why) if !whole => format!("{why}; first fix the step that failed above"),
        _ => headline.to_owned(),
    }
}

fn confirmed() -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("cannot ask for confirmation without a terminal; give --yes");
    }
    print!("Do this? [y/N] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_with_a_failed_step_does_not_refer_to_itself() {
        let headline = "Ready: no, because sway has no key for tipme; run: tipme setup";
        let last =
            "Ready: no, because sway has no key for tipme; first fix the step that failed above";
        assert_eq!(closing(headline, false), last);
        assert_eq!(closing(headline, true), headline);
        let other =
            "Ready: no, because no display is running; start the session, then run: tipme agent &";
        assert_eq!(closing(other, false), other);
    }
}
