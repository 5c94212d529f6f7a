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
use crate::whereabouts::{conceal_arguments, conceal_functions, conceal_locks, conceal_sample};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::mem::offset_of;
use std::net::{Ipv4Addr, Ipv6Addr};
use zerocopy::FromBytes;

/// Name given to programs that are not kept.
const ANONYMOUS: &[u8; 16] = b"program\0\0\0\0\0\0\0\0\0";

/// Bytes before the name and the module of a function: process, both lengths, address.
const SYMBOL_HEAD: usize = 16;

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
pub struct Gone {
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
pub fn scrub(incident: &Incident, keep: &[String]) -> Result<(Incident, Gone), serde_json::Error> {
    let mut scrubber = Scrubber { keep, kernel: kernel_threads(incident), gone: Gone::default() };
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
    scrubber.gone.command_lines += command_lines(incident.bytes(Section::Cmdlines));
    scrubber.gone.files =
        incident.json::<Vec<serde::de::IgnoredAny>>(Section::Files).unwrap_or_default().len()
            as u64;
    Ok((clean, scrubber.gone))
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
    let nobodys = |missing: Missing| Missing { what: missing.what, why: String::new() };
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
        missing: meta.missing.into_iter().map(nobodys).collect(),
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

/// Returns the lengths of a symbol's name and module, and of both with padding.
fn symbol_texts(head: &[u8; SYMBOL_HEAD]) -> (usize, usize, usize) {
    let length = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
    let (name, module) = (length(4), length(6));
    (name, module, (name + module).next_multiple_of(8))
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
    gone: Gone,
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
                self.gone.addresses += 1;
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
            self.gone.addresses += 1;
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
            self.gone.command_lines += 1;
        }
        let comm = record
            .get_mut(name..name + ANONYMOUS.len())
            .filter(|_| !self.kernel.contains(&head.tid));
        if let Some(comm) = comm.filter(|comm| !self.is_kept(comm)) {
            comm.copy_from_slice(ANONYMOUS);
            self.gone.programs += 1;
        }
    }

