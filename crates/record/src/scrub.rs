// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scrubbing of an incident for sharing: the same causes, without data that identifies the owner.
//!
//! Only the following stays: names of kernel threads, of the programs to keep, of functions of the
//! kernel and of libraries that every system has, and of devices; pids, times since boot, and the
//! kernel's counters. The host, the user, the day, the user's words, command lines, names of files,
//! control groups and other programs, network addresses, memory addresses and stack frames without
//! a name are removed. Times of input devices are rounded to 50 ms. Sections and records without a
//! rule are left out.

mod libraries;

use crate::incident::{Groups, Incident, Locks, Machine, Meta, Missing, Section, StoredBaseline};
use crate::records::{Exec, Exit, FarEnd, Head, Input, Polled, RecordKind, Rename, Task, Wait};
use crate::rewrite::{self, put};
use crate::units::{Pid, Tid};
use crate::whereabouts::{
    SYMBOL_HEAD, conceal_arguments, conceal_functions, conceal_locks, conceal_sample, symbol_texts,
};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::mem::offset_of;
use std::net::{Ipv4Addr, Ipv6Addr};
use zerocopy::FromBytes;

/// Name given to programs that are not kept.
const ANONYMOUS: &[u8; 16] = b"program\0\0\0\0\0\0\0\0\0";

/// Process that is the parent of all kernel threads.
const KERNEL_PARENT: Pid = Pid(2);

/// Resolution of the times of input events.
const INPUT_STEP_NS: u64 = 50_000_000;
/// Resolution of the wall-clock time.
const CLOCK_STEP_NS: u64 = 3_600_000_000_000;
/// Id of a scrubbed incident, since an id reveals the time.
const NAMELESS_ID: &str = "scrubbed";

/// Number of items removed or coarsened in a scrubbed copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScrubReport {
    /// Records with a replaced thread name.
    pub programs: u64,
    pub command_lines: u64,
    /// Functions of programs, and of libraries that not every system has.
    pub functions: u64,
    /// Network addresses of other machines.
    pub addresses: u64,
    /// Paths of files.
    pub files: u64,
    /// Input events with a rounded time.
    pub inputs: u64,
    /// Baselines of programs.
    pub baselines: u64,
}

/// Returns a copy of an incident without the names of programs other than `keep`, and the number of
/// items removed.
///
/// # Errors
/// If a section is not a valid document.
pub fn scrub(
    incident: &Incident,
    keep: &[String],
) -> Result<(Incident, ScrubReport), serde_json::Error> {
    let mut scrubber =
        Scrubber { keep, kernel: kernel_threads(incident), removed: ScrubReport::default() };
    let secret = RandomState::new();
    let disguise = |address: u64| secret.hash_one(address);
    let mut clean = Incident::default();
    for (section, bytes) in &incident.sections {
        match section {
            Section::Meta => {
                clean.push_json(Section::Meta, &without_owner(incident.json(Section::Meta)?))?
            }
            Section::Rare | Section::Exits => {
                clean.push(
                    *section,
                    rewrite::chunks(bytes, &mut |kind, record| {
                        scrubber.edit(kind, record, &disguise)
                    }),
                );
            }
            Section::Tasks | Section::Inputs => {
                clean.push(
                    *section,
                    rewrite::loose(bytes, &mut |kind, record| {
                        scrubber.edit(kind, record, &disguise)
                    }),
                );
            }
            Section::Symbols => clean.push(*section, scrubber.symbols(bytes)),
            Section::Stacks => clean
                .push(*section, stacks(bytes, &scrubber.symbols(incident.bytes(Section::Symbols)))),
            Section::Groups => {
                clean.push_json(*section, &without_paths(incident.json(*section)?))?
            }
            Section::Locks => {
                clean.push_json(*section, &without_places(incident.json(*section)?, &disguise))?
            }
            Section::Baselines => {
                clean.push_json(*section, &scrubber.baselines(incident.json(*section)?))?
            }
            // Free of names.
            Section::Sched
            | Section::Displays
            | Section::Samples
            | Section::Losses
            | Section::Cost
            | Section::Ports => clean.push(*section, bytes.clone()),
            Section::Cmdlines | Section::Files | Section::Words => {}
        }
    }
    conceal_functions(&mut clean, &disguise);
    scrubber.removed.command_lines += command_lines(incident.bytes(Section::Cmdlines));
    scrubber.removed.files =
        incident.json::<Vec<serde::de::IgnoredAny>>(Section::Files).unwrap_or_default().len()
            as u64;
    Ok((clean, scrubber.removed))
}

