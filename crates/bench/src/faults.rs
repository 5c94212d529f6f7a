// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known faults: a program on a terminal, and a job of real programs that delays it.
//!
//! Each job limits itself in time and bytes, runs in a process group of its own as a shell would
//! start it, and is ended with the value that stands for it.

mod calm;
mod cpu;
mod io;
mod lock;
mod scenario;

use crate::session::{self, Session};
use crate::worker::WorkerLauncher;
use anyhow::Result;
pub use scenario::{Job, Scenario};
pub(crate) use scenario::{last_cpu, text};
use std::str::FromStr;

/// What is done to the terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A storm of short-lived processes on the CPU of the terminal and the display.
    Cpu,
    /// A full queue at the disk that the terminal's program reads from.
    Io,
    /// A file lock held by a job that sleeps.
    Lock,
    /// Nothing: no finding is expected.
    Calm,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 4] = [Fault::Cpu, Fault::Io, Fault::Lock, Fault::Calm];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Cpu => "cpu",
            Fault::Io => "io",
            Fault::Lock => "lock",
            Fault::Calm => "calm",
        }
    }

    /// Kinds of finding that name this fault; empty where no finding is right.
    pub fn kinds(self) -> &'static [&'static str] {
        match self {
            Fault::Cpu => &["cpu-competition"],
            Fault::Io => &["disk-queue", "page-in"],
            Fault::Lock => &["lock-wait"],
            Fault::Calm => &[],
        }
    }

    /// Programs that must be installed.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Fault::Cpu => &["bash", "xargs", "gzip", "taskset"],
            Fault::Io => &["bash", "grep", "unshare", "nsenter", "mke2fs", "mount", "blockdev", "findmnt"],
            Fault::Lock => &["bash", "flock"],
            Fault::Calm => &["bash"],
        }
    }

    /// What the session must be like.
    pub fn options(self) -> session::Options {
        match self {
            Fault::Cpu => session::Options { cpu: last_cpu(), ..session::Options::default() },
            _ => session::Options::default(),
        }
    }

    /// Prepares the fault on a session: its files, and what the terminal shall run.
    pub fn prepare(self, session: &Session, launcher: &WorkerLauncher) -> Result<Box<dyn Scenario>> {
        session::require(self.programs())?;
        Ok(match self {
            Fault::Cpu => Box::new(cpu::Storm::prepare(session)?),
            Fault::Io => Box::new(io::FullQueue::prepare(session, launcher)?),
            Fault::Lock => Box::new(lock::HeldLock::prepare(session)?),
            Fault::Calm => Box::new(calm::Calm),
        })
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(name: &str) -> Result<Fault, String> {
        let known = Fault::ALL.map(Fault::name).join(", ");
        Fault::ALL.into_iter().find(|fault| fault.name() == name).ok_or(format!("no fault \"{name}\"; known: {known}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for fault in Fault::ALL {
            assert_eq!(fault.name().parse(), Ok(fault));
        }
        assert_eq!("disk".parse::<Fault>(), Err("no fault \"disk\"; known: cpu, io, lock, calm".to_string()));
    }

    #[test]
    fn the_text_has_the_size_asked_for() {
        assert_eq!(text(100_000).len(), 100_000);
        assert!(text(200).starts_with(b"00000000 "));
    }
}
