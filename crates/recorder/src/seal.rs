// SPDX-License-Identifier: MIT OR Apache-2.0
//! From captured bytes to a sealed file, in a thread of its own.
//!
//! What the kernel says of living processes is asked here, with the recorder's rights. Which functions their programs
//! have is asked by a process with the rights of who marked. What was captured is then handed, in a file in memory, to a process without any, which names the kernel's functions, conceals, compresses
//! and writes to the file that it was given; the recorder seals that and gives it its name. Where that process fails,
//! what was captured is kept as it is, for root.

mod ends;
mod files;
mod naming;
mod questions;

use crate::capture::Capture;
use crate::displays::Displays;
use crate::inquiry::Inquiries;
use crate::symbols::{name_kernel, parse_stacks};
use crate::{identity, owners, ports};
use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tipme_confine::{NOBODY, hear_errors};
use tipme_control::journal;
use tipme_kernel::CommandLine;
use tipme_record::incident::{Incident, Locks, Meta, Section, Withheld};
use tipme_store::{Folder, WriteError};

/// How long one may take to seal an incident; then its process is ended.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes that are read of why it failed.
const WHY_BYTES: usize = 4096;
/// Exit code of who seals where the disk is full.
pub const NO_ROOM: u8 = 28;

/// Who names functions in what was captured, conceals it and compresses it.
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

/// An incident as it was captured, in memory.
pub(crate) struct Raw {
    id: String,
    owner: u32,
    file: File,
}

impl Raw {
    /// Looks up what has to be asked of living processes.
    pub(crate) fn gather(capture: Capture, displays: &Displays, inquiries: &Inquiries, sealer: &Sealer) -> Result<Raw> {
        let (id, owner) = (capture.meta.id.clone(), capture.meta.marked_by_uid);
        let incident = assemble(capture, displays, inquiries, sealer)?;
        let mut file = File::from(memory_file().context("cannot make a file in memory")?);
        tipme_store::write_plain(&mut file, &incident).context("cannot hand the incident on")?;
        Ok(Raw { id, owner, file })
    }

    /// Has the incident written, and keeps the folder within its bounds.
    pub(crate) fn seal(&self, folder: &Folder, sealer: &Sealer) -> Result<PathBuf> {
        self.keep(folder, self.owner, |file| sealer.fill(self.open()?, file))
    }

    /// The same; where that fails though there is room, what was captured is kept as it is, and root's: nothing of it was
    /// concealed.
    pub(crate) fn seal_or_rescue(&self, folder: &Folder, sealer: &Sealer) -> Result<PathBuf> {
        let error = match self.seal(folder, sealer) {
            Err(error) if !is_full(&error) => error,
            done => return done,
        };
        let kept = self.keep(folder, 0, |file| std::io::copy(&mut self.open()?, file).map(drop))?;
        bail!("{error:#}; what was recorded is kept for root, as it is: sudo tipme diagnose {}", kept.display())
    }

    fn keep(&self, folder: &Folder, owner: u32, fill: impl Fn(&mut File) -> io::Result<()>) -> Result<PathBuf> {
        let (path, untidy) = folder.keep_by(&self.id, owner, fill)?;
        if let Some(error) = untidy {
            journal::warning(format!("cannot tidy {}: {error}", folder.path().display())).tell();
        }
        Ok(path)
    }

