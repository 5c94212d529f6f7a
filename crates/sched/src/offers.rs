// SPDX-License-Identifier: MIT OR Apache-2.0
//! Capabilities and limits of each backend on this machine.

use crate::cgroup;
use crate::linux::{RUN, has_capability};
use crate::processes::{self, text};
use crate::slice::Slices;
use crate::units_bus::Bus;
use crate::units_names::{self, ServiceManager, Unit};
use rustix::thread::CapabilitySet;
use std::path::Path;
use tipme_policy::Backend;

/// State folder of sched_ext schedulers.
const SCHED_EXT: &str = "/sys/kernel/sched_ext";
/// Exists if systemd is the init system.
const SYSTEMD: &str = "/run/systemd/system";
/// Mount point of cgroup v2 under systemd.
const HIERARCHY: &str = "/sys/fs/cgroup";

/// Owner of a desktop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DesktopOwner {
    pub user: u32,
    /// Process of the window manager, if known.
    pub window_manager: Option<u32>,
}

/// A backend as this machine offers it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    pub backend: Backend,
    /// Reason why the backend is unusable; `None` if it is usable.
    pub unusable: Option<String>,
    /// Limits of the backend, in sentences for people.
    pub limits: Vec<String>,
}

/// Returns the backends, best first. `cgroup` is a delegated group that could be used; a named
/// group is preferred. `desktop` names the user with the programs to weigh, if known.
pub fn offers(proc: &Path, cgroup: Option<&Path>, desktop: Option<DesktopOwner>) -> Vec<Offer> {
    let ext = extension();
    let systemd = Path::new(SYSTEMD).is_dir();
    let groups = cgroup_offer(cgroup, ext.as_deref(), systemd);
    let units = units_offer(proc, desktop, ext.as_deref());
    let (first, second) = if cgroup.is_some() { (groups, units) } else { (units, groups) };
    [first, second].into_iter().chain(plain_offers(proc, cgroup)).collect()
}

/// Returns the backends of [`offers`] that change only processes and their sessions.
pub fn plain_offers(proc: &Path, cgroup: Option<&Path>) -> [Offer; 2] {
    [autogroup_offer(proc, cgroup), nice_offer(proc)]
}

fn units_offer(proc: &Path, desktop: Option<DesktopOwner>, ext: Option<&str>) -> Offer {
    let mut limits = vec![
        "weights apply within the user's slice only: \
         other users and system services compete with all of it"
            .to_owned(),
        "processes are not moved out of a service: \
         a program that shares a service with others is not weighed"
            .to_owned(),
        "systemd keeps a file below /run for each changed unit until the unit or the boot ends"
            .to_owned(),
    ];
    limits.extend(ext.map(ignores_weights));
    if !rustix::process::geteuid().is_root() {
        limits.push("without root only units of the user's own manager are weighed".to_owned());
    }
    Offer { backend: Backend::Systemd, unusable: units_fault(proc, desktop), limits }
}

/// Returns the reason why systemd units cannot be weighed.
fn units_fault(proc: &Path, desktop: Option<DesktopOwner>) -> Option<String> {
    if !Path::new(SYSTEMD).is_dir() {
        return Some("systemd is not the init system of this machine".to_owned());
    }
    let root = match hierarchy() {
        Ok(root) => root,
        Err(why) => return Some(why),
    };
    let own = rustix::process::geteuid();
    let service_manager =
        if own.is_root() { ServiceManager::System } else { ServiceManager::User(own.as_raw()) };
    let in_units = desktop.is_none_or(|desktop| match service_manager {
        ServiceManager::System => processes::all(proc).into_iter().any(|pid| {
            processes::read(proc, pid).is_some_and(|process| process.uid == desktop.user)
                && unit_of_process(proc, pid, &root).is_some()
        }),
        // If the window manager is a unit of the user's manager, the programs are, too.
        ServiceManager::User(_) => desktop
            .window_manager
            .and_then(|pid| unit_of_process(proc, pid, &root))
            .is_some_and(|unit| unit.service_manager == service_manager),
    });
    Bus::new(Path::new(RUN)).defect(service_manager).or_else(|| {
        (!in_units).then(|| "the desktop's programs are in no units of this manager".to_owned())
    })
}

fn unit_of_process(proc: &Path, pid: u32, root: &str) -> Option<Unit> {
    let group = cgroup::group_of(proc, pid, root)?;
    Unit::from_folder(&units_names::unit_folder(root, &group)?)
}

