// SPDX-License-Identifier: MIT OR Apache-2.0
//! Temporary control group with one limit.
//!
//! It is made below this process's own group if each controller has a hierarchy of its own, and
//! below the root if the hierarchy is unified, since a group with processes cannot have limited
//! children there. Only processes that the benchmark started are moved into it; they move back
//! before the group is removed.

use crate::process::{is_root, retry};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use tipme_record::proc_text::{CgroupMount, cgroup_mounts};

/// Period of the CPU quota, in microseconds.
const PERIOD_US: u64 = 100_000;
/// Maximum number of attempts to remove an emptied group.
const REMOVALS: usize = 100;

/// Makes the names of groups unique.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Mount of a controller.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ControllerHierarchy {
    /// Mount point.
    mount: PathBuf,
    /// Group that the mount shows as its root.
    root: String,
    /// The hierarchy is unified.
    unified: bool,
}

impl ControllerHierarchy {
    /// Finds the hierarchy of a controller.
    fn find(controller: &str) -> Result<ControllerHierarchy> {
        let mounts =
            std::fs::read_to_string("/proc/self/mountinfo").context("cannot read the mounts")?;
        let found =
            hierarchies(&mounts, controller).find(|one| !one.unified || one.offers(controller));
        found.with_context(|| {
            format!("no control groups for {controller}: mount a hierarchy that has the controller")
        })
    }

    /// Returns `true` if groups below the root of a unified hierarchy can have the controller.
    fn offers(&self, controller: &str) -> bool {
        let offered =
            std::fs::read_to_string(self.mount.join("cgroup.subtree_control")).unwrap_or_default();
        offered.split_whitespace().any(|offered| offered == controller)
    }

    /// Returns the folder of a process's group.
    fn folder_of(&self, pid: u32, controller: &str) -> Result<PathBuf> {
        let path = format!("/proc/{pid}/cgroup");
        let groups =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let group = groups.lines().find_map(|line| self.group_in(line, controller));
        let group = group
            .with_context(|| format!("process {pid} has no control group for {controller}"))?;
        let below = group.strip_prefix(self.root.trim_end_matches('/')).unwrap_or(group);
        Ok(self.mount.join(below.trim_start_matches('/')))
    }

    /// Returns the group in a line of `/proc/PID/cgroup` if the line is about this hierarchy.
    fn group_in<'a>(&self, line: &'a str, controller: &str) -> Option<&'a str> {
        let mut words = line.splitn(3, ':').skip(1);
        let (controllers, group) = (words.next()?, words.next()?);
        let fits = if self.unified {
            controllers.is_empty()
        } else {
            controllers.split(',').any(|one| one == controller)
        };
        fits.then_some(group)
    }
}

/// Returns the hierarchies that can have the controller.
fn hierarchies(mounts: &str, controller: &str) -> impl Iterator<Item = ControllerHierarchy> {
    let fitting = cgroup_mounts(mounts).filter(move |one| one.unified || one.has(controller));
    fitting.map(|CgroupMount { mount, root, unified, .. }| ControllerHierarchy {
        mount: mount.into(),
        root: root.to_owned(),
        unified,
    })
}

/// Returns the reason why a unified controller is not available, with a remedy; `None` if it is
/// available.
pub(crate) fn lacks_unified(controller: &str) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let Some(hierarchy) = unified(&mounts) else {
        return Some("there are no control groups of version 2".to_owned());
    };
    if !is_root() {
        return Some("making control groups needs root".to_owned());
    }
    let offered =
        std::fs::read_to_string(hierarchy.mount.join("cgroup.controllers")).unwrap_or_default();
    if !offered.split_whitespace().any(|offered| offered == controller) {
        return Some(format!(
            "the {controller} controller is not available in version 2 of control groups here"
        ));
    }
    let file = hierarchy.mount.join("cgroup.subtree_control");
    (!hierarchy.offers(controller)).then(|| {
        format!(
            "groups do not get the {controller} controller; try: echo +{controller} > {}",
            file.display()
        )
    })
}

