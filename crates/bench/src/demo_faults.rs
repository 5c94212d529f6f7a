// SPDX-License-Identifier: MIT OR Apache-2.0
//! The faults of the demo: a program on a terminal, and a job of real programs that delays it.
//!
//! Each job limits itself in time and bytes, runs in a process group of its own as a shell would
//! start it, and is ended with the value that stands for it.

mod calm;
mod cpu;
mod io;
mod lock;
mod scenario;

use crate::cpu_work::last_cpu;
use crate::selftest::disk;
use crate::session;
use crate::worker::WorkerLauncher;
use anyhow::Result;
pub use scenario::{InjectedJob, Scenario};
use std::path::Path;

/// What is done to the terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DemoFault {
    /// A storm of short-lived processes on the CPU of the terminal and the display.
    Cpu,
    /// A full queue at the disk that the terminal's program reads from.
    Io,
    /// A file lock held by a job that sleeps.
    Lock,
    /// Nothing: no finding is expected.
    Calm,
}

impl DemoFault {
    /// Those that people can choose.
    pub const OFFERED: [DemoFault; 3] = [DemoFault::Cpu, DemoFault::Io, DemoFault::Lock];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            DemoFault::Cpu => "cpu",
            DemoFault::Io => "io",
            DemoFault::Lock => "lock",
            DemoFault::Calm => "calm",
        }
    }

    /// For people, one line.
    pub fn about(self) -> &'static str {
        match self {
            DemoFault::Cpu => "A build-like storm of short-lived processes on the terminal's CPU",
            DemoFault::Io => "A disk that other processes keep busy",
            DemoFault::Lock => "A file lock whose owner sleeps",
            DemoFault::Calm => "Nothing",
        }
    }

    /// Kinds of finding that name this fault; empty where no finding is right.
    pub fn kinds(self) -> &'static [&'static str] {
        match self {
            DemoFault::Cpu => &["cpu-competition"],
            DemoFault::Io => &["disk-queue", "page-in"],
            DemoFault::Lock => &["lock-wait"],
            DemoFault::Calm => &[],
        }
    }

    /// Programs that must be installed.
    fn programs(self) -> Vec<&'static str> {
        match self {
            DemoFault::Cpu => vec!["bash", "xargs", "gzip", "taskset"],
            DemoFault::Io => ["bash", "grep"].into_iter().chain(disk::PROGRAMS).collect(),
            DemoFault::Lock => vec!["bash", "flock"],
            DemoFault::Calm => vec!["bash"],
        }
    }

    /// What the session must be like.
    pub fn options(self) -> session::SessionOptions {
        match self {
            DemoFault::Cpu => session::SessionOptions { cpu: last_cpu(), ..session::SessionOptions::default() },
            _ => session::SessionOptions::default(),
        }
    }

    /// Prepares the fault: its files in a folder, and what the terminal shall run.
    pub fn prepare(self, folder: &Path, launcher: &WorkerLauncher) -> Result<Box<dyn Scenario>> {
        session::require(&self.programs())?;
        Ok(match self {
            DemoFault::Cpu => Box::new(cpu::TerminalStorm::prepare(folder)?),
            DemoFault::Io => Box::new(io::FullQueue::prepare(folder, launcher)?),
            DemoFault::Lock => Box::new(lock::HeldLock::prepare(folder)?),
            DemoFault::Calm => Box::new(calm::Calm),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_makes_a_disk_has_what_that_takes() {
        assert!(disk::PROGRAMS.iter().all(|program| DemoFault::Io.programs().contains(program)));
    }
}
