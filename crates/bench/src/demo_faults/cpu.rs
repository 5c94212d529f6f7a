// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starved by new processes: a job as of a parallel build works on the terminal's only CPU.

use super::calm::SENTENCE;
use super::scenario::{InjectedJob, Scenario, shell};
use crate::cpu_work::last_cpu;
use crate::process::Process;
use crate::random::text;
use crate::session::Session;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Processes at a time: enough that each of the four or five wake-ups from a key to its echo waits tens of milliseconds.
const PARALLEL: &str = "260";
/// Processes in all, which bounds the job to about half a minute of one CPU.
const TOTAL: usize = 1300;
/// Bytes that each process compresses: some hundredths of a second of CPU time.
const INPUT_BYTES: usize = 256 << 10;

/// `xargs` keeps many `gzip` at work on the terminal's CPU.
pub(super) struct Storm {
    list: PathBuf,
}

impl Storm {
    pub(super) fn prepare(session: &Session) -> Result<Storm> {
        let (input, list) = (session.folder().join("input"), session.folder().join("list"));
        std::fs::write(&input, text(INPUT_BYTES)).with_context(|| format!("cannot write {}", input.display()))?;
        let lines = format!("{}\n", input.display()).repeat(TOTAL);
        std::fs::write(&list, lines).with_context(|| format!("cannot write {}", list.display()))?;
        Ok(Storm { list })
    }
}

impl Scenario for Storm {
    fn program(&self) -> Vec<OsString> {
        shell()
    }

    fn keys(&self) -> &'static str {
        SENTENCE
    }

    /// The parent may use any CPU, so that its children are not starved of new ones by themselves.
    fn inject(&mut self) -> Result<Option<InjectedJob>> {
        let list = File::open(&self.list).with_context(|| format!("cannot read {}", self.list.display()))?;
        let cpu = last_cpu().unwrap_or_default().to_string();
        let words = ["-n", "1", "-P", PARALLEL, "taskset", "-c", &cpu, "gzip", "-9", "-c"];
        let mut command = Command::new("xargs");
        command.args(words).stdin(list).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::start("the compression job", command, None)?;
        Ok(Some(InjectedJob::new(&format!("xargs {}", words.join(" ")), process)))
    }
}
