// SPDX-License-Identifier: MIT OR Apache-2.0
//! An incident that can be given away: the same times and causes, without what tells of its owner.
//!
//! The host name, the user's words, all command lines, names of files and control groups, network addresses,
//! the names and functions of programs that are not to be kept, and frames without a name are taken out. Names of kernel threads, of
//! functions of the kernel and of libraries, and of devices stay, and so do process numbers. Sections and records
//! that this version of the program has no rule for are left out.

use crate::chunk::{CHUNK_BYTES, entries};
use crate::incident::{Groups, Incident, Meta, Section, StoredBaseline};
use crate::records::{Exec, Exit, Head, Kind, Rename, Task, Wait};
use crate::units::{Pid, Tid};
use std::collections::BTreeSet;
use std::mem::offset_of;
use std::net::Ipv4Addr;
use zerocopy::FromBytes;

/// What programs are called that are not to be kept.
const STRANGER: &[u8; 16] = b"program\0\0\0\0\0\0\0\0\0";

/// Sections that tell of nobody.
const NAMELESS: [Section; 7] = [
    Section::Sched,
    Section::Displays,
    Section::Samples,
    Section::Inputs,
    Section::Locks,
    Section::Losses,
    Section::Cost,
];

/// In front of the name and the module of a function: process, their two lengths, address.
const SYMBOL_HEAD: usize = 16;

/// The process that all kernel threads descend from.
const KERNEL_PARENT: Pid = Pid(2);

/// Makes a copy of an incident without the names of programs other than `keep`.
///
/// # Errors
/// Where the section that says when the mark was is no such document.
pub fn scrub(incident: &Incident, keep: &[String]) -> Result<Incident, serde_json::Error> {
    let mut scrubber = Scrubber { keep, kernel: BTreeSet::new() };
    scrubber.kernel = kernel_threads(incident.bytes(Section::Tasks));
    let mut clean = Incident::default();
    for (section, bytes) in &incident.sections {
        match section {
            Section::Meta => clean.push_json(Section::Meta, &without_owner(incident.json(Section::Meta)?))?,
            Section::Rare | Section::Exits => clean.push(*section, scrubber.chunks(bytes)),
            Section::Tasks => clean.push(*section, scrubber.loose(bytes)),
            Section::Symbols => clean.push(*section, scrubber.symbols(bytes)),
            Section::Stacks => clean.push(*section, stacks(bytes, &scrubber.symbols(incident.bytes(Section::Symbols)))),
            Section::Groups => clean.push_json(*section, &without_paths(incident.json(*section)?))?,
            Section::Baselines => clean.push_json(*section, &scrubber.baselines(incident.json(*section)?))?,
            section if NAMELESS.contains(section) => clean.push(*section, bytes.clone()),
            _ => {}
        }
    }
    Ok(clean)
}

fn without_paths(mut groups: Groups) -> Groups {
    for group in &mut groups.limited {
        group.path = format!("/group{}", group.number);
        let file = group.file.rsplit('/').next().unwrap_or_default();
        group.file = format!("{}/{file}", group.path);
    }
    groups
}

fn without_owner(meta: Meta) -> Meta {
    let mut machine = meta.machine;
    machine.hostname = "desk".to_owned();
    Meta { machine, user_text: String::new(), ..meta }
}

