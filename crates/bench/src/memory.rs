// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a process waits for a page of its own (page-access latency) while others fill the memory.
//!
//! One process sleeps for 100 ms, reads a word of the next page of its buffer of 4 MiB, and stamps the time; its
//! children each write a word of page after page of a buffer of 12 MiB of their own, all the time. They have a
//! control group of their own, whose memory does not hold all the buffers: so the machine does not notice, and the
//! pages go to a private disk, or to swap that is made for them, not to the machine's.

mod backing;
mod programs;

pub use backing::{BACKINGS, Backing, Offer};
pub use programs::{CHILDREN_MAX, SLEEP};
pub(crate) use programs::{children as run_children, fork, timer as run_timer, word};

use crate::alone::Alone;
use crate::group::ControlGroup;
use crate::interrupt::Interrupt;
use crate::intervals::{Bounds, Cleanup, GRACE, Measured, PREFIX, SidecarRecorder, Stage, Stamping, TIMEOUT};
use crate::process::Process;
use crate::progress::Progress;
use crate::selftest::disk::PrivateDisk;
use crate::worker::WorkerLauncher;
use anyhow::{Context, Result, bail, ensure};
use backing::BackingSetup;
use programs::{CHILD_BYTES, NO_FILE, OWN_BYTES};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// The smallest limit: the processes themselves need some of it.
const LIMIT_MIN: u64 = 12 << 20;
/// The share of the buffers that the memory holds where no limit is given, as a divisor.
const SHARE: u64 = 3;
/// Where it is memory, the folder of the private disk is here: no other disk is written to.
const MEMORY_FOLDER: &str = "/dev/shm";
const OWN_FILE: &str = "own";
const CHILDREN_FILES: &str = "children";
static BLOCK: [u8; 1 << 20] = [0x5a; 1 << 20];
/// What a read or write takes, at least, by a limit of so many a second, where none is given.
pub const REQUESTS_PER_SECOND: u32 = 100;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// Numbers of children, one after the other.
    pub children: Vec<usize>,
    pub bounds: Bounds,
    pub backing: Backing,
    /// Memory of all processes together, bytes; a third of the buffers where it is not given.
    pub limit: Option<u64>,
    /// How many requests a second the private disk takes, `None` for as many as it can.
    pub requests_per_second: Option<u32>,
    pub launcher: WorkerLauncher,
}

/// What it was measured with.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Conditions {
    pub backing: Backing,
    /// All of them, and why they are not available.
    pub backings: Vec<Offer>,
    pub limit_bytes: u64,
    pub buffer_bytes: u64,
    pub child_buffer_bytes: u64,
    /// The private disk, in words: where its data are, and how fast it may be.
    pub disk: Option<String>,
}

/// All loads, one after the other.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    pub conditions: Conditions,
    pub loads: Vec<Measured>,
}

impl Options {
    /// The memory that the processes get together.
    pub fn limit_bytes(&self) -> u64 {
        self.limit.unwrap_or_else(|| (self.buffers_bytes() / SHARE).next_multiple_of(1 << 20).max(LIMIT_MIN))
    }

    /// All buffers with the most children.
    pub fn buffers_bytes(&self) -> u64 {
        let children = self.children.iter().copied().max().unwrap_or_default();
        (OWN_BYTES + children * CHILD_BYTES) as u64
    }

    /// The longest that measuring may take, apart from making and removing what it needs.
    pub fn time_max(&self) -> Duration {
        (self.bounds.time + GRACE) * self.children.len() as u32
    }

    /// Whether it can be measured here; an error says why not, and what helps.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.children.is_empty(), "no number of children is given");
        let limit = self.limit_bytes();
        ensure!(limit >= LIMIT_MIN, "a limit below {} MiB does not hold the processes themselves", LIMIT_MIN >> 20);
        if !rustix::process::geteuid().is_root() {
            bail!(
                "memory can only be limited by a control group, and that takes root; run it with sudo, \
                 or see `tipme bench fork`, which needs no right"
            );
        }
        if let Some(because) = self.backing.offer().not_available_because {
            bail!("backing {} is not available, because {because}", self.backing.name());
        }
        Ok(())
    }

    /// Longer than all of it can take.
    fn life(&self) -> Duration {
        self.time_max() + TIMEOUT * (2 + self.children.len() as u32)
    }
}

