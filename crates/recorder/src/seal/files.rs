// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths of the files that threads waited for, which records identify by device and inode only.
//!
//! The mappings and open files of the waiting processes have the paths while those processes live,
//! so this happens when an incident is sealed. Only files of processes of the incident's owner are
//! named, since that user may not look up others; root gets all.

use crate::owners::waits;
use crate::processes::{Mapping, identity, maps};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use tipme_record::incident::FileName;
use tipme_record::records::{Attempt, Wait};
use tipme_record::{Pid, RecordKind, entries};

/// Maximum number of processes to read mappings of: those with the most waits.
const PROCESSES: usize = 32;
/// Maximum number of open files examined, over all processes.
const OPEN_FILES: usize = 256;
/// Maximum number of files named.
const FILES: usize = 1_024;
/// Maximum bytes of a path; longer ones are left out.
const PATH_BYTES: usize = 1_024;

/// Type of a regular file. Only regular files are named.
const REGULAR: u32 = 0x8000;

/// Device in the kernel's encoding, and inode.
type Key = (u32, u64);

/// Files to name for one user.
#[derive(Default)]
pub(super) struct WantedFiles {
    /// User to receive the paths.
    user: u32,
    /// `true` for processes with files that this user may know.
    known: HashMap<Pid, bool>,
    files: HashSet<Key>,
    /// Number of waits by process.
    processes: BTreeMap<Pid, usize>,
    /// Files by the descriptor that was waited on.
    descriptors: BTreeMap<(Pid, u32), Key>,
    /// Processes that failed to lock files, or held the locks.
    lockers: BTreeSet<Pid>,
}

impl WantedFiles {
    /// Collects the files in the waits of a task walk, if this user may know their paths.
    pub(super) fn from_tasks(tasks: &[u8], user: u32) -> WantedFiles {
        let mut wanted = WantedFiles { user, ..WantedFiles::default() };
        waits(tasks).for_each(|wait| wanted.add_wait(&wait));
        wanted
    }

    /// Adds the files in the waits of a chunk.
    pub(super) fn see(&mut self, chunk: &[u8]) {
        for entry in entries(chunk) {
            match entry.kind {
                RecordKind::Wait => {
                    Wait::read(entry.bytes).into_iter().for_each(|wait| self.add_wait(&wait))
                }
                RecordKind::Attempt => Attempt::read(entry.bytes)
                    .into_iter()
                    .for_each(|attempt| self.add_lock(&attempt)),
                _ => {}
            }
        }
    }

    /// Adds a file that could not be locked. The waiter may have ended; the holder of the lock has
    /// the file open.
    fn add_lock(&mut self, attempt: &Attempt) {
        for pid in [attempt.holder, attempt.pid]
            .into_iter()
            .filter(|pid| attempt.failures > 0 && *pid != Pid(0))
        {
            let known =
                self.lockers.contains(&pid) || self.lockers.len() < PROCESSES && self.may_know(pid);
            if known && self.files.len() < FILES {
                self.lockers.insert(pid);
                self.files.insert((attempt.device.0, attempt.inode));
            }
        }
    }

    fn add_wait(&mut self, wait: &Wait) {
        let key = (wait.device.0, wait.inode);
        let fits = self.files.len() < FILES || self.files.contains(&key);
        if wait.mode != REGULAR || wait.inode == 0 || !fits || !self.may_know(wait.pid) {
            return;
        }
        self.files.insert(key);
        *self.processes.entry(wait.pid).or_default() += 1;
        if wait.syscall >= 0 && self.descriptors.len() < OPEN_FILES {
            self.descriptors.insert((wait.pid, wait.args[0] as u32), key);
        }
    }

    fn may_know(&mut self, pid: Pid) -> bool {
        let user = self.user;
        user == 0 || *self.known.entry(pid).or_insert_with(|| owner(pid) == Some(user))
    }

