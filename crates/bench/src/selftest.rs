// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known faults on this machine, one at a time, each marked and diagnosed as a user would.
//!
//! [`crate::faults`] has the faults, `trial` runs one on a terminal of a private display, `table`
//! prints the results. The diagnosis is the product's own; it sees the incident file and nothing
//! else.

mod options;
mod outcome;
mod table;
mod trial;

use crate::faults::{FAULTS, Fault};
use crate::files::kept_folder;
use crate::interrupt::InterruptFlag;
use crate::process::is_root;
use crate::progress::ProgressListener;
use crate::screen::Place;
use anyhow::{Context, Result, bail};
pub use options::SelftestOptions;
pub use outcome::{NotRun, SelftestOutcome, TrialRow};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
pub use table::{markdown, text};
use trial::{Observation, ProductFailed, TrialRunner};

/// Pause between trials, so that other programs that wait for the machine get it.
const PAUSE: Duration = Duration::from_millis(150);

/// Runs the faults one after the other; each takes some seconds.
///
/// Everything that it started has ended when it returns, also after an error or an interrupt. A
/// trial that cannot run is reported and does not end the run; a failure of recorder, mark or
/// diagnosis is a miss.
pub fn run(
    options: &SelftestOptions,
    interrupt: &InterruptFlag,
    progress: &mut dyn ProgressListener,
) -> Result<SelftestOutcome> {
    if !is_root() {
        bail!("recording needs root; run: sudo {} selftest", options.tipme.display());
    }
    let plan = plan(options)?;
    let mut store = IncidentStore { all: options.keep.clone(), misses: None };
    let mut runner = TrialRunner { options, interrupt, displays: BTreeMap::new() };
    let (mut results, mut not_run) = (Vec::new(), Vec::new());
    for (at, fault) in plan.iter().enumerate() {
        let installed = fault.require();
        let not_installed = installed.is_err();
        let observed = installed.and_then(|()| {
            runner.run(fault, || progress.line("waiting for another run on this machine"))
        });
        interrupt.check()?;
        let observed = observed.or_else(|error| match error.is::<ProductFailed>() {
            true => Ok(Observation::failed(&error)),
            false => Err(error),
        });
        let done = observed.and_then(|observed| {
            store.keep(TrialRow::new(fault, options.app(), &observed), &observed, at)
        });
        let subject = format!("{}/{} {} ...", at + 1, plan.len(), fault.name);
        match done {
            Ok(row) => {
                progress.line(&format!("{subject} {}", row.verdict()));
                results.push(row);
            }
            Err(error) => {
                progress.line(&format!("{subject} not run: {error:#}"));
                let (fault, app, why) =
                    (fault.name.into(), options.app().into(), format!("{error:#}"));
                not_run.push(NotRun { fault, app, why, not_installed });
            }
        }
        interrupt.sleep(PAUSE)?;
    }
    Ok(SelftestOutcome::new(results, not_run))
}

/// Returns the faults in the order in which they run.
fn plan(options: &SelftestOptions) -> Result<Vec<&'static Fault>> {
    if let Some(unknown) = options.names.iter().find(|name| Fault::named(name).is_none()) {
        bail!("there is no fault \"{unknown}\"; tipme selftest --list names them");
    }
    let names = &options.names;
    let wanted = FAULTS
        .iter()
        .filter(|fault| names.is_empty() || names.iter().any(|name| name == fault.name));
    let x11 = options.place == Place::X11;
    let once: Vec<&'static Fault> = wanted.filter(|fault| x11 || !fault.needs_x11).collect();
    Ok(std::iter::repeat_n(once, options.repeat).flatten().collect())
}

/// Place of kept incidents.
struct IncidentStore {
    all: Option<PathBuf>,
    /// Made when the first miss is kept.
    misses: Option<PathBuf>,
}

impl IncidentStore {
    /// Copies the incident if it is to be kept, and notes its path.
    fn keep(&mut self, mut row: TrialRow, observed: &Observation, at: usize) -> Result<TrialRow> {
        if self.all.is_none() && row.hit || !observed.has_incident() {
            return Ok(row);
        }
        let path = self.folder()?.join(format!("{:03}-{}-{}.tipme", at + 1, row.fault, row.app));
        std::fs::copy(&observed.incident, &path)
            .with_context(|| format!("cannot keep {}", path.display()))?;
        row.incident = Some(path);
        Ok(row)
    }

    fn folder(&mut self) -> Result<PathBuf> {
        if let Some(folder) = self.all.as_ref() {
            return kept_folder(folder);
        }
        if self.misses.is_none() {
            let made = tempfile::Builder::new().prefix("tipme-selftest-misses-").tempdir();
            self.misses =
                Some(made.context("cannot make a folder for misses; name one with --keep")?.keep());
        }
        self.misses.clone().context("there is no folder for misses")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::WorkerLauncher;

    fn planned(names: &[&str], repeat: usize, place: Place) -> Result<Vec<&'static str>> {
        let names = names.iter().map(ToString::to_string).collect();
        let (tipme, launcher) = (PathBuf::new(), WorkerLauncher(Vec::new()));
        let plan = plan(&SelftestOptions { names, repeat, place, keep: None, tipme, launcher })?;
        Ok(plan.into_iter().map(|fault| fault.name).collect())
    }

    #[test]
    fn without_names_every_fault_is_run() {
        let all = planned(&[], 1, Place::X11).expect("no name");
        assert_eq!(all.len(), FAULTS.len());
        let wayland = planned(&[], 1, Place::Wayland).expect("no name");
        assert!(
            all.contains(&"grab") && !wayland.contains(&"grab") && wayland.len() + 1 == all.len()
        );
    }

    #[test]
    fn faults_are_run_by_name_and_repeated() {
        assert_eq!(
            planned(&["calm", "lock"], 2, Place::X11).expect("known"),
            ["lock", "calm", "lock", "calm"]
        );
        let error = planned(&["gremlins"], 1, Place::X11).expect_err("an unknown name");
        assert_eq!(
            error.to_string(),
            "there is no fault \"gremlins\"; tipme selftest --list names them"
        );
    }
}
