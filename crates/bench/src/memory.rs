// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page-access latency of a process while others fill the memory.
//!
//! One process sleeps for 100 ms, reads a word of the next page of its 4 MiB buffer, and records a
//! time stamp. Its children continuously write a word of page after page of their own 12 MiB
//! buffers. Their control group has less memory than all the buffers together. So the rest of the
//! machine is unaffected, and the pages go to files on a private disk, not to the machine's swap.

mod options;
mod programs;

pub use options::Memory;
pub(crate) use programs::{children as run_children, enter, fork, timer as run_timer};

use crate::alone::MachineLock;
use crate::disk::{Extent, Format, PrivateDisk};
use crate::driver::BenchDriver;
use crate::experiment::{Experiment, MeasuredRepeats};
use crate::group::ControlGroup;
use crate::intervals::{
    Cleanup, Explainer, LoadIntervals, MeasuredLoad, NamedWorkers, PREFIX, Stamping,
};
use crate::kernel_text::memory_field;
use crate::process::ProcessGroup;
use crate::worker::WorkerLauncher;
use anyhow::{Context, Result, ensure};
use programs::{CHILD_BYTES, OWN_BYTES, SLEEP};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tipme_measure::{INTERVAL, InputClass};

const TITLE: &str = "A word of a page every 100 ms, beside children that write theirs";
/// Records the processes that dirty pages or take memory, since the kernel's own threads write and
/// read on their behalf.
const DETAILS: [&str; 2] = ["writers", "memory"];
/// Folder of the private disk if it is in memory: no other disk is written to.
const MEMORY_FOLDER: &str = "/dev/shm";
const OWN_FILE: &str = "own";
const CHILDREN_FILES: &str = "children";
/// Space on the disk beyond the buffers.
const SPARE_MIB: u32 = 32;
/// Minimum free memory besides the disk.
const FREE_MIN: u64 = 1 << 30;
static BLOCK: [u8; 1 << 20] = [0x5a; 1 << 20];

/// Conditions of the measurement.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Conditions")]
pub struct MemoryConditions {
    pub limit_bytes: u64,
    pub buffer_bytes: u64,
    pub child_buffer_bytes: u64,
    /// Description of the private disk: the place of its data, and its speed.
    pub disk: String,
}

impl Experiment for Memory {
    const NAME: &'static str = "memory";
    const CLASSES: &'static [&'static str] = &[INTERVAL];
    type Figures = LoadIntervals<MemoryConditions>;

    fn run(&self, driver: &mut dyn BenchDriver) -> Result<MeasuredRepeats<Self::Figures>> {
        driver.line(&self.plan());
        self.check()?;
        let explainer = Explainer::start(driver, self.no_trace, &DETAILS)?;
        let interrupt = driver.interrupt();
        let _alone = MachineLock::wait(&interrupt, || {
            driver.line("waiting for another benchmark or test to end")
        })?;
        let launcher = driver.programs().launcher;
        let bench = MemoryBench::make(self, &launcher)?;
        driver.line(&format!(
            "at most {} MiB of memory; {}",
            self.limit_bytes() >> 20,
            bench.disk_text()
        ));
        let mut loads = Vec::new();
        for children in &self.children {
            interrupt.check()?;
            loads.push(explainer.explain(bench.measure((*children).into(), driver)?, SLEEP)?);
        }
        let conditions = bench.conditions();
        let bounds = vec![format!(
            "{} MiB of memory for up to {} MiB of buffers; {}",
            conditions.limit_bytes >> 20,
            self.buffers_bytes() >> 20,
            conditions.disk
        )];
        let figures =
            LoadIntervals::new(TITLE, bounds, conditions, loads, explainer.blind_because());
        Ok(figures.measured(InputClass::Key))
    }

    fn files(&self) -> (Option<&Path>, Option<&Path>) {
        self.files.paths()
    }
}

/// Everything that is made for the benchmark. Fields are dropped in order: the processes, then
/// their resources.
struct MemoryBench<'a> {
    options: &'a Memory,
    launcher: &'a WorkerLauncher,
    group: ControlGroup,
    /// Group for the limit of the disk, if each controller has a hierarchy of its own.
    reads: Option<ControlGroup>,
    disk_speed: Option<String>,
    disk: PrivateDisk,
    folder: TempDir,
    cleanup: Cleanup,
}