/// Measures under each number of children. Everything that was made is gone when it returns.
pub fn run(
    options: &Options,
    sidecar: Option<&SidecarRecorder>,
    interrupt: &Interrupt,
    progress: &mut dyn Progress,
) -> Result<Outcome> {
    options.check()?;
    let _alone = Alone::wait(interrupt, || progress.line("waiting for another benchmark or test to end"))?;
    let place = Place::make(options)?;
    progress.line(&format!("at most {} MiB of memory; {}", options.limit_bytes() >> 20, place.disk_text()));
    let mut loads = Vec::new();
    for children in &options.children {
        interrupt.check()?;
        let mut measured = place.measure(*children, options, interrupt, progress)?;
        measured.incident = sidecar.map(|sidecar| sidecar.mark(interrupt)).transpose()?;
        loads.push(measured);
    }
    Ok(Outcome { conditions: place.conditions(options), loads })
}

/// Everything that is made for the benchmark. Fields are dropped in their order: who works, then what with.
struct Place<'a> {
    launcher: &'a WorkerLauncher,
    group: ControlGroup,
    /// A group for the limit of the disk, where each controller has a hierarchy of its own.
    reads: Option<ControlGroup>,
    disk_speed: Option<String>,
    setup: BackingSetup,
    folder: TempDir,
    cleanup: Cleanup,
}

