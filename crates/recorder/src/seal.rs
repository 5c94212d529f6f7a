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
mod sealer;

use crate::capture::Capture;
use crate::displays::Displays;
use crate::inquiry::Inquiries;
use crate::symbols::{name_kernel, parse_stacks};
use crate::{identity, owners, ports};
use anyhow::{Context, Result, bail, ensure};
pub use sealer::{NO_ROOM, Sealer};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use tipme_control::journal;
use tipme_kernel::CommandLine;
use tipme_record::incident::{Incident, Locks, Meta, Section, Withheld};
use tipme_record::{Nanos, RingClass, cut_chunks};
use tipme_store::{IncidentFolder, WriteError, memory_file};

/// An incident as it was captured, in memory.
pub(crate) struct RawIncident {
    id: String,
    owner: u32,
    file: File,
}

impl RawIncident {
    /// Looks up what has to be asked of living processes.
    pub(crate) fn gather(
        capture: Capture,
        displays: &Displays,
        inquiries: &Inquiries,
        sealer: &Sealer,
    ) -> Result<RawIncident> {
        let (id, owner) = (capture.meta.id.clone(), capture.meta.marked_by_uid);
        let incident = assemble(capture, displays, inquiries, sealer)?;
        let mut file = memory_file().context("cannot make a file in memory")?;
        tipme_store::write_plain(&mut file, &incident).context("cannot hand the incident on")?;
        Ok(RawIncident { id, owner, file })
    }

    /// Has the incident written, and keeps the folder within its bounds.
    pub(crate) fn seal(&self, folder: &IncidentFolder, sealer: &Sealer) -> Result<PathBuf> {
        self.keep(folder, self.owner, |file| sealer.fill(self.open()?, file))
    }

    /// The same; where that fails though there is room, what was captured is kept as it is, and root's: nothing of it was
    /// concealed.
    pub(crate) fn seal_or_rescue(&self, folder: &IncidentFolder, sealer: &Sealer) -> Result<PathBuf> {
        let error = match self.seal(folder, sealer) {
            Err(error) if !is_full(&error) => error,
            done => return done,
        };
        let kept = self.keep(folder, 0, |file| std::io::copy(&mut self.open()?, file).map(drop))?;
        bail!("{error:#}; what was recorded is kept for root, as it is: sudo tipme diagnose {}", kept.display())
    }

    fn keep(&self, folder: &IncidentFolder, owner: u32, fill: impl Fn(&mut File) -> io::Result<()>) -> Result<PathBuf> {
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

/// Who finds no room for an incident finds none for more.
fn is_full(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(WriteError::Full { .. }))
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
    let exits = cut_chunks(&take(&mut incident, Section::Exits), exits_held_from(&meta));
    put(&mut incident, Section::Exits, exits);
    conceal(&mut incident, &mut meta);
    put(&mut incident, Section::Meta, serde_json::to_vec(&meta)?);
    Ok(incident)
}

/// From when on ended processes are in the file: a chunk holds older ones, too.
fn exits_held_from(meta: &Meta) -> Nanos {
    let exits = meta.classes.iter().find(|class| class.name == RingClass::Exits.name());
    Nanos(exits.map_or(0, |class| class.held_from_ns))
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
