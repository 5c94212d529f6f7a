// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme scrub`.

use crate::arguments::Scrub;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;
use tipme_analysis::model::{Culprit, Verdict};
use tipme_analysis::{DiagnoseOptions, diagnose};
use tipme_record::incident::Incident;
use tipme_record::{Nanos, ScrubReport};

/// Name of the agent and the recorder, by which the analysis recognizes the mark itself.
const OWN_NAME: &str = "tipme";

/// Writes a copy of an incident without personal data into a new file that only the caller can
/// read.
pub fn run(arguments: &Scrub) -> Result<ExitCode> {
    let mut incident = tipme_command::incident::read(&arguments.file)?;
    if let Some(seconds) = arguments.last {
        incident = last(&incident, seconds).with_context(|| damaged(arguments))?;
    }
    let mut keep = program_names(&diagnose(&incident, &DiagnoseOptions::default())?);
    keep.extend(arguments.keep.iter().cloned());
    let (clean, removed) =
        tipme_record::scrub(&incident, &keep).with_context(|| damaged(arguments))?;
    let Some(out) = arguments.out.as_deref().filter(|_| !arguments.preview) else {
        print!("{}", preview(&removed, keep));
        return Ok(ExitCode::SUCCESS);
    };
    let bytes = tipme_store::encode(&clean)?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(out);
    let mut file = file.with_context(|| {
        format!("cannot write {}; it must be a new file in a folder of yours", out.display())
    })?;
    if let Err(error) = file.write_all(&bytes) {
        // A partial file is useless; a failed removal leaves it behind.
        let _ = std::fs::remove_file(out);
        return Err(error)
            .with_context(|| format!("cannot write {}; nothing of it is left", out.display()));
    }
    println!("{}", out.display());
    Ok(ExitCode::SUCCESS)
}

/// Lists the removed data with counts, the names that stay, and the remaining information.
fn preview(removed: &ScrubReport, keep: Vec<String>) -> String {
    let names: BTreeSet<String> = keep.into_iter().filter(|name| !name.is_empty()).collect();
    let names: Vec<String> = names.into_iter().collect();
    format!(
        "removed: host name, user, kernel build, day and minute of the mark, your notes, addresses \
         in memory\n\
         removed: {} command lines, {} file names, {} network addresses and ports, {} functions, \
         the baselines of {} programs\n\
         removed: the names of programs in {} records\n\
         rounded to 50 ms: {} times of input devices\n\
         kept: the names {}\n\
         kept: when threads ran, waited and sent messages; this reveals when keys were pressed, \
         but not which\n",
        removed.command_lines,
        removed.files,
        removed.addresses,
        removed.functions,
        removed.baselines,
        removed.programs,
        removed.inputs,
        names.join(", ")
    )
}

fn damaged(arguments: &Scrub) -> String {
    format!("cannot scrub {}: its first section is damaged", arguments.file.display())
}

/// Returns the incident without records from earlier than this many seconds before the mark.
fn last(incident: &Incident, seconds: f64) -> Result<Incident, serde_json::Error> {
    let span = Nanos((seconds * 1e9) as u64);
    tipme_record::cut(incident, incident.mark()?.before(span))
}

/// Returns names of programs in the verdict, which would be meaningless without them.
fn program_names(verdict: &Verdict) -> Vec<String> {
    let client = verdict.interval.iter().map(|interval| interval.client.comm.clone());
    let pieces = verdict.partition.iter().map(|piece| piece.comm.clone());
    let steps = verdict.chain.iter().map(|step| step.comm.clone());
    let culprits = verdict.findings.iter().flat_map(|finding| match &finding.culprit {
        Culprit::Process { comm, job, .. } => [Some(comm.clone()), job.as_deref().map(program)],
        Culprit::Device { .. } | Culprit::Address { .. } => [None, None],
    });
    let candidates =
        verdict.candidates.iter().chain(&verdict.earlier).filter_map(|candidate| match &candidate
            .culprit
        {
            Some(Culprit::Process { comm, .. }) => Some(comm.clone()),
            Some(Culprit::Device { .. } | Culprit::Address { .. }) | None => None,
        });
    let own = std::iter::once(OWN_NAME.to_owned());
    own.chain(client)
        .chain(pieces)
        .chain(steps)
        .chain(culprits.flatten())
        .chain(candidates)
        .collect()
}

/// Returns the program in `make (pid 7)`.
fn program(job: &str) -> String {
    job.rsplit_once(" (").map_or(job, |(name, _)| name).to_owned()
}
