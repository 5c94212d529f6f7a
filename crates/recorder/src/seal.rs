// SPDX-License-Identifier: MIT OR Apache-2.0
//! From captured bytes to a sealed file, in a thread of its own.
//!
//! What the kernel says of living processes is asked here, with the recorder's rights. Which functions their programs
//! have is asked by a process with the rights of who marked. What was captured is then handed, in a file in memory, to a
//! process without any, which names the kernel's functions, conceals, and writes to the file that it was given; the
//! recorder seals that and gives it its name. Where that process fails, what was captured is kept as it is, for root.
//! Nobody has more than one chunk in memory as it is.

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
        let file = assemble(capture, displays, inquiries, sealer)?.hand_over().context(NO_MEMORY)?;
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
        let kept = self.keep(folder, 0, |file| read(self.open()?)?.write_open(file))?;
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

fn read(file: File) -> io::Result<PackedIncident> {
    PackedIncident::read(file).map_err(io::Error::other)
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

/// Names the kernel's functions in what was captured, and takes out what the user who marked may not know.
///
/// # Errors
/// Where what was captured cannot be read.
pub fn finish(mut captured: PackedIncident, functions: Option<File>) -> Result<PackedIncident> {
    let damage = &captured.incident().damage;
    ensure!(damage.is_empty(), "what was captured is damaged: {damage:?}");
    let names = name_kernel(&mut captured, functions)?;
    let mut meta: Meta = captured.incident().json(Section::Meta)?;
    // A secret of its own for each incident: addresses of two incidents cannot be compared.
    let secret = RandomState::new();
    let disguise = |address: u64| secret.hash_one(address);
    let mut concealer = Concealer::of(&captured, meta.marked_by_uid, &disguise)?;
    captured.edit_chunks(Section::Rare, |chunk| concealer.chunk(&names.cleaned(chunk)))?;
    let from = exits_held_from(&meta);
    captured.edit_chunks(Section::Exits, |chunk| concealer.chunk(&cut_chunk(chunk, from)))?;
    let others = concealer.finish(captured.incident_mut());
    // Who owned the input may own the messages too.
    let users = meta.withheld.users.max(others.users);
    meta.withheld = Withheld { users, inputs: meta.withheld.inputs + others.inputs, ..others };
    put(captured.incident_mut(), Section::Meta, serde_json::to_vec(&meta)?);
    Ok(captured)
}

/// Names the kernel's functions in all but the chunks.
fn name_kernel(captured: &mut PackedIncident, functions: Option<File>) -> Result<Placeless> {
    let mut sampled = BTreeSet::new();
    captured.see_chunks(Section::Rare, &mut |chunk| sampled.extend(samples(chunk).map(|sample| sample.ip)))?;
    let incident = captured.incident_mut();
    let [stacks, mut tasks, users] =
        [Section::Stacks, Section::Tasks, Section::Symbols].map(|section| take(incident, section));
    let names = Placeless::of(functions, sampled, &parse_stacks(&stacks));
    let mut symbols = Vec::new();
    names.push_to(&mut symbols);
    symbols.extend(users);
    names.clean_loose(&mut tasks);
    put(incident, Section::Stacks, names.stacks());
    put(incident, Section::Tasks, tasks);
    put(incident, Section::Symbols, symbols);
    Ok(names)
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
