// SPDX-License-Identifier: MIT OR Apache-2.0
//! A prepared fault: the terminal's program, the keys typed at it, and the job that delays it.

use crate::files::write;
use crate::process::{ProcessGroup, family};
use crate::worker::{self, Ready, WorkerLauncher};
use anyhow::Result;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tipme_desktop::DisplayTarget;

/// Maximum time until a job is in place.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Prints the key that was read; the terminal does not echo by itself.
pub(super) const ECHO: &str = r#"printf '%s' "${key:-$'\n'}""#;

/// Place of a fault.
#[derive(Clone)]
pub struct Site {
    /// A folder for this fault alone, readable by programs on the terminal.
    pub folder: PathBuf,
    /// The X server; `None` under Wayland.
    pub x11: Option<DisplayTarget>,
    /// Starts worker programs.
    pub launcher: WorkerLauncher,
}

impl Site {
    /// Writes a file into the folder.
    pub(super) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.folder.join(name);
        write(&path, bytes)?;
        Ok(path)
    }

    /// Starts a worker program under a name of its own, and waits until it is in place.
    pub(super) fn worker(
        &self,
        name: &str,
        prefix: &[OsString],
        words: &[OsString],
    ) -> Result<Ready> {
        let command = self.launcher.command(Some(&self.folder.join(name)), words)?;
        worker::start(name, worker::behind(prefix, command), None, START_TIMEOUT)
    }

    /// Starts a shell script under a name of its own; the script reports `ready` once its effect
    /// has begun.
    pub fn script(
        &self,
        name: &str,
        prefix: &[OsString],
        script: &str,
        arguments: &[&Path],
    ) -> Result<ProcessGroup> {
        let shell = WorkerLauncher(vec!["/bin/sh".into()]);
        let words = ["-c", script, name].map(OsString::from);
        let mut command = shell.command(Some(&self.folder.join(name)), &words)?;
        command.args(arguments);
        let mut command = worker::behind(prefix, command);
        command.stderr(Stdio::null());
        Ok(worker::start_saying("ready", name, command, None, START_TIMEOUT)?.process)
    }
}

/// Starts a job without input and output.
pub(super) fn start(name: &str, mut command: Command) -> Result<ProcessGroup> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    ProcessGroup::start(name, command, None)
}

type Inject = Box<dyn FnMut(u32) -> Result<InjectedFault>>;

/// A prepared fault. Dropping it undoes everything.
pub struct Scenario {
    /// Words before the terminal's command.
    pub prefix: Vec<OsString>,
    /// Command that the terminal runs.
    pub program: Vec<OsString>,
    /// Text typed before and during the fault, over and over. Needs no Shift.
    pub keys: &'static str,
    inject: Option<Inject>,
}

impl Scenario {
    /// Returns a shell script that runs `each` for every key, with the key in `$key`.
    pub(super) fn on_key(name: &str, before: &str, each: &str, arguments: &[&Path]) -> Scenario {
        let script = format!("stty -echo\n{before}\nwhile IFS= read -rsn1 key; do\n{each}\ndone");
        let words = ["bash", "--norc", "--noprofile", "-c", &script, name].map(OsString::from);
        let arguments = arguments.iter().map(|path| path.as_os_str().to_owned());
        Scenario { program: words.into_iter().chain(arguments).collect(), ..shell() }
    }

    /// Puts words before the terminal's command.
    pub(super) fn behind(self, prefix: Vec<OsString>) -> Scenario {
        Scenario { prefix, ..self }
    }

    /// Sets what is typed.
    pub(super) fn typing(self, keys: &'static str) -> Scenario {
        Scenario { keys, ..self }
    }

    /// Sets the function that begins the fault, given the process of the terminal.
    pub(super) fn injecting(
        self,
        inject: impl FnMut(u32) -> Result<InjectedFault> + 'static,
    ) -> Scenario {
        Scenario { inject: Some(Box::new(inject)), ..self }
    }

    /// Begins the fault; returns `None` if there is none.
    pub fn inject(&mut self, terminal: u32) -> Result<Option<InjectedFault>> {
        self.inject.as_mut().map(|inject| inject(terminal)).transpose()
    }
}

/// An interactive shell without settings of the user.
pub(super) fn shell() -> Scenario {
    Scenario {
        prefix: Vec::new(),
        program: ["bash", "--norc", "--noprofile", "-i"].map(OsString::from).to_vec(),
        keys: "echo the quick brown fox jumps over the lazy dog\n",
        inject: None,
    }
}

/// The injected fault. Dropping it ends its processes.
#[derive(Default)]
pub struct InjectedFault {
    /// The job's command, for users.
    pub what: String,
    /// Culprits that are no process: a device, an address, a control group, or a process name.
    pub names: Vec<String>,
    job: Option<ProcessGroup>,
    _beside: Option<ProcessGroup>,
    pids: BTreeSet<u32>,
    /// Culprits are the descendants of this process.
    parent: Option<u32>,
}

impl InjectedFault {
    /// Blames a job.
    pub(super) fn job(what: &str, job: ProcessGroup) -> InjectedFault {
        let pids = BTreeSet::from([job.pid()]);
        InjectedFault { what: what.to_owned(), job: Some(job), pids, ..InjectedFault::default() }
    }

    /// A fault without a job, and without a culprit yet.
    pub(crate) fn new(what: &str) -> InjectedFault {
        InjectedFault { what: what.to_owned(), ..InjectedFault::default() }
    }

    /// Blames something of this name.
    pub(super) fn named(self, name: &str) -> InjectedFault {
        InjectedFault { names: vec![name.to_owned()], ..self }
    }

    /// Blames these processes.
    pub(crate) fn by(self, pids: &[u32]) -> InjectedFault {
        InjectedFault { pids: pids.iter().copied().collect(), ..self }
    }

    /// Blames the processes that `parent` starts.
    pub(super) fn by_children_of(self, parent: u32) -> InjectedFault {
        InjectedFault { parent: Some(parent), ..self }
    }

    /// Adds another job, which is not to blame.
    pub(super) fn beside(self, job: ProcessGroup) -> InjectedFault {
        InjectedFault { _beside: Some(job), ..self }
    }

    /// First process of the job.
    pub fn root(&self) -> Option<u32> {
        self.job.as_ref().map(ProcessGroup::pid)
    }

    /// Records the processes of the job. Must be called several times a second: processes with
    /// shorter lives are missed.
    pub(crate) fn observe(&mut self) {
        self.pids.extend(self.job.as_ref().map(ProcessGroup::members).unwrap_or_default());
        self.pids.extend(self.parent.map(family).unwrap_or_default().into_iter().skip(1));
    }

    /// All processes seen so far, the root first.
    pub fn pids(&self) -> Vec<u32> {
        let others = self.pids.iter().copied().filter(|pid| Some(*pid) != self.root());
        self.root().into_iter().chain(others).collect()
    }
}
