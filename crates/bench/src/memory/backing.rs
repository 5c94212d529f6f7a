// SPDX-License-Identifier: MIT OR Apache-2.0
//! Backing of the buffers that do not fit into memory.

use crate::disk::{Extent, Format, PROGRAMS, PrivateDisk};
use crate::intervals::Cleanup;
use crate::kernel_text::memory_field;
use crate::process::missing;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Space on the disk for the file system itself, besides buffers and swap.
const SPARE_MIB: u32 = 32;
/// Minimum free memory besides what may be swapped out: it all comes back at the end.
const FREE_MIN: u64 = 1 << 30;
/// Above the machine's own swap, so that the buffers do not go there.
const SWAP_PRIORITY: &str = "32767";
static BLOCK: [u8; 1 << 20] = [0; 1 << 20];

/// Place of swapped pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// Mapped files on a private disk
    File,
    /// A swap file on a private disk, made for this and removed
    DiskSwap,
    /// A compressed swap in memory, made for this and removed
    Zram,
    /// The machine's own swap
    Anonymous,
}

/// Availability of a backing on this machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Offer")]
pub struct BackingAvailability {
    pub backing: Backing,
    /// `null` if it is available.
    pub not_available_because: Option<String>,
}

impl Backing {
    /// Checks that this machine has the requirements, as far as possible without making anything.
    pub(crate) fn availability(self) -> BackingAvailability {
        let because = match self {
            Backing::File => disk_lacks(),
            Backing::DiskSwap => disk_lacks().or_else(swap_lacks),
            Backing::Zram => zram_lacks().or_else(swap_lacks),
            Backing::Anonymous => swaps().is_empty().then(|| {
                "this machine has no swap: memory beyond the limit would be taken by ending processes; use --backing file"
                    .to_owned()
            }),
        };
        BackingAvailability { backing: self, not_available_because: because }
    }

    /// Returns `true` if buffers are mapped files.
    pub(super) fn is_file(self) -> bool {
        self == Backing::File
    }

    fn needs_disk(self) -> bool {
        matches!(self, Backing::File | Backing::DiskSwap)
    }
}

fn disk_lacks() -> Option<String> {
    let missing = missing(&PROGRAMS);
    if !missing.is_empty() {
        return Some(format!(
            "{} is not installed; on Debian: apt-get install util-linux e2fsprogs mount",
            missing.join(", ")
        ));
    }
    let loops = Path::new("/dev/loop-control").exists();
    (!loops).then(|| "there are no loop devices; try: modprobe loop".to_owned())
}

fn swap_lacks() -> Option<String> {
    if !Path::new("/proc/swaps").exists() {
        return Some("the kernel was built without swap".to_owned());
    }
    let missing = missing(&["mkswap", "swapon", "swapoff"]);
    (!missing.is_empty()).then(|| format!("{} is not installed", missing.join(", ")))
}

fn zram_lacks() -> Option<String> {
    let there = Path::new("/sys/class/zram-control/hot_add").exists();
    (!there).then(|| "the kernel has no zram; try: modprobe zram num_devices=0".to_owned())
}

/// Returns the active swap areas.
fn swaps() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    text.lines().skip(1).map(str::to_owned).collect()
}

/// Resources made for a backing; undone on drop or, if that does not happen, by the cleanup
/// process.
pub(super) struct BackingSetup {
    pub disk: Option<PrivateDisk>,
    swap: Option<PathBuf>,
}

impl BackingSetup {
    /// Makes the backing for buffers of `mib` mebibytes in total.
    pub(super) fn make(
        backing: Backing,
        folder: &Path,
        buffers_mib: u32,
        life: Duration,
        cleanup: &mut Cleanup,
    ) -> Result<BackingSetup> {
        let mut setup = BackingSetup { disk: None, swap: None };
        if backing.needs_disk() {
            let extent = Extent { mib: buffers_mib + SPARE_MIB, life, taken: true };
            ensure!(
                memory_field("MemAvailable") > FREE_MIN + (u64::from(extent.mib) << 20),
                "less than a gibibyte of memory is free; the private disk needs {} MiB of it",
                extent.mib
            );
            setup.disk = Some(PrivateDisk::sized(folder, Format::Plain, extent)?);
        }
        match (backing, &setup.disk) {
            (Backing::DiskSwap, Some(disk)) => {
                disk.write("swap", &BLOCK, buffers_mib as usize)?;
                setup.swap = Some(swap_on(disk.outside("swap"), cleanup)?);
            }
            (Backing::Zram, _) => setup.swap = Some(swap_on(zram(buffers_mib, cleanup)?, cleanup)?),
            _ => {}
        }
        Ok(setup)
    }
}

impl Drop for BackingSetup {
    fn drop(&mut self) {
        if let Some(path) = &self.swap {
            let _ = Command::new("swapoff").arg(path).stderr(Stdio::null()).status();
        }
    }
}

/// Adds a zram device of this size. The cleanup process removes it.
fn zram(mib: u32, cleanup: &mut Cleanup) -> Result<PathBuf> {
    let control = "/sys/class/zram-control/hot_add";
    let number = std::fs::read_to_string(control)
        .with_context(|| format!("cannot read {control}; this needs root"))?;
    let number: u32 = number.trim().parse().with_context(|| format!("{control} gave no number"))?;
    let device = PathBuf::from(format!("/dev/zram{number}"));
    cleanup.zram(&device)?;
    let size = format!("/sys/block/zram{number}/disksize");
    std::fs::write(&size, format!("{mib}M")).with_context(|| format!("cannot write {size}"))?;
    Ok(device)
}

fn swap_on(path: PathBuf, cleanup: &mut Cleanup) -> Result<PathBuf> {
    let free = memory_field("MemAvailable");
    ensure!(
        free > FREE_MIN,
        "only {} MiB of memory are free; swap is made where a gibibyte is",
        free >> 20
    );
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .with_context(|| format!("cannot change {}", path.display()))?;
    run(Command::new("mkswap").arg("--quiet").arg(&path))?;
    cleanup.swap(&path)?;
    run(Command::new("swapon").args(["--priority", SWAP_PRIORITY]).arg(&path))?;
    Ok(path)
}

fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {name}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} failed: {}", said.trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_backing_is_there_or_says_why_not() {
        for backing in Backing::value_variants() {
            let availability = backing.availability();
            assert!(
                availability.not_available_because.is_none_or(|why| why.len() > 10),
                "{backing:?}"
            );
        }
        assert_eq!(
            Backing::Anonymous.availability().not_available_because.is_some(),
            swaps().is_empty()
        );
        assert!(memory_field("MemAvailable") > 0);
    }
}
