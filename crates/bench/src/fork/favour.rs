// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager beside the fork benchmark: the measuring process belongs to the focused window.

use crate::arms::{BenchManager, ManagerProgram};
use crate::interrupt::InterruptFlag;
use crate::session::{PrivateSession, SessionOptions};
use anyhow::{Context, Result};
use std::ffi::OsString;

/// Program of the terminal; it uses no CPU time.
const PROGRAM: [&str; 2] = ["sleep", "infinity"];

/// A private display with a manager; its terminal declares the process part of its set. Fields are
/// dropped in order.
pub(super) struct Favour {
    manager: BenchManager,
    _session: PrivateSession,
}

impl Favour {
    /// Returns once the manager is active.
    pub(super) fn start(
        program: &ManagerProgram,
        pid: u32,
        interrupt: &InterruptFlag,
    ) -> Result<Favour> {
        let mut session = PrivateSession::start(SessionOptions::default())?;
        session.open_terminal(&[], &PROGRAM.map(OsString::from))?;
        session.add_to_set(pid).context("cannot add the measuring process to the window's set")?;
        let manager = BenchManager::start(program, &session, interrupt)?;
        Ok(Favour { manager, _session: session })
    }

    /// Restores everything.
    pub(super) fn stop(self) -> Result<()> {
        self.manager.stop()
    }
}