/// Returns the mount point of the unit hierarchy.
///
/// # Errors
/// Fails if it is not of version 2, or has no cpu controller.
pub(crate) fn hierarchy() -> Result<String, String> {
    let Some(controllers) = text(&Path::new(HIERARCHY).join("cgroup.controllers")) else {
        return Err(format!(
            "{HIERARCHY} is not a cgroup v2 hierarchy; \
             boot with systemd.unified_cgroup_hierarchy=1"
        ));
    };
    if cgroup::has_word(&controllers, "cpu") {
        Ok(HIERARCHY.to_owned())
    } else {
        Err(format!("{HIERARCHY} has no cpu controller"))
    }
}

fn ignores_weights(name: &str) -> String {
    format!("the sched_ext scheduler {name} may ignore cpu.weight: nice values are set as well")
}

/// Returns the name of the active sched_ext scheduler.
fn sched_ext(folder: &Path) -> Option<String> {
    let enabled = text(&folder.join("state"))?.trim() == "enabled";
    let name = text(&folder.join("root/ops")).map(|name| name.trim().to_owned());
    enabled.then(|| name.unwrap_or_else(|| "unknown".to_owned()))
}

/// Returns the sched_ext scheduler that is active on this machine; it may ignore weights.
pub fn extension() -> Option<String> {
    sched_ext(Path::new(SCHED_EXT))
}

fn cgroup_offer(dir: Option<&Path>, ext: Option<&str>, systemd: bool) -> Offer {
    let mut limits = vec![
        "weights apply among the groups below the delegated group only: \
         processes outside of it compete with all of them together"
            .to_owned(),
        "memory.low takes effect only if the groups above the delegated one set it too".to_owned(),
    ];
    if systemd {
        limits.push("processes in systemd units are not moved into other groups".to_owned());
    }
    limits.extend(ext.map(ignores_weights));
    let unusable = match dir {
        None => Some(
            "no delegated group was named; delegate one and use tipme manage --cgroup DIR"
                .to_owned(),
        ),
        Some(dir) => cgroup_fault(dir, &mut limits),
    };
    Offer { backend: Backend::Cgroup, unusable, limits }
}

/// Returns the reason why a group is unusable; appends its deficiencies to the limits.
fn cgroup_fault(dir: &Path, limits: &mut Vec<String>) -> Option<String> {
    let name = dir.display();
    let Some(controllers) = text(&dir.join("cgroup.controllers")) else {
        return Some(format!(
            "{name} is not a control group of version 2; mount cgroup2 and delegate a group of it"
        ));
    };
    if cgroup::root_of(dir).as_deref() == Some(dir) {
        return Some(format!("{name} is the root of its hierarchy; name a group below it"));
    }
    if rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_err() {
        return Some(format!("{name} is not writable; have it delegated to this user"));
    }
    for (controller, what) in
        [("io", "I/O has no weights"), ("memory", "memory has neither limits nor protection")]
    {
        if !cgroup::has_word(&controllers, controller) {
            limits.push(format!("{name} has no {controller} controller: {what}"));
        }
    }
    (!cgroup::has_word(&controllers, "cpu")).then(|| {
        format!("{name} has no cpu controller; add it to cgroup.subtree_control of the group above")
    })
}

fn autogroup_offer(proc: &Path, cgroup: Option<&Path>) -> Offer {
    let mut limits = vec![
        "a session has one weight: its processes cannot be weighed separately".to_owned(),
        "processes that run in the session as another user change with it".to_owned(),
        "I/O and memory are not covered: a hog's memory gets advice only, no limit".to_owned(),
    ];
    if !has_capability(CapabilitySet::SYS_ADMIN) {
        limits.push(
            "without CAP_SYS_ADMIN the kernel allows ten changes per second for all users together"
                .to_owned(),
        );
    }
    if cgroup.is_some() || in_cpu_group(proc) {
        limits
            .push("a process in a control group with a cpu controller has no autogroup".to_owned());
    }
    let unusable = match autogroup_state(proc).as_deref() {
        Some("1") if has_capability(CapabilitySet::SYS_NICE) => None,
        Some("1") => Some("favouring a session needs CAP_SYS_NICE; run it as root".to_owned()),
        Some(_) => {
            Some("it is off; write 1 to /proc/sys/kernel/sched_autogroup_enabled".to_owned())
        }
        None => Some("this kernel has no CONFIG_SCHED_AUTOGROUP".to_owned()),
    };
    Offer { backend: Backend::Autogroup, unusable, limits }
}

