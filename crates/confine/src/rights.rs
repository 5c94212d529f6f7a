// SPDX-License-Identifier: MIT OR Apache-2.0
//! Capabilities, users, and resource limits.

use crate::calls::restrict;
use crate::reach::Reach;
use crate::schedule::schedule;
use rustix::fs::{Gid, Uid};
use rustix::process::{Resource, Rlimit, getpriority_process, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use std::io;
use std::time::Duration;

/// User that owns nothing, by convention.
pub const NOBODY: u32 = 65_534;

/// First descriptor after the standard streams.
const FIRST_OTHER: libc::c_uint = 3;

/// Account that a process of root changes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    pub user: u32,
    /// Its only group.
    pub group: u32,
}

/// Resource limits of a confined process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResourceBounds {
    /// Maximum wall time, and maximum CPU time.
    pub time: Duration,
    /// Maximum address space in bytes.
    pub memory: u64,
    /// Maximum size of a written file in bytes.
    pub file: u64,
    pub reach: Reach,
    /// Nice value, unless it already has a higher one.
    pub nice: i32,
}

/// Keeps these capabilities, as far as present, and drops all others permanently, in this thread
/// and those that it will start. It must be called before other threads exist.
///
/// # Errors
/// If the kernel refuses it.
pub fn keep(kept: CapabilitySet) -> io::Result<()> {
    let kept = capabilities(None)?.permitted & kept;
    bound_to(kept);
    clear_ambient_capability_set()?;
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets)?;
    Ok(set_no_new_privs(true)?)
}

/// Removes all other capabilities from the bounding set, so that no executed program gets them. A
/// process without permission for that is safe as well, since its programs never get more than it
/// has: see [`set_no_new_privs`].
fn bound_to(kept: CapabilitySet) {
    for (_, other) in (CapabilitySet::all() - kept).iter_names() {
        remove_capability_from_bounding_set(other).ok();
    }
}

/// Permanently drops everything except the standard streams and the results of `open`. It must be
/// called by a process with one thread, before it reads anything. Root changes to this account;
/// other users keep theirs.
///
/// # Errors
/// If any step failed. The process must not continue then.
pub fn confine<T>(
    account: Account,
    bounds: ResourceBounds,
    open: impl FnOnce() -> T,
) -> io::Result<T> {
    // SAFETY: the process has just started, and nothing in it owns a descriptor from here on.
    if unsafe { libc::syscall(libc::SYS_close_range, FIRST_OTHER, libc::c_uint::MAX, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let opened = open();
    limit(bounds)?;
    bound_to(CapabilitySet::empty());
    if rustix::process::geteuid().is_root() {
        set_keep_capabilities(true)?;
        become_account(account)?;
    }
    keep(bounds.reach.capabilities())?;
    restrict(bounds.reach).map_err(io::Error::other)?;
    Ok(opened)
}

fn limit(bounds: ResourceBounds) -> io::Result<()> {
    schedule(getpriority_process(None)?.max(bounds.nice), 0)?;
    let seconds = bounds.time.as_secs().max(1);
    let limits = [
        (Resource::Cpu, seconds),
        (Resource::As, bounds.memory),
        (Resource::Fsize, bounds.file),
        (Resource::Nofile, u64::from(FIRST_OTHER + bounds.reach.files())),
        (Resource::Core, 0),
    ];
    for (resource, limit) in limits {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    // SAFETY: the call does not touch memory. Its signal ends the process, and no later call can
    // postpone it.
    unsafe { libc::alarm(u32::try_from(seconds).unwrap_or(u32::MAX)) };
    Ok(())
}

/// Changes the credentials of the thread, which is the only one. Files are opened with the
/// account's user id. The real and saved user ids are those of nobody: a user may stop every
/// process with a matching real or saved id, and a stopped process does not end by its alarm.
fn become_account(account: Account) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(account.user), Gid::from_raw(account.group));
    let nobody = Uid::from_raw(NOBODY);
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    Ok(set_thread_res_uid(nobody, uid, nobody)?)
}
