// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs beside a turn.

use crate::load::{LedgerReading, RoundsSampler, RunningLoad};
use crate::system::Build;
use anyhow::Result;

/// A load, or a real job. Dropping it ends it.
pub(super) enum Background {
    Load(RunningLoad),
    Build(Build),
}

impl Background {
    /// What was done so far.
    pub(super) fn reading(&self) -> LedgerReading {
        match self {
            Background::Load(load) => load.reading(),
            Background::Build(build) => build.reading(),
        }
    }

    /// Its processes, as far as they can be told.
    pub(super) fn pids(&self) -> Vec<u32> {
        match self {
            Background::Load(load) => load.pids(),
            Background::Build(build) => build.pids(),
        }
    }

    /// Begins to watch whether each of its processes gets on; a build's have no counts.
    pub(super) fn sample_rounds(&self) -> Result<Option<RoundsSampler>> {
        match self {
            Background::Load(load) => load.sample_rounds().map(Some),
            Background::Build(_) => Ok(None),
        }
    }

    /// Fails where it, or a process of it, has ended by itself.
    pub(super) fn expect_whole(&mut self) -> Result<()> {
        match self {
            Background::Load(load) => load.expect_whole(),
            Background::Build(build) => build.expect_alive(),
        }
    }
}
