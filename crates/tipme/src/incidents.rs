// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme incidents`: what was marked, like a list of crashes.

pub mod kept;
pub mod list;
mod own;
pub mod when;

use crate::arguments::{Incidents, IncidentsVerb};
use crate::diagnose;
use crate::report::opened;
use anyhow::{Context, Result, bail};
use rustix::process::geteuid;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tipme_command::output::layout;
use tipme_control::{Client, Request};
use tipme_recorder::StateDirs;
use tipme_report::Layout;
use tipme_store::{Bounds, Folder, Listed, Room};

/// Ids that are named where the beginning of an id fits several, at most.
const NAMED_MAX: usize = 5;

/// Lists incidents, or does one thing with one of them.
pub fn run(arguments: &Incidents) -> Result<ExitCode> {
    let dirs = StateDirs::choose(arguments.state_dir.as_deref());
    let folder = Folder::at(dirs.incidents());
    match &arguments.verb {
        None => list::run(&folder, arguments),
        Some(IncidentsVerb::Show { id, verbose }) => show(&find(&folder, id.as_deref())?, *verbose),
        Some(IncidentsVerb::Open { id }) => open(&find(&folder, id.as_deref())?),
        Some(IncidentsVerb::Note { id, words }) => note(dirs.run_dir(), find(&folder, Some(id))?, words.join(" ")),
        Some(IncidentsVerb::Rm { id }) => own::remove(&dirs, id_of(&folder, id)?),
        Some(IncidentsVerb::Pin { id }) => own::pin(&dirs, id_of(&folder, id)?, true),
        Some(IncidentsVerb::Unpin { id }) => own::pin(&dirs, id_of(&folder, id)?, false),
        Some(IncidentsVerb::DiskUsage) => disk_usage(&folder),
    }
}

/// The file of an incident: named by its path, its id, or the beginning of its id; else the newest that is this user's.
pub fn find(folder: &Folder, name: Option<&str>) -> Result<PathBuf> {
    let place = folder.path().display();
    if let Some(file) = name.map(Path::new).filter(|file| file.is_file()) {
        return Ok(file.to_owned());
    }
    if name.is_some_and(str::is_empty) {
        bail!("an empty name names no incident; see: tipme incidents");
    }
    let listed = all(folder)?;
    let Some(name) = name else {
        let newest = listed.into_iter().rfind(is_own);
        return newest.map(|one| one.path).with_context(|| format!("no incident of yours in {place}; mark one first"));
    };
    let found: Vec<&Listed> = listed.iter().filter(|one| one.id.starts_with(name)).collect();
    match found[..] {
        [one] => Ok(one.path.clone()),
        [] if Path::new(name).exists() => bail!("{name} is not an incident file; see: tipme incidents"),
        [] => bail!("no file {name:?}, and no incident in {place} whose id begins so; see: tipme incidents"),
        _ => {
            let ids: Vec<&str> = found.iter().map(|one| one.id.as_str()).take(NAMED_MAX).collect();
            bail!("{} ids begin with {name:?}; give more of it: {}", found.len(), ids.join(" "))
        }
    }
}

/// The id of an incident of the folder that is named like those of [`find`]: a copy that lies elsewhere has the same id.
fn id_of(folder: &Folder, name: &str) -> Result<String> {
    let path = find(folder, Some(name))?;
    let real = path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?;
    if real.parent() != folder.path().canonicalize().ok().as_deref() {
        bail!("{} does not lie in {}: remove or keep it yourself", path.display(), folder.path().display());
    }
    Ok(real.file_stem().unwrap_or_default().to_string_lossy().into_owned())
}

fn all(folder: &Folder) -> Result<Vec<Listed>> {
    folder.list().with_context(|| format!("cannot read {}", folder.path().display()))
}

/// Whether this user may read it.
fn is_own(listed: &Listed) -> bool {
    let user = geteuid();
    user.is_root() || listed.owner == user.as_raw()
}

fn show(path: &Path, verbose: bool) -> Result<ExitCode> {
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    let verdict = diagnose::verdict(path)?;
    let layout = Layout { verbose, ..layout() };
    println!("{}  {}", when::local(&id), path.display());
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
    println!("{}", opened::open(path, None)?.display());
    Ok(ExitCode::SUCCESS)
}

fn note(run_dir: &Path, incident: PathBuf, text: String) -> Result<ExitCode> {
    let told = format!("kept in {}", incident.display());
    Client::new(run_dir).call(&Request::Describe { incident, text, right: None })?;
    println!("{told}");
    Ok(ExitCode::SUCCESS)
}

fn disk_usage(folder: &Folder) -> Result<ExitCode> {
    let (listed, bounds) = (all(folder)?, Bounds::default());
    println!("{}: {}", folder.path().display(), room(&listed));
    let at_most = |room: Room| format!("{} incidents, {}", room.count, mib(room.bytes));
    println!(
        "  at most, unless the recorder has other --max options: {}; of one user {}",
        at_most(bounds.all),
        at_most(bounds.user)
    );
    let (own, foreign): (Vec<Listed>, Vec<Listed>) =
        listed.iter().cloned().partition(|one| one.owner == geteuid().as_raw());
    let pinned: Vec<Listed> = listed.into_iter().filter(|one| one.pinned).collect();
    for (what, listed) in [("yours", own), ("of other users", foreign), ("pinned, which stay", pinned)] {
        println!("  {what}: {}", room(&listed));
    }
    if let Some((count, place)) = kept::Kept::open().describe() {
        println!("  verdicts that are kept in {}: {count}", place.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn room(listed: &[Listed]) -> String {
    format!("{} incidents, {}", listed.len(), mib(listed.iter().map(|one| one.bytes).sum()))
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
