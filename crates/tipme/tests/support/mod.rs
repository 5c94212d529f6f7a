// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recorder of the test's own, as a user runs it.
#![allow(dead_code, reason = "each test target uses a part")]
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that fails")]

pub mod schema;

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;
use tipme_bench::alone::MachineLock;
use tipme_bench::interrupt::InterruptFlag;
use tipme_record::incident::{Incident, Meta, Section};
use tipme_record::{CHUNK_BYTES, ChunkEntry, Nanos, entries};

/// Waits until no other benchmark or test that wants the machine for itself runs; none begins while it is held.
pub fn alone() -> MachineLock {
    MachineLock::wait(&InterruptFlag::default(), || ()).unwrap()
}

/// Does something while a process is stopped.
pub fn while_stopped(pid: u32, mut work: impl FnMut()) {
    let process = Pid::from_raw(pid as i32).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    work();
    kill_process(process, Signal::CONT).unwrap();
}

/// The program under test.
pub fn tipme() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tipme"))
}

/// The file of the lab's program, which `tipme` starts for some verbs: it lies where `tipme` was built.
pub fn lab() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_tipme")).with_file_name("tipme-lab");
    assert!(path.is_file(), "{} is missing; build it first: cargo build -p tipme-lab", path.display());
    path
}

/// The command for a recorder in this folder.
pub fn recorder(dir: &TempDir, arguments: &[&str]) -> Command {
    recorder_by(tipme(), dir, arguments)
}

/// The same, by a command that runs what it is given.
pub fn recorder_by(mut command: Command, dir: &TempDir, arguments: &[&str]) -> Command {
    command.args(["record", "--hot-keys", "off", "--state-dir"]).arg(dir.path()).args(arguments);
    command
}

/// `tipme record` in a folder of its own; killed with the value.
pub struct Recording {
    pub dir: TempDir,
    pub child: Child,
    /// The line that says that it is armed.
    pub line: String,
}

impl Recording {
    /// Starts and waits until it is armed.
    pub fn start(arguments: &[&str]) -> Recording {
        Recording::start_in(TempDir::new().unwrap(), arguments)
    }

    pub fn start_in(dir: TempDir, arguments: &[&str]) -> Recording {
        Recording::start_by(recorder(&dir, arguments), dir)
    }

    /// The same, by a command of [`recorder`] to which something was done.
    pub fn start_by(mut command: Command, dir: TempDir) -> Recording {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("recording"), "not armed: {line:?}; these tests need root");
        Recording { dir, child, line }
    }

    /// `tipme mark` against this recorder.
    pub fn mark_output(&self, text: &str) -> Output {
        tipme().args(["mark", "-m", text, "--state-dir"]).arg(self.dir.path()).output().unwrap()
    }

    /// Marks and reads the incident back, with whole records of the scheduler.
    pub fn mark(&self) -> (PathBuf, Incident) {
        let output = self.mark_output("it hung");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let path = PathBuf::from(text.lines().last().unwrap());
        let mut incident = tipme_store::read(&path).unwrap();
        assert_eq!(incident.damage, []);
        incident.push(Section::Sched, tipme_record::unpacked(incident.bytes(Section::Sched)));
        (path, incident)
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn incidents(&self) -> PathBuf {
        self.dir.path().join("incidents")
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub fn meta(incident: &Incident) -> Meta {
    incident.json(Section::Meta).unwrap()
}

/// All records of a section of chunks, but for packed ones.
pub fn records(incident: &Incident, section: Section) -> impl Iterator<Item = ChunkEntry<'_>> {
    incident.bytes(section).chunks(CHUNK_BYTES).flat_map(entries)
}

/// A time zone in which it is about noon, so that no midnight comes between what happens and what is told of the day.
pub fn noon() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("NOON{:+}", (since.as_secs() / 3_600 % 24) as i64 - 12)
}

/// Files directly in a folder whose name ends so.
pub fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let names = std::fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path());
    names.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

/// Runs a diagnosis and returns its exit code and output.
pub fn diagnose(path: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = tipme().arg("diagnose").arg(path).args(arguments).output().unwrap();
    // Shown where the test fails.
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The mark, as nanoseconds.
pub fn mark_time(incident: &Incident) -> Nanos {
    Nanos(meta(incident).mark_ns)
}
