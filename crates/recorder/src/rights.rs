// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a recorder keeps once it is armed, and its priority.

use anyhow::{Context, Result};
use rustix::process::setpriority_process;
use tipme_confine::{CapabilitySet, keep};

/// A mark is urgent on a machine that is too busy.
const URGENT: i32 = -10;

/// Kernel programs cannot be loaded any more. What is left:
/// - `SYS_ADMIN`: switching the kernel's count of what programs cost on and off;
/// - `SYSLOG`: the places of the kernel's functions, to name them;
/// - `SYS_PTRACE`, `DAC_OVERRIDE`: open files, mappings and lock words of processes, as the kernel tells them;
/// - `CHOWN`, `DAC_OVERRIDE`: incidents belong to who marked, and get that user's words later;
/// - `SETUID`, `SETGID`, `KILL`: processes that name, seal and judge become another user, and are ended in time.
const KEPT: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::KILL);

/// Makes the recorder urgent, and gives up what it does not need any more: before it starts a thread.
pub(crate) fn settle() -> Result<()> {
    // Where this is refused, it takes its turn.
    setpriority_process(None, URGENT).ok();
    keep(KEPT).context("cannot give up capabilities that are not needed")
}

/// The calling thread is not urgent.
pub(crate) fn take_turns() {
    // A greater value is never refused.
    setpriority_process(None, 0).ok();
}
