// SPDX-License-Identifier: MIT OR Apache-2.0
//! Capabilities, users, and bounds.

use crate::calls::restrict;
use crate::reach::Reach;
use crate::schedule::schedule;
use rustix::fs::{Gid, Uid};
use rustix::process::{Resource, Rlimit, getpriority_process, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_keep_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};
use std::io;
use std::time::Duration;

/// The user who owns nothing, by convention.
pub const NOBODY: u32 = 65_534;

/// The first descriptor that is not one of the three that every process has.
const FIRST_OTHER: libc::c_uint = 3;

/// Whom a process of root becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    pub user: u32,
    /// The only group that it is in.
    pub group: u32,
}

/// What a confined process may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResourceBounds {
    /// After this time it is ended, and after as much time of a CPU.
    pub time: Duration,
    /// Bytes of address space.
    pub memory: u64,
    /// Bytes of a file that it writes.
    pub file: u64,
    pub reach: Reach,
    /// Its nice value, unless it has a greater one.
    pub nice: i32,
}

/// Keeps these capabilities of those that it has, and gives up all others for good, in this thread and those that it will
/// start: to be called while there are no others.
///
/// # Errors
/// Where the kernel refuses it.
pub fn keep(kept: CapabilitySet) -> io::Result<()> {
    let kept = capabilities(None)?.permitted & kept;
    bound_to(kept);
    clear_ambient_capability_set()?;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets)?;
    Ok(set_no_new_privs(true)?)
}

/// No program that is executed gets others than these. Who may not change that gets none either, since none of its programs
/// has more than itself: see [`set_no_new_privs`].
fn bound_to(kept: CapabilitySet) {
    for (_, other) in (CapabilitySet::all() - kept).iter_names() {
        remove_capability_from_bounding_set(other).ok();
    }
}

/// Gives up all but what stands open as the three standard streams, and what `open` opens, for good: to be called by a
/// process with one thread, before it reads anything. Root becomes this account; who is not root stays who it is.
///
/// # Errors
/// Where anything of it could not be done. The process must not go on then.
pub fn confine<T>(account: Account, bounds: ResourceBounds, open: impl FnOnce() -> T) -> io::Result<T> {
    // SAFETY: nothing in this process has a descriptor from here on, since it has just begun.
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
    // SAFETY: the call has no memory to do with. Its signal ends the process, and no later call can put that off.
    unsafe { libc::alarm(u32::try_from(seconds).unwrap_or(u32::MAX)) };
    Ok(())
}

/// The calls are those of the thread, which is all that there is.
/// Files are opened as by the account. In its other numbers the process is nobody's: a user may stop every process
/// whose real or saved number is the own one, and who is stopped does not end by its alarm.
fn become_account(account: Account) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(account.user), Gid::from_raw(account.group));
    let nobody = Uid::from_raw(NOBODY);
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    Ok(set_thread_res_uid(nobody, uid, nobody)?)
}
