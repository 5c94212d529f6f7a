// SPDX-License-Identifier: MIT OR Apache-2.0
//! Private disk: a loop device with a file system in a file.
//!
//! It serves its queue of 128 requests strictly in order, so a read waits for all earlier writes,
//! on any machine and without wear of the real disk. It is mounted in a private mount name space
//! and vanishes with the process that holds it.

use crate::process::ProcessGroup;
use crate::worker::first_line;
use anyhow::{Context, Result, bail};
use rustix::fs::{Advice, fadvise};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Programs required to make a disk.
pub(crate) const PROGRAMS: [&str; 7] =
    ["unshare", "nsenter", "mke2fs", "mount", "blockdev", "findmnt", "losetup"];

/// Maximum time until the disk is ready.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Script that makes and holds the disk. Arguments: `$1` folder, `$2` features of the file system,
/// `$3` mount options, `$4` `on` to bypass the page cache of the file below, `$5` size in MiB, `$6`
/// lifetime in seconds, `$7` `taken` to allocate all blocks at once. The read-ahead is the usual
/// 128 KiB.
const HOLD: &str = r#"
    truncate -s "$5M" "$1/disk"
    mke2fs -q -F -t ext4 -O "$2" -E lazy_itable_init=0 "$1/disk"
    if [ "$7" = taken ]; then fallocate -l "$5M" "$1/disk"; fi
    mkdir "$1/mount"
    mount -o "loop,noatime,barrier=0,$3" "$1/disk" "$1/mount"
    device=$(findmnt -n -o SOURCE "$1/mount")
    blockdev --setra 256 "$device"
    losetup "--direct-io=$4" "$device"
    echo "mounted $device"
    exec sleep "$6""#;

/// File system and caching of the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// No journal: only data is written.
    Plain,
    /// No journal, and as slow as the disk that holds its file.
    Direct,
    /// With a journal and delayed allocation: a journal commit first writes all new data of other
    /// processes.
    Journal,
}

impl Format {
    fn features(self) -> &'static str {
        match self {
            Format::Plain | Format::Direct => "^has_journal",
            Format::Journal => "has_journal",
        }
    }

    fn options(self) -> &'static str {
        match self {
            Format::Plain | Format::Direct => "delalloc",
            Format::Journal => "data=ordered,nodelalloc",
        }
    }
}

/// Size of a disk, and its maximum lifetime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub mib: u32,
    pub life: Duration,
    /// Allocates all blocks when the disk is made, by the process that makes it.
    pub taken: bool,
}

/// Extent of the disks of known faults.
const USUAL: Extent = Extent { mib: 448, life: Duration::from_secs(120), taken: false };

/// A disk that exists as long as the value.
pub(crate) struct PrivateDisk {
    holder: ProcessGroup,
    folder: PathBuf,
    device: String,
}

impl PrivateDisk {
    /// Makes a disk of 448 MiB in a file below `folder`. Needs root and the loop driver.
    pub(crate) fn make(folder: &Path, format: Format) -> Result<PrivateDisk> {
        PrivateDisk::sized(folder, format, USUAL)
    }

    /// Makes a disk of the given size and lifetime.
    pub(crate) fn sized(folder: &Path, format: Format, extent: Extent) -> Result<PrivateDisk> {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--propagation", "private", "sh", "-euc", HOLD, "hold-disk"])
            .arg(folder);
        let direct = if format == Format::Direct { "on" } else { "off" };
        command.args([format.features(), format.options(), direct]);
        command.args([extent.mib.to_string(), extent.life.as_secs().to_string()]);
        command.arg(if extent.taken { "taken" } else { "sparse" });
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut holder = ProcessGroup::start("the private disk", command, None)?;
        let output = holder.child().stdout.take().context("the private disk has no output")?;
        let line = first_line(output, TIMEOUT)?;
        let Some(device) = line.trim().strip_prefix("mounted /dev/") else {
            bail!(
                "cannot make a private disk: mounting a loop device needs root and the loop driver"
            );
        };
        Ok(PrivateDisk { device: device.to_string(), holder, folder: folder.to_path_buf() })
    }

    /// Name of the device, such as `loop0`.
    pub(crate) fn device(&self) -> &str {
        &self.device
    }

    /// Prefix of a command that enters the name space.
    pub(crate) fn prefix(&self) -> Vec<OsString> {
        let holder = self.holder.pid().to_string();
        ["nsenter", "--target", &holder, "--mount", "--"].map(OsString::from).to_vec()
    }

    /// Path of a file on the disk inside the name space; the mount point if `name` is empty.
    pub(crate) fn inside(&self, name: &str) -> PathBuf {
        self.folder.join("mount").join(name)
    }

    /// Path of the same file from outside the name space. Needs root.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        let inside = self.inside(name);
        let relative = inside.strip_prefix("/").unwrap_or(&inside);
        Path::new(&format!("/proc/{}/root", self.holder.pid())).join(relative)
    }

    /// Writes a file to the device: `block`, `count` times.
    pub(crate) fn write(&self, name: &str, block: &[u8], count: usize) -> Result<()> {
        let path = self.outside(name);
        let written = File::create(&path).and_then(|mut file| {
            (0..count).try_for_each(|_| file.write_all(block))?;
            file.sync_all()
        });
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    /// Removes a file from the page cache.
    pub(crate) fn evict(&self, name: &str) -> Result<()> {
        let path = self.outside(name);
        let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
        fadvise(&file, 0, None, Advice::DontNeed)
            .with_context(|| format!("cannot evict {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_only_seen_from_inside_and_goes_with_its_holder() {
        let folder = tempfile::tempdir().expect("a folder");
        for format in [Format::Plain, Format::Direct, Format::Journal] {
            let below = folder.path().join(format!("{format:?}"));
            std::fs::create_dir(&below).expect("a folder");
            let disk = PrivateDisk::make(&below, format).expect("root, and a loop driver");
            disk.write("document", &[7; 4096], 3).expect("room");
            disk.evict("document").expect("a file");
            assert_eq!(std::fs::read(disk.outside("document")).expect("a file").len(), 3 * 4096);
            assert!(!disk.inside("document").exists());
            let device = format!("/sys/block/{}/loop/backing_file", disk.device());
            assert!(
                std::fs::read_to_string(&device).expect("a loop device").trim().ends_with("/disk")
            );
            drop(disk);
            assert!(!Path::new(&device).exists());
        }
    }
}