impl<'a> MemoryBench<'a> {
    fn make(options: &'a Memory, launcher: &'a WorkerLauncher) -> Result<MemoryBench<'a>> {
        let mut cleanup = Cleanup::start(launcher)?;
        let folder = folder()?;
        cleanup.folder(folder.path())?;
        let disk = private_disk(options, folder.path())?;
        let group = ControlGroup::named(PREFIX, "memory")?;
        cleanup.group(group.folder())?;
        group.limit_memory(options.limit_bytes())?;
        let (reads, disk_speed) = (None, None);
        let mut bench =
            MemoryBench { options, launcher, group, reads, disk_speed, disk, folder, cleanup };
        if options.requests > 0 {
            bench.slow_down(options.requests)?;
        }
        bench.disk.write(OWN_FILE, &BLOCK, OWN_BYTES / BLOCK.len())?;
        bench.disk.evict(OWN_FILE)?;
        Ok(bench)
    }

    /// Limits the requests to the private disk: all of the group's with a unified hierarchy, else
    /// only its reads, since the kernel's own threads write the data there.
    fn slow_down(&mut self, requests: u32) -> Result<()> {
        let device = device_number(&self.disk)?;
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

    fn measure(&self, children: usize, driver: &mut dyn BenchDriver) -> Result<MeasuredLoad> {
        let bounds = self.options.bounds();
        let workers = NamedWorkers { folder: self.folder.path(), launcher: self.launcher };
        let procs_files = self.procs_files();
        let name = load_name(children);
        driver.line(&format!("{name}: starting"));
        let words = ["memory-timer", &procs_files, &self.file(OWN_FILE)];
        let stamping = Stamping::start(&workers, "memory-timer", &words, bounds, None)?;
        let load = self.start_children(&workers, children, &procs_files)?;
        let measured = stamping.follow(&name, SLEEP, bounds, &driver.interrupt(), driver)?;
        let casualties =
            load.as_ref().map_or(0, |load| (children + 1).saturating_sub(load.members().len()));
        drop(load);
        self.remove_children_files(children)?;
        Ok(MeasuredLoad { casualties, ..measured })
    }

    fn start_children(
        &self,
        workers: &NamedWorkers<'_>,
        children: usize,
        procs_files: &str,
    ) -> Result<Option<ProcessGroup>> {
        if children == 0 {
            return Ok(None);
        }
        let (count, life) = (children.to_string(), self.options.life().as_secs().to_string());
        let files = self.file(CHILDREN_FILES);
        let words = ["memory-children", procs_files, &count, &files, &life];
        let load =
            workers.start("memory-children", &words, None).context("cannot start the children")?;
        Ok(Some(load.process))
    }

    /// Returns the path of a file that backs a buffer.
    fn file(&self, name: &str) -> String {
        self.disk.outside(name).display().to_string()
    }

    fn remove_children_files(&self, children: usize) -> Result<()> {
        for number in 1..=children {
            let path = self.disk.outside(&format!("{CHILDREN_FILES}.{number}"));
            if path.exists() {
                std::fs::remove_file(&path)
                    .with_context(|| format!("cannot remove {}", path.display()))?;
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
        let kept = if self.folder.path().starts_with(MEMORY_FOLDER) {
            "memory"
        } else {
            "a temporary file"
        };
        let speed = self.disk_speed.as_deref().unwrap_or("as fast as it can be");
        format!("a private disk ({}) with its data in {kept}: {speed}", self.disk.device())
    }

    fn conditions(&self) -> MemoryConditions {
        MemoryConditions {
            limit_bytes: self.options.limit_bytes(),
            buffer_bytes: OWN_BYTES as u64,
            child_buffer_bytes: CHILD_BYTES as u64,
            disk: self.disk_text(),
        }
    }
}

/// Name in the results.
fn load_name(children: usize) -> String {
    match children {
        0 => "no children".to_owned(),
        1 => "1 child".to_owned(),
        count => format!("{count} children"),
    }
}

/// Makes a disk with room for all buffers, if its data leave enough memory.
fn private_disk(options: &Memory, folder: &Path) -> Result<PrivateDisk> {
    let mib = (options.buffers_bytes() >> 20) as u32 + SPARE_MIB;
    ensure!(
        memory_field("MemAvailable") > FREE_MIN + (u64::from(mib) << 20),
        "less than a gibibyte of memory is free; the private disk needs {mib} MiB of it"
    );
    PrivateDisk::sized(folder, Format::Plain, Extent { mib, life: options.life(), taken: true })
}

/// Makes a folder in memory if possible, else among temporary files.
fn folder() -> Result<TempDir> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let memory =
        mounts.lines().filter_map(|line| Some((line.split(' ').nth(1)?, line.split(' ').nth(2)?)));
    let there = memory.filter(|mount| mount.0 == MEMORY_FOLDER).any(|mount| mount.1 == "tmpfs");
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX);
    let made = if there { builder.tempdir_in(MEMORY_FOLDER) } else { builder.tempdir() };
    made.context("cannot make a folder for the private disk")
}

/// Returns major and minor number, as in `7:0`.
fn device_number(disk: &PrivateDisk) -> Result<String> {
    let path = PathBuf::from(format!("/sys/block/{}/dev", disk.device()));
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_private_disk_has_its_folder() {
        assert!(folder().expect("a folder").path().is_dir());
    }
}
