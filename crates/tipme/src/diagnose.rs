// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme diagnose`.

use crate::arguments::Diagnose;
use crate::incidents::cache::{VerdictFolder, VerdictSummary};
use crate::incidents::lookup::find;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use tipme_analysis::model::CauseKind;
use tipme_analysis::{DiagnoseOptions, SURE, Timed, Verdict};
use tipme_command::incident::read;
use tipme_command::output::layout;
use tipme_record::incident::Incident;
use tipme_recorder::StateDirs;
use tipme_report::{Layout, Notice};
use tipme_store::IncidentFolder;

/// Exit code for a readable incident without a finding.
const NO_FINDING: u8 = 3;

/// Every interaction of an incident, by the time of its input.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "tipme diagnose --interactions --json")]
pub struct InteractionsDocument {
    schema: u32,
    interactions: Vec<Timed>,
}

/// Reads an incident and prints the verdict. An error means that the file could not be read.
pub fn run(arguments: &Diagnose) -> Result<ExitCode> {
    if let Some(kind) = arguments.explain.as_deref().and_then(known) {
        print!("{}", tipme_report::explanation(kind, &layout()));
        return Ok(ExitCode::SUCCESS);
    }
    let dirs = StateDirs::choose(arguments.state_dir.as_deref());
    let path = find(&IncidentFolder::at(dirs.incidents()), arguments.file.as_deref())?;
    let before = std::fs::metadata(&path);
    let incident = read(&path)?;
    if arguments.interactions {
        return list(&incident, arguments.json);
    }
    let options = arguments.selection.options();
    let verdict = tipme_analysis::diagnose(&incident, &options)?;
    if let Some(before) = before.ok().filter(|_| options == DiagnoseOptions::default()) {
        VerdictFolder::open().put(&path, &before, &verdict);
    }
    let layout = Layout { verbose: arguments.verbose, ..layout() };
    let code = print(&verdict, arguments.json, &layout);
    if arguments.explain.is_some() && !arguments.json {
        print!("{}", explanations(&verdict, &layout));
    }
    Ok(code)
}

/// Prints a verdict; the exit code reports a finding.
pub fn print(verdict: &Verdict, json: bool, layout: &Layout) -> ExitCode {
    if json {
        println!("{}", tipme_report::json(verdict));
    } else {
        print!("{}", tipme_report::text(verdict, layout));
    }
    if verdict.findings.is_empty() { ExitCode::from(NO_FINDING) } else { ExitCode::SUCCESS }
}

/// Returns the kind with that name; `None` for the kinds named by the verdict.
fn known(name: &str) -> Option<CauseKind> {
    CauseKind::CAUSES
        .iter()
        .chain([&CauseKind::Unattributed])
        .find(|kind| kind.name() == name)
        .copied()
}

/// Explains the kinds of a verdict's causes, each once.
fn explanations(verdict: &Verdict, layout: &Layout) -> String {
    let mut kinds: Vec<CauseKind> = Vec::new();
    for finding in &verdict.findings {
        if !kinds.contains(&finding.kind) {
            kinds.push(finding.kind);
        }
    }
    kinds
        .into_iter()
        .map(|kind| "\n".to_owned() + &tipme_report::explanation(kind, layout))
        .collect()
}

/// Prints every interaction. Exit code 3 if there is none.
fn list(incident: &Incident, json: bool) -> Result<ExitCode> {
    let document =
        InteractionsDocument { schema: 2, interactions: tipme_analysis::timed(incident)? };
    if json {
        println!("{}", serde_json::to_string(&document)?);
    } else {
        let mark = incident.mark()?;
        print!("{}", tipme_report::interactions(&document.interactions, mark));
    }
    Ok(if document.interactions.is_empty() {
        ExitCode::from(NO_FINDING)
    } else {
        ExitCode::SUCCESS
    })
}

/// Returns the list entry of an incident, from the cache if possible.
pub fn summary(path: &Path) -> Result<VerdictSummary> {
    VerdictFolder::open().get(path).map_or_else(|| Ok(VerdictSummary::of(&verdict(path)?)), Ok)
}

/// Outcome of a verdict for the user: a cause to accept or reject, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conclusion {
    Cause,
    /// A doubtful cause, or one that explains only the longest wait.
    DoubtfulCause,
    /// No delay, or a delay without an explanation.
    NoCause,
    /// No delay since the last response, but one before it.
    NothingNew,
    /// The incident is unreadable.
    Failed,
}

impl Conclusion {
    fn of(verdict: &Verdict) -> Conclusion {
        let is_late = verdict.interval.as_ref().is_some_and(|interval| interval.exceeded);
        match verdict.findings.first().filter(|_| is_late) {
            Some(first) if first.unusual && first.confidence >= SURE => Conclusion::Cause,
            Some(_) => Conclusion::DoubtfulCause,
            None if !is_late && !verdict.earlier.is_empty() => Conclusion::NothingNew,
            None => Conclusion::NoCause,
        }
    }
}

/// Returns a short form of the verdict, computed by another process with a timeout; also for an
/// unreadable incident.
pub fn notice(path: &Path) -> (Notice, Conclusion) {
    let before = std::fs::metadata(path);
    match crate::judge::verdict(path) {
        Ok(verdict) => {
            if let Ok(before) = before {
                VerdictFolder::open().put(path, &before, &verdict);
            }
            (tipme_report::notice(&verdict), Conclusion::of(&verdict))
        }
        Err(error) => {
            let path = path.display();
            let body = format!(
                "{error:#}\nTry: mark again, or read it as root: sudo tipme diagnose {path}"
            );
            (Notice::new("The incident cannot be diagnosed", body), Conclusion::Failed)
        }
    }
}

/// Computes the verdict and caches it.
pub fn verdict(path: &Path) -> Result<Verdict> {
    let before = std::fs::metadata(path);
    let verdict = tipme_analysis::diagnose(&read(path)?, &DiagnoseOptions::default())?;
    if let Ok(before) = before {
        VerdictFolder::open().put(path, &before, &verdict);
    }
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_analysis::model::{Candidate, Finding, Interval};

    #[test]
    fn only_a_cause_of_a_delay_can_be_accepted() {
        let sure = Finding { unusual: true, confidence: 0.9, ..Finding::default() };
        let doubtful = Finding { confidence: 0.5, ..sure.clone() };
        let longest = Finding { unusual: false, ..sure.clone() };
        for (exceeded, findings, conclusion) in [
            (true, vec![sure.clone()], Conclusion::Cause),
            (true, vec![doubtful], Conclusion::DoubtfulCause),
            (true, vec![longest], Conclusion::DoubtfulCause),
            (false, vec![sure], Conclusion::NoCause),
            (true, Vec::new(), Conclusion::NoCause),
        ] {
            let interval = Some(Interval { exceeded, ..Interval::default() });
            let verdict = Verdict { interval, findings, ..Verdict::default() };
            assert_eq!(Conclusion::of(&verdict), conclusion, "{verdict:?}");
        }
        assert_eq!(Conclusion::of(&Verdict::default()), Conclusion::NoCause);
    }

    #[test]
    fn without_a_new_delay_the_earlier_one_is_offered() {
        let again = Verdict { earlier: vec![Candidate::default()], ..Verdict::default() };
        assert_eq!(Conclusion::of(&again), Conclusion::NothingNew);
    }
}
