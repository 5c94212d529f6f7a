// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts that were found before, so that a list of incidents takes no time.
//!
//! The folder of incidents is root's, and what lies there belongs to whoever marked. So each user keeps verdicts in a
//! folder of the user's own and trusts no others: root in `/var/cache/tipme`, others in `$XDG_CACHE_HOME/tipme` or
//! `~/.cache/tipme`. A verdict counts for the very file that it was found in, and for this version of the analysis.

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use tipme_analysis::Verdict;
use tipme_analysis::model::{Culprit, Finding};

/// Verdicts that are kept, at most: the latest, five times as many as a folder of incidents holds.
const KEPT_MAX: usize = 1_000;
/// Bytes of a document that are read.
const DOCUMENT_BYTES_MAX: u64 = 64 << 10;
/// Letters of a text that are kept.
const TEXT_MAX: usize = 400;
const ENDING: &str = ".verdict.json";
/// Of a page that was opened.
pub const PAGE: &str = ".html";
/// By what this program finds causes.
const ANALYSIS: &str = env!("TIPME_ANALYSIS");

/// Of a verdict, what a list shows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct VerdictSummary {
    /// The first line of the verdict.
    pub headline: String,
    /// The application that the person waited for; empty where nothing was found that took long.
    pub application: String,
    pub latency_ms: Option<f64>,
    /// The kind of the first cause, and who or what is to blame.
    pub kind: Option<String>,
    pub culprit: String,
    pub user_text: String,
    /// Whether the user says that the cause was the one.
    pub user_right: Option<bool>,
}

impl VerdictSummary {
    pub fn of(verdict: &Verdict) -> VerdictSummary {
        let first = verdict.findings.first();
        let interval = verdict.interval.as_ref();
        VerdictSummary {
            headline: cut(&tipme_report::headline(verdict)),
            application: interval.map(|interval| cut(&interval.client.comm)).unwrap_or_default(),
            latency_ms: interval.map(|interval| interval.latency_ms),
            kind: first.map(|finding| finding.kind.name().to_owned()),
            culprit: first.map(|Finding { culprit, .. }| cut(&name(culprit))).unwrap_or_default(),
            user_text: cut(&verdict.incident.user_text),
            user_right: verdict.incident.user_right,
        }
    }
}

fn name(culprit: &Culprit) -> String {
    match culprit {
        Culprit::Process { comm, job: Some(job), .. } if !job.starts_with(&format!("{comm} (")) => {
            format!("{comm} (job {})", job.split(" (").next().unwrap_or(job))
        }
        Culprit::Process { comm, .. } => comm.clone(),
        Culprit::Device { device } => device.clone(),
        Culprit::Address { address } => address.clone(),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}

/// A document in the folder.
#[derive(Serialize, Deserialize)]
struct KeptVerdict {
    analysis: String,
    file: FileIdentity,
    summary: VerdictSummary,
}

/// A file as it was: another one, or more words in it, differ in this.
#[derive(PartialEq, Serialize, Deserialize)]
struct FileIdentity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl FileIdentity {
    fn of(meta: &Metadata) -> FileIdentity {
        FileIdentity {
            device: meta.dev(),
            inode: meta.ino(),
            bytes: meta.len(),
            modified_s: meta.mtime(),
            modified_ns: meta.mtime_nsec(),
        }
    }
}

/// The user's folder of verdicts; where there can be none, nothing is kept.
pub struct VerdictFolder(Option<PathBuf>);

impl VerdictFolder {
    /// The folder as it is, or one that is made.
    pub fn open() -> VerdictFolder {
        VerdictFolder(folder())
    }

    /// What was found in this very file.
    pub fn get(&self, incident: &Path) -> Option<VerdictSummary> {
        let path = self.path(incident)?;
        let meta =
            fs::symlink_metadata(&path).ok().filter(|meta| meta.is_file() && meta.len() <= DOCUMENT_BYTES_MAX)?;
        let document: KeptVerdict = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        let file = FileIdentity::of(&fs::metadata(incident).ok()?);
        let fits = document.analysis == ANALYSIS && document.file == file && meta.uid() == geteuid().as_raw();
        fits.then_some(document.summary)
    }

    /// Keeps what was found in a file that was so before it was read; it is found again where that fails.
    pub fn put(&self, incident: &Path, before: &Metadata, verdict: &Verdict) {
        let (Some(path), Ok(after)) = (self.path(incident), fs::metadata(incident)) else { return };
        let file = FileIdentity::of(before);
        if file == FileIdentity::of(&after) {
            let document = KeptVerdict { analysis: ANALYSIS.to_owned(), file, summary: VerdictSummary::of(verdict) };
            // A list is right without it, but slower.
            let _ = write(&path, &document);
            self.prune();
        }
    }

    /// How many verdicts are kept, and where.
    pub fn describe(&self) -> Option<(usize, &Path)> {
        let folder = self.0.as_deref()?;
        Some((names(folder).len(), folder))
    }

    fn path(&self, incident: &Path) -> Option<PathBuf> {
        let id = incident.file_stem()?.to_str()?;
        Some(self.0.as_ref()?.join(format!("{id}{ENDING}")))
    }

    /// Removes the oldest beyond the bound.
    fn prune(&self) {
        let Some(folder) = &self.0 else { return };
        let mut names = names(folder);
        names.sort();
        let excess = names.len().saturating_sub(KEPT_MAX);
        for name in names.into_iter().take(excess) {
            // What is gone already need not be removed.
            let _ = fs::remove_file(folder.join(name));
        }
    }
}

/// This user's folder, which is made where it is missing; `None` where there can be none that is the user's alone.
pub fn folder() -> Option<PathBuf> {
    place().filter(|folder| own(folder).is_ok())
}

/// Removes what is kept of an incident that was removed: its verdict, and its page.
pub fn forget(id: &str) {
    for (folder, ending) in folder().iter().flat_map(|folder| [(folder, ENDING), (folder, PAGE)]) {
        // What is gone already need not be removed.
        let _ = fs::remove_file(folder.join(format!("{id}{ending}")));
    }
}

/// Where this user's verdicts belong. Root takes no place from `HOME`, which may be another user's.
fn place() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = || if geteuid().is_root() { Some("/var/cache".into()) } else { Some(absolute("HOME")?.join(".cache")) };
    Some(absolute("XDG_CACHE_HOME").or_else(usual)?.join("tipme"))
}

/// Fails where the folder cannot be made, or is not this user's alone.
fn own(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let meta = fs::symlink_metadata(folder)?;
    let safe = meta.is_dir() && meta.uid() == geteuid().as_raw() && meta.mode() & 0o022 == 0;
    if safe { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().flat_map(|entry| entry.file_name().into_string());
    names.filter(|name| name.ends_with(ENDING)).collect()
}

/// Writes beside, and renames: a reader sees all of it or nothing.
fn write(path: &Path, document: &KeptVerdict) -> io::Result<()> {
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    let written = fs::File::create_new(&partial)
        .and_then(|mut file| file.write_all(&serde_json::to_vec(document)?))
        .and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        fs::remove_file(&partial)?;
    }
    written
}
