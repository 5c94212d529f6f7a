// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that end with a test, and folders for them.

use rustix::process::{Pid, Signal, kill_process};
use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use tempfile::TempDir;
use tipme_bench::until;

/// A process that is killed on drop.
pub struct Running(pub Child);

impl Running {
    pub fn start(command: &mut Command) -> Running {
        Running(command.spawn().unwrap())
    }

    /// Starts a program; returns it with its first line of output.
    pub fn start_saying(command: &mut Command) -> (Running, String) {
        let mut child = Running::start(command.stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (child, line)
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits until it has ended by itself.
    pub fn await_end(&mut self) -> ExitStatus {
        let mut status = None;
        until("the end of a process", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Creates a folder that everyone may read.
pub fn open_folder() -> TempDir {
    let dir = TempDir::new().unwrap();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    dir
}
