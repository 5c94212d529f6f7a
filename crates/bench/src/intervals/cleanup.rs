// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cleanup process: it undoes registered changes once its owner is gone, even if that was killed.

use crate::files::temporary_folder;
use crate::process::retry;
use crate::worker::WorkerLauncher;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use tempfile::TempDir;

/// Maximum number of orders.
const ORDERS_MAX: usize = 64;
/// Maximum number of attempts at a removal: a process that has just ended still occupies its group
/// for a moment.
const TRIES: usize = 150;
/// Prefix of the folders that may be removed.
pub(crate) const PREFIX: &str = "tipme-bench-";

/// The cleanup process. Dropping it starts the cleanup, and waits for its end.
pub(crate) struct Cleanup {
    child: Child,
}

impl Cleanup {
    /// Starts the process, out of reach of the terminal's Ctrl-C.
    pub(crate) fn start(launcher: &WorkerLauncher) -> Result<Cleanup> {
        let mut command = launcher.command(None, &["cleanup".into()])?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .process_group(0);
        Ok(Cleanup { child: command.spawn().context("cannot start the cleanup process")? })
    }

    /// Starts the process, and makes a folder that it removes in any case.
    pub(crate) fn with_folder(launcher: &WorkerLauncher) -> Result<(Cleanup, TempDir)> {
        let (mut cleanup, folder) = (Cleanup::start(launcher)?, temporary_folder(PREFIX)?);
        cleanup.folder(folder.path())?;
        Ok((cleanup, folder))
    }

    /// Registers a control group to empty and remove.
    pub(crate) fn group(&mut self, folder: &Path) -> Result<()> {
        self.order("group", folder)
    }

    /// Registers a folder to remove with its contents.
    pub(crate) fn folder(&mut self, folder: &Path) -> Result<()> {
        self.order("folder", folder)
    }

    fn order(&mut self, what: &str, path: &Path) -> Result<()> {
        let pipe = self.child.stdin.as_mut().context("the cleanup process takes no orders")?;
        writeln!(pipe, "{what} {}", path.display()).context("the cleanup process has ended")
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// A change to undo.
enum CleanupOrder {
    Group(String),
    Folder(String),
}

/// `cleanup`: reads orders until their source is closed, then carries them out in reverse order.
pub(crate) fn run() -> Result<()> {
    ignore_signals()?;
    let lines = BufReader::new(std::io::stdin()).lines().map_while(std::result::Result::ok);
    let orders: Vec<CleanupOrder> =
        lines.take(ORDERS_MAX).filter_map(|line| order(&line)).collect();
    orders.into_iter().rev().for_each(carry_out);
    Ok(())
}

/// Ignores the signals that end the benchmark.
fn ignore_signals() -> Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: ignoring a signal runs no code of this program.
        let before = unsafe { libc::signal(signal, libc::SIG_IGN) };
        anyhow::ensure!(
            before != libc::SIG_ERR,
            "cannot ignore signals: {}",
            std::io::Error::last_os_error()
        );
    }
    Ok(())
}

fn order(line: &str) -> Option<CleanupOrder> {
    let (what, path) = line.split_once(' ')?;
    let ours = Path::new(path).file_name()?.to_str()?.starts_with(PREFIX);
    match what {
        "group" if ours => Some(CleanupOrder::Group(path.to_owned())),
        "folder" if ours => Some(CleanupOrder::Folder(path.to_owned())),
        _ => None,
    }
}

fn carry_out(order: CleanupOrder) {
    match order {
        CleanupOrder::Group(path) => remove_group(Path::new(&path)),
        CleanupOrder::Folder(path) => {
            until(|| std::fs::remove_dir_all(&path).is_ok() || !Path::new(&path).exists())
        }
    }
}

/// Kills the remaining processes of the group, and removes it.
fn remove_group(path: &Path) {
    until(|| {
        let members = std::fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        let pids = members.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?));
        pids.for_each(|pid| {
            let _ = kill_process(pid, Signal::KILL);
        });
        std::fs::remove_dir(path).is_ok() || !path.exists()
    });
}

fn until(done: impl FnMut() -> bool) {
    retry(TRIES, done);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_ours_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (ours, theirs) = (folder.path().join("tipme-bench-1"), folder.path().join("home"));
        for path in [&ours, &theirs] {
            std::fs::create_dir(path).expect("room");
            if let Some(order) = order(&format!("folder {}", path.display())) {
                carry_out(order);
            }
        }
        assert!(!ours.exists() && theirs.exists());
        assert!(order("group /sys/fs/cgroup/memory").is_none() && order("nonsense").is_none());
    }
}
