// SPDX-License-Identifier: MIT OR Apache-2.0
//! I/O limits of the control groups of threads that waited for I/O.
//!
//! The kernel does not report throttled I/O. So the limits of the waiters' groups and of all their
//! ancestors are read at the mark, when a limit in force still exists. A process that has ended has
//! no group any more, but a child starts in its parent's groups: the nearest live parent stands in
//! for it.

use super::hierarchy::{CgroupVersion, Hierarchy};
use crate::owners::waits;
use crate::processes::text;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use tipme_record::incident::{IoLimit, IoLimitedGroup, Missing};
use tipme_record::records::{Exit, Wait};
use tipme_record::{Pid, RecordKind, Tid, entries};

/// Controller name in version 1.
const CONTROLLER: &str = "blkio";

/// Maximum number of threads to look up groups of.
const THREADS: usize = 1_024;

/// Maximum number of groups to read limits of.
const GROUPS: usize = 256;

/// Maximum number of limits kept per group.
const LIMITS: usize = 64;

/// Maximum bytes read of a file; an incomplete last line is dropped.
const FILE_BYTES: u64 = 16 * 1024;

/// Maximum number of ended processes to keep parents of.
const ENDED: usize = 65_536;

/// Maximum number of parents tried for an ended process.
const PARENTS: usize = 32;

/// Bit of a wait's state that marks it as a wait for I/O.
const IO_WAIT: u16 = 1 << 15;

/// Kinds of limits: file in version 1, key in version 2, `true` for writes, `true` for operations.
const KINDS: [(&str, &str, bool, bool); 4] = [
    ("blkio.throttle.read_bps_device", "rbps", false, false),
    ("blkio.throttle.write_bps_device", "wbps", true, false),
    ("blkio.throttle.read_iops_device", "riops", false, true),
    ("blkio.throttle.write_iops_device", "wiops", true, true),
];

/// File in version 2.
const FILE: &str = "io.max";

/// Threads that waited for I/O.
#[derive(Default)]
pub(super) struct IoWaiters {
    threads: BTreeSet<(Pid, Tid)>,
    /// Parents of ended processes.
    parents: HashMap<Pid, Pid>,
    /// Number of waits by threads beyond the limit.
    beyond: u64,
}

/// Groups with limits, and the reason why there are not more.
pub(super) struct FoundLimits {
    pub(super) groups: Vec<IoLimitedGroup>,
    pub(super) missing: Option<Missing>,
}

/// Limits of each group examined, with the threads in or below it.
#[derive(Default)]
struct ExaminedGroups {
    groups: BTreeMap<PathBuf, IoLimitedGroup>,
    /// Number of groups beyond the limit, counted once per thread in them.
    groups_beyond: u64,
    limits_beyond: u64,
}

impl IoWaiters {
    /// Finds the threads in the waits of a task walk.
    pub(super) fn from_tasks(tasks: &[u8]) -> IoWaiters {
        let mut waiters = IoWaiters::default();
        waits(tasks).for_each(|wait| waiters.add(&wait));
        waiters
    }

    /// Adds the threads in a chunk.
    pub(super) fn see(&mut self, chunk: &[u8]) {
        let records = entries(chunk).filter(|entry| entry.kind == RecordKind::Wait);
        records.filter_map(|entry| Wait::read(entry.bytes)).for_each(|wait| self.add(&wait));
    }

    /// Adds the ended processes of a chunk.
    pub(super) fn add_ended(&mut self, chunk: &[u8]) {
        let records = entries(chunk).filter(|entry| entry.kind == RecordKind::Exit);
        for exit in records
            .filter_map(|entry| Exit::read(entry.bytes))
            .filter(|exit| exit.head.tid.0 == exit.pid.0)
        {
            if self.parents.len() < ENDED {
                self.parents.insert(exit.pid, exit.parent);
            }
        }
    }

    fn add(&mut self, wait: &Wait) {
        let thread = (wait.pid, wait.head.tid);
        match wait.state & IO_WAIT != 0 {
            true if self.threads.len() < THREADS || self.threads.contains(&thread) => {
                self.threads.insert(thread);
            }
            true => self.beyond += 1,
            false => {}
        }
    }

    /// Finds the limits of their groups.
    pub(super) fn resolve(self) -> FoundLimits {
        // By now this tid may belong to another process.
        self.among(Hierarchy::find(CONTROLLER).as_ref(), |(pid, tid)| {
            text(&format!("/proc/{pid}/task/{tid}/cgroup"), FILE_BYTES)
        })
    }

