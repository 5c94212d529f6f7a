// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queries of live processes for an incident. Sealing takes no longer than the timeouts here,
//! however slowly they answer.

use super::ends::PipeWaiters;
use super::files::WantedFiles;
use super::groups::ThrottledGroups;
use super::io_limits::IoWaiters;
use super::naming::name;
use super::sealer::Sealer;
use crate::capture::Capture;
use crate::inquiry::{Inquirer, Inquiries};
use crate::owners::{futex_owner, futex_waits};
use crate::processes::user;
use crate::symbols::{Modules, SampledStacks, Stacks};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;
use tipme_record::incident::{FileName, FutexOwner, Groups, Missing, PipeEnd, Section, Sections};
use tipme_record::records::Wait;

/// Timeout for the owners of locks, which are worth less the later they are read.
const LOCKS_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for the names of functions and files.
const NAMES_TIMEOUT: Duration = Duration::from_secs(5);

/// Answers, and the reasons why there are not more.
pub(super) struct FoundAnswers {
    pub(super) owners: Vec<FutexOwner>,
    pub(super) pipes: Vec<PipeEnd>,
    pub(super) files: Vec<FileName>,
    pub(super) groups: Groups,
    /// In the form of the symbol section.
    pub(super) functions: Vec<u8>,
    pub(super) missing: Vec<Missing>,
}

enum Name {
    File(FileName),
    Functions(Vec<u8>),
}

/// Queries all processes related to the incident, those of its owner first.
pub(super) fn ask(
    inquiries: &Inquiries,
    capture: &Capture,
    stacks: &Stacks,
    sealer: &Sealer,
) -> io::Result<FoundAnswers> {
    let marker = capture.meta.marked_by_uid;
    let mut waits: BTreeMap<u32, Vec<Wait>> = BTreeMap::new();
    futex_waits(&capture.tasks).for_each(|wait| waits.entry(wait.pid.0).or_default().push(wait));
    let owners = inquiries.ask(LOCKS_TIMEOUT, move |asker| ask_locks(asker, waits, marker));
    let (mut files, mut sampled) =
        (WantedFiles::from_tasks(&capture.tasks, marker), SampledStacks::default());
    let (mut groups, mut io) = (ThrottledGroups::default(), IoWaiters::from_tasks(&capture.tasks));
    capture.packed.see_chunks(Section::Rare, &mut |chunk| {
        files.see(chunk);
        sampled.see(chunk);
        groups.see(chunk);
        io.see(chunk);
    })?;
    capture.packed.see_chunks(Section::Exits, &mut |chunk| io.add_ended(chunk))?;
    // Group members are read first, since threads end meanwhile.
    let groups = groups.resolve(&capture.tasks);
    let functions = sampled.addresses(stacks);
    let sealer = sealer.clone();
    let names = inquiries.ask(NAMES_TIMEOUT, move |asker| {
        ask_files(asker, files);
        ask_functions(asker, functions, marker, &sealer)
    });
    let missing = [("owners of locks", owners.missing), ("names", names.missing)];
    let missing = missing
        .into_iter()
        .filter_map(|(what, why)| Some(Missing { what: what.to_owned(), why: why? }));
    let io = io.resolve();
    let mut known = FoundAnswers {
        owners: owners.found,
        pipes: PipeWaiters::from_tasks(&capture.tasks).resolve(),
        files: Vec::new(),
        groups: Groups { io: io.groups, ..groups },
        functions: Vec::new(),
        missing: missing.chain(io.missing).collect(),
    };
    for name in names.found {
        match name {
            Name::File(file) => known.files.push(file),
            Name::Functions(bytes) => known.functions.extend(bytes),
        }
    }
    Ok(known)
}

fn ask_locks(
    asker: &Inquirer<FutexOwner>,
    waits: BTreeMap<u32, Vec<Wait>>,
    marker: u32,
) -> Option<String> {
    for (who, _, waits) in with_users(waits, marker) {
        let waits = waits.iter().take_while(|_| asker.may_ask(who));
        waits.filter_map(futex_owner).for_each(|owner| asker.send(owner));
    }
    None
}

fn ask_files(asker: &Inquirer<Name>, files: WantedFiles) {
    files.resolve(
        |pid| user(pid.0).is_some_and(|user| asker.may_ask(user)),
        |file| asker.send(Name::File(file)),
    );
}

/// Names functions of programs that the incident's owner may read; returns the reason why there are
/// not more.
fn ask_functions(
    asker: &Inquirer<Name>,
    functions: Vec<(u32, BTreeSet<u64>)>,
    marker: u32,
    sealer: &Sealer,
) -> Option<String> {
    let mut modules = Modules::default();
    for (who, pid, addresses) in with_users(functions, marker) {
        if asker.may_ask(who) {
            modules.add(who, pid, &addresses);
        }
    }
    asker.send(Name::Functions(modules.nameless()));
    let first = modules.waits_for()?;
    asker.waits_for(first);
    let named = name(sealer, marker, &modules.questions(), asker.left(), |answers| {
        asker.send(Name::Functions(modules.read_answers(answers)));
        modules.waits_for().into_iter().for_each(|user| asker.waits_for(user));
    });
    asker.send(Name::Functions(modules.give_up()));
    named.err().map(|error| format!("functions of programs: {error:#}"))
}

/// Adds the real uid of each process that is still alive, and sorts: the marking user's processes
/// come first, then root's.
fn with_users<T>(questions: impl IntoIterator<Item = (u32, T)>, marker: u32) -> Vec<(u32, u32, T)> {
    let questions =
        questions.into_iter().filter_map(|(pid, question)| Some((user(pid)?, pid, question)));
    let mut questions: Vec<(u32, u32, T)> = questions.collect();
    questions.sort_by_key(|(who, _, _)| (*who != marker, *who));
    questions
}
