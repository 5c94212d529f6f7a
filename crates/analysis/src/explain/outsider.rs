// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who had a CPU that was away: nothing of this machine ran on it, and no thread of it is to blame.
//!
//! Evidence decides, and what it leaves open stays open. A hypervisor may take any CPU, and its count is believed. The
//! firmware stops all CPUs at once. A device stops the CPU that waits for its answer, while others go on: it is named
//! only where the timer that came late found the kernel in a function that accesses one. A hypervisor that counts nothing
//! may have taken the CPU there as well, and in code that takes no interrupt (`suspect`).

use crate::explain::suspect::{LENGTH_MIN, suspect};
use crate::model::Outsider;
use crate::timeline::overdue::OverdueTimer;
use crate::timeline::recording::Recording;
use crate::timeline::silence::{another_went_on, silent_at_work};
use tipme_measure::idle::HolderKind;
use tipme_measure::timer::LatenessCause;
use tipme_record::{Cpu, Nanos};

/// From this share of its CPU's time on a piece is the hypervisor's, or the firmware's.
pub(crate) const SHARE_MIN: f64 = 0.5;

/// Functions in which the kernel waits for a device, by the begins of their names: ports, registers in memory, the space
/// of PCI configuration. None of them does anything else that takes time.
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

/// Who had a CPU in `lo..hi`, in which it was away.
pub fn outsider(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> Outsider {
    let suspect = suspect(recording, cpu, lo, hi).is_some();
    let overdue = recording.overdue.longest_away(cpu, lo, hi).filter(|one| one.covers(SHARE_MIN, lo, hi));
    let (lo, hi) = overdue.map_or((lo, hi), |one| (one.due, one.came));
    let virtualized = recording.meta.machine.virtualized;
    let accesses = overdue.and_then(|one| accessed(recording, one)).is_some();
    let others_told = || !virtualized || recording.steal.is_accounted();
    match (virtualized, all_at_once(recording, lo, hi)) {
        _ if counted(recording, cpu, lo, hi) => Outsider::Hypervisor,
        (true, true) => Outsider::Hypervisor,
        (false, true) => Outsider::Firmware,
        _ if suspect => Outsider::Undecided,
        _ if accesses && others_told() && another_went_on(recording, cpu, lo, hi) => Outsider::Device,
        (true, false) if !accesses => Outsider::Hypervisor,
        _ => Outsider::Undecided,
    }
}

/// The same in a sentence, with what is left where it is not decided.
pub fn outsider_words(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> String {
    let who = outsider(recording, cpu, lo, hi);
    let suspect = suspect(recording, cpu, lo, hi).filter(|_| who == Outsider::Undecided);
    suspect.map_or_else(|| who.words(recording).to_owned(), |suspect| suspect.words(recording, lo))
}

/// Whether a CPU may have been taken from whoever had it in `lo..hi` with interrupts off: the hypervisor says so, or it
/// counts nothing and they do not take that long else.
pub fn may_be_taken(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> bool {
    hi.since(lo) >= LENGTH_MIN && counted(recording, cpu, lo, hi) || suspect(recording, cpu, lo, hi).is_some()
}

/// Whether the hypervisor counts a CPU as taken: by what the kernel saw of that at its ticks, or by the coarse counter.
fn counted(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> bool {
    recording.withdrawals.explains(cpu, lo, hi) || recording.steal.share_of(cpu, lo, hi) >= SHARE_MIN
}

/// Whether all CPUs were away: their timers were late meanwhile, or two at least were at work and recorded nothing. That
/// an idle CPU records nothing tells nothing.
pub(crate) fn all_at_once(recording: &Recording, lo: Nanos, hi: Nanos) -> bool {
    let cpus = recording.meta.machine.cpus;
    cpus > 1 && (recording.overdue.all_away(cpus, lo, hi) || silent_at_work(recording, lo, hi) > 1)
}

/// The function that a late timer found, where it accesses a device.
pub(crate) fn accessed<'a>(recording: &'a Recording, overdue: &OverdueTimer) -> Option<&'a str> {
    let function = overdue.function(&recording.names)?;
    ACCESSES.iter().any(|begin| function.starts_with(begin)).then_some(function)
}

impl Outsider {
    /// In a sentence, with what is left where it is not decided and nobody of this kernel had the CPU.
    pub(crate) fn words(self, recording: &Recording) -> &'static str {
        match self {
            Outsider::Hypervisor => "the hypervisor",
            Outsider::Firmware => "the firmware",
            Outsider::Device => "a device",
            Outsider::Undecided if recording.meta.machine.virtualized => "the hypervisor or a device",
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
