// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults of a private disk; see [`crate::disk`].

use super::scenario::{ECHO, InjectedFault, Scenario, Site};
use crate::disk::{Format, PrivateDisk};
use crate::filler::text;
use crate::process::ProcessGroup;
use anyhow::{Context, Result};
use std::fs::File;

/// Time for which a disk's queue is kept full, in milliseconds.
const WRITING_MS: &str = "6000";

/// Keeps the queue of a disk full with a process of this name.
fn fill_queue(site: &Site, disk: &PrivateDisk, name: &str) -> Result<ProcessGroup> {
    let words = ["writers".into(), disk.inside("").into_os_string(), WRITING_MS.into()];
    Ok(site.worker(name, &disk.prefix(), &words)?.process)
}

/// Evicts files from the page cache, and keeps the queue of their disk full.
fn read_slowly(site: &Site, disk: &PrivateDisk, files: &[&str]) -> Result<InjectedFault> {
    files.iter().try_for_each(|file| disk.evict(file))?;
    let job = fill_queue(site, disk, "nightly-backup")?;
    Ok(InjectedFault::job("nightly-backup: 128 direct writers", job))
}

/// Size of the file that is searched, in bytes; a search in the page cache takes some milliseconds.
const DOCUMENT_BYTES: usize = 16 << 20;
/// Name of the file that is searched.
const DOCUMENT: &str = "document";
/// Adds each key to a word, and shows the number of its occurrences in the file `$1`.
const SEARCH: &str = r#"
    [ ${#word} -lt 30 ] || word=
    word+=$key
    printf '\r%s: %s\e[K' "$word" "$(grep -c -F -- "$word" "$1")""#;

/// A search reads a file from a disk while a job keeps its queue full.
pub(super) fn full_queue(site: &Site) -> Result<Scenario> {
    let disk = PrivateDisk::make(&site.folder, Format::Plain)?;
    disk.write(DOCUMENT, &text(DOCUMENT_BYTES), 1)?;
    let search = Scenario::on_key("search", "export LC_ALL=C", SEARCH, &[&disk.inside(DOCUMENT)]);
    let search = search.typing("find this in the document ").behind(disk.prefix());
    let site = site.clone();
    Ok(search.injecting(move |_| read_slowly(&site, &disk, &[DOCUMENT])))
}

/// Names of the programs on the disk, and how each key runs them; 1 is the disk.
const FILTERS: [&str; 3] = ["spell", "format", "count"];
const RUN: &str =
    r#"for filter in spell format count; do "$1/$filter" --norc --noprofile -c :; done"#;

/// Copies of a shell are paged in from a disk while a job keeps its queue full.
pub(super) fn page_in(site: &Site) -> Result<Scenario> {
    let disk = PrivateDisk::make(&site.folder, Format::Plain)?;
    for path in FILTERS.map(|filter| disk.outside(filter)) {
        let copied = std::fs::copy("/bin/bash", &path).and_then(|_| File::open(&path)?.sync_all());
        copied.with_context(|| format!("cannot copy /bin/bash to {}", path.display()))?;
    }
    let script = Scenario::on_key("editor", "", &format!("{RUN}\n{ECHO}"), &[&disk.inside("")]);
    let (script, site) = (script.behind(disk.prefix()), site.clone());
    Ok(script.injecting(move |_| read_slowly(&site, &disk, &FILTERS)))
}

/// Appends each key to the file `$1`, with an fsync for each write, like a database.
const SAVE: &str = r#"for n in 1 2 3 4 5 6 7 8; do echo "$key" >>"$1"; sync "$1"; done"#;

/// The program fsyncs a few bytes to a disk that a job keeps busy.
pub(super) fn fsync(site: &Site) -> Result<Scenario> {
    let disk = PrivateDisk::make(&site.folder, Format::Journal)?;
    let each = format!("{SAVE}\n{ECHO}");
    let script = Scenario::on_key("notes", "", &each, &[&disk.inside("settings")]);
    let (script, site) = (script.behind(disk.prefix()), site.clone());
    Ok(script.injecting(move |_| {
        let job = fill_queue(&site, &disk, "video-export")?;
        Ok(InjectedFault::job("video-export: 128 direct writers", job))
    }))
}
