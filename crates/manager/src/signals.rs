// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals that end the manager and the helper.

use anyhow::{Context, Result};
use std::os::fd::BorrowedFd;
use tipme_control::life::{self, SIGINT, SIGTERM};

/// Becomes readable on SIGINT or SIGTERM.
pub(crate) struct TerminationSignals(life::SignalStream);

impl TerminationSignals {
    pub(crate) fn catch() -> Result<TerminationSignals> {
        life::SignalStream::catch(&[SIGINT, SIGTERM])
            .map(TerminationSignals)
            .context("cannot catch signals")
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }

    /// Returns `true` if a signal has arrived since the last call.
    pub(crate) fn have_come(&self) -> bool {
        !self.0.arrived().is_empty()
    }
}