    /// Returns the thread, or the nearest live parent of its process, with its groups.
    fn living(
        &self,
        thread: (Pid, Tid),
        of: &impl Fn((Pid, Tid)) -> String,
    ) -> Option<((Pid, Tid), String)> {
        let line = std::iter::successors(Some(thread), |(pid, _)| {
            self.parents.get(pid).map(|parent| (*parent, Tid(parent.0)))
        });
        let mut line = line.take(PARENTS).map(|thread| (thread, of(thread)));
        line.find(|(_, groups)| !groups.is_empty())
    }

    fn among(
        self,
        hierarchy: Option<&Hierarchy>,
        of: impl Fn((Pid, Tid)) -> String,
    ) -> FoundLimits {
        let mut looked = ExaminedGroups::default();
        let living = self.threads.iter().filter_map(|thread| self.living(*thread, &of));
        let living: BTreeMap<(Pid, Tid), String> =
            if hierarchy.is_some() { living.collect() } else { BTreeMap::new() };
        for (thread, groups) in living {
            let group =
                hierarchy.and_then(|found| Some((found, found.group_in(&groups, CONTROLLER)?)));
            group.into_iter().for_each(|(found, group)| looked.look(found, &group, thread.1));
        }
        let missing = looked.missing(self.beyond);
        let groups = looked.groups.into_values().filter(|group| !group.limits.is_empty()).collect();
        FoundLimits { groups, missing }
    }
}

impl ExaminedGroups {
    /// Reads the limits of a group and of all its ancestors.
    fn look(&mut self, hierarchy: &Hierarchy, group: &Path, tid: Tid) {
        for group in group.ancestors() {
            if !self.groups.contains_key(group) {
                if self.groups.len() >= GROUPS {
                    self.groups_beyond += 1;
                    continue;
                }
                let (limits, beyond) = limits(hierarchy, group);
                self.limits_beyond += beyond;
                let folder = folder(hierarchy, group).display().to_string();
                self.groups
                    .insert(group.to_owned(), IoLimitedGroup { folder, limits, tids: Vec::new() });
            }
            self.groups.entry(group.to_owned()).and_modify(|group| group.tids.push(tid.0));
        }
    }

    fn missing(&self, waits: u64) -> Option<Missing> {
        let beyond = [
            (waits, "waits of threads", THREADS),
            (self.groups_beyond, "lookups of a group", GROUPS),
            (self.limits_beyond, "limits of a group", LIMITS),
        ];
        let why = beyond.iter().filter(|(count, ..)| *count > 0);
        let why: Vec<String> =
            why.map(|(count, what, bound)| format!("{count} {what} beyond {bound}")).collect();
        (!why.is_empty()).then(|| Missing { what: "limits on I/O".to_owned(), why: why.join(", ") })
    }
}

/// Returns the folder of a group, for the topmost one the mount itself.
fn folder(hierarchy: &Hierarchy, group: &Path) -> PathBuf {
    hierarchy.mount.components().chain(group.components()).collect()
}

/// Returns the limits of a group, and the number beyond those kept.
fn limits(hierarchy: &Hierarchy, group: &Path) -> (Vec<IoLimit>, u64) {
    let (mut limits, mut file, mut contents) = (Vec::new(), String::new(), String::new());
    for (name, key, write, operations) in KINDS {
        let name = if hierarchy.version == CgroupVersion::One { name } else { FILE };
        let path = folder(hierarchy, group).join(name).display().to_string();
        if path != file {
            (contents, file) = (text(&path, FILE_BYTES), path);
        }
        let lines = contents.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        limits.extend(lines.filter_map(|line| {
            let (device, per_second) = limit(line, key, hierarchy.version)?;
            Some(IoLimit { file: file.clone(), device, write, operations, per_second })
        }));
    }
    let beyond = limits.len().saturating_sub(LIMITS);
    limits.truncate(LIMITS);
    (limits, beyond as u64)
}

/// Parses device and limit from a line `8:0 1048576` of version 1, or from the key in a line
/// `8:0 rbps=1048576 wbps=max riops=max wiops=max` of version 2.
fn limit(line: &str, key: &str, version: CgroupVersion) -> Option<(u32, u64)> {
    let (device, rest) = line.split_once(' ')?;
    let amount = match version {
        CgroupVersion::One => rest.trim(),
        // A missing limit is `max`, which does not parse.
        CgroupVersion::Two => {
            rest.split(' ')
                .find_map(|word| word.split_once('=').filter(|(name, _)| *name == key))?
                .1
        }
    };
    Some((device_number(device)?, amount.parse().ok()?))
}

/// Parses a device number into the kernel's encoding.
fn device_number(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
    (major < 1 << 12 && minor < 1 << 20).then_some((major << 20) | minor)
}

#[cfg(test)]
mod tests;
