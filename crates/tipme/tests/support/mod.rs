// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recorder of the test, as a user runs it.
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

/// Waits for exclusive use of the machine among benchmarks and exclusive tests, and holds it.
pub fn alone() -> MachineLock {
    MachineLock::wait(&InterruptFlag::default(), || ()).unwrap()
}

/// Runs `work` while a process is stopped.
pub fn while_stopped(pid: u32, mut work: impl FnMut()) {
    let process = Pid::from_raw(pid as i32).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    work();
    kill_process(process, Signal::CONT).unwrap();
}

/// Returns the program under test.
pub fn tipme() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tipme"))
}

/// Returns the path of the lab's program, which `tipme` executes for some verbs: it is in the build
/// folder of `tipme`.
pub fn lab() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_tipme")).with_file_name("tipme-lab");
    assert!(
        path.is_file(),
        "{} is missing; build it first: cargo build -p tipme-lab",
        path.display()
    );
    path
}

/// Returns the command for a recorder in this folder.
pub fn recorder(dir: &TempDir, arguments: &[&str]) -> Command {
    recorder_by(tipme(), dir, arguments)
}

/// Same with a command that runs its arguments.
pub fn recorder_by(mut command: Command, dir: &TempDir, arguments: &[&str]) -> Command {
    command.args(["record", "--hot-keys", "off", "--state-dir"]).arg(dir.path()).args(arguments);
    command
}

/// `tipme record` in a folder of its own; killed on drop.
pub struct Recording {
    pub dir: TempDir,
    pub child: Child,
    /// The line that reports that it is armed.
    pub line: String,
}

impl Recording {
    /// Starts it and waits until it is armed.
    pub fn start(arguments: &[&str]) -> Recording {
        Recording::start_in(TempDir::new().unwrap(), arguments)
    }

    pub fn start_in(dir: TempDir, arguments: &[&str]) -> Recording {
        Recording::start_by(recorder(&dir, arguments), dir)
    }

    /// Same with a modified command of [`recorder`].
    pub fn start_by(mut command: Command, dir: TempDir) -> Recording {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("recording"), "not armed: {line:?}; these tests need root");
        Recording { dir, child, line }
    }

    /// Runs `tipme mark` against this recorder.
    pub fn mark_output(&self, text: &str) -> Output {
        tipme().args(["mark", "-m", text, "--state-dir"]).arg(self.dir.path()).output().unwrap()
    }

    /// Marks and reads the incident, with unpacked scheduler records.
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

    /// Kills it, as a crash would.
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

/// Returns all records of a chunked section, except for packed ones.
pub fn records(incident: &Incident, section: Section) -> impl Iterator<Item = ChunkEntry<'_>> {
    incident.bytes(section).chunks(CHUNK_BYTES).flat_map(entries)
}

/// Returns a time zone in which it is about noon, so that no midnight falls between an event and
/// the report of its day.
pub fn noon() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("NOON{:+}", (since.as_secs() / 3_600 % 24) as i64 - 12)
}

/// Returns the files directly in a folder with this suffix.
pub fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let names = std::fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path());
    names.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

/// Runs a diagnosis and returns its exit code and output.
pub fn diagnose(path: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = tipme().arg("diagnose").arg(path).args(arguments).output().unwrap();
    // Visible if the test fails.
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the time of the mark.
pub fn mark_time(incident: &Incident) -> Nanos {
    Nanos(meta(incident).mark_ns)
}
