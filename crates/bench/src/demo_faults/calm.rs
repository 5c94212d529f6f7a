// SPDX-License-Identifier: MIT OR Apache-2.0
//! No fault at all: typing into a shell.

use super::scenario::{InjectedJob, Scenario, shell};
use anyhow::Result;
use std::ffi::OsString;

/// What is typed into a shell: nothing that starts a process.
const SENTENCE: &str = "echo the quick brown fox jumps over the lazy dog\n";

pub(super) struct Calm;

impl Scenario for Calm {
    fn program(&self) -> Vec<OsString> {
        shell()
    }

    fn keys(&self) -> &'static str {
        SENTENCE
    }

    fn inject(&mut self) -> Result<Option<InjectedJob>> {
        Ok(None)
    }
}
