// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounded reads of /proc about processes, none of which a file's owner can block.

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use tipme_record::Nanos;
use tipme_record::proc_text::StatLine;

/// Maximum bytes of mappings of a process: about 40,000 mappings.
const MAPS_BYTES: u64 = 4 << 20;
/// Maximum bytes of a process's status file.
const STATUS_BYTES: u64 = 64 << 10;
/// Unit of process times in /proc.
const TICK_MS: u64 = 10;
/// Maximum bytes of the kernel's information on an open file.
const INFO_BYTES: u64 = 1_024;

/// Maximum number of processes with listed open files, of open files of one process, and of all
/// together; the rest stays unknown.
const PROCESSES_MAX: usize = 8_192;
const FILES_MAX: usize = 4_096;
const ALL_FILES_MAX: usize = 131_072;

/// An open file of a process. Its name is read; nothing is opened.
pub(crate) struct OpenFile {
    pub(crate) pid: u32,
    number: u32,
    /// Name in /proc: `socket:[12345]`, `pipe:[678]`, or a path.
    pub(crate) name: PathBuf,
}

impl OpenFile {
    /// Returns the kernel's information on it, up to a limit.
    pub(crate) fn info(&self) -> String {
        text(&format!("/proc/{}/fdinfo/{}", self.pid, self.number), INFO_BYTES)
    }
}

/// Lists the open files of all processes.
pub(crate) fn open_files() -> impl Iterator<Item = OpenFile> {
    let processes = numbers("/proc").take(PROCESSES_MAX);
    let files = processes.flat_map(|pid| {
        let numbers = numbers(&format!("/proc/{pid}/fd")).take(FILES_MAX);
        numbers.map(move |number| (pid, number))
    });
    files.take(ALL_FILES_MAX).filter_map(|(pid, number)| {
        let name = std::fs::read_link(format!("/proc/{pid}/fd/{number}")).ok()?;
        Some(OpenFile { pid, number, name })
    })
}

/// Returns the numeric names in a folder.
fn numbers(folder: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Reads a file of the kernel up to a limit; returns an empty text if there is none.
pub(crate) fn text(path: &str, bytes: u64) -> String {
    let mut text = Vec::new();
    // The part read before an error is still useful.
    File::open(path).and_then(|file| file.take(bytes).read_to_end(&mut text)).ok();
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the mappings of a process, one per line.
pub(crate) fn maps(pid: u32) -> String {
    text(&format!("/proc/{pid}/maps"), MAPS_BYTES)
}

/// Returns the real uid of a process.
pub(crate) fn user(pid: u32) -> Option<u32> {
    let status = text(&format!("/proc/{pid}/status"), STATUS_BYTES);
    tipme_record::proc_text::users(&status).map(|(real, _)| real)
}

/// Returns the age of a process; `None` once it has ended.
pub(crate) fn age(pid: u32) -> Option<Nanos> {
    let line = text(&format!("/proc/{pid}/stat"), STATUS_BYTES);
    let line = StatLine::read(&line).filter(|line| line.field(3) != Some("Z"))?;
    let ticks: u64 = line.field(22)?.parse().ok()?;
    let up = clock_gettime(ClockId::Boottime);
    let up = Nanos::from_secs(up.tv_sec.unsigned_abs()).after(Nanos(up.tv_nsec.unsigned_abs()));
    Some(up.since(Nanos::from_millis(ticks.saturating_mul(TICK_MS))))
}

/// A line of mappings, `7f00-7f10 r-xp 00000000 fe:01 12    /usr/lib/a b.so`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mapping<'a> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Offset in its file.
    pub(crate) offset: u64,
    /// Device of the file in the kernel's encoding, and inode.
    pub(crate) file: (u32, u64),
    /// Path of the file; empty for anonymous memory, in brackets for memory provided by the kernel.
    pub(crate) path: &'a str,
}

impl<'a> Mapping<'a> {
    pub(crate) fn parse(line: &'a str) -> Option<Mapping<'a>> {
        let words: Vec<&str> = line.splitn(6, ' ').collect();
        let [range, _, offset, device, inode, path] = words[..] else { return None };
        let (start, end) = range.split_once('-')?;
        let (major, minor) = device.split_once(':')?;
        let device = u32::try_from((hex(major)? << 20) | hex(minor)?).ok()?;
        Some(Mapping {
            start: hex(start)?,
            end: hex(end)?,
            offset: hex(offset)?,
            file: (device, inode.parse().ok()?),
            path: path.trim_start(),
        })
    }

    /// Returns the file name without its folder.
    pub(crate) fn name(&self) -> &'a str {
        let path = self.path.trim_end_matches(" (deleted)");
        path.rsplit('/').next().unwrap_or(path)
    }
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// Returns device and inode of a path, as cached by the kernel: a file system that does not answer
/// is not queried.
pub(crate) fn identity(path: &str) -> Option<(u32, u64)> {
    let file = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::INO).ok()?;
    Some(((file.stx_dev_major << 20) | file.stx_dev_minor, file.stx_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_mappings_are_taken_apart() {
        let line =
            "7f00-7f10 r-xp 00001000 fe:01 12                         /usr/lib/a b.so (deleted)";
        let mapping = Mapping::parse(line).expect("it is one");
        assert_eq!(
            (mapping.start, mapping.end, mapping.offset, mapping.file),
            (0x7f00, 0x7f10, 0x1000, (0xfe0_0001, 12))
        );
        assert_eq!((mapping.path, mapping.name()), ("/usr/lib/a b.so (deleted)", "a b.so"));
        let paths =
            ["7f00-7f10 rw-p 00000000 00:00 0 ", "7f00-7f10 rw-p 00000000 00:00 0          [heap]"];
        assert_eq!(
            paths.map(|line| Mapping::parse(line).map(|mapping| mapping.path)),
            [Some(""), Some("[heap]")]
        );
        assert_eq!(Mapping::parse("rubbish"), None);
    }

    #[test]
    fn the_age_of_a_process_is_known_until_it_ends() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
        let second = Nanos::from_secs(1);
        std::thread::sleep(std::time::Duration::from_secs(1));
        let age = age(child.id()).expect("it runs");
        assert!(
            age >= second.before(Nanos::from_millis(TICK_MS)) && age < Nanos::from_secs(60),
            "{age:?}"
        );
        child.kill().expect("it is ours");
        while super::age(child.id()).is_some() {
            std::thread::yield_now();
        }
        child.wait().expect("it has ended");
        assert_eq!(super::age(u32::MAX), None);
    }

    #[test]
    fn the_user_of_a_process_is_known() {
        assert_eq!(user(std::process::id()), Some(rustix::process::getuid().as_raw()));
        assert_eq!(user(u32::MAX), None);
    }
}