fn without_paths(mut groups: Groups) -> Groups {
    for (number, group) in (1..).zip(&mut groups.limited) {
        group.path = format!("/group{number}");
        let file = group.file.rsplit('/').next().unwrap_or_default();
        group.file = format!("{}/{file}", group.path);
    }
    for (number, group) in (1..).zip(&mut groups.io) {
        group.folder = format!("/io-group{number}");
        for limit in &mut group.limits {
            let file = limit.file.rsplit('/').next().unwrap_or_default();
            limit.file = format!("{}/{file}", group.folder);
        }
    }
    groups
}

fn without_places(mut locks: Locks, disguise: &dyn Fn(u64) -> u64) -> Locks {
    conceal_locks(&mut locks, |_| true, disguise);
    locks
}

/// Lists the fields to keep, so that a future field is not kept by default.
fn without_owner(meta: Meta) -> Meta {
    let Machine { kernel, cpus, virtualized, .. } = meta.machine;
    let version = kernel
        .split(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .next()
        .unwrap_or_default();
    let missing = meta.missing.into_iter();
    Meta {
        id: NAMELESS_ID.to_owned(),
        mark_ns: meta.mark_ns,
        mark_realtime_ns: meta.mark_realtime_ns / CLOCK_STEP_NS * CLOCK_STEP_NS,
        machine: Machine {
            hostname: "desk".to_owned(),
            kernel: version.to_owned(),
            cpus,
            virtualized,
        },
        window_requested_ns: meta.window_requested_ns,
        held_from_ns: meta.held_from_ns,
        classes: meta.classes,
        armed_ns: meta.armed_ns,
        tainted_until_ns: meta.tainted_until_ns,
        classes_on: meta.classes_on,
        details: meta.details,
        detail_spans: meta.detail_spans,
        missing: missing.map(|one| Missing { what: one.what, why: String::new() }).collect(),
        input_stopped_ns: meta.input_stopped_ns,
        recorder_pid: meta.recorder_pid,
        marked_by_uid: 0,
        trigger: meta.trigger,
        answered_ns: meta.answered_ns,
        user_text: String::new(),
        irq_names: meta.irq_names,
        devices: meta.devices,
        page_size: meta.page_size,
        withheld: meta.withheld,
    }
}

/// Counts the command lines in their section, each with process, length and text.
fn command_lines(mut section: &[u8]) -> u64 {
    let mut count = 0;
    while let Some(length) = section.get(4..8).and_then(|bytes| bytes.first_chunk()) {
        let size = (u32::from_le_bytes(*length) as usize).next_multiple_of(8);
        count += 1;
        section = section.get(8 + size..).unwrap_or_default();
    }
    count
}

/// Clears the frames without a name in `symbols`: in a program built without frame pointers, a
/// frame may hold arbitrary data.
fn stacks(section: &[u8], symbols: &[u8]) -> Vec<u8> {
    let named: BTreeSet<[u8; 8]> = symbol_addresses(symbols).collect();
    let mut clean = Vec::new();
    let mut rest = section;
    while let Some((head, behind)) = rest.split_first_chunk::<8>() {
        let frames = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let size = usize::try_from(frames).unwrap_or(usize::MAX).checked_mul(8);
        let Some((frames, after)) = size.and_then(|size| behind.split_at_checked(size)) else {
            break;
        };
        clean.extend_from_slice(head);
        let (frames, _) = frames.as_chunks::<8>();
        clean.extend(
            frames.iter().flat_map(|frame| if named.contains(frame) { *frame } else { [0; 8] }),
        );
        rest = after;
    }
    clean
}

fn symbol_addresses(symbols: &[u8]) -> impl Iterator<Item = [u8; 8]> {
    let mut rest = symbols;
    std::iter::from_fn(move || {
        let (head, texts) = rest.split_first_chunk::<SYMBOL_HEAD>()?;
        rest = texts.get(symbol_texts(head).2..)?;
        head.last_chunk().copied()
    })
}

/// Returns the kernel threads among the tasks of the mark; their names reveal nothing.
fn kernel_threads(incident: &Incident) -> BTreeSet<Tid> {
    let tasks = rewrite::tasks(incident).filter(|(kind, _)| *kind == RecordKind::Task);
    let tasks = tasks.filter_map(|(_, bytes)| Task::read(bytes));
    tasks
        .filter(|task| task.parent == KERNEL_PARENT || task.pid == KERNEL_PARENT)
        .map(|task| task.head.tid)
        .collect()
}

struct Scrubber<'a> {
    keep: &'a [String],
    kernel: BTreeSet<Tid>,
    removed: ScrubReport,
}

