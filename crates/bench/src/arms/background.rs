// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs beside a turn.

use crate::load::{Load, Reading, RoundsSampler};
use crate::system::Build;
use anyhow::Result;

/// A load, or a real job. Dropping it ends it.
pub(crate) enum Background {
    Load(Load),
    Build(Build),
}

impl Background {
    /// What was done so far.
    pub(crate) fn reading(&self) -> Reading {
        match self {
            Background::Load(load) => load.reading(),
            Background::Build(build) => build.reading(),
        }
    }

    /// Its processes, as far as they can be told.
    pub(crate) fn pids(&self) -> Vec<u32> {
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
    pub(crate) fn expect_whole(&mut self) -> Result<()> {
        match self {
            Background::Load(load) => load.expect_whole(),
            Background::Build(build) => build.expect_alive(),
        }
    }
}