    /// Passes on the paths that are found in processes that may be queried.
    pub(super) fn resolve(mut self, may_ask: impl Fn(Pid) -> bool, tell: impl Fn(FileName)) {
        for ((pid, descriptor), key) in std::mem::take(&mut self.descriptors) {
            let link = format!("/proc/{pid}/fd/{descriptor}");
            if may_ask(pid)
                && let Ok(path) = std::fs::read_link(&link)
                && identity(&link) == Some(key)
            {
                self.learn(key, &path.to_string_lossy()).map(&tell);
            }
        }
        let lockers = std::mem::take(&mut self.lockers);
        for link in lockers
            .iter()
            .filter(|pid| may_ask(**pid))
            .flat_map(|pid| open_files(*pid))
            .take(OPEN_FILES)
        {
            if let Some(key) = identity(&link).filter(|key| self.files.contains(key))
                && let Ok(path) = std::fs::read_link(&link)
            {
                self.learn(key, &path.to_string_lossy()).map(&tell);
            }
        }
        let mut most: Vec<(Pid, usize)> = std::mem::take(&mut self.processes).into_iter().collect();
        most.sort_by_key(|(_, waits)| std::cmp::Reverse(*waits));
        for (pid, _) in most.into_iter().take(PROCESSES).filter(|(pid, _)| may_ask(*pid)) {
            let maps = maps(pid.0);
            for mapping in maps
                .lines()
                .filter_map(Mapping::parse)
                .filter(|mapping| mapping.path.starts_with('/'))
            {
                self.learn(mapping.file, mapping.path).map(&tell);
            }
        }
    }

    fn learn(&mut self, key: Key, path: &str) -> Option<FileName> {
        let news = path.len() <= PATH_BYTES && self.files.remove(&key);
        news.then(|| FileName { device: key.0, inode: key.1, path: path.to_owned() })
    }
}

/// Returns the links to a process's open files.
fn open_files(pid: Pid) -> impl Iterator<Item = String> {
    let links = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    links.map(|link| link.path().to_string_lossy().into_owned())
}

/// Returns the user that a process runs as.
fn owner(pid: Pid) -> Option<u32> {
    std::fs::metadata(format!("/proc/{pid}")).ok().map(|process| process.uid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_record::Device;
    use zerocopy::{FromZeros, IntoBytes};

    fn wait(pid: u32, syscall: i32, key: Key) -> Wait {
        let mut wait = Wait::new_zeroed();
        (wait.pid, wait.syscall, wait.mode) = (Pid(pid), syscall, REGULAR);
        (wait.device, wait.inode) = (Device(key.0), key.1);
        wait.head.size = Wait::SIZE as u16;
        wait.head.kind = Wait::KIND as u8;
        wait
    }

    fn names(tasks: &[u8], user: u32) -> Vec<FileName> {
        let found = std::cell::RefCell::new(Vec::new());
        WantedFiles::from_tasks(tasks, user)
            .resolve(|_| true, |file| found.borrow_mut().push(file));
        found.into_inner()
    }

    #[test]
    fn an_own_mapping_and_an_own_file_are_found() {
        let own = std::env::current_exe().expect("a test has a file");
        let file = std::fs::File::open(&own).expect("it can be read");
        let key = identity(&own.to_string_lossy()).expect("it has an inode");
        let fault = wait(std::process::id(), -1, key);
        let found = names(fault.as_bytes(), 0);
        assert_eq!(
            found,
            [FileName { device: key.0, inode: key.1, path: own.display().to_string() }]
        );
        let mut read = wait(std::process::id(), 0, key);
        read.args[0] = std::os::fd::AsRawFd::as_raw_fd(&file) as u64;
        assert_eq!(names(read.as_bytes(), 0), found);
        let user = rustix::process::geteuid().as_raw();
        assert_eq!(names(read.as_bytes(), user), found);
        assert!(names(read.as_bytes(), user + 1).is_empty(), "another user may not know");
    }

    #[test]
    fn named_files_are_bounded() {
        let many: Vec<u8> =
            (1..5_000).flat_map(|inode| wait(1, -1, (1, inode)).as_bytes().to_vec()).collect();
        assert_eq!(WantedFiles::from_tasks(&many, 0).files.len(), FILES);
        assert!(names(&many, 0).is_empty());
    }
}