/// Stacks in which frames that `symbols` has no name for are zero: where a program was built without frame pointers,
/// what stands there is anything of its memory.
fn stacks(section: &[u8], symbols: &[u8]) -> Vec<u8> {
    let named: BTreeSet<[u8; 8]> = symbol_addresses(symbols).collect();
    let mut clean = Vec::new();
    let mut rest = section;
    while let Some((head, behind)) = rest.split_first_chunk::<8>() {
        let frames = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let size = usize::try_from(frames).unwrap_or(usize::MAX).checked_mul(8);
        let Some((frames, after)) = size.and_then(|size| behind.split_at_checked(size)) else { break };
        clean.extend_from_slice(head);
        let (frames, _) = frames.as_chunks::<8>();
        clean.extend(frames.iter().flat_map(|frame| if named.contains(frame) { *frame } else { [0; 8] }));
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

/// The lengths of a symbol's name and module, and of both with their padding.
fn symbol_texts(head: &[u8; SYMBOL_HEAD]) -> (usize, usize, usize) {
    let length = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
    let (name, module) = (length(4), length(6));
    (name, module, (name + module).next_multiple_of(8))
}

/// The kernel's threads among those that lived at the mark; their names tell of nobody.
fn kernel_threads(tasks: &[u8]) -> BTreeSet<Tid> {
    let tasks = places(tasks).filter_map(|(_, bytes)| Task::read(bytes).filter(|task| is_task(&task.head)));
    tasks.filter(|task| task.parent == KERNEL_PARENT || task.pid == KERNEL_PARENT).map(|task| task.head.tid).collect()
}

fn is_task(head: &Head) -> bool {
    head.kind == Kind::Task as u8
}

/// Records that stand one behind the other, with their places.
fn places(section: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = section.get(at..)?;
        let (head, _) = Head::read_from_prefix(rest).ok()?;
        let size = usize::from(head.size).max(size_of::<Head>());
        let place = (at, rest.get(..size)?);
        at += size;
        Some(place)
    })
}

/// An address of another machine becomes one that is meant for documents; which one it was cannot be told from it.
fn without_address(bytes: &mut [u8]) {
    let Some(wait) = Wait::read(bytes) else { return };
    let address = Ipv4Addr::from(wait.address.to_ne_bytes());
    let place = bytes.get_mut(offset_of!(Wait, address)..).and_then(|place| place.first_chunk_mut::<4>());
    if let Some(place) = place.filter(|_| !address.is_unspecified() && !address.is_loopback()) {
        *place = Ipv4Addr::new(192, 0, 2, 1).octets();
    }
}

struct Scrubber<'a> {
    keep: &'a [String],
    kernel: BTreeSet<Tid>,
}

