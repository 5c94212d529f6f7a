// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme scrub`.

use crate::arguments::Scrub;
use anyhow::{Context, Result};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;
use tipme_analysis::model::{Culprit, Verdict};
use tipme_analysis::{Options, diagnose};
use tipme_record::Nanos;
use tipme_record::incident::Incident;

/// The agent's and the recorder's name, by which the analysis tells the mark itself.
const OWN_NAME: &str = "tipme";

/// Writes a copy of an incident that tells nothing of its owner, into a new file that only the caller can read.
pub fn run(arguments: &Scrub) -> Result<ExitCode> {
    let mut incident = crate::diagnose::read(&arguments.file)?;
    if let Some(seconds) = arguments.last {
        incident = last(&incident, seconds).with_context(|| damaged(arguments))?;
    }
    let mut keep = names(&diagnose(&incident, &Options::default())?);
    keep.extend(arguments.keep.iter().cloned());
    let clean = tipme_record::scrub(&incident, &keep).with_context(|| damaged(arguments))?;
    let bytes = tipme_store::encode(&clean)?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&arguments.out);
    let written = file.and_then(|mut file| file.write_all(&bytes));
    written.with_context(|| format!("cannot write {}; it must be a new file", arguments.out.display()))?;
    println!("{}", arguments.out.display());
    Ok(ExitCode::SUCCESS)
}

fn damaged(arguments: &Scrub) -> String {
    format!("cannot scrub {}: its first section is damaged", arguments.file.display())
}

/// The incident without what was recorded earlier than so many seconds before the mark.
fn last(incident: &Incident, seconds: f64) -> Result<Incident, serde_json::Error> {
    let span = Nanos((seconds.max(0.0) * 1e9) as u64);
    tipme_record::cut(incident, incident.mark()?.before(span))
}

/// Names of programs that the verdict is about; without them it would mean nothing.
fn names(verdict: &Verdict) -> Vec<String> {
    let client = verdict.interval.iter().map(|interval| interval.client.comm.clone());
    let pieces = verdict.partition.iter().map(|piece| piece.comm.clone());
    let steps = verdict.chain.iter().map(|step| step.comm.clone());
    let culprits = verdict.findings.iter().flat_map(|finding| match &finding.culprit {
        Culprit::Process { comm, job, .. } => [Some(comm.clone()), job.as_deref().map(program)],
        Culprit::Device { .. } | Culprit::Address { .. } => [None, None],
    });
    let own = std::iter::once(OWN_NAME.to_owned());
    own.chain(client).chain(pieces).chain(steps).chain(culprits.flatten()).collect()
}

/// The program in `make (pid 7)`.
fn program(job: &str) -> String {
    job.rsplit_once(" (").map_or(job, |(name, _)| name).to_owned()
}
