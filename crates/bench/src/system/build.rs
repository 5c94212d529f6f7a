// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real job beside a measurement: repeated compilation of generated C files, or compression of
//! texts if there is no compiler.

use crate::files::write;
use crate::intervals::Cleanup;
use crate::load::{LedgerReading, RoundsSampler, RunningJob};
use crate::memory::fork;
use crate::process::{ProcessGroup, family, missing, retry, session_members};
use crate::worker::{self, WorkerLauncher, say_ready};
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, setsid, waitpid};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tipme_desktop::clock;

/// Number of files, and of functions in each: a file takes about a hundredth of a second of
/// compiler time, so that hundreds are done while the script runs, even on a slow machine.
const FILES: usize = 400;
const FUNCTIONS: usize = 1;
/// Jobs for each CPU.
const JOBS_PER_CPU: usize = 2;
/// Maximum time until the first process begins.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum CPU time of a process of the job, in seconds.
const LIFE_S: u64 = 3_600;
/// Maximum number of searches for remaining processes.
const SWEEPS: usize = 50;
/// File with a letter for each compiled file.
const DONE: &str = "done";
const COMPILE: &str = r#"cd "$1" || exit 1
    while :; do make -s -j"$2" >/dev/null 2>&1 || exit 1; rm -f *.o; done"#;
const COMPRESS: &str = r#"cd "$1" || exit 1
    while :; do printf '%s\n' *.c | xargs -n 1 -P "$2" sh -c 'gzip -9 -c "$0" >/dev/null && printf x >>done' || exit 1; done"#;
const MAKEFILE: &str = "all: $(patsubst %.c,%.o,$(wildcard *.c))\n%.o: %.c\n\t@cc -O2 -c $< -o $@ && printf x >>done\n";

/// Work of a job, chosen by the installed programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BuildWork {
    /// `make` and `cc`.
    Compile,
    /// `xargs` and `gzip`.
    Compress,
}

impl BuildWork {
    /// Chooses the work for this machine.
    pub(crate) fn here() -> Result<BuildWork> {
        if missing(&["make", "cc"]).is_empty() {
            return Ok(BuildWork::Compile);
        }
        crate::session::require(&["xargs", "gzip"])?;
        Ok(BuildWork::Compress)
    }

    /// Description for output.
    pub(crate) fn name(self) -> String {
        let jobs = jobs();
        match self {
            BuildWork::Compile => {
                format!("make -j{jobs}: {FILES} made-up C files, again and again")
            }
            BuildWork::Compress => {
                format!(
                    "xargs -P {jobs} gzip -9: {FILES} made-up texts, again and again (no compiler here)"
                )
            }
        }
    }
}

fn jobs() -> usize {
    JOBS_PER_CPU * std::thread::available_parallelism().map_or(1, usize::from)
}

/// Files of the job, in a folder of its own.
pub(crate) struct Tree {
    work: BuildWork,
    folder: TempDir,
    /// Removes the folder if this process no longer can.
    _cleanup: Cleanup,
}

impl Tree {
    /// Writes the files.
    pub(crate) fn make(launcher: &WorkerLauncher) -> Result<Tree> {
        let (cleanup, folder) = Cleanup::with_folder(launcher)?;
        let files = (0..FILES).map(|number| (format!("part{number}.c"), source(number)));
        for (name, text) in files.chain([("Makefile".to_owned(), MAKEFILE.to_owned())]) {
            write(&folder.path().join(name), text)?;
        }
        Ok(Tree { work: BuildWork::here()?, folder, _cleanup: cleanup })
    }

    pub(crate) fn work(&self) -> BuildWork {
        self.work
    }
}

