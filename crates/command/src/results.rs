// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading of results of `tipme measure`, `idle` and `bench`.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::fs;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use tipme_measure::{Events, MeasuredMachine, Run, SCHEMA};

/// Maximum number of bytes read: ten runs of 200,000 events take a tenth of it.
const BYTES_MAX: u64 = 1 << 30;

/// Maximum number of results in a directory.
const FILES_MAX: usize = 200;

/// Common part of all results. The rest of a document is skipped and not kept in memory.
#[derive(Deserialize)]
pub struct Results {
    schema: u32,
    pub kind: String,
    pub machine: MeasuredMachine,
    pub runs: Vec<Run>,
}

/// Reads one result, or those of a directory together.
pub fn read(path: &Path) -> Result<Results> {
    let mut bytes_left = BYTES_MAX;
    if path.is_dir() {
        read_folder(path, &mut bytes_left)
    } else {
        read_file(path, &mut bytes_left)
    }
}

/// Reads the runs of all results in a directory in order of file name. All must be of one kind and
/// from one machine.
fn read_folder(folder: &Path, bytes_left: &mut u64) -> Result<Results> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let is_result =
        |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json") && path.is_file();
    let mut paths: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(is_result).collect();
    paths.sort_unstable();
    let (count, shown) = (paths.len(), folder.display());
    ensure!(count <= FILES_MAX, "{shown} holds {count} results; at most {FILES_MAX} are read");
    let mut paths = paths.into_iter();
    let first = paths.next().with_context(|| format!("{shown} holds no result (*.json)"))?;
    let mut all = read_file(&first, bytes_left)?;
    for path in paths {
        let one = read_file(&path, bytes_left)?;
        let (first, other) = (first.display(), path.display());
        ensure!(
            one.kind == all.kind,
            "{first} and {other} are of different kinds; keep results of one kind in a folder"
        );
        ensure!(
            place(&one.machine) == place(&all.machine),
            "{first} and {other} are from different machines; keep the results of each machine in a folder of their own"
        );
        all.machine.duration_s += one.machine.duration_s;
        all.runs.extend(one.runs);
    }
    Ok(all)
}

/// Returns the properties of a machine that do not change between measurements.
fn place(machine: &MeasuredMachine) -> MeasuredMachine {
    MeasuredMachine {
        load_average: None,
        steal_percent: None,
        begun_unix_s: 0,
        duration_s: 0.0,
        ..machine.clone()
    }
}

/// Reads one result, and subtracts its size from the bytes left.
fn read_file(path: &Path, bytes_left: &mut u64) -> Result<Results> {
    let shown = path.display();
    let file = tipme_store::open_regular(path).with_context(|| format!("cannot read {shown}"))?;
    let bytes = file.metadata().with_context(|| format!("cannot read {shown}"))?.len();
    ensure!(
        bytes <= *bytes_left,
        "{shown} has {bytes} bytes; a result or folder may have at most {BYTES_MAX}"
    );
    *bytes_left -= bytes;
    let results: Results = serde_json::from_reader(BufReader::new(file.take(BYTES_MAX)))
        .with_context(|| format!("{shown} is not a result of tipme --json"))?;
    let schema = results.schema;
    ensure!(
        schema == SCHEMA,
        "{shown} has schema {schema}, this tipme reads {SCHEMA}; \
         measure again, or use the tipme that wrote it"
    );
    for (number, run) in (1..).zip(&results.runs) {
        let wrong = run.classes.iter().find_map(|events| Some((&events.class, fault(events)?)));
        if let Some((class, fault)) = wrong {
            bail!("{shown}: class {class:?} of run {number} {fault}; the file is damaged");
        }
    }
    Ok(results)
}

/// Describes an inconsistency in the events of a class.
fn fault(events: &Events) -> Option<String> {
    let (starts, latencies) = (events.starts_ns.len(), events.latencies_ns.len());
    if starts != latencies {
        return Some(format!("has {starts} begins and {latencies} latencies"));
    }
    (events.censored > latencies as u64)
        .then(|| format!("has {latencies} events, {} of them censored", events.censored))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inconsistent_events_are_reported() {
        let mut events = Events::default();
        events.push(1, 2);
        assert_eq!(fault(&events), None);
        events.censored = 2;
        assert_eq!(fault(&events).as_deref(), Some("has 1 events, 2 of them censored"));
        events.starts_ns.clear();
        assert_eq!(fault(&events).as_deref(), Some("has 0 begins and 1 latencies"));
    }
}
