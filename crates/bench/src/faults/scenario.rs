// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all faults have in common: what is typed and run, and the injected processes.

use crate::process::Process;
use crate::random::next_random;
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
    fn inject(&mut self) -> Result<Option<Job>>;
}

/// The injected processes.
pub struct Job {
    /// The command, for people.
    pub what: String,
    process: Process,
    seen: BTreeSet<u32>,
}

impl Job {
    pub(super) fn new(what: &str, process: Process) -> Job {
        let seen = BTreeSet::from([process.pid()]);
        Job { what: what.to_string(), process, seen }
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

/// The CPU with the highest number that this process may use.
pub(crate) fn last_cpu() -> Option<usize> {
    let allowed = rustix::thread::sched_getaffinity(None).ok()?;
    (0..rustix::thread::CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu))
}

/// Lines of plain text, `bytes` in all, always the same.
pub(crate) fn text(bytes: usize) -> Vec<u8> {
    const WORDS: [&str; 8] = ["delta", "river", "stone", "amber", "quiet", "lantern", "orbit", "meadow"];
    let mut out = Vec::with_capacity(bytes + 100);
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    while out.len() < bytes {
        out.extend_from_slice(format!("{:08}", out.len()).as_bytes());
        for _ in 0..9 {
            state = next_random(state);
            out.push(b' ');
            out.extend_from_slice(WORDS[(state >> 61) as usize].as_bytes());
        }
        out.push(b'\n');
    }
    out.truncate(bytes);
    out
}