impl Scrubber<'_> {
    /// What follows a record of no size is left out.
    fn loose(&self, section: &[u8]) -> Vec<u8> {
        places(section).flat_map(|(_, bytes)| self.cleaned(bytes)).collect()
    }

    /// What follows the valid records of a chunk, of an earlier life of it, is cleared.
    fn chunks(&self, section: &[u8]) -> Vec<u8> {
        section.chunks(CHUNK_BYTES).flat_map(|chunk| self.chunk(chunk)).collect()
    }

    fn chunk(&self, chunk: &[u8]) -> Vec<u8> {
        let head = chunk.len().min(size_of::<crate::chunk::ChunkHead>());
        let mut clean = vec![0; chunk.len()];
        clean[..head].copy_from_slice(&chunk[..head]);
        let mut at = head;
        for record in entries(chunk).map(|entry| self.cleaned(entry.bytes)) {
            clean[at..at + record.len()].copy_from_slice(&record);
            at += record.len();
        }
        clean
    }

    /// A record without what tells of the owner; nothing of a record that this version does not know.
    fn cleaned(&self, bytes: &[u8]) -> Vec<u8> {
        let known = Head::read_from_prefix(bytes).is_ok_and(|(head, _)| Kind::from_number(head.kind).is_some());
        let mut record = if known { bytes.to_vec() } else { Vec::new() };
        self.record(&mut record);
        record
    }

    /// Takes the name and the command line, or the address, out of a record that has them.
    fn record(&self, bytes: &mut [u8]) {
        let Ok((head, _)) = Head::read_from_prefix(bytes) else { return };
        let (name, tail) = match Kind::from_number(head.kind) {
            Some(Kind::Wait) => return without_address(bytes),
            Some(Kind::Task) => (offset_of!(Task, comm), bytes.len()),
            Some(Kind::Exec) => (offset_of!(Exec, comm), Exec::SIZE),
            Some(Kind::Exit) => (offset_of!(Exit, comm), Exit::SIZE),
            Some(Kind::Rename) => (offset_of!(Rename, comm), bytes.len()),
            _ => return,
        };
        if let Some(line) = bytes.get_mut(tail..) {
            line.fill(0);
        }
        let comm = bytes.get_mut(name..name + STRANGER.len()).filter(|_| !self.kernel.contains(&head.tid));
        if let Some(comm) = comm.filter(|comm| !self.is_kept(comm)) {
            comm.copy_from_slice(STRANGER);
        }
    }

    /// Functions of the kernel and of libraries keep their names, and so do those of programs that are kept.
    fn symbols(&self, section: &[u8]) -> Vec<u8> {
        let mut clean = Vec::new();
        let mut rest = section;
        while let Some((head, behind)) = rest.split_first_chunk::<SYMBOL_HEAD>() {
            let (name, module, size) = symbol_texts(head);
            let Some((texts, after)) = behind.split_at_checked(size) else { break };
            let kernel = head[..4] == [0; 4];
            if kernel || self.is_told(&texts[name..name + module]) {
                clean.extend_from_slice(head);
                clean.extend_from_slice(texts);
            }
            rest = after;
        }
        clean
    }

    fn is_told(&self, module: &[u8]) -> bool {
        module.windows(3).any(|part| part == b".so") || self.is_kept(module)
    }

    fn baselines(&self, stored: Vec<StoredBaseline>) -> Vec<StoredBaseline> {
        stored.into_iter().filter(|stored| self.is_kept(stored.application.as_bytes())).collect()
    }

    fn is_kept(&self, comm: &[u8]) -> bool {
        let name = comm.split(|byte| *byte == 0).next().unwrap_or_default();
        self.keep.iter().any(|keep| keep.as_bytes() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::ChunkHead;
    use crate::units::Nanos;
    use zerocopy::{FromZeros, IntoBytes};

    fn name(text: &str) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        bytes
    }

    fn head(tid: u32, size: usize, kind: Kind) -> Head {
        Head { ts: Nanos(5_000_000), tid: Tid(tid), size: size as u16, kind: kind as u8, generation: 1 }
    }

    fn task(tid: u32, parent: u32, comm: &str) -> Task {
        let mut task = Task::new_zeroed();
        task.head = head(tid, Task::SIZE, Kind::Task);
        (task.pid, task.parent, task.comm) = (Pid(tid), Pid(parent), name(comm));
        task
    }

    fn incident() -> Incident {
        let mut exec = Exec::new_zeroed();
        exec.head = head(30, Exec::SIZE + 16, Kind::Exec);
        exec.comm = name("secret-editor");
        let chunk_head = ChunkHead { taken: 1, opened: Nanos(1), cpu: 0, class: 1, closed: Nanos(0) };
        let mut chunk = [chunk_head.as_bytes(), exec.as_bytes(), b"edit\0diary.txt\0\0"].concat();
        chunk.resize(CHUNK_BYTES - 20, 0);
        chunk.extend(b"an old diary line..!");
        let mut incident = Incident::default();
        let meta = Meta { user_text: "my diary".into(), mark_ns: 7, ..Meta::default() };
        incident.push_json(Section::Meta, &meta).expect("it is a document");
        let tasks = [task(30, 1, "secret-editor"), task(31, 2, "kswapd0"), task(32, 1, "xterm")];
        incident.push(Section::Tasks, tasks.iter().flat_map(|task| task.as_bytes().to_vec()).collect());
        incident.push(Section::Rare, chunk);
        incident.push(Section::Cmdlines, b"diary".to_vec());
        incident.push(Section::Words, b"diary".to_vec());
        incident.push(Section::Stacks, b"\x03\0\0\0\x01\0\0\0my diary".to_vec());
        incident
    }

    #[test]
    fn nothing_of_the_owner_is_left() {
        let clean = scrub(&incident(), &["xterm".to_owned()]).expect("the document is whole");
        for (section, bytes) in &clean.sections {
            for word in ["diary", "secret"] {
                let found = bytes.windows(word.len()).any(|window| window == word.as_bytes());
                assert!(!found, "{word} is left in {section:?}");
            }
        }
    }

    #[test]
    fn kept_names_kernel_threads_and_times_stay() {
        let clean = scrub(&incident(), &["xterm".to_owned()]).expect("the document is whole");
        let names: Vec<[u8; 16]> =
            places(clean.bytes(Section::Tasks)).filter_map(|(_, bytes)| Some(Task::read(bytes)?.comm)).collect();
        assert_eq!(names, [*STRANGER, name("kswapd0"), name("xterm")]);
        assert_eq!(clean.mark().expect("the document is whole"), Nanos(7));
        let kept: Vec<Nanos> = entries(clean.bytes(Section::Rare)).map(|entry| entry.head.ts).collect();
        assert_eq!(kept, [Nanos(5_000_000)]);
    }

    #[test]
    fn addresses_of_other_machines_go() {
        let scrubbed = |address: [u8; 4]| {
            let mut wait = Wait::new_zeroed();
            wait.head = head(30, Wait::SIZE, Kind::Wait);
            wait.address = u32::from_ne_bytes(address);
            let mut incident = incident();
            incident.push(Section::Tasks, wait.as_bytes().to_vec());
            let clean = scrub(&incident, &[]).expect("the document is whole");
            let tasks = clean.sections.iter().rfind(|(section, _)| *section == Section::Tasks).expect("it is kept");
            Wait::read(&tasks.1).expect("it is a wait").address.to_ne_bytes()
        };
        assert_eq!(scrubbed([10, 1, 2, 3]), [192, 0, 2, 1]);
        assert_eq!(scrubbed([127, 0, 0, 1]), [127, 0, 0, 1]);
        assert_eq!(scrubbed([0; 4]), [0; 4]);
    }

    fn symbol(pid: u32, name: &str, module: &str) -> Vec<u8> {
        let lengths = [name.len() as u16, module.len() as u16].map(u16::to_le_bytes);
        let mut bytes = [&pid.to_le_bytes()[..], &lengths[0], &lengths[1], &[7; 8], name.as_bytes()].concat();
        bytes.extend(module.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    #[test]
    fn functions_of_strangers_go() {
        let kept = [symbol(0, "schedule", ""), symbol(5, "malloc", "libc.so.6"), symbol(5, "draw", "xterm")];
        let section = [kept.concat(), symbol(6, "pay_all", "payroll"), symbol(6, "", "payroll")].concat();
        let scrubber = Scrubber { keep: &["xterm".to_owned()], kernel: BTreeSet::new() };
        assert_eq!(scrubber.symbols(&section), kept.concat());
        assert_eq!(scrubber.symbols(&section[..section.len() - 1]), kept.concat());
    }

    #[test]
    fn frames_without_a_name_go() {
        let symbols = symbol(5, "malloc", "libc.so.6");
        let stack = |frame: &[u8; 8]| [&3_u32.to_le_bytes()[..], &2_u32.to_le_bytes(), &[7; 8], frame].concat();
        assert_eq!(stacks(&stack(b"my diary"), &symbols), stack(&[0; 8]));
        assert!(stacks(&stack(b"my diary")[..20], &symbols).is_empty());
        assert!(!stacks(&stack(&[7; 8]), &symbols[..20]).contains(&7));
    }

    #[test]
    fn records_of_unknown_kinds_go() {
        let mut unknown = task(30, 1, "secret-editor");
        unknown.head.kind = 255;
        let scrubber = Scrubber { keep: &[], kernel: BTreeSet::new() };
        assert!(scrubber.loose(unknown.as_bytes()).is_empty());
    }

    #[test]
    fn damaged_sections_are_copied_as_far_as_they_go() {
        let whole = incident();
        for length in [0, 1, 15, 40, 200] {
            let mut cut = whole.clone();
            cut.sections.iter_mut().skip(1).for_each(|(_, bytes)| bytes.truncate(length));
            assert!(scrub(&cut, &[]).is_ok());
        }
    }
}