    fn input(&mut self, record: &mut [u8]) {
        let Some(input) = Input::read(record) else { return };
        self.gone.inputs += 1;
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
            if kernel || self.is_told(&texts[name..name + module]) {
                clean.extend_from_slice(head);
                clean.extend_from_slice(texts);
            } else {
                self.gone.functions += 1;
            }
            rest = after;
        }
        clean
    }

    fn is_told(&self, module: &[u8]) -> bool {
        libraries::is_common(module) || self.is_kept(module)
    }

    fn baselines(&mut self, mut stored: Vec<StoredBaseline>) -> Vec<StoredBaseline> {
        let all = stored.len();
        stored.retain(|stored| self.is_kept(stored.application.as_bytes()));
        self.gone.baselines = (all - stored.len()) as u64;
        stored
    }

    fn is_kept(&self, comm: &[u8]) -> bool {
        let name = comm.split(|byte| *byte == 0).next().unwrap_or_default();
        self.keep.iter().any(|keep| keep.as_bytes() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{CHUNK_BYTES, ChunkHead, entries};
    use crate::incident::{IoLimit, IoLimitedGroup};
    use crate::rewrite::places;
    use crate::units::Nanos;
    use zerocopy::{FromZeros, IntoBytes};

    fn name(text: &str) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        bytes
    }

    fn head(tid: u32, size: usize, kind: RecordKind) -> Head {
        Head {
            ts: Nanos(5_000_000),
            tid: Tid(tid),
            size: size as u16,
            kind: kind as u8,
            generation: 1,
        }
    }

    fn task(tid: u32, parent: u32, comm: &str) -> Task {
        let mut task = Task::new_zeroed();
        task.head = head(tid, Task::SIZE, RecordKind::Task);
        (task.pid, task.parent, task.comm) = (Pid(tid), Pid(parent), name(comm));
        task
    }

    fn incident() -> Incident {
        let mut exec = Exec::new_zeroed();
        exec.head = head(30, Exec::SIZE + 16, RecordKind::Exec);
        exec.comm = name("secret-editor");
        let chunk_head =
            ChunkHead { taken: 1, opened: Nanos(1), cpu: 0, class: 1, closed: Nanos(0) };
        let mut chunk = [chunk_head.as_bytes(), exec.as_bytes(), b"edit\0diary.txt\0\0"].concat();
        chunk.resize(CHUNK_BYTES - 20, 0);
        chunk.extend(b"an old diary line..!");
        let mut incident = Incident::default();
        let meta = Meta { user_text: "my diary".into(), mark_ns: 7, ..Meta::default() };
        incident.push_json(Section::Meta, &meta).expect("it is a document");
        let tasks = [task(30, 1, "secret-editor"), task(31, 2, "kswapd0"), task(32, 1, "xterm")];
        incident
            .push(Section::Tasks, tasks.iter().flat_map(|task| task.as_bytes().to_vec()).collect());
        incident.push(Section::Rare, chunk);
        incident.push(Section::Cmdlines, b"diary".to_vec());
        incident.push(Section::Words, b"diary".to_vec());
        incident
    }

    /// Returns the same incident with a control group that limits I/O.
    fn limited() -> Incident {
        let mut incident = incident();
        let limit = IoLimit {
            file: "/cgroup/diary.slice/io.max".into(),
            per_second: 5,
            ..IoLimit::default()
        };
        let io = IoLimitedGroup {
            folder: "/cgroup/diary.slice".into(),
            limits: vec![limit],
            tids: vec![30],
        };
        incident
            .push_json(Section::Groups, &Groups { io: vec![io], ..Groups::default() })
            .expect("it is a document");
        incident.push(Section::Stacks, b"\x03\0\0\0\x01\0\0\0my diary".to_vec());
        incident
    }

    #[test]
    fn nothing_of_the_owner_is_left() {
        let clean = scrub(&limited(), &["xterm".to_owned()]).expect("the document is whole").0;
        for (section, bytes) in &clean.sections {
            for word in ["diary", "secret"] {
                let found = bytes.windows(word.len()).any(|window| window == word.as_bytes());
                assert!(!found, "{word} is left in {section:?}");
            }
        }
    }

    #[test]
    fn a_limit_on_io_stays_without_the_name_of_its_group() {
        let clean = scrub(&limited(), &[]).expect("the document is whole").0;
        let groups: Groups = clean.json(Section::Groups).expect("it is a document");
        let limits: Vec<_> = groups.io.iter().flat_map(|group| &group.limits).collect();
        assert_eq!(groups.io[0].folder, "/io-group1");
        assert_eq!((limits[0].file.as_str(), limits[0].per_second), ("/io-group1/io.max", 5));
    }

    #[test]
    fn kept_names_kernel_threads_and_times_stay() {
        let clean = scrub(&incident(), &["xterm".to_owned()]).expect("the document is whole").0;
        let names: Vec<[u8; 16]> = places(clean.bytes(Section::Tasks))
            .filter_map(|bytes| Some(Task::read(bytes)?.comm))
            .collect();
        assert_eq!(names, [*ANONYMOUS, name("kswapd0"), name("xterm")]);
        assert_eq!(clean.mark().expect("the document is whole"), Nanos(7));
        let kept: Vec<Nanos> =
            entries(clean.bytes(Section::Rare)).map(|entry| entry.head.ts).collect();
        assert_eq!(kept, [Nanos(5_000_000)]);
    }

    #[test]
    fn ipv6_addresses_become_one_of_documents() {
        let mut end = FarEnd::new_zeroed();
        (end.head, end.network) = (head(30, FarEnd::SIZE, RecordKind::FarEnd), 9);
        let mut incident = incident();
        incident.push(Section::Tasks, end.as_bytes().to_vec());
        let clean = scrub(&incident, &[]).expect("the document is whole").0;
        let tasks = clean
            .sections
            .iter()
            .rfind(|(section, _)| *section == Section::Tasks)
            .expect("it is kept");
        let left = FarEnd::read(&tasks.1).expect("it is a far end");
        assert_eq!(left.network.to_ne_bytes(), [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0]);
        assert_eq!(left.host.to_ne_bytes(), [0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn addresses_of_other_machines_go() {
        let scrubbed = |address: [u8; 4]| {
            let address = u32::from_ne_bytes(address);
            let (mut wait, mut polled) = (Wait::new_zeroed(), Polled::new_zeroed());
            (wait.head, wait.address) = (head(30, Wait::SIZE, RecordKind::Wait), address);
            (polled.head, polled.address) = (head(30, Polled::SIZE, RecordKind::Polled), address);
            let mut incident = incident();
            incident.push(Section::Tasks, [wait.as_bytes(), polled.as_bytes()].concat());
            let clean = scrub(&incident, &[]).expect("the document is whole").0;
            let tasks = clean
                .sections
                .iter()
                .rfind(|(section, _)| *section == Section::Tasks)
                .expect("it is kept");
            let polled = Polled::read(&tasks.1[Wait::SIZE..]).expect("it is a polled file").address;
            assert_eq!(Wait::read(&tasks.1).expect("it is a wait").address, polled);
            polled.to_ne_bytes()
        };
        assert_eq!(scrubbed([10, 1, 2, 3]), [192, 0, 2, 1]);
        assert_eq!(scrubbed([127, 0, 0, 1]), [127, 0, 0, 1]);
        assert_eq!(scrubbed([0; 4]), [0; 4]);
    }

    fn symbol(pid: u32, name: &str, module: &str) -> Vec<u8> {
        let lengths = [name.len() as u16, module.len() as u16].map(u16::to_le_bytes);
        let mut bytes =
            [&pid.to_le_bytes()[..], &lengths[0], &lengths[1], &[7; 8], name.as_bytes()].concat();
        bytes.extend(module.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn scrubber(keep: &[String]) -> Scrubber<'_> {
        Scrubber { keep, kernel: BTreeSet::new(), gone: Gone::default() }
    }

    #[test]
    fn functions_of_other_programs_go() {
        let keep = ["xterm".to_owned()];
        let kept = [
            symbol(0, "schedule", ""),
            symbol(5, "malloc", "libc.so.6"),
            symbol(5, "draw", "xterm"),
        ];
        let section = [
            kept.concat(),
            symbol(6, "pay_all", "libpayroll.so.1"),
            symbol(6, "pay_all", "payroll"),
            symbol(6, "", "payroll"),
        ]
        .concat();
        let mut scrubber = scrubber(&keep);
        assert_eq!(scrubber.symbols(&section), kept.concat());
        assert_eq!(scrubber.symbols(&section[..section.len() - 1]), kept.concat());
    }

    #[test]
    fn the_user_the_day_and_the_machine_go() {
        let machine = Machine {
            hostname: "anns-desk".into(),
            kernel: "6.18.44-anns-build".into(),
            ..Machine::default()
        };
        let why = "processes of user 4242 have not answered".to_owned();
        let meta = Meta {
            id: "20260101T120102.003Z".into(),
            mark_realtime_ns: 3 * CLOCK_STEP_NS + 62_003_000_000,
            marked_by_uid: 4242,
            machine,
            missing: vec![Missing { what: "names".into(), why }],
            ..Meta::default()
        };
        let clean = without_owner(meta);
        assert_eq!(
            (clean.id.as_str(), clean.mark_realtime_ns, clean.marked_by_uid),
            ("scrubbed", 3 * CLOCK_STEP_NS, 0)
        );
        assert_eq!(
            (clean.machine.hostname.as_str(), clean.machine.kernel.as_str()),
            ("desk", "6.18.44")
        );
        assert_eq!(clean.missing, [Missing { what: "names".into(), why: String::new() }]);
    }

    #[test]
    fn times_of_inputs_are_steps_and_owners_go() {
        let mut input = Input::new_zeroed();
        input.head = head(0, Input::SIZE, RecordKind::Input);
        input.head.ts = Nanos(1_234_567_890);
        let mut incident = incident();
        incident.push(Section::Inputs, input.as_bytes().to_vec());
        let mut owner = crate::records::Owner::new_zeroed();
        (owner.head, owner.uid) = (head(30, crate::records::Owner::SIZE, RecordKind::Owner), 4242);
        incident.push(Section::Exits, Vec::new());
        incident.push(Section::Tasks, owner.as_bytes().to_vec());
        let (clean, gone) = scrub(&incident, &[]).expect("the document is whole");
        let left = Input::read(clean.bytes(Section::Inputs)).expect("it stays");
        assert_eq!((left.head.ts, gone.inputs), (Nanos(1_200_000_000), 1));
        assert_eq!(clean.bytes(Section::Tasks), b"");
    }

    #[test]
    fn no_place_in_memory_is_left() {
        let place = 0x7f12_3456_7890_u64;
        let mut wait = Wait::new_zeroed();
        wait.head = head(30, Wait::SIZE, RecordKind::Wait);
        wait.args = [place, place, 0];
        let mut incident = incident();
        incident.push(Section::Tasks, wait.as_bytes().to_vec());
        let mut symbol = symbol(5, "malloc", "libc.so.6");
        symbol[8..16].copy_from_slice(&place.to_le_bytes());
        incident.push(Section::Symbols, symbol);
        incident
            .push(Section::Stacks, [&[1, 0, 0, 0, 1, 0, 0, 0][..], &place.to_le_bytes()].concat());
        let futexes = vec![crate::incident::FutexOwner { tid: 30, address: place, owner: 1 }];
        incident
            .push_json(Section::Locks, &Locks { futexes, ..Locks::default() })
            .expect("it is a document");
        let (clean, _) = scrub(&incident, &[]).expect("the document is whole");
        let left = Wait::read(clean.bytes(Section::Tasks)).expect("it stays").args[0];
        for (section, bytes) in &clean.sections {
            assert!(!bytes.windows(8).any(|window| window == place.to_le_bytes()), "{section:?}");
        }
        assert_eq!(clean.bytes(Section::Symbols)[8..16], left.to_le_bytes());
        assert_eq!(clean.bytes(Section::Stacks)[8..16], left.to_le_bytes());
        let locks: Locks = clean.json(Section::Locks).expect("it is a document");
        assert_eq!(locks.futexes[0].address, left);
    }

    #[test]
    fn frames_without_a_name_go() {
        let symbols = symbol(5, "malloc", "libc.so.6");
        let stack = |frame: &[u8; 8]| {
            [&3_u32.to_le_bytes()[..], &2_u32.to_le_bytes(), &[7; 8], frame].concat()
        };
        assert_eq!(stacks(&stack(b"my diary"), &symbols), stack(&[0; 8]));
        assert!(stacks(&stack(b"my diary")[..20], &symbols).is_empty());
        assert!(!stacks(&stack(&[7; 8]), &symbols[..20]).contains(&7));
    }

    #[test]
    fn records_of_unknown_kinds_go() {
        let mut unknown = task(30, 1, "secret-editor");
        unknown.head.kind = 255;
        let mut scrubber = scrubber(&[]);
        let left = rewrite::loose(unknown.as_bytes(), &mut |kind, record| {
            scrubber.edit(kind, record, &|address| address)
        });
        assert!(left.is_empty());
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
