// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known faults: unmodified programs on a terminal, and jobs that delay them.
//!
//! The self-test runs all of them, the demonstration shows one. Each is a row of [`FAULTS`]: the
//! program answers every key in the same way, before the fault and during it.

mod disk;
mod judge;
mod processor;
mod scenario;
pub(crate) mod stage;
mod waits;
pub(crate) mod workers;
mod writers;

use crate::cpu_work::last_cpu;
use crate::disk::PROGRAMS;
use crate::session::{self, SessionOptions};
use anyhow::Result;
pub(crate) use judge::{JudgedFault, judge, name_of};
pub use scenario::{InjectedFault, Scenario, Site};
pub use waits::stop_for;

/// A fault, and the diagnosis that it requires.
pub struct Fault {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line for users.
    pub about: &'static str,
    /// Kinds of finding that name it; empty where nothing is wrong.
    pub kinds: &'static [&'static str],
    /// Programs that must be installed.
    programs: &'static [&'static str],
    /// Makes a disk of its own.
    has_disk: bool,
    /// Confines display, terminal and program to one CPU.
    pinned: bool,
    /// Requires an X server.
    pub needs_x11: bool,
    /// Keys that the self-test presses during the fault.
    pub(crate) presses: usize,
    prepare: fn(&Site) -> Result<Scenario>,
}

/// Defaults for the fields that a row omits.
const ROW: Fault = Fault {
    name: "",
    about: "",
    kinds: &[],
    programs: &["bash"],
    has_disk: false,
    pinned: false,
    needs_x11: false,
    presses: 1,
    prepare: |_| Ok(scenario::shell()),
};

/// All faults, in the order in which the self-test runs them.
pub static FAULTS: [Fault; 13] = [
    Fault {
        name: "cpu",
        about: "A build-like storm of short-lived processes on the terminal's CPU",
        kinds: &["cpu-competition"],
        programs: &["bash", "xargs", "gzip", "taskset"],
        pinned: true,
        presses: 12,
        prepare: processor::storm,
        ..ROW
    },
    Fault {
        name: "quota",
        about: "A control group that may use 5 ms of CPU time in each 100 ms",
        kinds: &["cpu-throttled"],
        prepare: processor::quota,
        ..ROW
    },
    Fault {
        name: "computation",
        about: "A shell that computes by itself",
        kinds: &["own-computation"],
        prepare: processor::computation,
        ..ROW
    },
    Fault {
        name: "io",
        about: "A disk that other processes keep busy",
        kinds: &["disk-queue", "page-in"],
        programs: &["bash", "grep"],
        has_disk: true,
        prepare: disk::full_queue,
        ..ROW
    },
    Fault {
        name: "page-in",
        about: "A program that has to be read from such a disk before it runs",
        kinds: &["page-in", "disk-queue"],
        has_disk: true,
        prepare: disk::page_in,
        ..ROW
    },
    Fault {
        name: "fsync",
        about: "A few bytes to be made safe on a disk that other processes keep busy",
        kinds: &["fsync"],
        programs: &["bash", "sync"],
        has_disk: true,
        prepare: disk::fsync,
        ..ROW
    },
    Fault {
        name: "lock",
        about: "A file lock with a sleeping owner",
        kinds: &["lock-wait"],
        programs: &["bash", "flock"],
        prepare: waits::lock,
        ..ROW
    },
    Fault {
        name: "bus",
        about: "A service on the message bus that is slow to start",
        kinds: &["peer-wait"],
        programs: &["bash", "dbus-daemon", "dbus-send"],
        prepare: waits::bus,
        ..ROW
    },
    Fault {
        name: "network",
        about: "A server that the network does not reach for a moment",
        kinds: &["network-wait"],
        programs: &["bash", "ip", "unshare", "nsenter"],
        prepare: waits::network,
        ..ROW
    },
    Fault {
        name: "child",
        about: "A command that takes long",
        kinds: &["child-wait"],
        programs: &["bash", "sleep"],
        prepare: waits::child,
        ..ROW
    },
    Fault {
        name: "stopped",
        about: "A terminal that is stopped by a signal",
        kinds: &["stopped"],
        prepare: waits::stopped,
        ..ROW
    },
    Fault {
        name: "grab",
        about: "An X client that has grabbed the display server",
        kinds: &["server-grab"],
        needs_x11: true,
        prepare: waits::grab,
        ..ROW
    },
    Fault { name: "calm", about: "Nothing is wrong: no finding is expected", presses: 20, ..ROW },
];

impl Fault {
    /// Returns the fault of this name.
    pub fn named(name: &str) -> Option<&'static Fault> {
        FAULTS.iter().find(|fault| fault.name == name)
    }

    /// Faults that the demonstration offers.
    pub fn demonstrated() -> impl Iterator<Item = &'static Fault> {
        ["cpu", "io", "lock"].into_iter().filter_map(Fault::named)
    }

    /// Returns `true` if the fault delays nothing.
    pub fn is_calm(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Requirements for the display.
    pub fn options(&self) -> SessionOptions {
        let cpu = if self.pinned { last_cpu() } else { None };
        SessionOptions { cpu, ..SessionOptions::default() }
    }

    /// Fails with the programs that are not installed.
    pub(crate) fn require(&self) -> Result<()> {
        let disk: &[&str] = if self.has_disk { &PROGRAMS } else { &[] };
        session::require(&[self.programs, disk].concat())
    }

    /// Makes the files that the fault needs, and returns the program for the terminal.
    pub fn prepare(&self, site: &Site) -> Result<Scenario> {
        self.require()?;
        (self.prepare)(site)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<&str> = FAULTS.iter().map(|fault| fault.name).collect();
        assert_eq!(names.len(), FAULTS.len());
        assert_eq!(Fault::demonstrated().count(), 3);
    }

    #[test]
    fn only_the_calm_one_expects_no_finding() {
        let calm: Vec<&str> =
            FAULTS.iter().filter(|fault| fault.is_calm()).map(|fault| fault.name).collect();
        assert_eq!(calm, ["calm"]);
    }
}
