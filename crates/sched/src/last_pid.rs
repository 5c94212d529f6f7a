// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether any process or thread has been forked since: one read of one open file.
//!
//! The kernel tells of the number that it has given last, whoever got it. Where it is still the same, there is
//! nobody new to look for.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What the kernel's own /proc says of itself: a file that something else has put in its place may be old.
const PROC_MAGIC: u64 = 0x9fa0;
/// Bytes of the file: more than the kernel writes.
const BYTES_MAX: usize = 128;

/// The number that the kernel has given last to a process or thread, whoever got it: where it is still the same, nobody
/// was forked since.
#[derive(Debug)]
pub struct LastPid(Option<File>);

impl LastPid {
    /// Of the /proc that is at this root.
    pub fn open(proc: &Path) -> LastPid {
        let is_kernels =
            |file: &File| rustix::fs::fstatfs(file).is_ok_and(|found| u64::try_from(found.f_type) == Ok(PROC_MAGIC));
        LastPid(File::open(proc.join("loadavg")).ok().filter(is_kernels))
    }

    /// The number that was given last; `None` where that cannot be told.
    pub fn count(&self) -> Option<u64> {
        let mut bytes = [0; BYTES_MAX];
        let length = self.0.as_ref()?.read_at(&mut bytes, 0).ok()?;
        last(&bytes[..length])
    }
}

/// The last field of `0.00 0.01 0.05 1/80 11206`.
fn last(bytes: &[u8]) -> Option<u64> {
    std::str::from_utf8(bytes).ok()?.split_ascii_whitespace().nth(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_is_noticed() {
        let last_pid = LastPid::open(Path::new("/proc"));
        let before = last_pid.count().expect("this is Linux");
        std::thread::spawn(|| ()).join().expect("it does nothing");
        assert_ne!(last_pid.count(), Some(before));
    }

    #[test]
    fn a_file_that_is_not_the_kernels_tells_nothing() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        std::fs::write(folder.path().join("loadavg"), "0.00 0.01 0.05 1/80 11206\n").expect("it can be written");
        assert_eq!(LastPid::open(folder.path()).count(), None);
        assert_eq!(last(b"0.00 0.01 0.05 1/80 11206\n"), Some(11206));
        assert_eq!(last(b"0.00 0.01 0.05"), None);
    }
}
