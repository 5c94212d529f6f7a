// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of the application's control group is taken by another process in it.

use super::shortage::{Shortage, ShortageEffects, block, fill_queue, order, shortfall};
use crate::group::ControlGroup;
use crate::process::ProcessGroup;
use crate::selftest::disk::{Format, PROGRAMS, PrivateDisk};
use crate::selftest::fault::Fault;
use crate::selftest::site::{START_TIMEOUT, Site, text};
use crate::worker;
use anyhow::Result;
use std::ffi::OsString;

pub(super) const HOG: Fault = Fault {
    name: "memory-hog",
    about: "the application needs memory, and its control group's is full of another process's unwritten data",
    kinds: &[&["reclaim", "page-in"]],
    programs: &PROGRAMS,
    prepare: |site| Ok(shortfall(site, Pressure::prepare(site, Need::Memory)?)),
    ..Fault::OURS
};

pub(super) const THRASHING: Fault = Fault {
    name: "thrashing",
    about: "the application touches a mapped file, which another process has pushed out of their control group's memory",
    kinds: &[&["page-in"]],
    programs: &PROGRAMS,
    prepare: |site| Ok(shortfall(site, Pressure::prepare(site, Need::File)?)),
    ..Fault::OURS
};

/// Of the group, where memory is needed: so much unwritten data that one walk over its memory delays the
/// application enough.
const LIMIT_WITH_DATA_BYTES: u64 = 128 << 20;
/// Of the group, where a file is needed.
const LIMIT_BYTES: u64 = 64 << 20;
const DOCUMENT: &str = "document";
/// The document's size, in mebibytes: it fits into the group's memory while that is free.
const DOCUMENT_BLOCKS: usize = 28;
/// What the other process takes, in mebibytes; the first leaves room for what it writes.
const TAKEN_BESIDE_DATA_MIB: &str = "8";
const TAKEN_MIB: &str = "54";
/// What it writes and the application needs, in mebibytes.
const DATA_MIB: &str = "144";
const NEEDED_MIB: &str = "106";
/// Who takes the memory, and who keeps the disk busy meanwhile.
const HOG_NAME: &str = "photo-import";
const WRITER: &str = "photo-copy";
/// Seconds that the disk is kept busy.
const WRITING_S: &str = "7";
/// Moves into the group, then becomes another program.
const ENTER: &str = r#"echo $$ > "$0"; exec "$@""#;

/// What the application needs.
enum Need {
    Memory,
    File,
}

/// The group, and the disk that the data come from and go to.
struct Pressure {
    group: ControlGroup,
    disk: PrivateDisk,
    need: Need,
}

impl Pressure {
    fn prepare(site: &Site, need: Need) -> Result<Pressure> {
        let (format, limit) = match need {
            Need::Memory => (Format::Plain, LIMIT_WITH_DATA_BYTES),
            Need::File => (Format::Direct, LIMIT_BYTES),
        };
        let disk = PrivateDisk::make(&site.folder, format)?;
        if matches!(need, Need::File) {
            disk.write(DOCUMENT, &block(), DOCUMENT_BLOCKS)?;
            disk.evict(DOCUMENT)?;
        }
        Ok(Pressure { group: ControlGroup::with_memory(limit)?, disk, need })
    }

    /// Starts a worker program inside the group.
    fn start(&self, site: &Site, name: &str, words: &[&str]) -> Result<ProcessGroup> {
        let enter =
            ["sh", "-euc", ENTER].map(OsString::from).into_iter().chain([self.group.procs_file().into_os_string()]);
        let command = worker::behind(&enter.collect::<Vec<_>>(), &site.command(name, words)?)?;
        Ok(worker::start(name, command, None, START_TIMEOUT)?.process)
    }

    /// The application needs memory while the group is full of data that a slow disk takes in.
    fn fill_with_data(&self, site: &Site) -> Result<ShortageEffects> {
        let data = text(&self.disk.outside("data"));
        let hog = self.start(site, HOG_NAME, &["memory-hog", TAKEN_BESIDE_DATA_MIB, &data, DATA_MIB])?;
        // So that what is written back waits.
        let writers = fill_queue(site, &self.disk, WRITER, WRITING_S)?;
        let mut effects = ShortageEffects::with(hog, order(site, "fill-memory", &[NEEDED_MIB]));
        effects.jobs.push(writers);
        Ok(effects)
    }

    /// The application needs a file that memory of another process has pushed out.
    fn evict_document(&self, site: &Site) -> Result<ShortageEffects> {
        let document = text(&self.disk.outside(DOCUMENT));
        drop(self.start(site, "reader", &["warm", &document])?);
        let hog = self.start(site, HOG_NAME, &["memory-hog", TAKEN_MIB])?;
        Ok(ShortageEffects::with(hog, order(site, "touch-file", &[&document])))
    }
}

impl Shortage for Pressure {
    fn begin(&mut self, site: &Site, app: u32) -> Result<ShortageEffects> {
        for pid in site.family(app)? {
            self.group.take(pid)?;
        }
        match self.need {
            Need::Memory => self.fill_with_data(site),
            Need::File => self.evict_document(site),
        }
    }

    fn end(&mut self) -> Vec<u32> {
        self.group.release();
        Vec::new()
    }
}
