// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use std::fs::{create_dir_all, write};
use zerocopy::{FromZeros, IntoBytes};

/// A hierarchy of plain files in a temporary folder, removed on drop.
struct IoFiles(Hierarchy);

impl IoFiles {
    fn new(name: &str, version: CgroupVersion) -> IoFiles {
        let mount = std::env::temp_dir().join(format!("tipme-io-{name}-{}", std::process::id()));
        create_dir_all(mount.join("a/b/c")).expect("groups can be made");
        IoFiles(Hierarchy { mount, root: "/".into(), version })
    }

    fn file(&self, path: &str, text: &str) -> String {
        let path = self.0.mount.join(path);
        write(&path, text).expect("it can be written");
        path.display().to_string()
    }

    /// Finds the limits for threads of process 7, each in the group that `of` returns.
    fn found(&self, tids: &[u32], of: impl Fn(u32) -> String) -> FoundLimits {
        let tasks: Vec<u8> = tids.iter().flat_map(|tid| wait(*tid, IO_WAIT | 2)).collect();
        IoWaiters::from_tasks(&tasks).among(Some(&self.0), |(_, tid)| of(tid.0))
    }
}

impl Drop for IoFiles {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0.mount).ok();
    }
}

fn wait(tid: u32, state: u16) -> Vec<u8> {
    let mut wait = Wait::new_zeroed();
    (wait.pid, wait.state, wait.head.tid) = (Pid(7), state, Tid(tid));
    (wait.head.size, wait.head.kind) = (Wait::SIZE as u16, Wait::KIND as u8);
    wait.as_bytes().to_vec()
}

fn limit(file: &str, device: u32, (write, operations): (bool, bool), per_second: u64) -> IoLimit {
    IoLimit { file: file.to_owned(), device, write, operations, per_second }
}

#[test]
fn the_limits_of_a_group_and_of_those_above_are_found() {
    let plain = IoFiles::new("two", CgroupVersion::Two);
    let lower = plain.file(
        "a/b/io.max",
        "8:16 rbps=1048576 wbps=max riops=max wiops=20\n253:0 rbps=max\n8:32 rbps=7",
    );
    let upper = plain
        .file("a/io.max", "8:16 rbps=9 wbps=max riops=max wiops=max\nnonsense\n9999999:1 rbps=1\n");
    let found =
        plain.found(&[11, 12], |tid| if tid == 11 { "0::/a/b/c\n" } else { "0::/a\n" }.to_owned());
    let sdb = (8 << 20) | 16;
    let [above, below] = &found.groups[..] else { panic!("{:?}", found.groups) };
    assert_eq!(
        (&above.limits[..], &above.tids[..]),
        (&[limit(&upper, sdb, (false, false), 9)][..], &[11, 12][..])
    );
    let expected =
        [limit(&lower, sdb, (false, false), 1_048_576), limit(&lower, sdb, (true, true), 20)];
    assert_eq!((&below.limits[..], &below.tids[..]), (&expected[..], &[11][..]));
    assert_eq!(below.folder, plain.0.mount.join("a/b").display().to_string());
    assert_eq!(found.missing, None);
}

#[test]
fn version_one_has_a_file_for_each_kind() {
    let plain = IoFiles::new("one", CgroupVersion::One);
    let read = plain.file("a/blkio.throttle.read_bps_device", "8:0 4096\n");
    let write = plain.file("a/blkio.throttle.write_iops_device", "8:0 3\n");
    let found = plain.found(&[11], |_| "5:blkio:/a\n0::/other\n".to_owned());
    let expected =
        [limit(&read, 8 << 20, (false, false), 4_096), limit(&write, 8 << 20, (true, true), 3)];
    assert_eq!(
        found.groups.iter().flat_map(|group| group.limits.clone()).collect::<Vec<_>>(),
        expected
    );
}

#[test]
fn a_group_that_is_gone_hidden_or_outside_limits_nothing() {
    let plain = IoFiles::new("none", CgroupVersion::Two);
    plain.file("io.max", "8:0 rbps=max wbps=max riops=max wiops=max\n");
    for text in ["", "0::/gone (deleted)\n", "0::/../a\n", "0::/a\n"] {
        let found = plain.found(&[11], |_| text.to_owned());
        assert!(found.groups.is_empty() && found.missing.is_none(), "{text}: {:?}", found.groups);
    }
}

#[test]
fn only_threads_that_waited_for_io_are_looked_up() {
    let tasks = [wait(11, 2), wait(12, IO_WAIT | 2)].concat();
    let asked: Vec<(Pid, Tid)> = IoWaiters::from_tasks(&tasks).threads.into_iter().collect();
    assert_eq!(asked, [(Pid(7), Tid(12))]);
}

#[test]
fn reads_are_bounded_and_the_rest_is_counted() {
    let plain = IoFiles::new("many", CgroupVersion::Two);
    let lines: String = (0..100).map(|minor| format!("8:{minor} rbps=5\n")).collect();
    plain.file("a/io.max", &lines);
    let tids: Vec<u32> = (1..=1_030).collect();
    let found = plain.found(&tids, |tid| {
        format!("0::/{}\n", if tid < 1_000 { "a".to_owned() } else { tid.to_string() })
    });
    assert_eq!((found.groups[0].limits.len(), found.groups[0].tids.len()), (LIMITS, 999));
    let why = found.missing.map(|missing| missing.why);
    assert_eq!(
        why.as_deref(),
        Some("6 waits of threads beyond 1024, 36 limits of a group beyond 64")
    );
    let found = plain.found(&tids[..300], |tid| format!("0::/{tid}\n"));
    assert_eq!(
        found.missing.map(|missing| missing.why).as_deref(),
        Some("45 lookups of a group beyond 256")
    );
}

#[test]
fn an_ended_process_counts_for_the_group_of_its_nearest_parent() {
    let plain = IoFiles::new("ended", CgroupVersion::Two);
    plain.file("a/io.max", "8:16 rbps=9 wbps=max riops=max wiops=max\n");
    let mut waiters = IoWaiters::from_tasks(&[wait(7, IO_WAIT | 2), wait(8, IO_WAIT | 2)].concat());
    waiters.parents = HashMap::from([(Pid(7), Pid(6)), (Pid(6), Pid(5)), (Pid(5), Pid(4))]);
    let found = waiters.among(Some(&plain.0), |(pid, _)| {
        if pid.0 <= 5 { "0::/a\n".to_owned() } else { String::new() }
    });
    assert_eq!(found.groups.iter().map(|group| &group.tids[..]).collect::<Vec<_>>(), [[5]]);
    let mut circle = IoWaiters::from_tasks(&wait(7, IO_WAIT | 2));
    circle.parents = HashMap::from([(Pid(7), Pid(7))]);
    assert!(circle.among(Some(&plain.0), |_| String::new()).groups.is_empty());
}
