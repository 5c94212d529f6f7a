// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starved at the disk: a search reads a file from a disk whose queue a writing job keeps full.
//!
//! The disk is a loop device of one's own with a file system in a file: it serves its queue of 128
//! requests strictly in order, so a read waits until all writes before it are done, on any machine
//! and without wearing out the real disk. It is mounted in a name space that only the search, the
//! job and the process that holds it see, and vanishes with them.

use super::{Job, Scenario, text};
use crate::job::Helper;
use crate::process::Process;
use crate::session::{Session, first_line};
use anyhow::{Context, Result, bail};
use rustix::fs::{Advice, fadvise};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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
/// How long the disk or the job may take to be ready.
const PATIENCE: Duration = Duration::from_secs(20);

/// Makes and mounts the disk below folder 1, with the usual read-ahead of 128 KiB, and holds it for two minutes.
const HOLD_DISK: &str = r#"
    truncate -s 448M "$1/disk"
    mke2fs -q -F -t ext4 -O ^has_journal "$1/disk"
    mkdir "$1/mount"
    mount -o loop,noatime "$1/disk" "$1/mount"
    blockdev --setra 256 "$(findmnt -n -o SOURCE "$1/mount")"
    echo mounted
    exec sleep 120"#;

/// The disk, the document on it, and how to begin writing.
pub(super) struct FullQueue {
    holder: Process,
    folder: PathBuf,
    helper: Helper,
}

impl FullQueue {
    pub(super) fn prepare(session: &Session, helper: &Helper) -> Result<FullQueue> {
        let folder = session.folder().to_path_buf();
        let holder = hold_disk(&folder)?;
        let disk = FullQueue { holder, folder, helper: helper.clone() };
        let path = disk.seen_from_outside("document");
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&text(DOCUMENT_BYTES))?;
            file.sync_all()
        });
        written.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(disk)
    }

    /// A file on the disk, as those see it who are not in the name space.
    fn seen_from_outside(&self, name: &str) -> PathBuf {
        let inside = self.folder.join("mount").join(name);
        let relative = inside.strip_prefix("/").unwrap_or(&inside);
        Path::new(&format!("/proc/{}/root", self.holder.pid())).join(relative)
    }

    /// Removes the document from the page cache.
    fn evict(&self) -> Result<()> {
        let path = self.seen_from_outside("document");
        let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
        fadvise(&file, 0, None, Advice::DontNeed).with_context(|| format!("cannot evict {}", path.display()))
    }
}

fn hold_disk(folder: &Path) -> Result<Process> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-euc", HOLD_DISK, "hold-disk"]).arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut holder = Process::start("the private disk", command, None)?;
    let output = holder.child().stdout.take().context("the private disk has no output")?;
    if first_line(output, PATIENCE)?.trim() != "mounted" {
        bail!("cannot make a private disk: mounting a loop device needs root and the loop driver");
    }
    Ok(holder)
}

impl Scenario for FullQueue {
    fn prefix(&self) -> Vec<OsString> {
        let holder = self.holder.pid().to_string();
        ["nsenter", "--target", &holder, "--mount", "--"].map(OsString::from).to_vec()
    }

    fn program(&self) -> Vec<OsString> {
        let words = ["bash", "--norc", "--noprofile", "-c", SEARCH_AS_YOU_TYPE, "search"].map(OsString::from);
        words.into_iter().chain([self.folder.join("mount/document").into_os_string()]).collect()
    }

    fn keys(&self) -> &'static str {
        "find this in the document "
    }

    fn inject(&mut self) -> Result<Option<Job>> {
        self.evict()?;
        let mount = self.folder.join("mount").into_os_string();
        let alias = self.folder.join("nightly-backup");
        let writer = self.helper.command(Some(&alias), &["writers".into(), mount, WRITING_S.into()])?;
        let words: Vec<OsString> = self.prefix().into_iter().chain([writer.get_program().to_os_string()]).collect();
        let (first, rest) = words.split_first().context("no job to start")?;
        let mut command = Command::new(first);
        command.args(rest).args(writer.get_args());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = Process::start("the writing job", command, None)?;
        let output = process.child().stdout.take().context("the writing job has no output")?;
        if first_line(output, PATIENCE)?.trim() != "writing" {
            bail!("the writing job did not begin; its message stands above");
        }
        Ok(Some(Job::new("nightly-backup: 128 direct writers", process)))
    }
}