/// Returns the unified hierarchy.
fn unified(mounts: &str) -> Option<ControllerHierarchy> {
    hierarchies(mounts, "").find(|hierarchy| hierarchy.unified)
}

/// A control group. Dropping it moves its processes back to their previous groups, and removes it.
pub(crate) struct ControlGroup {
    controller: &'static str,
    hierarchy: ControllerHierarchy,
    folder: PathBuf,
    name: String,
    /// Processes that were moved in, with their previous groups.
    moved: Vec<(u32, PathBuf)>,
}

impl ControlGroup {
    /// Limits its processes to `quota_us` microseconds of CPU time in each tenth of a second.
    pub(crate) fn limit_cpu(&self, quota_us: u64) -> Result<()> {
        if self.hierarchy.unified {
            return self.set("cpu.max", &format!("{quota_us} {PERIOD_US}"));
        }
        self.set("cpu.cfs_period_us", &PERIOD_US.to_string())?;
        self.set("cpu.cfs_quota_us", &quota_us.to_string())
    }

    /// Limits the total memory of its processes.
    pub(crate) fn limit_memory(&self, bytes: u64) -> Result<()> {
        let limit = if self.hierarchy.unified { "memory.max" } else { "memory.limit_in_bytes" };
        self.set(limit, &bytes.to_string())
    }

    /// Makes a unified group with this CPU weight.
    pub(crate) fn with_weight(prefix: &str, weight: u32) -> Result<ControlGroup> {
        let group = ControlGroup::named(prefix, "cpu")?;
        if !group.is_unified() {
            bail!("the cpu controller is not available in version 2 of control groups here");
        }
        group.set("cpu.weight", &weight.to_string())?;
        Ok(group)
    }

    /// Makes a group with a multiple of the default CPU weight.
    pub(crate) fn with_times_the_weight(prefix: &str, times: u32) -> Result<ControlGroup> {
        let group = ControlGroup::named(prefix, "cpu")?;
        let (file, usual) =
            if group.is_unified() { ("cpu.weight", 100) } else { ("cpu.shares", 1_024) };
        group.set(file, &(times * usual).to_string())?;
        Ok(group)
    }

