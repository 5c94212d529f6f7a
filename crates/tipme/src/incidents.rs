// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme incidents`: lists marked incidents, like a list of crashes.

pub mod cache;
mod changes;
pub mod list;
pub mod lookup;
pub mod times;

use crate::arguments::{Incidents, IncidentsVerb};
use crate::diagnose;
use crate::report::browser;
use crate::suggestion;
use anyhow::{Context, Result, bail, ensure};
use lookup::{all, find};
use rustix::process::geteuid;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tipme_command::output::layout;
use tipme_control::{Client, RecorderRequest};
use tipme_recorder::StateDirs;
use tipme_report::Layout;
use tipme_store::{FolderBounds, IncidentFolder, Listed, Room};

/// Lists incidents, or runs an operation on one of them.
pub fn run(arguments: &Incidents) -> Result<ExitCode> {
    let dirs = StateDirs::choose(arguments.state_dir.as_deref());
    let folder = IncidentFolder::at(dirs.incidents());
    match &arguments.verb {
        None => {
            let code = list::run(&folder, arguments)?;
            if let (false, Some(words)) = (arguments.json, suggestion::ask(dirs.run_dir())) {
                println!("{words}");
            }
            Ok(code)
        }
        Some(IncidentsVerb::Show { id, verbose }) => show(&find(&folder, id.as_deref())?, *verbose),
        Some(IncidentsVerb::Open { id }) => open(&find(&folder, id.as_deref())?),
        Some(IncidentsVerb::Note { words }) => {
            let (id, words) = match &words[..] {
                [first, rest @ ..] if lookup::is_name(first) => (Some(first.as_str()), rest),
                words => (None, words),
            };
            let incident = find(&folder, id)?;
            ensure!(
                !words.is_empty(),
                "the note is empty; write: tipme incidents note {} WORDS",
                id.unwrap_or_default()
            );
            note(dirs.run_dir(), incident, words.join(" "))
        }
        Some(IncidentsVerb::Rm { id }) => changes::remove(&dirs, id_of(&folder, id)?),
        Some(IncidentsVerb::Pin { id }) => changes::pin(&dirs, id_of(&folder, id)?, true),
        Some(IncidentsVerb::Unpin { id }) => changes::pin(&dirs, id_of(&folder, id)?, false),
        Some(IncidentsVerb::DiskUsage) => disk_usage(&folder),
    }
}

/// Returns the id of an incident in the folder, named as for [`find`]. Rejects a copy elsewhere,
/// which has the same id.
fn id_of(folder: &IncidentFolder, name: &str) -> Result<String> {
    let path = find(folder, Some(name))?;
    let real = path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?;
    if real.parent() != folder.path().canonicalize().ok().as_deref() {
        bail!(
            "{} is not in {}; remove or keep it yourself",
            path.display(),
            folder.path().display()
        );
    }
    Ok(real.file_stem().unwrap_or_default().to_string_lossy().into_owned())
}

fn show(path: &Path, verbose: bool) -> Result<ExitCode> {
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    let verdict = diagnose::verdict(path)?;
    let layout = Layout { verbose, ..layout() };
    println!("{}  {}", times::local(&id), path.display());
    if !verdict.incident.user_text.is_empty() {
        print!("{}", layout.item("You said: ", &verdict.incident.user_text));
    }
    if let Some(right) = verdict.incident.user_right {
        println!("You answered: {}", if right { "it was this" } else { "it was something else" });
    }
    print!("\n{}", tipme_report::text(&verdict, &layout));
    Ok(ExitCode::SUCCESS)
}

fn open(path: &Path) -> Result<ExitCode> {
    println!("{}", browser::open(path, None)?.display());
    Ok(ExitCode::SUCCESS)
}

fn note(run_dir: &Path, incident: PathBuf, text: String) -> Result<ExitCode> {
    let path = incident.display().to_string();
    Client::new(run_dir).call(&RecorderRequest::Describe { incident, text, right: None })?;
    println!("note added to {path}");
    Ok(ExitCode::SUCCESS)
}

fn disk_usage(folder: &IncidentFolder) -> Result<ExitCode> {
    let (listed, bounds) = (all(folder)?, FolderBounds::default());
    println!("{}: {}", folder.path().display(), room(&listed));
    println!(
        "  at most, unless the recorder has other --max options: {}; of one user {}",
        capacity(&bounds.all),
        capacity(&bounds.user)
    );
    let (own, foreign): (Vec<Listed>, Vec<Listed>) =
        listed.iter().cloned().partition(|one| one.owner == geteuid().as_raw());
    let pinned: Vec<Listed> = listed.into_iter().filter(|one| one.pinned).collect();
    for (what, listed) in
        [("yours", own), ("of other users", foreign), ("pinned, never removed", pinned)]
    {
        println!("  {what}: {}", room(&listed));
    }
    if let Some((count, place)) = cache::VerdictFolder::open().describe() {
        println!("  cached verdicts in {}: {count}", place.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn room(listed: &[Listed]) -> String {
    let bytes = listed.iter().map(|one| one.bytes).sum();
    capacity(&Room { bytes, count: listed.len() })
}

fn capacity(room: &Room) -> String {
    format!("{} incidents, {:.1} MiB", room.count, room.bytes as f64 / f64::from(1 << 20))
}
