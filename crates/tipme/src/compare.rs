// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme compare`.

use crate::arguments;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tipme_measure::{Comparison, Events, Machine, Run, SCHEMA, Side};
use tipme_report::comparison as report;

/// Larger files are not read: ten runs of 200,000 events have a tenth of it.
const BYTES_MAX: u64 = 1 << 30;

/// Results in a folder.
const FILES_MAX: usize = 200;

/// What all results have in common. What else a document holds is skipped, not kept in memory.
#[derive(Deserialize)]
pub struct Results {
    schema: u32,
    pub kind: String,
    pub machine: Machine,
    pub runs: Vec<Run>,
}

/// The comparison as it is written to a file.
#[derive(Serialize)]
struct Written<'a> {
    schema: u32,
    kind: &'a str,
    /// Of what kind the results are.
    of: &'a str,
    version: &'a str,
    machines: Vec<&'a Machine>,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

/// Exit code 1 where a result is shown to be slower than the first one.
pub fn run(arguments: arguments::Compare) -> Result<ExitCode> {
    let results = arguments.files.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;
    let names = names(&arguments.files);
    let kind = one_kind(&names, &results)?;
    let files: Vec<report::File<'_>> = names
        .iter()
        .zip(&results)
        .map(|(name, results)| report::File { name, machine: &results.machine, runs: &results.runs })
        .collect();
    let sides: Vec<Side<'_>> = files.iter().map(report::File::side).collect();
    let comparison = tipme_measure::compare(&sides);
    ensure!(!comparison.groups.is_empty(), "nothing to compare: {}", run_names(&files));
    if let Some(path) = &arguments.json {
        write(path, kind, &results, &comparison)?;
    }
    if let Some(folder) = &arguments.svg {
        draw(folder, &report::plots(kind, &files, &comparison))?;
    }
    print!("{}", report::text(kind, &files, &comparison));
    Ok(ExitCode::from(u8::from(comparison.shows_slower())))
}

/// File names where they tell the results apart, else whole paths.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let short = |path: &PathBuf| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let mut names: Vec<String> = paths.iter().map(short).collect();
    names.sort_unstable();
    let distinct = names.windows(2).all(|pair| pair[0] != pair[1]);
    let name = |path: &PathBuf| if distinct { short(path) } else { path.display().to_string() };
    paths.iter().map(name).collect()
}

/// The kind of all of them.
fn one_kind<'a>(names: &[String], results: &'a [Results]) -> Result<&'a str> {
    let kind = results.first().map_or("", |first| first.kind.as_str());
    if let Some((name, other)) = names.iter().zip(results).find(|(_, one)| one.kind != kind) {
        let first = names.first().map_or("", String::as_str);
        bail!(
            "cannot compare {first} with {name}: one is of tipme {kind}, the other of tipme {}; measure both alike",
            other.kind
        );
    }
    Ok(kind)
}

/// What the runs of each result are called, where no two have a name in common.
fn run_names(files: &[report::File<'_>]) -> String {
    let of = |file: &report::File<'_>| {
        let mut names: Vec<&str> = file.runs.iter().map(|run| run.name.as_str()).collect();
        names.dedup();
        let (few, more) = names.split_at(names.len().min(5));
        let dots = if more.is_empty() { "" } else { ", …" };
        let list = few.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        format!("the runs of {} are {}", file.name, if list.is_empty() { "none".to_owned() } else { list + dots })
    };
    files.iter().map(of).collect::<Vec<_>>().join("; ")
}

/// One result, or those of a folder together.
pub fn read(path: &Path) -> Result<Results> {
    let mut bytes_left = BYTES_MAX;
    if path.is_dir() { read_folder(path, &mut bytes_left) } else { read_file(path, &mut bytes_left) }
}

