// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who seals: a process of this program that has given up all rights.

#[cfg(test)]
use super::{finish, functions, read};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tipme_confine::{NOBODY, hear_errors};

/// How long one may take to seal an incident; then its process is ended.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes that are read of why it failed.
const WHY_BYTES: usize = 4096;
/// Exit code of who seals where the disk is full.
pub const NO_ROOM: u8 = 28;

/// Who names functions in what was captured, conceals it and writes it.
#[derive(Clone, Debug)]
pub enum Sealer {
    /// A process of this program, called with `seal --user UID --seconds S`: the incident as it was captured is its
    /// standard input, the file to be its standard output; and with `name`, where the standard input has what is to be
    /// named. It gives up all rights before it reads.
    Program(PathBuf),
    /// The caller.
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
    command.args(["seal", "--user", &NOBODY.to_string(), "--seconds", &TIMEOUT.as_secs().to_string()]);
    command.stdin(raw).stdout(file.try_clone()?);
    let heard = hear_errors(&mut command, WHY_BYTES, TIMEOUT, &AtomicBool::new(false)).map_err(io::Error::other)?;
    match heard.status.code() {
        Some(0) => Ok(()),
        Some(code) if code == i32::from(NO_ROOM) => Err(io::ErrorKind::StorageFull.into()),
        _ => {
            let why = String::from_utf8_lossy(&heard.said).into_owned();
            let why = why.lines().last().map_or_else(|| heard.status.to_string(), str::to_owned);
            Err(io::Error::other(why.trim_start_matches("tipme: ").to_owned()))
        }
    }
}
