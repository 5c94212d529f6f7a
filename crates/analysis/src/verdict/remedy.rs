// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be tried against each kind of cause.

use crate::model::{Culprit, Kind};
use crate::timeline::throttle::Limit;

/// A remedy against a process, where `{pid}` and `{comm}` are the culprit's and `{app}` is the application's name.
fn against(kind: Kind) -> &'static str {
    match kind {
        Kind::CpuCompetition => "renice -n 19 -p {pid} (what it starts from then on inherits it)",
        Kind::CpuThrottled => "raise cpu.max of the control group of {app}",
        Kind::OwnComputation => "tell the authors of {comm} what it computes",
        Kind::PageIn | Kind::DiskQueue | Kind::Fsync => "ionice -c 3 -p {pid} (its I/O waits for an idle disk)",
        Kind::SwapIn => "limit {comm} (pid {pid}) by memory.high of its control group, or add memory",
        Kind::Reclaim => "limit {comm} (pid {pid}) by memory.high of its control group",
        Kind::LockWait => {
            "report it to the authors of {comm} (pid {pid}): it must not hold the lock while it waits or computes"
        }
        Kind::KernelLock => {
            "tell the authors of {comm}: many threads share one address space; fewer or smaller mappings help"
        }
        Kind::ServerBusy => "renice -n 10 -p {pid} (its requests come in smaller portions)",
        Kind::ServerGrab => "report the grab to the authors of {comm}; ending {pid} releases it",
        Kind::PeerWait => "look at why {comm} (pid {pid}) is slow: tipme diagnose --pid {pid}",
        Kind::NetworkWait => "check the network and the host; {app} should not wait for it in its event loop",
        Kind::ChildWait => "run {comm} in the background; {app} should not wait for it in its event loop",
        Kind::TimerSleep => "report it to the authors of {comm}: it sleeps where it should wait for an event",
        Kind::Stopped => "kill -CONT the process that was stopped; see why {comm} (pid {pid}) stopped it",
        Kind::Interrupt => "move the interrupt to another CPU (/proc/irq/*/smp_affinity), or update its driver",
        Kind::Stall => "look at the hypervisor's load or the firmware; no software of this machine ran",
        Kind::Unattributed => "",
    }
}

/// Remedies where a device is to blame and nobody else's requests.
const DEVICE_REMEDY: &str =
    "check the health of the device (smartctl) and its scheduler (/sys/block/*/queue/scheduler): it is slow by itself";

/// The remedy for a finding.
pub fn of(kind: Kind, culprit: &Culprit, app: &str) -> String {
    let text = against(kind);
    match culprit {
        Culprit::Process { pid, comm, .. } => fill(text, &pid.to_string(), comm, app),
        Culprit::Device { .. } if kind != Kind::Interrupt => DEVICE_REMEDY.to_owned(),
        Culprit::Device { device } => fill(text, "", device, app),
        Culprit::Address { address } => fill(text, "", address, app),
    }
}

/// The remedy where the quota of a control group is known.
pub fn of_limit(limit: &Limit) -> String {
    if !limit.is_set() {
        return format!("find what sets {} for a time, and have it allow more", limit.file);
    }
    format!("raise {}: it allows {} of CPU time", limit.file, limit.amount())
}

/// A remedy with its names, of which none is taken for a place of another.
fn fill(text: &str, pid: &str, comm: &str, app: &str) -> String {
    text.split("{comm}").map(|part| part.replace("{pid}", pid).replace("{app}", app)).collect::<Vec<_>>().join(comm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_a_place_for_another() {
        assert_eq!(fill("{comm} ({pid}): {app}", "7", "{app}", "{comm}"), "{app} (7): {comm}");
    }

    #[test]
    fn every_kind_has_a_remedy() {
        let culprit = Culprit::Process { pid: 7, comm: "rsync".into(), cmdline: String::new(), job: None };
        for kind in Kind::CAUSES {
            let text = of(*kind, &culprit, "xterm");
            assert!(!text.is_empty() && !text.contains('{'), "{kind}: {text}");
        }
    }
}
