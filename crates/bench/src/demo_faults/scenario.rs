// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the faults of the demo have in common: what is typed and run, and the injected processes.

use crate::process::ProcessGroup;
use anyhow::Result;
use std::collections::BTreeSet;
use std::ffi::OsString;

/// One fault, prepared.
pub trait Scenario {
    /// Words before the terminal's command.
    fn prefix(&self) -> Vec<OsString> {
        Vec::new()
    }

    /// What the terminal runs.
    fn program(&self) -> Vec<OsString>;

    /// What is typed before and during the fault, over and over. Needs no Shift.
    fn keys(&self) -> &'static str;

    /// Begins the fault; `None` where there is none.
    fn inject(&mut self) -> Result<Option<InjectedJob>>;
}

/// The injected processes.
pub struct InjectedJob {
    /// The command, for people.
    pub what: String,
    process: ProcessGroup,
    seen: BTreeSet<u32>,
}

impl InjectedJob {
    pub(super) fn new(what: &str, process: ProcessGroup) -> InjectedJob {
        let seen = BTreeSet::from([process.pid()]);
        InjectedJob { what: what.to_string(), process, seen }
    }

    /// Process that the job began with.
    pub fn root(&self) -> u32 {
        self.process.pid()
    }

    /// Looks which processes the job has now. To be called some times a second: who lives shorter is not seen.
    pub fn observe(&mut self) {
        self.seen.extend(self.process.members());
    }

    /// All processes seen so far.
    pub fn pids(&self) -> &BTreeSet<u32> {
        &self.seen
    }
}

/// The shell that typed text goes to: no settings of the user's, no history.
pub(super) fn shell() -> Vec<OsString> {
    ["bash", "--norc", "--noprofile", "-i"].map(OsString::from).to_vec()
}
