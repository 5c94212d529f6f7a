// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths and members of throttled control groups, which records identify by number only.

use super::hierarchy::Hierarchy;
use crate::owners::loose;
use crate::processes::text;
use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use tipme_record::incident::{Groups, LimitedGroup};
use tipme_record::proc_text::StatLine;
use tipme_record::records::{Task, Throttled};
use tipme_record::{RecordKind, entries};

/// Maximum number of folders searched; groups beyond them are not named.
const FOLDERS: usize = 4_096;

/// Maximum number of groups named.
const GROUPS: usize = 256;

/// Maximum number of threads kept per group.
const MEMBERS: usize = 4_096;

/// Maximum bytes of a thread's stat line, and the number of the field with its state.
const STAT_BYTES: u64 = 1_024;
const STATE: usize = 3;

/// Numbers of the throttled groups.
#[derive(Default)]
pub(super) struct ThrottledGroups(BTreeSet<u64>);

impl ThrottledGroups {
    /// Adds the groups in a chunk.
    pub(super) fn see(&mut self, chunk: &[u8]) {
        let records = entries(chunk).filter(|entry| entry.kind == RecordKind::Throttled);
        let groups =
            records.filter_map(|entry| Throttled::read(entry.bytes)).map(|record| record.group);
        self.0.extend(groups);
    }

    /// Finds the groups that still exist, and the tasks of the mark that ended before their members
    /// were read.
    pub(super) fn resolve(self, tasks: &[u8]) -> Groups {
        let groups = self.among(Hierarchy::find("cpu").as_ref());
        let ended = if groups.limited.is_empty() { Vec::new() } else { ended(tasks) };
        Groups { ended, ..groups }
    }

    fn among(mut self, hierarchy: Option<&Hierarchy>) -> Groups {
        let mut open = VecDeque::from([(PathBuf::new(), BTreeSet::new())]);
        let mut found: Vec<LimitedGroup> = Vec::new();
        for _ in 0..FOLDERS {
            let Some(hierarchy) = hierarchy.filter(|_| !self.0.is_empty() || is_within(&open))
            else {
                break;
            };
            let Some((folder, mut within)) = open.pop_front() else { break };
            if let Some(number) = hierarchy
                .number(&folder)
                .filter(|number| self.0.remove(number) && found.len() < GROUPS)
            {
                within.insert(found.len());
                found.push(group(hierarchy, &folder, number));
            }
            let members = if within.is_empty() { Vec::new() } else { hierarchy.threads(&folder) };
            within.iter().for_each(|index| found[*index].tids.extend(&members));
            open.extend(
                hierarchy.children(&folder).into_iter().map(|child| (child, within.clone())),
            );
            open.truncate(FOLDERS);
        }
        found.iter_mut().for_each(|group| group.tids.truncate(MEMBERS));
        Groups { limited: found, ..Groups::default() }
    }
}

/// Returns the threads among the tasks of a mark that have ended. No group lists a zombie either.
fn ended(tasks: &[u8]) -> Vec<u32> {
    let tasks = loose(tasks, RecordKind::Task).filter_map(Task::read);
    let ended = tasks.filter(|task| {
        let stat = format!("/proc/{}/task/{}/stat", task.pid, task.head.tid);
        !is_alive(&text(&stat, STAT_BYTES))
    });
    ended.map(|task| task.head.tid.0).collect()
}

fn is_alive(stat: &str) -> bool {
    StatLine::read(stat)
        .and_then(|line| line.field(STATE))
        .is_some_and(|state| !matches!(state, "Z" | "X"))
}

/// Returns `true` if the queue still has folders below wanted groups.
fn is_within(open: &VecDeque<(PathBuf, BTreeSet<usize>)>) -> bool {
    open.iter().any(|(_, within)| !within.is_empty())
}