fn nice_offer(proc: &Path) -> Offer {
    let mut limits = vec![
        "I/O priorities count only where the disk's scheduler heeds them \
         (bfq, and mq-deadline for classes)"
            .to_owned(),
        "there is no limit to a hog's memory, only advice".to_owned(),
    ];
    if !Slices::open().are_there() {
        limits.push(
            "before Linux 6.12 a child that leaves its session and loses its parent before it is \
             noticed keeps an inherited value that it could have set itself"
                .to_owned(),
        );
    }
    if autogroup_state(proc).as_deref() == Some("1") {
        limits.push(
            "autogroup is on: nice values and SCHED_IDLE count within a session only".to_owned(),
        );
    }
    let unusable = (!has_capability(CapabilitySet::SYS_NICE))
        .then(|| "changes could not be undone without CAP_SYS_NICE; run it as root".to_owned());
    Offer { backend: Backend::Nice, unusable, limits }
}

/// Returns `1` if autogroup is on, `0` if it is off; `None` if the kernel does not support it.
fn autogroup_state(proc: &Path) -> Option<String> {
    Some(text(&proc.join("sys/kernel/sched_autogroup_enabled"))?.trim().to_owned())
}

/// Returns `true` if this process is in a group of the cpu controller, so that its autogroup has no
/// effect.
fn in_cpu_group(proc: &Path) -> bool {
    let groups = text(&proc.join("self/cgroup")).unwrap_or_default();
    let mut fields = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        Some((fields.next()?, fields.next()))
    });
    fields
        .find(|(names, _)| names.split(',').any(|name| name == "cpu"))
        .is_some_and(|(_, path)| path.is_some_and(|path| path != "/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn sched_ext_is_seen_only_while_it_is_enabled() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(sched_ext(folder.path()), None);
        fs::create_dir(folder.path().join("root")).unwrap();
        fs::write(folder.path().join("root/ops"), "lavd\n").unwrap();
        fs::write(folder.path().join("state"), "disabled\n").unwrap();
        assert_eq!(sched_ext(folder.path()), None);
        fs::write(folder.path().join("state"), "enabled\n").unwrap();
        assert_eq!(sched_ext(folder.path()), Some("lavd".to_owned()));
        let offer = cgroup_offer(None, Some("lavd"), true);
        assert!(offer.limits.iter().any(|limit| limit.contains("lavd")), "{offer:?}");
        assert!(offer.limits.iter().any(|limit| limit.contains("systemd")), "{offer:?}");
    }

    #[test]
    fn a_group_without_the_cpu_controller_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join("mount/tipme");
        fs::create_dir_all(&group).unwrap();
        for dir in [&folder.path().join("mount"), &group] {
            fs::write(dir.join("cgroup.procs"), "").unwrap();
            fs::write(dir.join("cgroup.controllers"), "hugetlb memory\n").unwrap();
        }
        for (dir, why) in [
            (&*group, "no cpu controller"),
            (&folder.path().join("mount"), "root of its hierarchy"),
            (folder.path(), "not a control group"),
        ] {
            let unusable = cgroup_offer(Some(dir), None, false).unusable;
            assert!(unusable.is_some_and(|found| found.contains(why)), "{why}");
        }
        fs::write(group.join("cgroup.controllers"), "cpu io\n").unwrap();
        let offer = cgroup_offer(Some(&group), None, false);
        assert_eq!(offer.unusable, None);
        assert!(
            offer.limits.iter().any(|limit| limit.contains("no memory controller")),
            "{offer:?}"
        );
    }

    #[test]
    fn autogroup_is_offered_only_where_it_is_on() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = folder.path().join("sys/kernel");
        fs::create_dir_all(&kernel).unwrap();
        assert!(
            autogroup_offer(folder.path(), None)
                .unusable
                .unwrap()
                .contains("CONFIG_SCHED_AUTOGROUP")
        );
        fs::write(kernel.join("sched_autogroup_enabled"), "0\n").unwrap();
        assert!(autogroup_offer(folder.path(), None).unusable.unwrap().contains("off"));
        fs::write(kernel.join("sched_autogroup_enabled"), "1\n").unwrap();
        assert_eq!(autogroup_offer(folder.path(), None).unusable, None);
        assert!(
            nice_offer(folder.path()).limits.iter().any(|limit| limit.contains("within a session"))
        );
    }
}