    /// From its beginning, for reading only: who seals cannot change what is rescued.
    fn open(&self) -> io::Result<File> {
        File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

impl Sealer {
    fn fill(&self, raw: File, file: &mut File) -> io::Result<()> {
        match self {
            Sealer::Program(program) => fill_by(program, raw, file),
            #[cfg(test)]
            Sealer::Here => {
                let incident = tipme_store::read_from(raw).map_err(io::Error::other)?;
                let finished = finish(incident, functions().ok()).map_err(io::Error::other)?;
                tipme_store::write_open(file, &finished)
            }
        }
    }
}

/// Who finds no room for an incident finds none for more.
fn is_full(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(WriteError::Full { .. }))
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

/// A file without a name, which nobody can execute where the kernel knows that.
fn memory_file() -> Result<OwnedFd, Errno> {
    memfd_create("incident", MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL).or_else(|error| match error {
        Errno::INVAL => memfd_create("incident", MemfdFlags::CLOEXEC),
        error => Err(error),
    })
}

/// The kernel's table of functions, as the caller may see it.
pub fn functions() -> io::Result<File> {
    File::open("/proc/kallsyms")
}

/// All but what needs rights: nothing is parsed but what was asked of processes.
fn assemble(mut capture: Capture, displays: &Displays, inquiries: &Inquiries, sealer: &Sealer) -> Result<Incident> {
    let proc_locks = owners::file_locks();
    let port_owners = ports::port_owners(&capture.tasks);
    let stacks = parse_stacks(&capture.stacks);
    let known = questions::ask(inquiries, &capture, &stacks, sealer);
    let locks = Locks { proc_locks, futexes: known.owners, pipes: known.pipes };
    capture.meta.missing.extend(known.missing);
    capture.meta.machine = identity::machine();
    capture.meta.irq_names = identity::interrupt_names();
    capture.meta.devices = identity::block_devices();
    let [sched, rare, exits] = capture.rings;
    let mut incident = Incident::default();
    incident.push_json(Section::Meta, &capture.meta)?;
    incident.push_json(Section::Locks, &locks)?;
    incident.push(Section::Symbols, known.functions);
    incident.push_json(Section::Displays, &displays.refresh())?;
    incident.push(Section::Sched, sched);
    incident.push(Section::Rare, rare);
    incident.push(Section::Exits, exits);
    incident.push(Section::Tasks, capture.tasks);
    incident.push(Section::Cmdlines, command_lines(&capture.command_lines));
    incident.push(Section::Stacks, capture.stacks);
    incident.push(Section::Samples, capture.samples);
    incident.push(Section::Inputs, capture.inputs);
    incident.push_json(Section::Losses, &capture.losses)?;
    incident.push_json(Section::Baselines, &capture.baselines)?;
    incident.push_json(Section::Cost, &capture.cost)?;
    incident.push_json(Section::Groups, &capture.groups)?;
    incident.push_json(Section::Files, &known.files)?;
    incident.push_json(Section::Ports, &port_owners)?;
    Ok(incident)
}

/// Names the kernel's functions in what was captured, and takes out what the user who marked may not know.
///
/// # Errors
/// Where what was captured cannot be read.
pub fn finish(mut incident: Incident, functions: Option<File>) -> Result<Incident> {
    ensure!(incident.damage.is_empty(), "what was captured is damaged: {:?}", incident.damage);
    let mut meta: Meta = incident.json(Section::Meta)?;
    let [stacks, rare, tasks, users] =
        [Section::Stacks, Section::Rare, Section::Tasks, Section::Symbols].map(|section| take(&mut incident, section));
    let mut named = name_kernel(&parse_stacks(&stacks), rare, tasks, functions);
    named.symbols.extend(users);
    put(&mut incident, Section::Stacks, named.stacks);
    put(&mut incident, Section::Rare, named.rare);
    put(&mut incident, Section::Tasks, named.tasks);
    put(&mut incident, Section::Symbols, named.symbols);
    conceal(&mut incident, &mut meta);
    put(&mut incident, Section::Meta, serde_json::to_vec(&meta)?);
    Ok(incident)
}

fn place(incident: &mut Incident, section: Section) -> Option<&mut Vec<u8>> {
    incident.sections.iter_mut().find(|(kind, _)| *kind == section).map(|(_, bytes)| bytes)
}

fn take(incident: &mut Incident, section: Section) -> Vec<u8> {
    place(incident, section).map(std::mem::take).unwrap_or_default()
}

fn put(incident: &mut Incident, section: Section, bytes: Vec<u8>) {
    match place(incident, section) {
        Some(place) => *place = bytes,
        None => incident.push(section, bytes),
    }
}

/// Takes out what the user who marked may not know.
fn conceal(incident: &mut Incident, meta: &mut Meta) {
    // A secret of its own for each incident: addresses of two incidents cannot be compared.
    let secret = RandomState::new();
    let disguise = |address: u64| secret.hash_one(address);
    let others = tipme_record::conceal(incident, meta.marked_by_uid, &disguise);
    tipme_record::conceal_functions(incident, &disguise);
    // Who owned the input may own the messages too.
    let users = meta.withheld.users.max(others.users);
    meta.withheld = Withheld { users, inputs: meta.withheld.inputs + others.inputs, ..others };
}

fn command_lines(lines: &[CommandLine]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        out.extend_from_slice(&line.pid.0.to_le_bytes());
        out.extend_from_slice(&(line.text.len() as u32).to_le_bytes());
        out.extend_from_slice(&line.text);
        out.resize(out.len().next_multiple_of(8), 0);
    }
    out
}