impl<'a> Place<'a> {
    fn make(options: &'a Options) -> Result<Place<'a>> {
        let mut cleanup = Cleanup::start(&options.launcher)?;
        let folder = folder()?;
        cleanup.folder(folder.path())?;
        let buffers = (options.buffers_bytes() >> 20) as u32;
        let setup = BackingSetup::make(options.backing, folder.path(), buffers, options.life(), &mut cleanup)?;
        let group = ControlGroup::named(PREFIX, "memory")?;
        cleanup.group(group.folder())?;
        group.limit_memory(options.limit_bytes())?;
        let mut place =
            Place { launcher: &options.launcher, group, reads: None, disk_speed: None, setup, folder, cleanup };
        if let Some(requests) = options.requests_per_second {
            place.slow_down(requests)?;
        }
        if options.backing.is_file() {
            place.write_own_file()?;
        }
        Ok(place)
    }

    /// Limits the requests to the private disk: with one hierarchy all of the group's, else only its reads, since
    /// data are written by the kernel's own threads there.
    fn slow_down(&mut self, requests: u32) -> Result<()> {
        let Some(disk) = &self.setup.disk else { return Ok(()) };
        let device = device_number(disk)?;
        if self.group.is_unified() {
            let rule = format!("{device} riops={requests} wiops={requests}");
            self.disk_speed = Some(match self.group.set("io.max", &rule) {
                Ok(()) => format!("{requests} reads and {requests} writes a second"),
                Err(error) => format!("as fast as it can be, since {error:#}"),
            });
            return Ok(());
        }
        let reads = match ControlGroup::named(PREFIX, "blkio") {
            Ok(reads) => reads,
            Err(error) => {
                self.disk_speed = Some(format!("as fast as it can be, since {error:#}"));
                return Ok(());
            }
        };
        self.cleanup.group(reads.folder())?;
        reads.set("blkio.throttle.read_iops_device", &format!("{device} {requests}"))?;
        self.disk_speed = Some(format!("{requests} reads a second, and writes as fast as it can"));
        self.reads = Some(reads);
        Ok(())
    }

    fn write_own_file(&self) -> Result<()> {
        match &self.setup.disk {
            Some(disk) => {
                disk.write(OWN_FILE, &BLOCK, OWN_BYTES / BLOCK.len())?;
                disk.evict(OWN_FILE)
            }
            None => Ok(()),
        }
    }

    fn measure(
        &self,
        children: usize,
        options: &Options,
        interrupt: &Interrupt,
        progress: &mut dyn Progress,
    ) -> Result<Measured> {
        let stage = Stage { folder: self.folder.path(), launcher: self.launcher };
        let procs_files = self.procs_files();
        let file = |name: &str| match &self.setup.disk {
            Some(disk) if options.backing.is_file() => disk.outside(name).display().to_string(),
            _ => NO_FILE.to_owned(),
        };
        let name = load_name(children);
        progress.line(&format!("{name}: starting"));
        let stamping = Stamping::start(
            &stage,
            "memory-timer",
            &["memory-timer", &procs_files, &file(OWN_FILE)],
            options.bounds,
            None,
        )?;
        let load = self.start_children(&stage, children, &procs_files, &file(CHILDREN_FILES), options)?;
        let tid = stamping.tid();
        let (intervals, cpu_ns) = stamping.follow(&name, SLEEP, options.bounds, interrupt, progress)?;
        let casualties = load.as_ref().map_or(0, |load| (children + 1).saturating_sub(load.members().len()));
        drop(load);
        self.remove_children_files(children)?;
        Ok(Measured { intervals, tid, incident: None, casualties, cpu_ns })
    }

    fn start_children(
        &self,
        stage: &Stage<'_>,
        children: usize,
        procs_files: &str,
        files: &str,
        options: &Options,
    ) -> Result<Option<Process>> {
        if children == 0 {
            return Ok(None);
        }
        let (count, life) = (children.to_string(), options.life().as_secs().to_string());
        let words = ["memory-children", procs_files, &count, files, &life];
        let load = stage.start("memory-children", &words, None).context("the children do not get on")?;
        Ok(Some(load.process))
    }

    fn remove_children_files(&self, children: usize) -> Result<()> {
        let Some(disk) = &self.setup.disk else { return Ok(()) };
        for number in 1..=children {
            let path = disk.outside(&format!("{CHILDREN_FILES}.{number}"));
            if path.exists() {
                std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
        Ok(())
    }

    fn procs_files(&self) -> String {
        let procs_files = [Some(&self.group), self.reads.as_ref()];
        procs_files
            .into_iter()
            .flatten()
            .map(|group| group.procs_file().display().to_string())
            .collect::<Vec<_>>()
            .join(":")
    }

    fn disk_text(&self) -> String {
        let Some(disk) = &self.setup.disk else { return "no disk".to_owned() };
        let kept = if self.folder.path().starts_with(MEMORY_FOLDER) { "memory" } else { "a temporary file" };
        let speed = self.disk_speed.as_deref().unwrap_or("as fast as it can be");
        format!("a private disk ({}) whose data are kept in {kept}: {speed}", disk.device())
    }

    fn conditions(&self, options: &Options) -> Conditions {
        Conditions {
            backing: options.backing,
            backings: BACKINGS.map(Backing::offer).to_vec(),
            limit_bytes: options.limit_bytes(),
            buffer_bytes: OWN_BYTES as u64,
            child_buffer_bytes: CHILD_BYTES as u64,
            disk: self.setup.disk.as_ref().map(|_| self.disk_text()),
        }
    }
}

/// As in results.
fn load_name(children: usize) -> String {
    match children {
        0 => "no children".to_owned(),
        1 => "1 child".to_owned(),
        count => format!("{count} children"),
    }
}

/// In memory where there is such a folder, else among temporary files.
fn folder() -> Result<TempDir> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let memory = mounts.lines().filter_map(|line| Some((line.split(' ').nth(1)?, line.split(' ').nth(2)?)));
    let there = memory.filter(|mount| mount.0 == MEMORY_FOLDER).any(|mount| mount.1 == "tmpfs");
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX);
    let made = if there { builder.tempdir_in(MEMORY_FOLDER) } else { builder.tempdir() };
    made.context("cannot make a folder for the private disk")
}

/// Major and minor number, as in `7:0`.
fn device_number(disk: &PrivateDisk) -> Result<String> {
    let path = PathBuf::from(format!("/sys/block/{}/dev", disk.device()));
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(children: &[usize], limit: Option<u64>) -> Options {
        Options {
            children: children.to_vec(),
            bounds: Bounds { intervals: 10, time: Duration::from_secs(5) },
            backing: Backing::File,
            limit,
            requests_per_second: None,
            launcher: WorkerLauncher(Vec::new()),
        }
    }

    #[test]
    fn the_memory_never_holds_all_buffers() {
        for children in 1..=CHILDREN_MAX {
            let options = options(&[0, children], None);
            assert!(options.limit_bytes() < options.buffers_bytes(), "{children}");
            assert!(options.limit_bytes() >= LIMIT_MIN);
        }
        assert_eq!(options(&[0, 1, 4, 8], None).limit_bytes(), 34 << 20);
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let error = options(&[1], Some(1 << 20)).check().expect_err("too little");
        assert!(error.to_string().contains("below 12 MiB"), "{error}");
        assert!(options(&[], None).check().is_err());
        assert!(folder().expect("a folder").path().is_dir());
    }
}
