// SPDX-License-Identifier: MIT OR Apache-2.0
//! Internal verbs: work of the recorder and the agent in processes that drop all privileges before
//! they read a byte. These processes get their input as open files. The one that names functions
//! may also open files for reading, with the permissions of the user who marked; the one that
//! counts keeps one capability and some BPF programs.

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
use tipme_recorder::{Attachable, CPUS_MAX, open_programs};
use tipme_report::Layout;
use tipme_store::{MAX_TOTAL_BYTES, PackedIncident};

/// Defaults of the bounds.
const NOTHING: ResourceBounds =
    ResourceBounds { time: Duration::ZERO, memory: 0, file: 0, reach: Reach::Nothing, nice: 0 };

/// Memory of a diagnosis in bytes: four times the largest recording with default options, and room
/// for the largest file.
const JUDGE_MEMORY: u64 = 4 << 30;
/// The user waits for the verdict, but less urgently than for the response to the key.
const JUDGE_NICE: i32 = 10;

/// Prints the verdict on the incident on standard input; the exit codes are those of `tipme
/// diagnose`.
pub fn judge(arguments: &JudgeArguments) -> Result<ExitCode> {
    let bounds = ResourceBounds { memory: JUDGE_MEMORY, nice: JUDGE_NICE, ..NOTHING };
    drop_privileges(&arguments.confined, bounds, || ())?;
    let incident =
        tipme_store::read_from(std::io::stdin().lock()).context("cannot read the incident")?;
    let options = DiagnoseOptions { at_s: arguments.at, ..DiagnoseOptions::default() };
    let verdict = tipme_analysis::diagnose(&incident, &options)?;
    Ok(diagnose::print(&verdict, arguments.json, &Layout::default()))
}

/// Memory for sealing in bytes, most of it for compression, in addition to the compressed input and
/// output.
const SEAL_MEMORY: u64 = 512 << 20;
/// The user waits for the file.
const SEAL_NICE: i32 = 0;

/// Writes the incident on standard input to standard output, concealed but without its seal. The
/// exit code reports a full disk.
pub fn seal(arguments: &Confined) -> Result<ExitCode> {
    let captured = rustix::fs::fstat(std::io::stdin())?.st_size.unsigned_abs();
    let memory = SEAL_MEMORY + 3 * captured;
    let bounds = ResourceBounds { memory, file: MAX_TOTAL_BYTES, nice: SEAL_NICE, ..NOTHING };
    let (functions, captured, file) = drop_privileges(arguments, bounds, || {
        let [captured, file] =
            [std::io::stdin().as_fd(), std::io::stdout().as_fd()].map(|fd| fd.try_clone_to_owned());
        (tipme_recorder::functions().ok(), captured, file)
    })?;
    let captured =
        PackedIncident::read(File::from(captured?)).context("cannot read the capture")?;
    let incident = tipme_recorder::finish(captured, functions)?;
    match incident.write_open(&mut File::from(file?)) {
        Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            Ok(ExitCode::from(tipme_recorder::NO_ROOM))
        }
        written => written.map(|()| ExitCode::SUCCESS).context("cannot write the incident"),
    }
}

/// Memory for naming functions in bytes, mostly address space that the allocator reserves for each
/// thread.
const NAME_MEMORY: u64 = 1 << 30;
/// Names are valid for a few seconds only, and a marked machine is busy.
const NAME_NICE: i32 = 0;

/// Writes the names of the functions requested on standard input to standard output.
pub fn name(arguments: &Confined) -> Result<ExitCode> {
    let reach = Reach::Files(tipme_recorder::NAMER_FILES);
    let bounds = ResourceBounds { memory: NAME_MEMORY, reach, nice: NAME_NICE, ..NOTHING };
    let memory = drop_privileges(arguments, bounds, || tipme_recorder::own_memory().ok())?;
    tipme_recorder::name(std::io::stdin().lock(), std::io::stdout(), memory.as_ref())?;
    Ok(ExitCode::SUCCESS)
}

/// Memory for counting in bytes: that of the program itself.
const COUNT_MEMORY: u64 = 256 << 20;

/// Makes the kernel count the cost of its BPF programs as standard input requests, and writes the
/// duration to standard output; attaches and detaches programs and samples CPUs in the same way.
pub fn count(arguments: &CountArguments) -> Result<ExitCode> {
    let programs = arguments.standby.iter().map(|lot| lot.0.len() as u32).sum::<u32>();
    let (clocks, cpus) = arguments.sample.map_or((0, 0), |_| (1, CPUS_MAX as u32));
    let reach = Reach::Count { programs: programs + clocks, cpus };
    let bounds = ResourceBounds { memory: COUNT_MEMORY, reach, ..NOTHING };
    let attachable = drop_privileges(&arguments.confined, bounds, || attachable(arguments))?;
    let attachable = attachable.context("cannot open the programs to attach")?;
    tipme_recorder::count(std::io::stdin().lock(), std::io::stdout(), &attachable);
    Ok(ExitCode::SUCCESS)
}

fn attachable(arguments: &CountArguments) -> Result<Attachable> {
    let lots = arguments.standby.iter().map(|lot| open_programs(&lot.0));
    let mut clock = open_programs(arguments.sample.as_slice())?;
    Ok(Attachable {
        standby: lots.collect::<Result<_>>()?,
        clock: clock.pop().zip(arguments.hertz),
    })
}

/// The parent ends the process in time and reports it; this bound is the fallback.
const GRACE: Duration = Duration::from_secs(2);

fn drop_privileges<T>(
    confined: &Confined,
    bounds: ResourceBounds,
    open: impl FnOnce() -> T,
) -> Result<T> {
    let bounds =
        ResourceBounds { time: Duration::from_secs(confined.seconds.into()) + GRACE, ..bounds };
    let account = Account { user: confined.user, group: confined.group.unwrap_or(confined.user) };
    confine(account, bounds, open).context("cannot drop the privileges of this process")
}
