// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes started by a program, and checks that all have ended.

use crate::{Running, built, open_folder};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
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
    pub child: Running,
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
        let mut child = Running::start(&mut command);
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
        self.child.signal(signal);
    }

    /// Waits until it has ended and its output is read; leftover processes may hold its error
    /// output open for longer.
    pub fn wait(&mut self) -> ExitStatus {
        let status = self.child.await_end();
        let begun = Instant::now();
        while !self.reading.is_finished() && begun.elapsed() < LEFT_OPEN {
            std::thread::sleep(Duration::from_millis(1));
        }
        status
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
    let mut found = Vec::new();
    until(&format!("{count} processes {name}"), || {
        let descendants = program.descendants().into_iter().map(|one| one.0);
        found = descendants.filter(|pid| is_named(*pid, name)).collect();
        found.len() == count
    });
    found[0]
}

/// Returns `true` if a process has this name and has run for a while.
fn is_named(pid: u32, name: &str) -> bool {
    const WORKED_NS: u64 = 200_000_000;
    let [comm, times] = ["comm", "schedstat"]
        .map(|file| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default());
    let worked_ns = times.split(' ').next().and_then(|word| word.parse::<u64>().ok());
    comm.trim() == name && worked_ns > Some(WORKED_NS)
}

/// Copies programs to a place where every user can read them; returns the path of the first one.
/// Another process makes the copies: a program start from another thread of this one would keep
/// them open for writing, so that they could not be executed.
pub fn for_everybody(programs: &[&str]) -> (TempDir, PathBuf) {
    let folder = open_folder();
    let mut script = Command::new("sh");
    script.args(["-c", "cp \"$@\" \"$0\" && chmod 755 \"$0\"/*"]).arg(folder.path());
    script.args(programs.iter().map(|name| built(name)));
    assert!(script.status().unwrap().success());
    let path = folder.path().join(programs[0]);
    (folder, path)
}
