// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared parsers of texts in /proc.

/// A line of `/proc/PID/stat`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatLine<'a> {
    pub pid: u32,
    /// Process name, with arbitrary characters including spaces and brackets.
    pub command: &'a str,
    fields: Vec<&'a str>,
}

impl<'a> StatLine<'a> {
    /// Parses a line; returns `None` if it is malformed.
    pub fn read(line: &'a str) -> Option<StatLine<'a>> {
        let (pid, rest) = line.split_once(" (")?;
        let (command, rest) = rest.rsplit_once(") ")?;
        Some(StatLine {
            pid: pid.trim().parse().ok()?,
            command,
            fields: rest.split_ascii_whitespace().collect(),
        })
    }

    /// Returns the field with this number in proc_pid_stat(5), where the state is number 3.
    pub fn field(&self, number: usize) -> Option<&'a str> {
        self.fields.get(number.checked_sub(3)?).copied()
    }
}

/// Returns the real and the effective uid in the text of `/proc/PID/status`.
pub fn users(status: &str) -> Option<(u32, u32)> {
    let mut ids =
        status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_ascii_whitespace();
    Some((ids.next()?.parse().ok()?, ids.next()?.parse().ok()?))
}

/// Returns the microseconds since boot in which some task was stalled, in the text of a pressure
/// file.
pub fn stalled_us(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split(' ').find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

/// File with the preemption model of a kernel that can switch it; readable by root, if debugfs is
/// mounted.
pub const PREEMPTION: &str = "/sys/kernel/debug/sched/preempt";

/// Returns the current preemption model in the text of that file.
pub fn preemption(text: &str) -> Option<&str> {
    Some(text.split_once('(')?.1.split_once(')')?.0)
}

/// Returns the path of the version 2 control group in the text of `/proc/PID/cgroup`; it begins
/// with a slash.
pub fn control_group(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::"))
}

/// Returns the path of the version 1 control group with a controller, in the text of
/// `/proc/PID/cgroup`.
pub fn control_group_with<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then_some(path)
    })
}

/// A mounted hierarchy of control groups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CgroupMount<'a> {
    /// Mount point.
    pub mount: &'a str,
    /// Group that the mount shows as its root.
    pub root: &'a str,
    /// `true` for version 2, with one hierarchy for all controllers.
    pub unified: bool,
    options: &'a str,
}

impl CgroupMount<'_> {
    /// Returns `true` if this version 1 hierarchy has a controller.
    pub fn has(&self, controller: &str) -> bool {
        !self.unified && self.options.split(',').any(|option| option == controller)
    }
}

/// Returns the hierarchies of control groups in the text of `/proc/PID/mountinfo`.
pub fn cgroup_mounts(mountinfo: &str) -> impl Iterator<Item = CgroupMount<'_>> {
    mountinfo.lines().filter_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let (mut place, mut kind) = (place.split(' ').skip(3), kind.split(' '));
        let (root, mount) = (place.next()?, place.next()?);
        let (name, options) = (kind.next()?, kind.nth(1)?);
        let unified = name == "cgroup2";
        (unified || name == "cgroup").then_some(CgroupMount { mount, root, unified, options })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_stalls_is_that_of_some_tasks() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 total=9\n";
        assert_eq!(stalled_us(text), Some(1_234));
        for other in ["full total=9\n", "some avg10=0.00\n", "some total=-4", ""] {
            assert_eq!(stalled_us(other), None, "{other}");
        }
    }

    #[test]
    fn a_name_may_hold_brackets() {
        let stat = StatLine::read("7 (a) b (c) S 1 2 3\n").expect("it is a line");
        assert_eq!((stat.pid, stat.command), (7, "a) b (c"));
        assert_eq!([3, 4, 6].map(|number| stat.field(number)), [Some("S"), Some("1"), Some("3")]);
        assert_eq!([0, 7].map(|number| stat.field(number)), [None; 2]);
        assert!(["", "7 a S", "x (a) S"].iter().all(|line| StatLine::read(line).is_none()));
    }

    #[test]
    fn users_and_groups_are_found() {
        assert_eq!(users("Name:\tx\nUid:\t1000\t0\t0\t0\n"), Some((1000, 0)));
        assert_eq!((users("Name:\tx\n"), users("Uid:\t1\n")), (None, None));
        assert_eq!(
            (preemption("none voluntary full (lazy)\n"), preemption("")),
            (Some("lazy"), None)
        );
        assert_eq!(control_group("1:name=systemd:/x\n0::/a/b\n"), Some("/a/b"));
        assert_eq!(control_group("1:cpu:/\n"), None);
        let old = "4:cpu,cpuacct:/a:b\n3:blkio:/c\n0::/d\n";
        assert_eq!(
            ["cpuacct", "blkio", "io"].map(|name| control_group_with(old, name)),
            [Some("/a:b"), Some("/c"), None]
        );
    }

    #[test]
    fn hierarchies_are_found_among_the_mounts() {
        let mounts = "31 25 0:27 / /cpu rw - cgroup cgroup rw,cpu,cpuacct\n25 1 8:1 / / rw - ext4 /dev/sda rw\n\
            32 25 0:28 /box /one rw,nosuid shared:4 - cgroup2 cgroup2 rw\n32 25\n";
        let [old, new] = &cgroup_mounts(mounts).collect::<Vec<_>>()[..] else {
            panic!("there are two")
        };
        assert_eq!((old.mount, old.root, old.unified), ("/cpu", "/", false));
        assert!(old.has("cpu") && !old.has("memory") && !new.has("rw"));
        assert_eq!((new.mount, new.root, new.unified), ("/one", "/box", true));
    }
}
