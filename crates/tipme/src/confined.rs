// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verbs that nobody types: what the recorder and the agent have done by processes that have given up all rights before
//! they read a byte. They get what they need as open files; who names functions may open files for reading besides, where
//! the user who marked may, and who counts has one capability, and some kernel
//! programs.

use crate::arguments::{Confined, CountArguments, JudgeArguments};
use crate::diagnose;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;
use tipme_analysis::DiagnoseOptions;
use tipme_confine::{Account, Reach, ResourceBounds, confine};
use tipme_report::Layout;
use tipme_store::MAX_TOTAL_BYTES;

/// What is not stated otherwise.
const NOTHING: ResourceBounds =
    ResourceBounds { time: Duration::ZERO, memory: 0, file: 0, reach: Reach::Nothing, nice: 0 };

/// Memory of a diagnosis, in bytes: four times the largest recording with default options, and room for the largest file.
const JUDGE_MEMORY: u64 = 4 << 30;
/// Who presses a key waits for the verdict, but less urgently than for the key's answer.
const JUDGE_NICE: i32 = 10;

/// Prints the verdict on the incident at the standard input; exit codes as those of `tipme diagnose`.
pub fn judge(arguments: &JudgeArguments) -> Result<ExitCode> {
    let bounds = ResourceBounds { memory: JUDGE_MEMORY, nice: JUDGE_NICE, ..NOTHING };
    give_up(&arguments.confined, bounds, || ())?;
    let incident = tipme_store::read_from(std::io::stdin().lock()).context("cannot read the incident")?;
    let options = DiagnoseOptions { at_s: arguments.at, ..DiagnoseOptions::default() };
    let verdict = tipme_analysis::diagnose(&incident, &options)?;
    Ok(diagnose::print(&verdict, arguments.json, &Layout::default()))
}

/// Memory of who seals: twice what was captured, and what it is packed with.
const SEAL_MEMORY: u64 = 512 << 20;
/// Who marked waits for the file.
const SEAL_NICE: i32 = 0;

/// Writes the incident at the standard input to the standard output, concealed and compressed, all but its seal. The exit
/// code tells of a full disk.
pub fn seal(arguments: &Confined) -> Result<ExitCode> {
    let captured = rustix::fs::fstat(std::io::stdin())?.st_size.unsigned_abs();
    let memory = SEAL_MEMORY + 3 * captured;
    let open = || (tipme_recorder::functions().ok(), std::io::stdout().as_fd().try_clone_to_owned());
    let bounds = ResourceBounds { memory, file: MAX_TOTAL_BYTES, nice: SEAL_NICE, ..NOTHING };
    let (functions, file) = give_up(arguments, bounds, open)?;
    let incident = tipme_store::read_from(std::io::stdin().lock()).context("cannot read what was captured")?;
    let incident = tipme_recorder::finish(incident, functions)?;
    match tipme_store::write_open(&mut File::from(file?), &incident) {
        Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            Ok(ExitCode::from(tipme_recorder::NO_ROOM))
        }
        written => written.map(|()| ExitCode::SUCCESS).context("cannot write the incident"),
    }
}

/// Memory of who names functions, in bytes: most of it is room that the allocator sets aside for each thread.
const NAME_MEMORY: u64 = 1 << 30;
/// Names count for a few seconds only, and a machine that is marked is busy.
const NAME_NICE: i32 = 0;

/// Writes the names of the functions that the standard input asks for to the standard output.
pub fn name(arguments: &Confined) -> Result<ExitCode> {
    let reach = Reach::Files(tipme_recorder::NAMER_FILES);
    let bounds = ResourceBounds { memory: NAME_MEMORY, reach, nice: NAME_NICE, ..NOTHING };
    let memory = give_up(arguments, bounds, || tipme_recorder::own_memory().ok())?;
    tipme_recorder::name(std::io::stdin().lock(), std::io::stdout(), memory.as_ref())?;
    Ok(ExitCode::SUCCESS)
}

/// Memory of who counts, in bytes: that of a program.
const COUNT_MEMORY: u64 = 256 << 20;

/// Has the kernel count what its programs cost as the standard input says, and writes how long it did to the standard
/// output; attaches and detaches programs likewise.
pub fn count(arguments: &CountArguments) -> Result<ExitCode> {
    let programs = arguments.standby.iter().map(|lot| lot.0.len() as u32).sum();
    let open = || arguments.standby.iter().map(|lot| tipme_recorder::open_programs(&lot.0)).collect::<Result<Vec<_>>>();
    let bounds = ResourceBounds { memory: COUNT_MEMORY, reach: Reach::Count(programs), ..NOTHING };
    let standby = give_up(&arguments.confined, bounds, open)?.context("cannot open the programs on standby")?;
    tipme_recorder::count(std::io::stdin().lock(), std::io::stdout(), &standby);
    Ok(ExitCode::SUCCESS)
}

/// Who started the process ends it in time, and says so; it ends itself where that cannot be done.
const GRACE: Duration = Duration::from_secs(2);

fn give_up<T>(confined: &Confined, bounds: ResourceBounds, open: impl FnOnce() -> T) -> Result<T> {
    let bounds = ResourceBounds { time: Duration::from_secs(confined.seconds.into()) + GRACE, ..bounds };
    let account = Account { user: confined.user, group: confined.group.unwrap_or(confined.user) };
    confine(account, bounds, open).context("cannot give up the rights of this process")
}
