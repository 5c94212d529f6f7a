// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a recorder keeps once it is armed, and its priority.

use anyhow::{Context, Result};
use std::os::fd::AsFd;
use std::thread;
use tipme_confine::{CapabilitySet, be_urgent, keep, schedule};
use tipme_control::journal;
use tipme_kernel::{Kernel, may_ask};

/// Kernel programs cannot be loaded any more, for which `SYS_ADMIN` would do. What is left:
/// - `SYSLOG`: the places of the kernel's functions, to name them;
/// - `SYS_PTRACE`, `DAC_OVERRIDE`: open files, mappings and lock words of processes, as the kernel tells them;
/// - `CHOWN`, `DAC_OVERRIDE`: incidents belong to who marked, and get that user's words later;
/// - `SETUID`, `SETGID`, `KILL`: processes that name, seal and judge become another user, and are ended in time.
const KEPT: CapabilitySet = CapabilitySet::SYSLOG
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::KILL);

/// Makes the recorder urgent, and gives up what it does not need any more: before it starts a thread.
pub(crate) fn settle(kernel: &Kernel<'_>) -> Result<()> {
    // A mark is urgent on a machine that is too busy, and so is who has the focus.
    be_urgent();
    let free = asks_freely(kernel).context("cannot find out what this kernel allows")?;
    if !free {
        journal::info("kept: CAP_BPF, since this kernel lets nobody else read what kernel programs wrote").tell();
    }
    keep(kept(free)).context("cannot give up capabilities that are not needed")
}

fn kept(free: bool) -> CapabilitySet {
    if free { KEPT } else { KEPT.union(CapabilitySet::BPF) }
}

/// Whether the kernel tells of its programs who has them open and no capability. The thread that tries it has none
/// from then on; no other one changes.
fn asks_freely(kernel: &Kernel<'_>) -> Result<bool> {
    let program = kernel.any_program()?;
    let tried = thread::spawn(move || keep(CapabilitySet::empty()).is_ok() && may_ask(program.as_fd()));
    Ok(tried.join().unwrap_or(false))
}

/// The calling thread is not urgent.
pub(crate) fn take_turns() {
    // A greater value is never refused.
    schedule(0, 0).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_kernel_lets_a_recorder_go_on_as_administrator() {
        for free in [true, false] {
            assert!(!kept(free).intersects(CapabilitySet::SYS_ADMIN | CapabilitySet::PERFMON));
            assert_eq!(kept(free).contains(CapabilitySet::BPF), !free);
        }
    }
}
