// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs beside a turn.

use crate::load::{Load, Reading};
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

    /// Fails where it has ended by itself.
    pub(crate) fn expect_alive(&mut self) -> Result<()> {
        match self {
            Background::Load(load) => load.expect_alive(),
            Background::Build(build) => build.expect_alive(),
        }
    }
}
