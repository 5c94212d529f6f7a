// SPDX-License-Identifier: MIT OR Apache-2.0
//! Owner of a CPU that was away: nothing of this machine ran on it, so no thread is to blame.
//!
//! The evidence decides; open cases stay undecided. A hypervisor may take any CPU, and its steal
//! count is trusted. The firmware stops all CPUs at once. A device stops the CPU that waits for its
//! answer while others go on. It is reported only if the late timer interrupted a kernel function
//! that accesses a device. A hypervisor without a steal count may have taken the CPU there as well,
//! and in code that runs with interrupts off (`suspect`).

use crate::explain::suspect::{LENGTH_MIN, suspect};
use crate::model::Outsider;
use crate::timeline::overdue::OverdueTimer;
use crate::timeline::recording::Recording;
use crate::timeline::silence::{another_went_on, silent_at_work};
use tipme_measure::idle::HolderKind;
use tipme_measure::timer::LatenessCause;
use tipme_record::{Cpu, Nanos};

/// Minimum share of a piece for which its CPU was away, for the hypervisor or the firmware to be
/// blamed.
pub(crate) const SHARE_MIN: f64 = 0.5;

/// Name prefixes of the functions in which the kernel waits for a device: ports, device memory, PCI
/// configuration space. These functions do nothing else that takes time.
const ACCESSES: [&str; 14] = [
    "ioread",
    "iowrite",
    "memcpy_fromio",
    "memcpy_toio",
    "memset_io",
    "io_serial_",
    "mem_serial_",
    "mem16_serial_",
    "mem32_serial_",
    "pci_conf1_",
    "pci_mmcfg_read",
    "pci_mmcfg_write",
    "acpi_os_read_port",
    "acpi_os_write_port",
];

/// Finds the owner of a CPU that was away in `lo..hi`.
pub fn outsider(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> Outsider {
    let suspect = suspect(recording, cpu, lo, hi).is_some();
    let overdue =
        recording.overdue.longest_away(cpu, lo, hi).filter(|one| one.covers(SHARE_MIN, lo, hi));
    let (lo, hi) = overdue.map_or((lo, hi), |one| (one.due, one.came));
    let virtualized = recording.meta.machine.virtualized;
    let accesses = overdue.and_then(|one| accessed(recording, one)).is_some();
    let others_told = || !virtualized || recording.steal.is_accounted();
    match (virtualized, all_at_once(recording, lo, hi)) {
        _ if counted(recording, cpu, lo, hi) => Outsider::Hypervisor,
        (true, true) => Outsider::Hypervisor,
        (false, true) => Outsider::Firmware,
        _ if suspect => Outsider::Undecided,
        _ if accesses && others_told() && another_went_on(recording, cpu, lo, hi) => {
            Outsider::Device
        }
        (true, false) if !accesses => Outsider::Hypervisor,
        _ => Outsider::Undecided,
    }
}

/// Describes the owner for a sentence, with the remaining candidates if it is undecided.
pub fn outsider_words(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> String {
    let who = outsider(recording, cpu, lo, hi);
    let suspect = suspect(recording, cpu, lo, hi).filter(|_| who == Outsider::Undecided);
    suspect.map_or_else(|| who.words(recording).to_owned(), |suspect| suspect.words(recording, lo))
}

/// Returns `true` if the hypervisor may have taken a CPU in `lo..hi` while its owner ran with
/// interrupts off: the steal count shows it, or there is no count and that code is usually much
/// faster.
pub fn may_be_taken(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> bool {
    hi.since(lo) >= LENGTH_MIN && counted(recording, cpu, lo, hi)
        || suspect(recording, cpu, lo, hi).is_some()
}

/// Returns `true` if the hypervisor counted a CPU as stolen, as seen by the kernel at its ticks or
/// by the coarse counter.
fn counted(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> bool {
    recording.withdrawals.explains(cpu, lo, hi)
        || recording.steal.share_of(cpu, lo, hi) >= SHARE_MIN
}

/// Returns `true` if all CPUs were away: all their timers were late, or at least two busy CPUs
/// recorded nothing. Silence of an idle CPU proves nothing.
pub(crate) fn all_at_once(recording: &Recording, lo: Nanos, hi: Nanos) -> bool {
    let cpus = recording.meta.machine.cpus;
    cpus > 1 && (recording.overdue.all_away(cpus, lo, hi) || silent_at_work(recording, lo, hi) > 1)
}

/// Returns the function that a late timer interrupted, if it accesses a device.
pub(crate) fn accessed<'a>(recording: &'a Recording, overdue: &OverdueTimer) -> Option<&'a str> {
    let function = overdue.function(&recording.names)?;
    ACCESSES.iter().any(|begin| function.starts_with(begin)).then_some(function)
}

impl Outsider {
    /// Returns the name for a sentence. If undecided, it lists the possible owners outside this
    /// kernel.
    pub(crate) fn words(self, recording: &Recording) -> &'static str {
        match self {
            Outsider::Hypervisor => "the hypervisor",
            Outsider::Firmware => "the firmware",
            Outsider::Device => "a device",
            Outsider::Undecided if recording.meta.machine.virtualized => {
                "the hypervisor or a device"
            }
            Outsider::Undecided => "the firmware or the hardware",
        }
    }
}

impl From<Outsider> for LatenessCause {
    fn from(who: Outsider) -> LatenessCause {
        match who {
            Outsider::Hypervisor => LatenessCause::Hypervisor,
            Outsider::Firmware => LatenessCause::Firmware,
            Outsider::Device => LatenessCause::Device,
            Outsider::Undecided => LatenessCause::Outside,
        }
    }
}

impl From<Outsider> for HolderKind {
    fn from(who: Outsider) -> HolderKind {
        match who {
            Outsider::Hypervisor => HolderKind::Hypervisor,
            Outsider::Firmware => HolderKind::Firmware,
            Outsider::Device => HolderKind::Device,
            Outsider::Undecided => HolderKind::Outside,
        }
    }
}
