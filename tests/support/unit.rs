// SPDX-License-Identifier: MIT OR Apache-2.0
//! An installed unit file of a service, and a program that runs within its limits without systemd:
//! with its capabilities, system calls and network view. A forbidden system call ends the program.

use crate::built;
use rustix::fs::{Mode, OFlags, mkdir, open};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::net::AddressFamily;
use rustix::thread::{CapabilitySet, UnshareFlags, unshare_unsafe};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Files installed by `make install`, in a folder of the test.
pub struct Installed(TempDir);

impl Installed {
    pub fn install() -> Installed {
        let (dir, root) = (TempDir::new().unwrap(), concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let mut install = Command::new(format!("{root}/scripts/install-files"));
        install.arg(built("tipme")).arg("/usr").arg(dir.path()).stdout(Stdio::null());
        assert!(install.status().unwrap().success());
        Installed(dir)
    }

    /// Returns the path of a system service's unit.
    pub fn path(&self, service: &str) -> PathBuf {
        self.0.path().join(format!("usr/lib/systemd/system/{service}.service"))
    }

    pub fn unit(&self, service: &str) -> Unit {
        let text = std::fs::read_to_string(self.path(service)).unwrap();
        let settings = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once('='));
        Unit(settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

/// Settings of a unit, in order.
pub struct Unit(Vec<(String, String)>);

impl Unit {
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    fn is_on(&self, name: &str) -> bool {
        self.values(name).last() == Some("true")
    }

    /// Runs a command within these limits.
    pub fn limit(&self, command: &mut Command) {
        let words = self.values("CapabilityBoundingSet").flat_map(str::split_whitespace);
        let kept = words.fold(CapabilitySet::empty(), |kept, word| kept | capability(word));
        let filters = self.filters();
        let mask =
            self.values("UMask").last().map_or(0o022, |mask| u32::from_str_radix(mask, 8).unwrap());
        let (network, folder) = (self.is_on("PrivateNetwork"), self.is_on("PrivateTmp"));
        // SAFETY: only system calls run between fork and exec; their data was prepared before.
        unsafe {
            command.pre_exec(move || {
                rustix::process::umask(Mode::from_raw_mode(mask));
                if network {
                    unshare_unsafe(UnshareFlags::NEWNET)?;
                }
                if folder {
                    own_temporary_folder()?;
                }
                for other in (CapabilitySet::all() - kept).iter() {
                    // No process has capabilities that this kernel does not know.
                    rustix::thread::remove_capability_from_bounding_set(other).ok();
                }
                filters.iter().try_for_each(|filter| {
                    apply_filter(filter).map_err(|_| std::io::ErrorKind::PermissionDenied.into())
                })
            });
        }
    }

    /// Returns filters for the system calls, and for some of their arguments.
    fn filters(&self) -> Vec<BpfProgram> {
        let numbers = numbers();
        let rules = self
            .system_calls()
            .iter()
            .filter_map(|name| Some((*numbers.get(name)?, Vec::new())))
            .collect();
        let allowed = filter(rules, SeccompAction::KillProcess, SeccompAction::Allow);
        let mut filters = Vec::new();
        let families: Vec<u16> =
            self.values("RestrictAddressFamilies").flat_map(families).collect();
        if !families.is_empty() {
            let others =
                families.iter().map(|family| condition(0, SeccompCmpOp::Ne, (*family).into()));
            let rules = BTreeMap::from([(
                numbers["socket"],
                vec![SeccompRule::new(others.collect()).unwrap()],
            )]);
            filters.push(filter(rules, SeccompAction::Allow, SeccompAction::KillProcess));
        }
        if self.is_on("MemoryDenyWriteExecute") {
            let executable = rule(condition(2, SeccompCmpOp::MaskedEq(4), 4));
            let both = rule(condition(2, SeccompCmpOp::MaskedEq(6), 6));
            let rules = BTreeMap::from([
                (numbers["mmap"], vec![both]),
                (numbers["mprotect"], vec![executable]),
            ]);
            // The loader makes libraries executable before it makes them writable, never after.
            filters.push(filter(rules, SeccompAction::Allow, SeccompAction::KillProcess));
        }
        // Last, since it may forbid adding others.
        filters.push(allowed);
        filters
    }

    /// Returns the names of the system calls that the unit allows.
    fn system_calls(&self) -> BTreeSet<String> {
        let (groups, mut allowed) = (groups(), BTreeSet::new());
        for value in self.values("SystemCallFilter") {
            let (words, forbid) =
                value.strip_prefix('~').map_or((value, false), |words| (words, true));
            for name in words.split_whitespace().flat_map(|word| resolve(&groups, word)) {
                if forbid {
                    allowed.remove(&name)
                } else {
                    allowed.insert(name)
                };
            }
        }
        // System calls that systemd always allows if a service has an allow list.
        allowed.extend(resolve(&groups, "@default"));
        allowed.insert("execve".to_owned());
        assert!(allowed.len() > 50, "systemd-analyze knows no groups of system calls");
        allowed
    }
}

/// Replaces `/tmp` by an empty folder with only the sockets of displays, as for a service.
fn own_temporary_folder() -> rustix::io::Result<()> {
    // SAFETY: the caller is between fork and exec, where there are no other threads.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let sockets = open(c"/tmp/.X11-unix", OFlags::PATH, Mode::empty());
    mount(c"none", c"/tmp", c"tmpfs", MountFlags::empty(), None)?;
    let Ok(sockets) = sockets else { return Ok(()) };
    mkdir(c"/tmp/.X11-unix", Mode::RWXU)?;
    // Its path leads elsewhere now.
    rustix::process::fchdir(sockets)?;
    mount_bind(c".", c"/tmp/.X11-unix")?;
    rustix::process::chdir(c"/")
}

fn families(words: &str) -> impl Iterator<Item = u16> {
    words.split_whitespace().map(|word| match word {
        "AF_UNIX" => AddressFamily::UNIX.as_raw(),
        "AF_NETLINK" => AddressFamily::NETLINK.as_raw(),
        other => panic!("the number of {other} is not known here"),
    })
}

fn capability(name: &str) -> CapabilitySet {
    CapabilitySet::from_name(name.strip_prefix("CAP_").unwrap())
        .unwrap_or_else(|| panic!("no capability {name}"))
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> SeccompCondition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value).unwrap()
}

fn rule(condition: SeccompCondition) -> SeccompRule {
    SeccompRule::new(vec![condition]).unwrap()
}

fn filter(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    others: SeccompAction,
    these: SeccompAction,
) -> BpfProgram {
    let arch = std::env::consts::ARCH.try_into().unwrap();
    SeccompFilter::new(rules, others, these, arch).unwrap().try_into().unwrap()
}

/// Returns the numbers of this machine's system calls.
fn numbers() -> BTreeMap<String, i64> {
    let header = ["-E", "-dM", "-include", "asm/unistd.h", "-x", "c", "/dev/null"];
    let output = Command::new("gcc").args(header).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let named = text.lines().filter_map(|line| line.strip_prefix("#define __NR_")?.split_once(' '));
    named.filter_map(|(name, number)| Some((name.to_owned(), number.parse().ok()?))).collect()
}

/// Returns systemd's groups of system calls, such as `@file-system`.
fn groups() -> BTreeMap<String, Vec<String>> {
    let output = Command::new("systemd-analyze").args(["syscall-filter", "--no-pager"]).output();
    let text =
        String::from_utf8(output.expect("systemd-analyze can be run: make test-deps").stdout)
            .unwrap();
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut group = String::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        match line.strip_prefix("    ") {
            None => group = line.trim().to_owned(),
            Some(member) => groups.entry(group.clone()).or_default().push(member.trim().to_owned()),
        }
    }
    groups
}

/// Returns the system calls of a group and its nested groups.
fn resolve(groups: &BTreeMap<String, Vec<String>>, word: &str) -> Vec<String> {
    if !word.starts_with('@') {
        return vec![word.to_owned()];
    }
    let members = groups.get(word).unwrap_or_else(|| panic!("no group {word} of system calls"));
    members.iter().flat_map(|member| resolve(groups, member)).collect()
}
