// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/loadavg` with one read of one open file: shows whether any process or thread has been
//! forked since, and the number of runnable ones.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// File system type of the kernel's own `/proc`: a file that replaces it may be outdated.
const PROC_MAGIC: u64 = 0x9fa0;
/// Maximum size of the file, more than the kernel writes.
const BYTES_MAX: usize = 128;

/// The open file, if it is the kernel's.
#[derive(Debug)]
pub struct LoadFile(Option<File>);

impl LoadFile {
    /// Opens the file below this `/proc`.
    pub fn open(proc: &Path) -> LoadFile {
        LoadFile(File::open(proc.join("loadavg")).ok().filter(|file| {
            rustix::fs::fstatfs(file)
                .is_ok_and(|found| u64::try_from(found.f_type) == Ok(PROC_MAGIC))
        }))
    }

    /// Returns the last id given to a process or thread: while it is unchanged, nothing was forked.
    /// Returns `None` if it is unknown.
    pub fn last_pid(&self) -> Option<u64> {
        self.read(last)
    }

    /// Returns the number of running and runnable processes and threads, including the calling one.
    pub fn runnable(&self) -> Option<u64> {
        self.read(runnable)
    }

    fn read(&self, of: impl Fn(&str) -> Option<u64>) -> Option<u64> {
        let mut bytes = [0; BYTES_MAX];
        let length = self.0.as_ref()?.read_at(&mut bytes, 0).ok()?;
        of(std::str::from_utf8(&bytes[..length]).ok()?)
    }
}

/// Parses the last field of `0.00 0.01 0.05 1/80 11206`.
fn last(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(4)?.parse().ok()
}

/// Parses the 1 in it.
pub fn runnable(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_is_noticed() {
        let last_pid = LoadFile::open(Path::new("/proc"));
        let before = last_pid.last_pid().expect("this is Linux");
        std::thread::spawn(|| ()).join().expect("it does nothing");
        assert_ne!(last_pid.last_pid(), Some(before));
    }

    #[test]
    fn a_file_that_is_not_the_kernels_tells_nothing() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        std::fs::write(folder.path().join("loadavg"), "0.00 0.01 0.05 1/80 11206\n")
            .expect("it can be written");
        assert_eq!(LoadFile::open(folder.path()).last_pid(), None);
        assert_eq!(last("0.00 0.01 0.05 1/80 11206\n"), Some(11206));
        assert_eq!(last("0.00 0.01 0.05"), None);
    }
}
