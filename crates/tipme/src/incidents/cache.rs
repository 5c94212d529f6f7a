// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cached verdicts, so that listing incidents is fast.
//!
//! The folder of incidents belongs to root, and its files to the users that marked. Each user
//! therefore caches verdicts in a folder of their own and trusts no others: root in
//! `/var/cache/tipme`, others in `$XDG_CACHE_HOME/tipme` or `~/.cache/tipme`. A cached verdict is
//! valid for exactly one file and one version of the analysis.

use crate::report::file;
use rustix::process::geteuid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use tipme_analysis::Verdict;
use tipme_analysis::model::{Culprit, Finding};

/// Maximum number of cached verdicts: the latest, five times the capacity of a folder of incidents.
const CACHED_MAX: usize = 1_000;
/// Maximum number of bytes read from a cached document.
const DOCUMENT_BYTES_MAX: u64 = 64 << 10;
/// Maximum length of a cached text in characters.
const TEXT_MAX: usize = 400;
const ENDING: &str = ".verdict.json";
/// Suffix of an opened page.
pub const PAGE: &str = ".html";
/// Version of the analysis in this program.
const ANALYSIS: &str = env!("TIPME_ANALYSIS");

/// The part of a verdict that a list shows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct VerdictSummary {
    pub application: String,
    pub latency_ms: Option<f64>,
    /// Kind of the first cause.
    pub kind: Option<String>,
    pub culprit: String,
    /// First line of the verdict.
    #[serde(rename = "verdict")]
    pub headline: String,
    /// The user's note.
    pub user_text: String,
    /// The user's answer: `true` if the cause was right.
    pub user_right: Option<bool>,
}

impl VerdictSummary {
    pub fn of(verdict: &Verdict) -> VerdictSummary {
        let first = verdict.findings.first();
        let interval = verdict.interval.as_ref();
        VerdictSummary {
            application: interval.map(|interval| cut(&interval.client.comm)).unwrap_or_default(),
            latency_ms: interval.map(|interval| interval.latency_ms),
            kind: first.map(|finding| finding.kind.name().to_owned()),
            culprit: first.map(|Finding { culprit, .. }| cut(&name(culprit))).unwrap_or_default(),
            headline: cut(&tipme_report::headline(verdict)),
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
struct CachedVerdict {
    analysis: String,
    file: FileIdentity,
    summary: VerdictSummary,
}

/// Identity of a file; a replaced or annotated file has a different one.
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

/// The user's folder of verdicts; without it, nothing is cached.
pub struct VerdictFolder(Option<PathBuf>);

impl VerdictFolder {
    /// Opens the folder; creates it if necessary.
    pub fn open() -> VerdictFolder {
        VerdictFolder(folder())
    }

    /// Returns the cached verdict of exactly this file.
    pub fn get(&self, incident: &Path) -> Option<VerdictSummary> {
        let path = self.path(incident)?;
        let meta = fs::symlink_metadata(&path)
            .ok()
            .filter(|meta| meta.is_file() && meta.len() <= DOCUMENT_BYTES_MAX)?;
        let document: CachedVerdict = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        let file = FileIdentity::of(&fs::metadata(incident).ok()?);
        let fits = document.analysis == ANALYSIS
            && document.file == file
            && meta.uid() == geteuid().as_raw();
        fits.then_some(document.summary)
    }

    /// Caches the verdict of a file that had the metadata `before` when it was opened. A failure
    /// only means that the verdict is computed again.
    pub fn put(&self, incident: &Path, before: &Metadata, verdict: &Verdict) {
        let (Some(path), Ok(after)) = (self.path(incident), fs::metadata(incident)) else { return };
        let file = FileIdentity::of(before);
        if file == FileIdentity::of(&after) {
            let document = CachedVerdict {
                analysis: ANALYSIS.to_owned(),
                file,
                summary: VerdictSummary::of(verdict),
            };
            // A list is correct without it, but slower.
            let _ = serde_json::to_string(&document)
                .map(|document| file::write(&path, &document, true));
            self.prune();
        }
    }

    /// Returns the number of cached verdicts and the folder.
    pub fn describe(&self) -> Option<(usize, &Path)> {
        let folder = self.0.as_deref()?;
        Some((names(folder).len(), folder))
    }

    fn path(&self, incident: &Path) -> Option<PathBuf> {
        let id = incident.file_stem()?.to_str()?;
        Some(self.0.as_ref()?.join(format!("{id}{ENDING}")))
    }

    /// Removes the oldest verdicts beyond the bound.
    fn prune(&self) {
        let Some(folder) = &self.0 else { return };
        let mut names = names(folder);
        names.sort();
        let excess = names.len().saturating_sub(CACHED_MAX);
        for name in names.into_iter().take(excess) {
            // A file that is already gone needs no removal.
            let _ = fs::remove_file(folder.join(name));
        }
    }
}

/// Returns this user's folder, and creates it if necessary; `None` if there is none that belongs to
/// this user alone.
pub fn folder() -> Option<PathBuf> {
    place().filter(|folder| own(folder).is_ok())
}

/// Removes the cached verdict and page of a removed incident.
pub fn forget(id: &str) {
    for (folder, ending) in folder().iter().flat_map(|folder| [(folder, ENDING), (folder, PAGE)]) {
        // A file that is already gone needs no removal.
        let _ = fs::remove_file(folder.join(format!("{id}{ending}")));
    }
}

/// Returns the location of this user's folder. Root ignores `HOME`, which may belong to another
/// user.
fn place() -> Option<PathBuf> {
    let caches = match absolute("XDG_CACHE_HOME") {
        Some(caches) => caches,
        None if geteuid().is_root() => "/var/cache".into(),
        None => absolute("HOME")?.join(".cache"),
    };
    Some(caches.join("tipme"))
}

/// Returns the absolute path in an environment variable.
fn absolute(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Creates the folder; fails if that is impossible or the folder is not this user's alone.
fn own(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let meta = fs::symlink_metadata(folder)?;
    let safe = meta.is_dir() && meta.uid() == geteuid().as_raw() && meta.mode() & 0o022 == 0;
    if safe { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .flat_map(|entry| entry.file_name().into_string());
    names.filter(|name| name.ends_with(ENDING)).collect()
}