fn group(hierarchy: &Hierarchy, folder: &Path, number: u64) -> LimitedGroup {
    let quota = hierarchy.limit(folder);
    LimitedGroup {
        number,
        path: format!("/{}", folder.display()),
        file: hierarchy.mount.join(folder).join(hierarchy.limit_file()).display().to_string(),
        quota_us: quota.map_or(0, |quota| quota.quota_us),
        period_us: quota.map_or(0, |quota| quota.period_us),
        ..LimitedGroup::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::hierarchy::CgroupVersion;
    use std::fs::{create_dir_all, write};
    use zerocopy::IntoBytes;

    /// A hierarchy of plain files in a temporary folder, removed on drop.
    struct Plain(Hierarchy);

    impl Plain {
        fn new(name: &str, version: CgroupVersion) -> Plain {
            let mount =
                std::env::temp_dir().join(format!("tipme-groups-{name}-{}", std::process::id()));
            create_dir_all(&mount).expect("a folder can be made");
            Plain(Hierarchy { mount, root: "/".into(), version })
        }

        /// Creates a group with these threads, and returns its number.
        fn group(&self, path: &str, limit: &str, tids: &str) -> u64 {
            let folder = self.0.mount.join(path);
            create_dir_all(&folder).expect("a group can be made");
            write(folder.join(self.0.threads_file()), tids).expect("it can be written");
            write(folder.join("cpu.cfs_period_us"), "100000\n").expect("it can be written");
            write(folder.join(self.0.limit_file()), limit).expect("it can be written");
            self.0.number(Path::new(path)).expect("a folder has a number")
        }

        fn resolve(&self, numbers: &[u64]) -> Vec<LimitedGroup> {
            ThrottledGroups(numbers.iter().copied().collect()).among(Some(&self.0)).limited
        }
    }

    impl Drop for Plain {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0.mount).ok();
        }
    }

    #[test]
    fn a_throttled_group_is_named_with_all_threads_in_and_below_it() {
        for (version, limit) in
            [(CgroupVersion::One, "5000\n"), (CgroupVersion::Two, "5000 100000\n")]
        {
            let plain = Plain::new(&format!("below-{version:?}"), version);
            plain.group("free", limit, "10\n");
            let number = plain.group("a", limit, "11\n");
            plain.group("a/b", "max\n", "12\n13\n");
            let groups = plain.resolve(&[number, 1]);
            assert_eq!(groups.len(), 1, "{groups:?}");
            let group = &groups[0];
            assert_eq!(
                (group.path.as_str(), group.quota_us, group.period_us),
                ("/a", 5_000, 100_000)
            );
            assert_eq!(group.tids, [11, 12, 13]);
            assert_eq!(
                group.file,
                plain.0.mount.join("a").join(plain.0.limit_file()).display().to_string()
            );
        }
    }

    #[test]
    fn a_quota_that_was_taken_away_since_is_none() {
        for (version, limit) in [(CgroupVersion::One, "-1\n"), (CgroupVersion::Two, "max 100000\n")]
        {
            let plain = Plain::new(&format!("lifted-{version:?}"), version);
            let number = plain.group("a", limit, "");
            let groups = plain.resolve(&[number]);
            assert_eq!(
                groups.iter().map(|group| (group.quota_us, group.period_us)).collect::<Vec<_>>(),
                [(0, 0)]
            );
        }
    }

    #[test]
    fn members_within_members_belong_to_both_groups() {
        let plain = Plain::new("nested", CgroupVersion::Two);
        let numbers = [plain.group("a", "1 2\n", "1\n"), plain.group("a/b/c", "1 2\n", "2\n")];
        let members: Vec<Vec<u32>> =
            plain.resolve(&numbers).into_iter().map(|group| group.tids).collect();
        assert_eq!(members, [vec![1, 2], vec![2]]);
    }

    #[test]
    fn threads_that_ended_since_the_mark_are_distinguished() {
        let mut child =
            std::process::Command::new("true").spawn().expect("there is such a program");
        let mut lived = Task::read(&[0; Task::SIZE]).expect("it has its size");
        (lived.head.kind, lived.head.size) = (RecordKind::Task as u8, Task::SIZE as u16);
        let mut gone = lived;
        (lived.head.tid.0, gone.head.tid.0) = (std::process::id(), child.id());
        (lived.pid.0, gone.pid.0) = (std::process::id(), child.id());
        let tasks = [lived.as_bytes(), gone.as_bytes()].concat();
        child.wait().expect("it ends");
        assert_eq!(ended(&tasks), [gone.head.tid.0]);
        assert!(
            is_alive("7 (a b) S 1")
                && !is_alive("7 (a) Z 1")
                && !is_alive("7 (S) X 1")
                && !is_alive("")
        );
    }

    #[test]
    fn nothing_is_looked_at_where_nothing_was_throttled() {
        let plain = Plain::new("calm", CgroupVersion::One);
        plain.group("a", "5000\n", "11\n");
        assert!(
            plain.resolve(&[]).is_empty()
                && ThrottledGroups([7].into()).among(None).limited.is_empty()
        );
    }
}
