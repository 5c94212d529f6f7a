// SPDX-License-Identifier: MIT OR Apache-2.0
//! A private display with terminals, and its manager.

use crate::family::TIMEOUT;
pub use crate::tipme;
use crate::{Running, memory_bytes, open_folder};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;
use tipme_bench::PrivateSession;
use tipme_bench::process::ProcessGroup;
use tipme_bench::until;
use tipme_desktop::inject::{Pace, Typist};
use tipme_desktop::window::Watcher;

/// Serializes managers: some tests have windows of this very process, which is favoured then. The
/// manager of such a test takes the values of all descendants for inherited ones at its end, even
/// if another test's manager has set them.
static ALONE: Mutex<()> = Mutex::new(());

/// A private display, the only one of this program.
pub struct Desktop {
    pub session: PrivateSession,
    alone: MutexGuard<'static, ()>,
}

/// A terminal with a shell.
pub struct Terminal {
    process: ProcessGroup,
    /// A position in its window.
    at: (i16, i16),
    pub window: u32,
}

impl Desktop {
    pub fn start() -> Desktop {
        forget_nice_value();
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Desktop { session: crate::session(), alone }
    }

    /// Opens a waiting terminal with the focus.
    pub fn terminal(&self, place: &str) -> Terminal {
        self.terminal_with(place, "read wait")
    }

    /// Opens a terminal with a shell that runs a script.
    pub fn terminal_with(&self, place: &str, script: &str) -> Terminal {
        let mut command = Command::new("xterm");
        command.args(["-geometry", &format!("40x10{place}"), "-e", "sh", "-c", script]);
        self.session.prepare(&mut command);
        let process = ProcessGroup::start("a terminal", command, None).unwrap();
        let watcher = Watcher::open(&self.session.target()).unwrap();
        let window = watcher.wait_for_focus(process.pid(), TIMEOUT).unwrap();
        let mut corner = place[1..].split('+').map(|number| number.parse::<i16>().unwrap() + 60);
        let at = (corner.next().unwrap(), corner.next().unwrap());
        let terminal = Terminal { process, at, window };
        until("the shell", || !terminal.below().is_empty());
        terminal
    }

    /// Ends the display; no other one starts while the returned guard lives.
    pub fn end(self) -> MutexGuard<'static, ()> {
        self.alone
    }

    /// Focuses a terminal with a click.
    pub fn click(&self, terminal: &Terminal) {
        let mut typist = Typist::open(&self.session.target(), Pace::default()).unwrap();
        typist.click_at(terminal.at.0, terminal.at.1, 1).unwrap();
    }
}

/// Resets the test's own nice value, since the manager leaves foreign nice values alone.
pub fn forget_nice_value() {
    rustix::process::setpriority_process(None, 0).unwrap();
}

impl Terminal {
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub fn shell(&self) -> u32 {
        self.below()[0]
    }

    /// Returns all descendants of the terminal, its shell first.
    pub fn below(&self) -> Vec<u32> {
        let mut found = children(self.pid());
        let mut at = 0;
        while let Some(parent) = found.get(at) {
            let more = children(*parent);
            found.extend(more);
            at += 1;
        }
        found
    }
}

fn children(pid: u32) -> Vec<u32> {
    let text =
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// Returns the nice value of a process, which must exist.
pub fn nice(pid: u32) -> i32 {
    crate::stat(pid)[16].parse().unwrap()
}

pub fn command_line(pid: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// `tipme manage` restricted to descendants of this test; killed on drop.
pub struct Managed {
    pub child: Running,
    pub dir: Option<TempDir>,
    /// The line that reports that it is ready.
    pub line: String,
    path: PathBuf,
}

impl Managed {
    /// Starts it with the `nice` backend, and waits until it is ready.
    pub fn start(desktop: &Desktop, arguments: &[&str]) -> Managed {
        Managed::start_in(open_folder(), desktop, arguments)
    }

    pub fn start_in(dir: TempDir, desktop: &Desktop, arguments: &[&str]) -> Managed {
        let mut command = tipme();
        desktop.session.show(&mut command);
        Managed::start_by(command, dir, &desktop.session.display_name(), arguments)
    }

    /// Same for any display; the command contains what is needed to connect.
    pub fn start_by(
        mut command: Command,
        dir: TempDir,
        display: &str,
        arguments: &[&str],
    ) -> Managed {
        command.args(["manage", "--backend", "nice", "--display", display]).args(arguments);
        if !arguments.contains(&"--under") {
            command.arg("--under").arg(std::process::id().to_string());
        }
        command.arg("--state-dir").arg(dir.path());
        let (child, line) = Running::start_saying(command.stderr(Stdio::piped()));
        let path = dir.path().to_owned();
        let mut managed = Managed { child, dir: Some(dir), line, path };
        if !managed.line.starts_with(&format!("managing {display} with nice, ")) {
            managed.child.kill().ok();
            let said = std::io::read_to_string(managed.child.stderr.take().unwrap()).unwrap();
            panic!("not ready: {:?} {said}", managed.line);
        }
        managed
    }

    /// Runs a verb of tipme against this manager.
    pub fn ask(&self, arguments: &[&str]) -> Output {
        tipme().args(arguments).arg("--state-dir").arg(self.path()).output().unwrap()
    }

    /// Returns the output of such a verb, which must succeed.
    pub fn said(&self, arguments: &[&str]) -> String {
        let output = self.ask(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn status(&self) -> Value {
        serde_json::from_str(&self.said(&["manage", "status", "--json"])).unwrap()
    }

    /// Returns the manager's memory. The file of a debug build alone exceeds the bar, so only
    /// anonymous memory counts then.
    pub fn memory_bytes(&self) -> u64 {
        let field = if cfg!(debug_assertions) { "RssAnon" } else { "VmRSS" };
        memory_bytes(self.child.id(), field)
    }

    pub fn why(&self, pid: u32) -> Value {
        serde_json::from_str(&self.said(&["why", &pid.to_string(), "--json"])).unwrap()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends it with a signal; returns its exit code.
    pub fn stop(&mut self, signal: rustix::process::Signal) -> Option<i32> {
        self.child.signal(signal);
        self.wait()
    }

    pub fn wait(&mut self) -> Option<i32> {
        self.child.await_end().code()
    }
}
