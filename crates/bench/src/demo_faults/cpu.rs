// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starved by new processes: a job as of a parallel build works on the only CPU of a terminal in which somebody reads.

use super::scenario::{InjectedJob, Scenario};
use crate::cpu_work::last_cpu;
use crate::filler::text;
use crate::process::ProcessGroup;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// For each key: the next page of the file, which is argument 1. A terminal that has a page to draw uses up its time
/// slices, and then waits for all others; for a mere echo the kernel lets it run soon.
const PAGER: &str = r#"
    stty -echo
    exec 8<"$1"
    while IFS= read -rsn1; do
        mapfile -n 40 -u 8
        printf '\e[H'
        printf '%s' "${MAPFILE[@]}"
    done"#;
/// Processes at a time: enough that each of these waits takes hundreds of milliseconds.
const PARALLEL: &str = "260";
/// Processes in all, which bounds the job to about half a minute of one CPU.
const TOTAL: usize = 300;
/// Bytes that each process compresses: a tenth of a second of CPU time, so that they pile up even where a busy machine
/// starts few in a second.
const INPUT_BYTES: usize = 1 << 20;
/// Bytes of the file that is read: more pages than are typed for.
const DOCUMENT_BYTES: usize = 1 << 20;

/// `xargs` keeps many `gzip` at work on the terminal's CPU.
pub(super) struct TerminalStorm {
    list: PathBuf,
    document: PathBuf,
}

impl TerminalStorm {
    pub(super) fn prepare(folder: &Path) -> Result<TerminalStorm> {
        let (input, list, document) = (folder.join("input"), folder.join("list"), folder.join("document"));
        std::fs::write(&document, text(DOCUMENT_BYTES))
            .with_context(|| format!("cannot write {}", document.display()))?;
        std::fs::write(&input, text(INPUT_BYTES)).with_context(|| format!("cannot write {}", input.display()))?;
        let lines = format!("{}\n", input.display()).repeat(TOTAL);
        std::fs::write(&list, lines).with_context(|| format!("cannot write {}", list.display()))?;
        Ok(TerminalStorm { list, document })
    }
}

impl Scenario for TerminalStorm {
    fn program(&self) -> Vec<OsString> {
        let words = ["bash", "--norc", "--noprofile", "-c", PAGER, "pager"].map(OsString::from);
        words.into_iter().chain([self.document.clone().into_os_string()]).collect()
    }

    fn keys(&self) -> &'static str {
        " "
    }

    /// The parent may use any CPU, so that its children are not starved of new ones by themselves.
    fn inject(&mut self) -> Result<Option<InjectedJob>> {
        let list = File::open(&self.list).with_context(|| format!("cannot read {}", self.list.display()))?;
        let cpu = last_cpu().unwrap_or_default().to_string();
        let words = ["-n", "1", "-P", PARALLEL, "taskset", "-c", &cpu, "gzip", "-9", "-c"];
        let mut command = Command::new("xargs");
        command.args(words).stdin(list).stdout(Stdio::null()).stderr(Stdio::null());
        let process = ProcessGroup::start("the compression job", command, None)?;
        Ok(Some(InjectedJob::new(&format!("xargs {}", words.join(" ")), process)))
    }
}