/// Returns the text of a generated C file with some work for a compiler.
fn source(number: usize) -> String {
    let mut text = String::from("#include <stddef.h>\n");
    for function in 0..FUNCTIONS {
        let seed = number * FUNCTIONS + function;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "long work_{seed}(const long *in, long *out, size_t n) {{\n  long sum = {seed};\n  \
             for (size_t i = 0; i + 4 < n; i++) {{\n    long a = in[i] * {seed} + in[i + 1], b = in[i + 2] ^ (a >> 3);\n    \
             switch (a & 7) {{ case 0: sum += b; break; case 1: sum ^= a; break; case 2: sum -= a * b; break;\n      \
             case 3: out[i] = sum; break; case 4: sum += out[i + 1]; break; default: sum = sum * 31 + in[i + 3]; }}\n    \
             out[i + 2] = sum / (b | 1);\n  }}\n  return sum;\n}}"
        );
    }
    text
}

/// Order for the first process, passed as one word.
#[derive(Serialize, Deserialize)]
struct BuildOrder {
    folder: PathBuf,
    work: BuildWork,
    jobs: usize,
    own_session: bool,
}

/// The job. Dropping it ends all its processes.
pub(crate) struct Build {
    process: Option<ProcessGroup>,
    done: PathBuf,
    /// Session of the job, if it has one of its own; otherwise it is in the first process's group.
    leader: Option<u32>,
}

impl Build {
    /// Starts the job, in a session of its own like a terminal's job, or in this one.
    pub(crate) fn start(
        tree: &Tree,
        own_session: bool,
        launcher: &WorkerLauncher,
    ) -> Result<Build> {
        let folder = tree.folder.path().to_path_buf();
        let order = BuildOrder { folder, work: tree.work, jobs: jobs(), own_session };
        let order = serde_json::to_string(&order).context("a path is not UTF-8 text")?;
        let command = launcher.command(None, &["build".into(), order.into()])?;
        let build = worker::start("the build", command, None, TIMEOUT)?;
        let leader = build.said.parse().ok();
        Ok(Build { process: Some(build.process), done: tree.folder.path().join(DONE), leader })
    }
}

impl RunningJob for Build {
    /// Reads the number of completed files.
    fn reading(&self) -> LedgerReading {
        let rounds = std::fs::metadata(&self.done).map_or(0, |metadata| metadata.len());
        LedgerReading { at: clock::now(), rounds, ..LedgerReading::default() }
    }

    fn pids(&self) -> Vec<u32> {
        self.process.as_ref().map_or_else(Vec::new, |process| family(process.pid()))
    }

    fn sample_rounds(&self) -> Result<Option<RoundsSampler>> {
        Ok(None)
    }

    fn expect_whole(&mut self) -> Result<()> {
        self.process.as_mut().map_or(Ok(()), ProcessGroup::expect_alive)
    }
}

impl Drop for Build {
    /// The compilers do not end with `make`: kills the remaining processes of the session.
    fn drop(&mut self) {
        drop(self.process.take());
        retry(SWEEPS, || {
            let left = self.leader.map_or_else(Vec::new, session_members);
            for pid in left.iter().filter_map(|pid| Pid::from_raw(*pid as i32)) {
                let _ = kill_process(pid, Signal::KILL);
            }
            left.is_empty()
        });
    }
}

/// `build ORDER`: starts the job, reports `ready` with its session if it has one of its own, and
/// waits for it.
pub(crate) fn run(order: &str) -> Result<()> {
    let order: BuildOrder =
        serde_json::from_str(order).context("cannot read the order of a build")?;
    let own_session = order.own_session;
    let child = fork(LIFE_S, "build", || exec(order))?;
    say_ready(&if own_session { child.as_raw_nonzero().to_string() } else { String::new() })?;
    waitpid(Some(child), WaitOptions::empty()).context("cannot wait for the build")?;
    bail!("the build ended by itself")
}

fn exec(order: BuildOrder) -> Result<()> {
    if order.own_session {
        setsid().context("cannot begin a session")?;
    }
    let script = if order.work == BuildWork::Compile { COMPILE } else { COMPRESS };
    let mut command = Command::new("sh");
    command.args(["-c", script, "build"]).arg(&order.folder).arg(order.jobs.to_string());
    command.stdout(Stdio::null());
    Err(command.exec()).context("cannot start sh")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_another_one() {
        assert_ne!(source(0), source(1));
        assert_eq!(source(3).matches("long work_").count(), FUNCTIONS);
        assert!(run("").is_err());
    }
}
