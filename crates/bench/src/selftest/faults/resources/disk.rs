// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disk is slow, or others fill its queue.

use super::shortage::{DELAY_MS, Shortage, ShortageEffects, block, fill_queue, order, shortfall};
use crate::process::ProcessGroup;
use crate::selftest::disk::{Format, PROGRAMS, PrivateDisk};
use crate::selftest::fault::Fault;
use crate::selftest::site::{Site, text};
use anyhow::{Context, Result};
use std::path::Path;

pub(super) const PAGE_IN: Fault = Fault {
    name: "page-in",
    about: "the application touches pages of a mapped file that are no longer in memory",
    kinds: &[&["page-in"]],
    programs: &PROGRAMS,
    prepare: |site| Ok(shortfall(site, ApplicationReads::prepare(&site.folder, DOCUMENT_BLOCKS, "touch-file", false)?)),
    ..Fault::OURS
};

pub(super) const PAGE_IN_BEHIND_WRITER: Fault = Fault {
    name: "page-in-behind-writer",
    about: "the same, while a job keeps the queue of that disk full",
    kinds: &[&["page-in", "disk-queue"]],
    programs: &PROGRAMS,
    prepare: |site| Ok(shortfall(site, ApplicationReads::prepare(&site.folder, SMALL_BLOCKS, "touch-file", true)?)),
    ..Fault::OURS
};

pub(super) const QUEUE: Fault = Fault {
    name: "disk-queue",
    about: "the application reads a file, while a job keeps the queue of that disk full",
    kinds: &[&["disk-queue"]],
    programs: &PROGRAMS,
    prepare: |site| Ok(shortfall(site, ApplicationReads::prepare(&site.folder, SMALL_BLOCKS, "read-file", true)?)),
    ..Fault::OURS
};

pub(super) const FSYNC: Fault = Fault {
    name: "fsync-behind-writeback",
    about: "the application has a few bytes put on the disk, while a job has much that waits to be written there",
    kinds: &[&["fsync"]],
    programs: &PROGRAMS,
    prepare: |site| Ok(shortfall(site, Syncing { disk: PrivateDisk::make(&site.folder, Format::Journal)? })),
    ..Fault::OURS
};

pub(super) const LOCK_OWNER: Fault = Fault {
    name: "lock-owner-on-disk",
    about: "the application needs a file lock, whose owner reads from a disk with a full queue",
    kinds: &[&["disk-queue", "page-in"]],
    programs: &PROGRAMS,
    prepare: |site| Ok(shortfall(site, TwoHops { reader: DiskReader::LockOwner, disk: small_disk(&site.folder)? })),
    ..Fault::OURS
};

pub(super) const HELPER: Fault = Fault {
    name: "helper-on-disk",
    about: "the application asks a helper, which reads from a disk with a full queue",
    kinds: &[&["disk-queue", "page-in"]],
    programs: &PROGRAMS,
    prepare: |site| Ok(shortfall(site, TwoHops { reader: DiskReader::Helper, disk: small_disk(&site.folder)? })),
    ..Fault::OURS
};

const DOCUMENT: &str = "document";
/// Blocks of a file from which pages are read for a second, at 40 microseconds each.
const DOCUMENT_BLOCKS: usize = 96;
/// Blocks of a file from which pages are read behind a full queue.
const SMALL_BLOCKS: usize = 32;
/// Seconds that the writing job writes.
const WRITING_S: &str = "7";
/// The culprit's name.
const WRITER: &str = "nightly-backup";

fn small_disk(folder: &Path) -> Result<PrivateDisk> {
    disk_with(folder, Format::Plain, SMALL_BLOCKS)
}

fn disk_with(folder: &Path, format: Format, blocks: usize) -> Result<PrivateDisk> {
    let disk = PrivateDisk::make(folder, format)?;
    disk.write(DOCUMENT, &block(), blocks)?;
    Ok(disk)
}

/// Removes the document from memory and fills the disk's queue.
fn fill_behind(site: &Site, disk: &PrivateDisk) -> Result<ProcessGroup> {
    disk.evict(DOCUMENT)?;
    fill_queue(site, disk, WRITER, WRITING_S)
}

/// The application itself reads, with an order of this name; with or without writers.
struct ApplicationReads {
    disk: PrivateDisk,
    order: &'static str,
    writers: bool,
}

impl ApplicationReads {
    fn prepare(folder: &Path, blocks: usize, order: &'static str, writers: bool) -> Result<ApplicationReads> {
        let format = if writers { Format::Plain } else { Format::Direct };
        Ok(ApplicationReads { disk: disk_with(folder, format, blocks)?, order, writers })
    }
}

impl Shortage for ApplicationReads {
    fn begin(&mut self, site: &Site, app: u32) -> Result<ShortageEffects> {
        let order = order(site, self.order, &[&text(&self.disk.outside(DOCUMENT))]);
        if self.writers {
            return Ok(ShortageEffects::with(fill_behind(site, &self.disk)?, order));
        }
        self.disk.evict(DOCUMENT)?;
        let (culprits, names) = (site.family(app)?, vec![self.disk.device().to_string()]);
        Ok(ShortageEffects { jobs: Vec::new(), orders: vec![order], culprits, names })
    }
}

/// Mebibytes that the job writes before it starts over.
const DIRTY_MIB: &str = "128";

/// The application's data can be put on the disk only after those of the job.
struct Syncing {
    disk: PrivateDisk,
}

impl Shortage for Syncing {
    fn begin(&mut self, site: &Site, _app: u32) -> Result<ShortageEffects> {
        let dirtied = text(&self.disk.outside("export"));
        let job = site.start("video-export", &["dirtier", &dirtied, DIRTY_MIB], None)?.process;
        Ok(ShortageEffects::with(job, order(site, "sync", &[&text(&self.disk.outside("settings"))])))
    }
}

/// Who reads behind the writers for the application.
enum DiskReader {
    LockOwner,
    Helper,
}

/// The application waits for a process that waits for the disk.
struct TwoHops {
    disk: PrivateDisk,
    reader: DiskReader,
}

impl Shortage for TwoHops {
    fn begin(&mut self, site: &Site, _app: u32) -> Result<ShortageEffects> {
        let writer = fill_behind(site, &self.disk)?;
        let (between, document) = (site.path("between"), text(&self.disk.outside(DOCUMENT)));
        let between_text = text(&between);
        let (name, program, order) = match self.reader {
            DiskReader::LockOwner => ("indexer", "lock-reader", "file-lock"),
            DiskReader::Helper => ("spell-checker", "reader-service", "ask"),
        };
        if matches!(self.reader, DiskReader::LockOwner) {
            std::fs::write(&between, "").with_context(|| format!("cannot write {between_text}"))?;
        }
        let reader = site.start(name, &[program, &between_text, &document, DELAY_MS], None)?.process;
        let mut effects = ShortageEffects::with(writer, format!("{order} {between_text}"));
        effects.jobs.push(reader);
        Ok(effects)
    }
}
