// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sealing of a captured incident, in a thread of its own.
//!
//! The kernel's information on live processes is read here, with the recorder's privileges. A
//! process with the credentials of the incident's owner looks up the functions of programs. The
//! capture is then handed over in a memory file to a process without any privileges. It names the
//! kernel's functions, conceals, and writes to the file that it was given, which the recorder seals
//! and renames. If that process fails, the raw capture is kept for root. No process has more than
//! one unpacked chunk in memory.

mod ends;
mod files;
mod groups;
mod hierarchy;
mod io_limits;
mod naming;
mod questions;
mod sealer;

use crate::capture::{Capture, NO_MEMORY};
use crate::displays::Displays;
use crate::inquiry::Inquiries;
use crate::symbols::{Placeless, parse_stacks, samples};
use crate::{identity, owners, ports};
use anyhow::{Context, Result, bail, ensure};
pub use sealer::{NO_ROOM, Sealer};
use std::collections::BTreeSet;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use tipme_control::journal;
use tipme_kernel::CommandLine;
use tipme_record::incident::{Incident, Locks, Meta, Section, Sections, Withheld};
use tipme_record::{Concealer, Nanos, RingClass, cut_chunk};
use tipme_store::{IncidentFolder, PackedIncident, WriteError};

/// A captured incident, in memory.
pub(crate) struct RawIncident {
    id: String,
    owner: u32,
    file: File,
}

impl RawIncident {
    /// Collects all that has to be read from live processes.
    pub(crate) fn gather(
        capture: Capture,
        displays: &Displays,
        inquiries: &Inquiries,
        sealer: &Sealer,
    ) -> Result<RawIncident> {
        let (id, owner) = (capture.meta.id.clone(), capture.meta.marked_by_uid);
        let file =
            assemble(capture, displays, inquiries, sealer)?.hand_over().context(NO_MEMORY)?;
        Ok(RawIncident { id, owner, file })
    }

    /// Writes the sealed incident, and prunes the folder.
    pub(crate) fn seal(&self, folder: &IncidentFolder, sealer: &Sealer) -> Result<PathBuf> {
        self.keep(folder, self.owner, |file| sealer.fill(self.open()?, file))
    }

    /// Seals the incident. If that fails although there is room, keeps the raw capture for root:
    /// nothing in it is concealed.
    pub(crate) fn seal_or_rescue(
        &self,
        folder: &IncidentFolder,
        sealer: &Sealer,
    ) -> Result<PathBuf> {
        let error = match self.seal(folder, sealer) {
            Err(error) if !is_full(&error) => error,
            done => return done,
        };
        let kept = self.keep(folder, 0, |file| read(self.open()?)?.write_open(file))?;
        bail!(
            "{error:#}; the capture is kept for root, unprocessed: sudo tipme diagnose {}",
            kept.display()
        )
    }

    fn keep(
        &self,
        folder: &IncidentFolder,
        owner: u32,
        fill: impl Fn(&mut File) -> io::Result<()>,
    ) -> Result<PathBuf> {
        let (path, untidy) = folder.keep_by(&self.id, owner, fill)?;
        if let Some(error) = untidy {
            journal::warning(format!("cannot tidy {}: {error}", folder.path().display())).tell();
        }
        Ok(path)
    }