/// The runs of all results of a folder, in the order of their names; they must be of one kind and from one machine.
fn read_folder(folder: &Path, bytes_left: &mut u64) -> Result<Results> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let is_result = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json") && path.is_file();
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_result).collect();
    paths.sort_unstable();
    let (count, shown) = (paths.len(), folder.display());
    ensure!(count <= FILES_MAX, "{shown} holds {count} results; at most {FILES_MAX} are read");
    let mut paths = paths.into_iter();
    let first = paths.next().with_context(|| format!("{shown} holds no result (*.json)"))?;
    let mut all = read_file(&first, bytes_left)?;
    for path in paths {
        let one = read_file(&path, bytes_left)?;
        let (first, other) = (first.display(), path.display());
        ensure!(one.kind == all.kind, "{first} and {other} are of two kinds; keep one kind of results in a folder");
        ensure!(
            place(&one.machine) == place(&all.machine),
            "{first} and {other} are from two machines; keep results of one machine in a folder"
        );
        all.machine.duration_s += one.machine.duration_s;
        all.runs.extend(one.runs);
    }
    Ok(all)
}

/// What of a machine does not change from one measurement to the next.
fn place(machine: &Machine) -> Machine {
    Machine { load_average: None, steal_percent: None, begun_unix_s: 0, duration_s: 0.0, ..machine.clone() }
}

/// One result, out of so many bytes that may still be read.
fn read_file(path: &Path, bytes_left: &mut u64) -> Result<Results> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
    let bytes = file.metadata().with_context(|| format!("cannot read {shown}"))?.len();
    ensure!(bytes <= *bytes_left, "{shown} has {bytes} bytes; of one result or folder at most {BYTES_MAX} are read");
    *bytes_left -= bytes;
    let results: Results = serde_json::from_reader(BufReader::new(file.take(BYTES_MAX)))
        .with_context(|| format!("{shown} is not a result of tipme --json"))?;
    let schema = results.schema;
    ensure!(
        schema == SCHEMA,
        "{shown} has schema {schema}, this tipme reads {SCHEMA}; measure again, or use the tipme that wrote it"
    );
    for (number, run) in (1..).zip(&results.runs) {
        let wrong = run.classes.iter().find_map(|events| Some((&events.class, fault(events)?)));
        if let Some((class, fault)) = wrong {
            bail!("{shown}: class {class:?} of run {number} {fault}; the file is damaged");
        }
    }
    Ok(results)
}

/// What cannot be in the events of a class.
fn fault(events: &Events) -> Option<String> {
    let (starts, latencies) = (events.starts_ns.len(), events.latencies_ns.len());
    if starts != latencies {
        return Some(format!("has {starts} begins and {latencies} latencies"));
    }
    (events.censored > latencies as u64)
        .then(|| format!("has {latencies} events, {} of them censored", events.censored))
}

fn write(path: &Path, kind: &str, results: &[Results], comparison: &Comparison) -> Result<()> {
    let written = Written {
        schema: SCHEMA,
        kind: "compare",
        of: kind,
        version: env!("CARGO_PKG_VERSION"),
        machines: results.iter().map(|one| &one.machine).collect(),
        comparison,
    };
    let failed = || format!("cannot write {}", path.display());
    let mut writer = BufWriter::new(File::create(path).with_context(failed)?);
    serde_json::to_writer_pretty(&mut writer, &written).with_context(failed)?;
    writer.into_inner().map(drop).with_context(failed)
}

fn draw(folder: &Path, plots: &[(String, String)]) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    for (name, svg) in plots {
        let path = folder.join(name);
        fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_results_apart() {
        let of = |paths: &[&str]| names(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(of(&["a/one.json", "b/two.json"]), ["one.json", "two.json"]);
        assert_eq!(of(&["a/one.json", "b/one.json"]), ["a/one.json", "b/one.json"]);
    }

    #[test]
    fn damaged_events_are_told() {
        let mut events = Events::default();
        events.push(1, 2);
        assert_eq!(fault(&events), None);
        events.censored = 2;
        assert_eq!(fault(&events).as_deref(), Some("has 1 events, 2 of them censored"));
        events.starts_ns.clear();
        assert_eq!(fault(&events).as_deref(), Some("has 0 begins and 1 latencies"));
    }
}
