// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sealer: a process of this program without any privileges.

#[cfg(test)]
use super::{finish, functions, read};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tipme_confine::{NOBODY, read_errors};

/// Maximum time for sealing an incident; then the process is killed.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum bytes of its error output.
const WHY_BYTES: usize = 4096;
/// Exit code of the sealer if the disk is full.
pub const NO_ROOM: u8 = 28;

/// Executor of naming, concealing and writing.
#[derive(Clone, Debug)]
pub enum Sealer {
    /// A process of this program, called as `seal --user UID --seconds S` with the capture on
    /// standard input and the future file as standard output, and as `name` with the questions on
    /// standard input. It drops all privileges before it reads.
    Program(PathBuf),
    /// The calling process.
    #[cfg(test)]
    Here,
}

impl Sealer {
    pub(super) fn fill(&self, raw: File, file: &mut File) -> io::Result<()> {
        match self {
            Sealer::Program(program) => fill_by(program, raw, file),
            #[cfg(test)]
            Sealer::Here => {
                let finished = finish(read(raw)?, functions().ok()).map_err(io::Error::other)?;
                finished.write_open(file)
            }
        }
    }
}

fn fill_by(program: &Path, raw: File, file: &File) -> io::Result<()> {
    let mut command = Command::new(program);
    command.args([
        "seal",
        "--user",
        &NOBODY.to_string(),
        "--seconds",
        &TIMEOUT.as_secs().to_string(),
    ]);
    command.stdin(raw).stdout(file.try_clone()?);
    let child = read_errors(&mut command, WHY_BYTES, TIMEOUT, &AtomicBool::new(false))
        .map_err(io::Error::other)?;
    match child.status.code() {
        Some(0) => Ok(()),
        Some(code) if code == i32::from(NO_ROOM) => Err(io::ErrorKind::StorageFull.into()),
        _ => {
            let why = String::from_utf8_lossy(&child.errors).into_owned();
            let why = why.lines().last().map_or_else(|| child.status.to_string(), str::to_owned);
            Err(io::Error::other(why.trim_start_matches("tipme: ").to_owned()))
        }
    }
}