    /// Opens the capture read-only from its beginning, so the sealer cannot change what may be
    /// rescued.
    fn open(&self) -> io::Result<File> {
        File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

fn read(file: File) -> io::Result<PackedIncident> {
    PackedIncident::read(file).map_err(io::Error::other)
}

/// Returns `true` if the disk is full: then there is no room for the larger raw capture either.
fn is_full(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(WriteError::Full { .. }))
}

/// Opens the kernel's symbol table, as visible to the caller.
pub fn functions() -> io::Result<File> {
    File::open("/proc/kallsyms")
}

/// Collects everything that needs privileges; parses nothing but the answers of processes.
fn assemble(
    mut capture: Capture,
    displays: &Displays,
    inquiries: &Inquiries,
    sealer: &Sealer,
) -> Result<PackedIncident> {
    let proc_locks = owners::file_locks();
    let port_owners = ports::port_owners(&capture.tasks);
    let stacks = parse_stacks(&capture.stacks);
    let known = questions::ask(inquiries, &capture, &stacks, sealer)?;
    let locks = Locks { proc_locks, futexes: known.owners, pipes: known.pipes };
    capture.meta.missing.extend(known.missing);
    capture.meta.machine = identity::machine();
    capture.meta.irq_names = identity::interrupt_names();
    capture.meta.devices = identity::block_devices();
    let mut packed = capture.packed;
    let incident = packed.incident_mut();
    incident.push_json(Section::Meta, &capture.meta)?;
    incident.push_json(Section::Locks, &locks)?;
    incident.push(Section::Symbols, known.functions);
    incident.push_json(Section::Displays, &displays.refresh())?;
    incident.push(Section::Tasks, capture.tasks);
    incident.push(Section::Cmdlines, command_lines(&capture.command_lines));
    incident.push(Section::Stacks, capture.stacks);
    incident.push(Section::Samples, capture.samples);
    incident.push(Section::Inputs, capture.inputs);
    incident.push_json(Section::Losses, &capture.losses)?;
    incident.push_json(Section::Baselines, &capture.baselines)?;
    incident.push_json(Section::Cost, &capture.cost)?;
    incident.push_json(Section::Groups, &known.groups)?;
    incident.push_json(Section::Files, &known.files)?;
    incident.push_json(Section::Ports, &port_owners)?;
    Ok(packed)
}

/// Names the kernel's functions in a capture, and removes everything that its owner may not see.
///
/// # Errors
/// If the capture cannot be read.
pub fn finish(mut captured: PackedIncident, functions: Option<File>) -> Result<PackedIncident> {
    let damage = &captured.incident().damage;
    ensure!(damage.is_empty(), "the capture is damaged: {damage:?}");
    let names = name_kernel(&mut captured, functions)?;
    let mut meta: Meta = captured.incident().json(Section::Meta)?;
    // A new secret for each incident: addresses cannot be compared between incidents.
    let secret = RandomState::new();
    let disguise = |address: u64| secret.hash_one(address);
    let mut concealer = Concealer::of(&captured, meta.marked_by_uid, &disguise)?;
    captured.edit_chunks(Section::Rare, |chunk| concealer.chunk(&names.cleaned(chunk)))?;
    let from = exits_held_from(&meta);
    captured.edit_chunks(Section::Exits, |chunk| concealer.chunk(&cut_chunk(chunk, from)))?;
    let others = concealer.finish(captured.incident_mut());
    // The users of withheld input may be among those of withheld messages.
    let users = meta.withheld.users.max(others.users);
    meta.withheld = Withheld { users, inputs: meta.withheld.inputs + others.inputs, ..others };
    put(captured.incident_mut(), Section::Meta, serde_json::to_vec(&meta)?);
    Ok(captured)
}

/// Names the kernel's functions in all sections without chunks.
fn name_kernel(captured: &mut PackedIncident, functions: Option<File>) -> Result<Placeless> {
    let mut sampled = BTreeSet::new();
    captured.see_chunks(Section::Rare, &mut |chunk| {
        sampled.extend(samples(chunk).map(|sample| sample.ip))
    })?;
    let incident = captured.incident_mut();
    let [stacks, mut tasks, users] =
        [Section::Stacks, Section::Tasks, Section::Symbols].map(|section| take(incident, section));
    let names = Placeless::new(functions, sampled, &parse_stacks(&stacks));
    let mut symbols = Vec::new();
    names.push_to(&mut symbols);
    symbols.extend(users);
    names.clean_loose(&mut tasks);
    put(incident, Section::Stacks, names.stacks());
    put(incident, Section::Tasks, tasks);
    put(incident, Section::Symbols, symbols);
    Ok(names)
}

/// Returns the time from which on ended processes are in the file: a chunk also holds older ones.
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
