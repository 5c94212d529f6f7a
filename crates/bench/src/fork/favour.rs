// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager beside the benchmark of forks: what is measured works for the window in focus.

use crate::arms::{BenchManager, ManagerProgram};
use crate::estimate::DurationEstimate;
use crate::interrupt::InterruptFlag;
use crate::session::{PrivateSession, SessionOptions};
use anyhow::{Context, Result};
use std::ffi::OsString;

/// What the terminal runs: nothing that takes the CPU.
const PROGRAM: [&str; 2] = ["sleep", "infinity"];

/// A private display whose terminal names a process in its set, and the manager for it. Fields are dropped in their order.
pub(super) struct Favour {
    manager: BenchManager,
    _session: PrivateSession,
}

impl Favour {
    /// Its start and its end.
    pub(super) fn estimate() -> DurationEstimate {
        PrivateSession::ESTIMATE + BenchManager::ESTIMATE
    }

    /// Returns when the manager manages.
    pub(super) fn start(program: &ManagerProgram, pid: u32, interrupt: &InterruptFlag) -> Result<Favour> {
        let mut session = PrivateSession::start(SessionOptions::default())?;
        session.open_terminal(&[], &PROGRAM.map(OsString::from))?;
        session.add_to_set(pid).context("cannot name the measuring process at the window")?;
        let manager = BenchManager::start(program, &session, interrupt)?;
        Ok(Favour { manager, _session: session })
    }

    /// Has everything put back.
    pub(super) fn stop(self) -> Result<()> {
        self.manager.stop()
    }
}
