// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulated kernel files in a test folder.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tempfile::TempDir;
use tipme_policy::Identity;
use tipme_policy::preload::RememberedFile;

/// A program installed on every test machine.
pub(crate) const SLEEP: &str = "/usr/bin/sleep";

/// A folder in place of `/proc`.
pub(crate) struct FakeKernel(TempDir);

impl FakeKernel {
    /// Creates a kernel with one disk, ample memory and no pressure.
    pub(crate) fn new() -> FakeKernel {
        let kernel = FakeKernel(tempfile::tempdir().expect("a folder can be made"));
        for folder in ["self", "pressure"] {
            std::fs::create_dir(kernel.proc().join(folder)).expect("it can be made");
        }
        kernel.write("self/mountinfo", "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
        kernel.memory_kb(4_000_000);
        kernel
    }

    /// Sets the available memory in kB.
    pub(crate) fn memory_kb(&self, available: u64) {
        self.write("meminfo", &format!("MemTotal: 8000000 kB\nMemAvailable: {available} kB\n"));
    }

    pub(crate) fn proc(&self) -> &Path {
        self.0.path()
    }

    /// Adds a process with these mappings.
    pub(crate) fn process(&self, pid: u32, maps: &str) -> Identity {
        std::fs::create_dir(self.proc().join(pid.to_string())).expect("it can be made");
        let stat =
            "S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 1 1 1 1 1 1 1 1 1 1 1 1 1 0 0 0 17 0 0 0";
        self.write(&format!("{pid}/stat"), &format!("{pid} (a) {stat}"));
        self.write(&format!("{pid}/maps"), maps);
        Identity { pid, start: 5 }
    }

    /// Sets the total stall time of this resource, in microseconds.
    pub(crate) fn press(&self, what: &str, total: u64) {
        let line = format!(
            "some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\nfull avg10=99.00 total=7\n"
        );
        self.write(&format!("pressure/{what}"), &line);
    }

    /// Replaces a file atomically.
    fn write(&self, name: &str, text: &str) {
        let new = self.proc().join("new");
        std::fs::write(&new, text).expect("it can be written");
        std::fs::rename(new, self.proc().join(name)).expect("it can be renamed");
    }
}

/// Returns the line of a file in a list of mappings.
pub(crate) fn mapping(path: &str) -> String {
    let inode = std::fs::metadata(path).map_or(7, |found| found.ino());
    format!("7f0000000000-7f0000001000 r-xp 00000000 fd:00 {inode}      {path}\n")
}

/// Returns a file as it would be remembered now.
pub(crate) fn file(path: &str) -> RememberedFile {
    let found = std::fs::metadata(path).expect("it is installed");
    RememberedFile { path: path.to_owned(), bytes: found.len(), changed_s: found.mtime() }
}
