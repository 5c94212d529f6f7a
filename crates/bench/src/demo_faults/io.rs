// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starved at the disk: a search reads a file from a disk whose queue a writing job keeps full.
//!
//! The disk is one of its own, see [`crate::selftest::disk`]; only the search and the job see it.

use super::scenario::{InjectedJob, Scenario};
use crate::filler::text;
use crate::selftest::disk::{Format, PrivateDisk};
use crate::worker::{self, WorkerLauncher};
use anyhow::Result;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of the file that is searched: from the page cache that takes some milliseconds.
const DOCUMENT_BYTES: usize = 16 << 20;
/// For each key: add it to the word and show how often the file has the word. Argument 1 is the file.
const SEARCH_AS_YOU_TYPE: &str = r#"
    export LC_ALL=C
    stty -echo
    while IFS= read -rsn1 key; do
        [ ${#word} -lt 30 ] || word=
        word+=$key
        printf '\r%s: %s\e[K' "$word" "$(grep -c -F -- "$word" "$1")"
    done"#;
/// Seconds that the job writes.
const WRITING_S: &str = "6";
/// How long the job may take to begin.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The file's name.
const DOCUMENT: &str = "document";

/// The disk, the document on it, and how to begin writing.
pub(super) struct FullQueue {
    disk: PrivateDisk,
    folder: PathBuf,
    launcher: WorkerLauncher,
}

impl FullQueue {
    pub(super) fn prepare(folder: &Path, launcher: &WorkerLauncher) -> Result<FullQueue> {
        let disk = PrivateDisk::make(folder, Format::Plain)?;
        disk.write(DOCUMENT, &text(DOCUMENT_BYTES), 1)?;
        Ok(FullQueue { disk, folder: folder.to_path_buf(), launcher: launcher.clone() })
    }
}

impl Scenario for FullQueue {
    fn prefix(&self) -> Vec<OsString> {
        self.disk.prefix()
    }

    fn program(&self) -> Vec<OsString> {
        let words = ["bash", "--norc", "--noprofile", "-c", SEARCH_AS_YOU_TYPE, "search"].map(OsString::from);
        words.into_iter().chain([self.disk.inside(DOCUMENT).into_os_string()]).collect()
    }

    fn keys(&self) -> &'static str {
        "find this in the document "
    }

    fn inject(&mut self) -> Result<Option<InjectedJob>> {
        self.disk.evict(DOCUMENT)?;
        let mount = self.disk.inside("").into_os_string();
        let alias = self.folder.join("nightly-backup");
        let writer = self.launcher.command(Some(&alias), &["writers".into(), mount, WRITING_S.into()])?;
        let command = worker::behind(&self.prefix(), &writer)?;
        let writers = worker::start("the writing job", command, None, TIMEOUT)?;
        Ok(Some(InjectedJob::new("nightly-backup: 128 direct writers", writers.process)))
    }
}
