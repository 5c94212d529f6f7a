// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to control groups in a controller's file system: number, CPU quota, members.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use tipme_record::proc_text::{cgroup_mounts, control_group, control_group_with};

/// Maximum bytes of a list of threads.
const LIST_BYTES: u64 = 64 * 1024;

/// Version of a control group file system, which decides the names of its files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CgroupVersion {
    One,
    Two,
}

/// Mount of a controller's groups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Hierarchy {
    pub(super) mount: PathBuf,
    /// Group that the mount shows as its root.
    pub(super) root: PathBuf,
    pub(super) version: CgroupVersion,
}

/// CPU time per period, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CpuQuota {
    pub(super) quota_us: u64,
    pub(super) period_us: u64,
}

impl Hierarchy {
    /// Finds the hierarchy with a controller, named as in version 1. A version 1 mount takes
    /// precedence, since version 2 then lacks the controller.
    pub(super) fn find(controller: &str) -> Option<Hierarchy> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Hierarchy::among(&mounts, controller)
    }

    pub(super) fn among(mountinfo: &str, controller: &str) -> Option<Hierarchy> {
        let one = cgroup_mounts(mountinfo).find(|mounted| mounted.has(controller));
        let mounted = one.or_else(|| cgroup_mounts(mountinfo).find(|mounted| mounted.unified))?;
        let version = if mounted.unified { CgroupVersion::Two } else { CgroupVersion::One };
        Some(Hierarchy { mount: mounted.mount.into(), root: mounted.root.into(), version })
    }

    /// Returns the group, relative to the mount, that the text of `/proc/PID/cgroup` names; `None`
    /// if it lies outside the mount.
    pub(super) fn group_in(&self, text: &str, controller: &str) -> Option<PathBuf> {
        let path = match self.version {
            CgroupVersion::One => control_group_with(text, controller),
            CgroupVersion::Two => control_group(text),
        };
        let group = Path::new(path?).strip_prefix(&self.root).ok()?;
        // The path of a process outside the recorder's own namespace leads out of the mount.
        group
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
            .then(|| group.to_owned())
    }

    pub(super) fn limit_file(&self) -> &'static str {
        match self.version {
            CgroupVersion::One => "cpu.cfs_quota_us",
            CgroupVersion::Two => "cpu.max",
        }
    }

    pub(super) fn threads_file(&self) -> &'static str {
        match self.version {
            CgroupVersion::One => "tasks",
            CgroupVersion::Two => "cgroup.threads",
        }
    }

    /// Returns the kernel's number of a group: the inode of its folder.
    pub(super) fn number(&self, group: &Path) -> Option<u64> {
        std::fs::metadata(self.mount.join(group)).ok().map(|folder| folder.ino())
    }

    /// Returns the quota of a group, if it has one.
    pub(super) fn limit(&self, group: &Path) -> Option<CpuQuota> {
        let text = std::fs::read_to_string(self.mount.join(group).join(self.limit_file())).ok()?;
        let mut words = text.split_whitespace();
        // A missing quota is -1 or `max`, neither of which parses.
        let quota_us = words.next()?.parse().ok()?;
        let period = match self.version {
            CgroupVersion::One => {
                std::fs::read_to_string(self.mount.join(group).join("cpu.cfs_period_us")).ok()?
            }
            CgroupVersion::Two => words.next()?.to_owned(),
        };
        Some(CpuQuota { quota_us, period_us: period.trim().parse().ok()? })
    }

    /// Returns the threads in a group. Version 1 and threaded groups of version 2 may hold single
    /// threads of a process.
    pub(super) fn threads(&self, group: &Path) -> Vec<u32> {
        let Ok(file) = File::open(self.mount.join(group).join(self.threads_file())) else {
            return Vec::new();
        };
        let mut text = String::new();
        file.take(LIST_BYTES).read_to_string(&mut text).ok();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Returns the paths of the groups in a group. A directory with two links has no subdirectory;
    /// file systems that do not count links report one.
    pub(super) fn children(&self, group: &Path) -> Vec<PathBuf> {
        let dir = self.mount.join(group);
        if std::fs::metadata(&dir).map_or(2, |dir| dir.nlink()) == 2 {
            return Vec::new();
        }
        let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        dirs.map(|entry| group.join(entry.file_name())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_one_goes_first_where_both_are_mounted() {
        let two = "31 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let both =
            format!("{two}32 25 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
        for (mounts, expected) in [
            (both.as_str(), Some(("/sys/fs/cgroup/cpu", CgroupVersion::One))),
            (two, Some(("/sys/fs/cgroup/unified", CgroupVersion::Two))),
            ("32 25 0:28 / /c rw - cgroup cgroup rw,memory\n", None),
        ] {
            let found = Hierarchy::among(mounts, "cpu").map(|found| (found.mount, found.version));
            assert_eq!(found, expected.map(|(mount, version)| (mount.into(), version)));
        }
    }

    #[test]
    fn a_group_is_found_below_what_the_mount_shows_and_nowhere_else() {
        let text = "3:blkio:/old\n0::/box/a\n";
        for (version, root, text, group) in [
            (CgroupVersion::Two, "/", text, Some("box/a")),
            (CgroupVersion::Two, "/box", text, Some("a")),
            (CgroupVersion::Two, "/other", text, None),
            (CgroupVersion::One, "/", text, Some("old")),
            (CgroupVersion::Two, "/", "0::/../x\n", None),
        ] {
            let hierarchy = Hierarchy { mount: "/m".into(), root: root.into(), version };
            assert_eq!(hierarchy.group_in(text, "blkio"), group.map(PathBuf::from), "{root}");
        }
    }
}