impl Scrubber<'_> {
    /// Edits a record, and returns `true` if it stays. Every kind has a rule.
    fn edit(&mut self, kind: RecordKind, record: &mut [u8], disguise: &dyn Fn(u64) -> u64) -> bool {
        match kind {
            RecordKind::Wait => {
                self.address(record, offset_of!(Wait, address), offset_of!(Wait, port));
                conceal_arguments(record, disguise);
            }
            RecordKind::Polled => {
                self.address(record, offset_of!(Polled, address), offset_of!(Polled, port))
            }
            RecordKind::FarEnd => {
                self.removed.addresses += 1;
                put(
                    record,
                    offset_of!(FarEnd, network),
                    &Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).octets(),
                );
            }
            RecordKind::Task => self.identity(record, offset_of!(Task, comm), record.len()),
            RecordKind::Exec => self.identity(record, offset_of!(Exec, comm), Exec::SIZE),
            RecordKind::Exit => self.identity(record, offset_of!(Exit, comm), Exit::SIZE),
            RecordKind::Rename => self.identity(record, offset_of!(Rename, comm), record.len()),
            RecordKind::Input => self.input(record),
            RecordKind::Sample => conceal_sample(record, disguise),
            RecordKind::Owner => return false,
            RecordKind::Switch
            | RecordKind::Waking
            | RecordKind::Migrate
            | RecordKind::Fork
            | RecordKind::Irq
            | RecordKind::Block
            | RecordKind::Reclaim => {}
            RecordKind::Attempt
            | RecordKind::Lock
            | RecordKind::Signal
            | RecordKind::Tty
            | RecordKind::Tally
            | RecordKind::Deferred
            | RecordKind::Withdrawn
            | RecordKind::Throttled
            | RecordKind::Overdue => {}
            RecordKind::Message | RecordKind::WlMessage => {}
        }
        true
    }

    /// Replaces the address of another machine by one reserved for documentation, and clears the
    /// port.
    fn address(&mut self, record: &mut [u8], address: usize, port: usize) {
        let Some(place) = record.get(address..).and_then(|place| place.first_chunk::<4>()) else {
            return;
        };
        let known = Ipv4Addr::from(*place);
        if !known.is_unspecified() && !known.is_loopback() {
            self.removed.addresses += 1;
            put(record, address, &Ipv4Addr::new(192, 0, 2, 1).octets());
            put(record, port, &[0; 2]);
        }
    }

    /// Removes the name of a thread and the command line of its process.
    fn identity(&mut self, record: &mut [u8], name: usize, tail: usize) {
        let Ok((head, _)) = Head::read_from_prefix(record) else { return };
        if let Some(line) = record.get_mut(tail..).filter(|line| line.iter().any(|byte| *byte != 0))
        {
            line.fill(0);
            self.removed.command_lines += 1;
        }
        let comm = record
            .get_mut(name..name + ANONYMOUS.len())
            .filter(|_| !self.kernel.contains(&head.tid));
        if let Some(comm) = comm.filter(|comm| !self.is_kept(comm)) {
            comm.copy_from_slice(ANONYMOUS);
            self.removed.programs += 1;
        }
    }

    fn input(&mut self, record: &mut [u8]) {
        let Some(input) = Input::read(record) else { return };
        self.removed.inputs += 1;
        let at = input.head.ts.0 / INPUT_STEP_NS * INPUT_STEP_NS;
        put(record, 0, &at.to_le_bytes());
    }

    /// Keeps names of functions in the kernel, in libraries that every system has, and in the
    /// programs to keep.
    fn symbols(&mut self, section: &[u8]) -> Vec<u8> {
        let mut clean = Vec::new();
        let mut rest = section;
        while let Some((head, behind)) = rest.split_first_chunk::<SYMBOL_HEAD>() {
            let (name, module, size) = symbol_texts(head);
            let Some((texts, after)) = behind.split_at_checked(size) else { break };
            let kernel = head[..4] == [0; 4];
            let module = &texts[name..name + module];
            if kernel || libraries::is_common(module) || self.is_kept(module) {
                clean.extend_from_slice(head);
                clean.extend_from_slice(texts);
            } else {
                self.removed.functions += 1;
            }
            rest = after;
        }
        clean
    }

    fn baselines(&mut self, mut stored: Vec<StoredBaseline>) -> Vec<StoredBaseline> {
        let all = stored.len();
        stored.retain(|stored| self.is_kept(stored.application.as_bytes()));
        self.removed.baselines = (all - stored.len()) as u64;
        stored
    }

    fn is_kept(&self, comm: &[u8]) -> bool {
        let name = comm.split(|byte| *byte == 0).next().unwrap_or_default();
        self.keep.iter().any(|keep| keep.as_bytes() == name)
    }
}

#[cfg(test)]
mod tests;
