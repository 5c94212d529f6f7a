// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs in which nothing goes wrong: no finding is expected.

use crate::process::ProcessGroup;
use crate::selftest::fault::{App, Fault, InjectedCauses, PreparedFault};
use crate::selftest::site::{DisplayServer, Site};
use crate::session;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tipme_desktop::DisplayTarget;
use tipme_desktop::window::Watcher;

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "clean-idle",
        about: "nothing is wrong on a machine that does nothing else",
        kinds: &[],
        apps: &App::ALL,
        prepare: |_| Ok(Box::new(Nothing)),
        ..Fault::OURS
    },
    Fault {
        name: "clean-work",
        about: "nothing is wrong while others work: a niced computation on the other CPU, small writes, under X11 a second terminal",
        kinds: &[],
        apps: &App::ALL,
        programs: &["sh", "nice", "taskset", "sleep"],
        pinned: true,
        prepare: |site| Ok(Box::new(HarmlessWork::prepare(site)?)),
    },
];

struct Nothing;

impl PreparedFault for Nothing {
    fn begin(&mut self, _: u32) -> Result<()> {
        Ok(())
    }

    fn end(&mut self) -> Result<InjectedCauses> {
        Ok(InjectedCauses::default())
    }
}

/// How long the second terminal may take to show itself.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Prints some lines a second, for a minute at most.
const PRINT: &str = "n=0; while [ $n -lt 300 ]; do n=$((n + 1)); echo line $n of a log; sleep 0.2; done";
/// Writes a few bytes ten times a second, for a minute at most.
const WRITE: &str = "n=0; while [ $n -lt 600 ]; do n=$((n + 1)); echo $n >> \"$0\"; sleep 0.1; done";
/// Computes, until it is ended or half a minute of processor time is used.
const COMPUTE: &str = "ulimit -t 30; while :; do :; done";

/// Work beside the application that does not delay it.
struct HarmlessWork {
    jobs: Vec<ProcessGroup>,
    cpu: usize,
    file: PathBuf,
}

impl HarmlessWork {
    /// Opens the second terminal, before the application's window and so without its focus. Under Wayland there is none: the
    /// whole screen is watched there for the answer.
    fn prepare(site: &Site) -> Result<HarmlessWork> {
        let jobs = match &site.display {
            DisplayServer::X11 { number, authority } => vec![second_terminal(*number, authority)?],
            DisplayServer::Wayland { .. } => Vec::new(),
        };
        Ok(HarmlessWork { jobs, cpu: site.cpu, file: site.folder.join("log") })
    }
}

fn second_terminal(number: u32, authority: &Path) -> Result<ProcessGroup> {
    session::require(&["xterm"])?;
    let target = DisplayTarget {
        authority: Some(authority.to_owned()),
        timeout: Duration::from_secs(10),
        ..DisplayTarget::new(number)
    };
    let watcher = Watcher::open(&target)?;
    let mut command = Command::new("xterm");
    command.args(["-geometry", "40x10+600+500", "-xrm", "XTerm*cursorBlink: false", "-e", "sh", "-c", PRINT]);
    command.env("DISPLAY", format!(":{number}")).env("XAUTHORITY", authority);
    let terminal = start("the second terminal", command, None)?;
    watcher.wait_for_focus(terminal.pid(), TIMEOUT)?;
    Ok(terminal)
}

impl PreparedFault for HarmlessWork {
    fn begin(&mut self, _: u32) -> Result<()> {
        let other = if self.cpu == 0 { 1 } else { 0 };
        let mut compute = Command::new("nice");
        compute.args(["-n", "19", "taskset", "-c", &other.to_string(), "sh", "-c", COMPUTE]);
        self.jobs.push(start("the computation", compute, None)?);
        let mut write = Command::new("sh");
        write.args(["-c", WRITE]).arg(&self.file);
        self.jobs.push(start("the small writes", write, Some(other))?);
        Ok(())
    }

    fn end(&mut self) -> Result<InjectedCauses> {
        for job in &mut self.jobs {
            job.expect_alive().context("the work beside the application did not last")?;
        }
        self.jobs.clear();
        Ok(InjectedCauses::default())
    }
}

fn start(name: &str, mut command: Command, cpu: Option<usize>) -> Result<ProcessGroup> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    ProcessGroup::start(name, command, cpu)
}