    /// Makes a group with a name that begins with `prefix`.
    pub(crate) fn named(prefix: &str, controller: &'static str) -> Result<ControlGroup> {
        let hierarchy = ControllerHierarchy::find(controller)?;
        let parent = match hierarchy.unified {
            true => hierarchy.mount.clone(),
            false => hierarchy.folder_of(std::process::id(), controller)?,
        };
        let name =
            format!("{prefix}{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let folder = parent.join(&name);
        std::fs::create_dir(&folder).with_context(|| {
            format!("cannot make the control group {}; this needs root", folder.display())
        })?;
        Ok(ControlGroup { controller, hierarchy, folder, name, moved: Vec::new() })
    }

    /// Writes a setting of the group.
    pub(crate) fn set(&self, file: &str, value: &str) -> Result<()> {
        let path = self.folder.join(file);
        std::fs::write(&path, value)
            .with_context(|| format!("cannot write {value} to {}", path.display()))
    }

    /// Returns `true` if the hierarchy is unified.
    pub(crate) fn is_unified(&self) -> bool {
        self.hierarchy.unified
    }

    /// Folder with its settings.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Last component of its path.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Path of its `cgroup.procs`: a process writes its number there to move into the group.
    pub(crate) fn procs_file(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Prefix of a command that runs in the group.
    pub(crate) fn prefix(&self) -> Vec<OsString> {
        let enter = ["sh", "-euc", r#"echo $$ >"$0"; exec "$@""#].map(OsString::from);
        enter.into_iter().chain([self.procs_file().into_os_string()]).collect()
    }

    /// Moves a process into the group, with all its threads.
    pub(crate) fn take(&mut self, pid: u32) -> Result<()> {
        let from = self.hierarchy.folder_of(pid, self.controller)?;
        if pid == std::process::id() {
            bail!("cannot move this process into its own group");
        }
        std::fs::write(self.procs_file(), pid.to_string())
            .with_context(|| format!("cannot limit process {pid}"))?;
        self.moved.push((pid, from));
        Ok(())
    }

    /// Moves all processes back; ended processes are ignored.
    pub(crate) fn release(&mut self) {
        for (pid, from) in self.moved.drain(..) {
            if self
                .hierarchy
                .folder_of(pid, self.controller)
                .is_ok_and(|folder| folder == self.folder)
            {
                let _ = std::fs::write(from.join("cgroup.procs"), pid.to_string());
            }
        }
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        self.release();
        // A process that has just ended still occupies its group for a moment.
        retry(REMOVALS, || std::fs::remove_dir(&self.folder).is_ok() || !self.folder.exists());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::ProcessGroup;
    use std::process::Command;

    #[test]
    fn both_kinds_of_hierarchies_are_read() {
        let old = "31 25 0:27 / /sys/fs/cgroup/cpu rw,nosuid - cgroup cgroup rw,cpu,cpuacct";
        let new = "32 25 0:28 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate";
        let found = hierarchies(old, "cpu").next().expect("it has the controller");
        assert_eq!(found.group_in("1:cpu,cpuacct:/a/b", "cpu"), Some("/a/b"));
        assert_eq!(hierarchies(old, "memory").next(), None);
        let found = hierarchies(new, "memory").next().expect("it may have the controller");
        assert!(found.unified && found.root == "/box");
        assert_eq!(found.group_in("0::/box/c", "memory"), Some("/box/c"));
        assert_eq!(found.group_in("1:cpu:/a", "memory"), None);
        assert_eq!(hierarchies("25 1 8:1 / / rw - ext4 /dev/sda rw", "cpu").next(), None);
    }

    #[test]
    fn a_missing_version_2_has_its_reason() {
        assert_eq!(
            lacks_unified("cpu").is_none(),
            ControlGroup::with_weight("tipme-test-", 100).is_ok()
        );
        assert!(
            lacks_unified("no-such")
                .is_some_and(|why| why.contains("no-such") || !why.contains("controller"))
        );
        let mounts = "31 25 0:27 / /cpu rw - cgroup cgroup rw,cpu\n32 25 0:28 / /one rw - cgroup2 cgroup2 rw";
        assert_eq!(unified(mounts).map(|hierarchy| hierarchy.mount), Some("/one".into()));
        assert_eq!(unified("31 25 0:27 / /cpu rw - cgroup cgroup rw,cpu"), None);
    }

    #[test]
    fn a_group_takes_a_process_and_gives_it_back() {
        for controller in ["cpu", "memory"] {
            let mut command = Command::new("sleep");
            command.arg("60");
            let process = ProcessGroup::start("a sleeper", command, None).expect("sleep starts");
            let mut group =
                ControlGroup::named("tipme-test-", controller).expect("root, and control groups");
            let limited = if controller == "cpu" {
                group.limit_cpu(50_000)
            } else {
                group.limit_memory(64 << 20)
            };
            limited.expect("a limit");
            let before =
                group.hierarchy.folder_of(process.pid(), group.controller).expect("a group");
            group.take(process.pid()).expect("it lives");
            let (hierarchy, folder) = (group.hierarchy.clone(), group.folder.clone());
            assert_eq!(
                hierarchy.folder_of(process.pid(), group.controller).expect("a group"),
                folder
            );
            let controller = group.controller;
            drop(group);
            assert_eq!(hierarchy.folder_of(process.pid(), controller).expect("a group"), before);
            assert!(!folder.exists());
        }
    }
}
