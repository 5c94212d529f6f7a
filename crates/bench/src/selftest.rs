// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known faults on this machine, one at a time and in pairs, each marked and diagnosed as a user would.
//!
//! [`faults`] says what can go wrong and what the diagnosis is expected to name, `operations` what an
//! application of ours does about it, `workers` are the programs around it. `trial` runs one fault against
//! one application, `judge` holds the verdict against what was done, `table` prints the results. The
//! diagnosis is the product's own; it sees the incident file and nothing else.

mod app;
pub(crate) mod disk;
mod fault;
pub mod faults;
mod judge;
mod keyboard;
mod operations;
mod options;
mod outcome;
pub(crate) mod patient;
mod site;
mod table;
mod trial;
pub(crate) mod workers;

use crate::interrupt::InterruptFlag;
use crate::progress::ProgressListener;
use crate::session;
use anyhow::{Context, Result, bail};
pub use fault::{App, Fault, InjectedCause, InjectedCauses, PreparedFault};
pub use options::SelftestOptions;
pub use outcome::{NotRun, SelftestOutcome, TrialRow};
pub use site::{DisplayServer, Site};
use std::path::PathBuf;
pub use table::{markdown, text};
use trial::{Observation, ProductFailed, TrialRunner};

/// Runs the faults one after the other; each takes some seconds.
///
/// Everything that was started has ended when it returns, also by an error or an interrupt. A trial
/// that cannot be run is reported as such and does not end the run; where recorder, mark or diagnosis fail,
/// it is a miss.
pub fn run(
    options: &SelftestOptions,
    interrupt: &InterruptFlag,
    progress: &mut dyn ProgressListener,
) -> Result<SelftestOutcome> {
    if !rustix::process::geteuid().is_root() {
        bail!("recording takes root; run: sudo {} selftest", options.tipme.display());
    }
    let plan = plan(options)?;
    let mut store = IncidentStore { all: options.keep.clone(), misses: None };
    let mut stage = TrialRunner::new(options, interrupt);
    let (mut results, mut not_run) = (Vec::new(), Vec::new());
    for (at, (fault, app)) in plan.iter().enumerate() {
        let installed = session::require(fault.programs);
        let not_installed = installed.is_err();
        let waiting = || progress.line("waiting for another run on this machine");
        let observed = installed.and_then(|()| stage.run(fault, *app, waiting));
        interrupt.check()?;
        let observed = observed.or_else(|error| match error.is::<ProductFailed>() {
            true => Ok(Observation::failed(&error)),
            false => Err(error),
        });
        let done = observed.and_then(|observed| store.keep(TrialRow::of(fault, *app, &observed), &observed, at));
        let subject = format!("{}/{} {} on {} ...", at + 1, plan.len(), fault.name, app.name());
        match done {
            Ok(row) => {
                progress.line(&format!("{subject} {}", row.verdict()));
                results.push(row);
            }
            Err(error) => {
                progress.line(&format!("{subject} not run: {error:#}"));
                let (fault, app, why) = (fault.name.into(), app.name().into(), format!("{error:#}"));
                not_run.push(NotRun { fault, app, why, not_installed });
            }
        }
        stage.pause()?;
    }
    Ok(SelftestOutcome::of(results, not_run))
}

/// Which fault is done to which application, in this order.
fn plan(options: &SelftestOptions) -> Result<Vec<(&'static Fault, App)>> {
    let known = |name: &String| name == CLEAN || faults::all().any(|fault| fault.name == name);
    if let Some(unknown) = options.names.iter().find(|name| !known(name)) {
        bail!("there is no fault \"{unknown}\"; tipme selftest --list names them");
    }
    let wanted = |fault: &&Fault| {
        let named = |name: &String| name == fault.name || name == CLEAN && fault.kinds.is_empty();
        options.names.is_empty() || options.names.iter().any(named)
    };
    let once = |round: usize| faults::all().filter(wanted).flat_map(move |fault| subjects(options, fault, round));
    Ok((0..options.repeat).flat_map(once).collect())
}

/// The trials of one fault in one round.
fn subjects(options: &SelftestOptions, fault: &'static Fault, round: usize) -> Vec<(&'static Fault, App)> {
    let apps: Vec<App> = fault.apps.iter().copied().filter(|app| options.apps.contains(app)).collect();
    if !fault.kinds.is_empty() {
        return apps.into_iter().map(|app| (fault, app)).collect();
    }
    let first = round * options.clean;
    let turn = (first..first + options.clean).filter_map(|number| apps.get(number % apps.len().max(1)));
    turn.map(|app| (fault, *app)).collect()
}

/// The name that stands for all clean runs.
const CLEAN: &str = "clean";

/// Where incidents are kept.
struct IncidentStore {
    all: Option<PathBuf>,
    /// Made when the first miss is kept.
    misses: Option<PathBuf>,
}

impl IncidentStore {
    /// Copies the incident where it is to be kept, and notes where that is.
    fn keep(&mut self, mut row: TrialRow, observed: &Observation, at: usize) -> Result<TrialRow> {
        if self.all.is_none() && row.hit || !observed.has_incident() {
            return Ok(row);
        }
        let path = self.folder()?.join(format!("{:03}-{}-{}.tipme", at + 1, row.fault, row.app));
        std::fs::copy(&observed.incident, &path).with_context(|| format!("cannot keep {}", path.display()))?;
        row.incident = Some(path);
        Ok(row)
    }

    fn folder(&mut self) -> Result<PathBuf> {
        if let Some(folder) = self.all.as_ref() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            return std::path::absolute(folder).with_context(|| format!("cannot find {}", folder.display()));
        }
        if self.misses.is_none() {
            let made = tempfile::Builder::new().prefix("tipme-selftest-misses-").tempdir();
            self.misses = Some(made.context("cannot make a folder for misses; name one with --keep")?.keep());
        }
        self.misses.clone().context("there is no folder for misses")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::WorkerLauncher;

    fn options(names: &[&str], repeat: usize) -> SelftestOptions {
        SelftestOptions {
            names: names.iter().map(ToString::to_string).collect(),
            repeat,
            apps: vec![App::Patient, App::Xterm],
            clean: 2,
            keep: None,
            tipme: PathBuf::new(),
            launcher: WorkerLauncher(Vec::new()),
        }
    }

    #[test]
    fn clean_runs_take_turns() {
        let plan = plan(&options(&["clean"], 5)).expect("a known name");
        assert_eq!(plan.len(), 20);
        assert_eq!(plan.iter().filter(|(_, app)| *app == App::Xterm).count(), 10);
        assert!(plan.iter().all(|(fault, _)| fault.kinds.is_empty()));
    }

    #[test]
    fn without_names_everything_is_run() {
        let plan = plan(&options(&[], 1)).expect("no name");
        for fault in faults::all().filter(|fault| fault.apps.contains(&App::Patient)) {
            assert!(plan.iter().any(|(planned, _)| planned.name == fault.name), "{}", fault.name);
        }
    }

    #[test]
    fn an_unknown_name_is_refused() {
        let error = plan(&options(&["gremlins"], 1)).err().expect("an unknown name");
        assert_eq!(error.to_string(), "there is no fault \"gremlins\"; tipme selftest --list names them");
    }
}
