// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes started by a program, and checks that all have ended.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that fails")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tipme_bench::until;

/// Timeout on a busy machine: another benchmark may occupy it for five minutes.
pub const TIMEOUT: Duration = Duration::from_secs(400);

/// Timeout for reading a program's output after its end.
const LEFT_OPEN: Duration = Duration::from_secs(10);

/// A process by PID and start time, since PIDs are reused.
pub type Member = (u32, u64);

/// A running program with its captured error output.
pub struct Program {
    pub child: Child,
    said: Arc<Mutex<Vec<String>>>,
    reading: JoinHandle<()>,
}

impl Program {
    pub fn start(command: Command) -> Program {
        Program::start_into(command, Stdio::null())
    }

    /// Starts it with this standard output.
    pub fn start_into(mut command: Command, output: impl Into<Stdio>) -> Program {
        command.stdin(Stdio::null()).stdout(output).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (errors, said) = (child.stderr.take().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let kept = Arc::clone(&said);
        let reading = std::thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                kept.lock().unwrap().push(line);
            }
        });
        Program { child, said, reading }
    }

    /// Waits until it has printed a line with these words, and returns that line.
    pub fn wait_for(&mut self, words: &str) -> String {
        let mut found = None;
        until(&format!("a line with {words:?}"), || {
            found = self.said.lock().unwrap().iter().find(|line| line.contains(words)).cloned();
            assert!(
                found.is_some() || self.child.try_wait().unwrap().is_none(),
                "it ended: {:?}",
                self.said()
            );
            found.is_some()
        });
        found.unwrap()
    }

    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal)
            .unwrap();
    }

    /// Waits until it has ended and its output is read; leftover processes may hold its error
    /// output open for longer.
    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        until("its end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let begun = Instant::now();
        while !self.reading.is_finished() && begun.elapsed() < LEFT_OPEN {
            std::thread::sleep(Duration::from_millis(1));
        }
        status.unwrap()
    }

    /// Returns all its descendants.
    pub fn descendants(&self) -> Vec<Member> {
        let all: Vec<(u32, u32, u64)> = processes().collect();
        let mut family = vec![(self.child.id(), 0)];
        let mut at = 0;
        while let Some((parent, _)) = family.get(at).copied() {
            family.extend(all.iter().filter(|one| one.1 == parent).map(|one| (one.0, one.2)));
            at += 1;
        }
        family.split_off(1)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Returns PID, parent and start time of all running processes.
fn processes() -> impl Iterator<Item = (u32, u32, u64)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(status)
}

fn status(pid: u32) -> Option<(u32, u32, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let words: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ended = matches!(*words.first()?, "Z" | "X");
    (!ended).then_some((pid, words.get(1)?.parse().ok()?, words.get(19)?.parse().ok()?))
}

/// Waits until none of them is running.
pub fn expect_gone(members: &[Member]) {
    assert!(!members.is_empty());
    let alive =
        || members.iter().filter(|one| status(one.0).is_some_and(|now| now.2 == one.1)).count();
    until("the end of all processes", || alive() == 0);
}

/// Waits until this many named descendants of a program have run for a while; returns one of them.
pub fn until_named(program: &Program, name: &str, count: usize) -> u32 {
    const WORKED_NS: u64 = 200_000_000;
    let read = |pid: &u32, file: &str| {
        std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
    };
    let worked =
        |pid: &u32| read(pid, "schedstat").split(' ').next().and_then(|word| word.parse().ok());
    let named = |pid: &u32| {
        read(pid, "comm").trim() == name && worked(pid).is_some_and(|ns: u64| ns > WORKED_NS)
    };
    let mut found = Vec::new();
    until(&format!("{count} processes {name}"), || {
        found =
            program.descendants().into_iter().map(|one| one.0).filter(|pid| named(pid)).collect();
        found.len() == count
    });
    found[0]
}

/// Copies programs to a place where every user can read them; returns the path of the first one.
/// Another process makes the copies: a program start from another thread of this one would keep
/// them open for writing, so that they could not be executed.
pub fn for_everybody(programs: &[PathBuf]) -> (TempDir, PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().unwrap();
    let everybody =
        |path: &Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    everybody(folder.path());
    let copy = |program: &PathBuf| {
        let path = folder.path().join(program.file_name().unwrap());
        assert!(Command::new("cp").arg(program).arg(&path).status().unwrap().success());
        everybody(&path);
        path
    };
    let paths: Vec<PathBuf> = programs.iter().map(copy).collect();
    (folder, paths[0].clone())
}
