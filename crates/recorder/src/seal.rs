// SPDX-License-Identifier: MIT OR Apache-2.0
//! From captured bytes to a sealed file, in a thread of its own.

mod files;
mod questions;

use crate::capture::Capture;
use crate::displays::Displays;
use crate::inquiry::Inquiries;
use crate::symbols::{Named, name_kernel, parse_stacks};
use crate::{identity, owners};
use anyhow::Result;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use tipme_kernel::CommandLine;
use tipme_record::incident::{Incident, Locks, Meta, Section, Withheld};
use tipme_store::{Bounds, Folder};

/// Looks up names, writes the incident, and keeps the folder within its bounds.
pub(crate) fn seal(capture: Capture, displays: &Displays, inquiries: &Inquiries, folder: &Folder) -> Result<PathBuf> {
    let owner = capture.meta.marked_by_uid;
    let incident = assemble(capture, displays, inquiries)?;
    let (path, untidy) = folder.keep(&incident, owner, Bounds::default())?;
    if let Some(error) = untidy {
        eprintln!("tipme: cannot tidy {}: {error}", folder.path().display());
    }
    Ok(path)
}

fn assemble(mut capture: Capture, displays: &Displays, inquiries: &Inquiries) -> Result<Incident> {
    let proc_locks = owners::file_locks();
    let stacks = parse_stacks(&capture.stacks);
    let known = questions::ask(inquiries, &capture, &stacks);
    let locks = Locks { proc_locks, futexes: known.owners };
    capture.meta.missing.extend(known.missing);
    capture.meta.machine = identity::machine();
    capture.meta.irq_names = identity::interrupt_names();
    capture.meta.devices = identity::block_devices();
    let [sched, rare, exits] = capture.rings;
    let Named { mut symbols, stacks, rare, tasks } = name_kernel(&stacks, rare, capture.tasks);
    symbols.extend(known.functions);
    let mut incident = Incident::default();
    incident.push_json(Section::Locks, &locks)?;
    incident.push(Section::Symbols, symbols);
    incident.push_json(Section::Displays, &displays.refresh())?;
    incident.push(Section::Sched, sched);
    incident.push(Section::Rare, rare);
    incident.push(Section::Exits, exits);
    incident.push(Section::Tasks, tasks);
    incident.push(Section::Cmdlines, command_lines(&capture.command_lines));
    incident.push(Section::Stacks, stacks);
    incident.push(Section::Samples, capture.samples);
    incident.push(Section::Inputs, capture.inputs);
    incident.push_json(Section::Losses, &capture.losses)?;
    incident.push_json(Section::Baselines, &capture.baselines)?;
    incident.push_json(Section::Cost, &capture.cost)?;
    incident.push_json(Section::Groups, &capture.groups)?;
    incident.push_json(Section::Files, &known.files)?;
    conceal(&mut incident, &mut capture.meta);
    incident.sections.insert(0, (Section::Meta, serde_json::to_vec(&capture.meta)?));
    Ok(incident)
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
