// SPDX-License-Identifier: MIT OR Apache-2.0
//! Privileges that a recorder keeps once it is armed, and its priority.

use anyhow::{Context, Result};
use std::os::fd::AsFd;
use std::thread;
use tipme_confine::{CapabilitySet, be_urgent, keep, schedule};
use tipme_control::journal;
use tipme_kernel::{Kernel, may_ask};

/// Capabilities kept after loading the kernel programs, for which `SYS_ADMIN` is no longer needed:
/// - `SYSLOG`: addresses of the kernel's functions, to name them;
/// - `SYS_PTRACE`, `DAC_OVERRIDE`: open files, mappings and lock words of processes from /proc;
/// - `CHOWN`, `DAC_OVERRIDE`: incidents belong to the marking user, and take that user's words
///   later;
/// - `SETUID`, `SETGID`, `KILL`: naming, sealing and judging processes switch users, and are killed
///   on timeout.
const KEPT: CapabilitySet = CapabilitySet::SYSLOG
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::KILL);

/// Raises the recorder's priority and drops the privileges that it no longer needs. Call before
/// starting threads.
pub(crate) fn settle(kernel: &Kernel<'_>) -> Result<()> {
    // Marks and focus changes have to be handled in time on a busy machine.
    be_urgent();
    let free = asks_freely(kernel)
        .context("cannot determine the capabilities that this kernel requires")?;
    if !free {
        journal::info(
            "keeping CAP_BPF: on this kernel it is needed to read the records of kernel programs",
        )
        .tell();
    }
    keep(kept(free)).context("cannot drop unneeded capabilities")
}

fn kept(free: bool) -> CapabilitySet {
    if free { KEPT } else { KEPT.union(CapabilitySet::BPF) }
}

/// Returns `true` if the kernel lets a thread without capabilities query a program that it has
/// open. The trial thread loses its capabilities; the other threads keep theirs.
fn asks_freely(kernel: &Kernel<'_>) -> Result<bool> {
    let program = kernel.any_program()?;
    let tried =
        thread::spawn(move || keep(CapabilitySet::empty()).is_ok() && may_ask(program.as_fd()));
    Ok(tried.join().unwrap_or(false))
}

/// Resets the calling thread to normal priority.
pub(crate) fn take_turns() {
    // Raising the nice value is always allowed.
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
