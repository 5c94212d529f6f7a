// SPDX-License-Identifier: MIT OR Apache-2.0
//! Background job of a turn.

use crate::load::{LedgerReading, RoundsSampler, RunningLoad};
use crate::system::Build;
use anyhow::Result;

/// A load, or a real job. Dropping it ends it.
pub(super) enum Background {
    Load(RunningLoad),
    Build(Build),
}

impl Background {
    /// Reads the work done so far.
    pub(super) fn reading(&self) -> LedgerReading {
        match self {
            Background::Load(load) => load.reading(),
            Background::Build(build) => build.reading(),
        }
    }

    /// Returns its known processes.
    pub(super) fn pids(&self) -> Vec<u32> {
        match self {
            Background::Load(load) => load.pids(),
            Background::Build(build) => build.pids(),
        }
    }

    /// Starts sampling the progress of each process; the processes of a build have no counts.
    pub(super) fn sample_rounds(&self) -> Result<Option<RoundsSampler>> {
        match self {
            Background::Load(load) => load.sample_rounds().map(Some),
            Background::Build(_) => Ok(None),
        }
    }

    /// Fails if the job or one of its processes has ended by itself.
    pub(super) fn expect_whole(&mut self) -> Result<()> {
        match self {
            Background::Load(load) => load.expect_whole(),
            Background::Build(build) => build.expect_alive(),
        }
    }
}
