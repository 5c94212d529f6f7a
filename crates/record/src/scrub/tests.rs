// SPDX-License-Identifier: MIT OR Apache-2.0

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
    Head { ts: Nanos(5_000_000), tid: Tid(tid), size: size as u16, kind: kind as u8, generation: 1 }
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
    incident
}

/// Returns the same incident with a control group that limits I/O.
fn limited() -> Incident {
    let mut incident = incident();
    let limit =
        IoLimit { file: "/cgroup/diary.slice/io.max".into(), per_second: 5, ..IoLimit::default() };
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
    let kept: Vec<Nanos> = entries(clean.bytes(Section::Rare)).map(|entry| entry.head.ts).collect();
    assert_eq!(kept, [Nanos(5_000_000)]);
}

#[test]
fn ipv6_addresses_become_one_of_documents() {
    let mut end = FarEnd::new_zeroed();
    (end.head, end.network) = (head(30, FarEnd::SIZE, RecordKind::FarEnd), 9);
    let left = scrubbed_tasks(end.as_bytes().to_vec());
    let left = FarEnd::read(&left).expect("it is a far end");
    assert_eq!(left.network.to_ne_bytes(), [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0]);
    assert_eq!(left.host.to_ne_bytes(), [0, 0, 0, 0, 0, 0, 0, 1]);
}

/// Returns the last section with tasks of a scrubbed incident, which gets this one.
fn scrubbed_tasks(tasks: Vec<u8>) -> Vec<u8> {
    let mut incident = incident();
    incident.push(Section::Tasks, tasks);
    let clean = scrub(&incident, &[]).expect("the document is whole").0;
    let last = clean.sections.iter().rfind(|(section, _)| *section == Section::Tasks);
    last.expect("it is kept").1.clone()
}

#[test]
fn addresses_of_other_machines_go() {
    for (address, left) in
        [([10, 1, 2, 3], [192, 0, 2, 1]), ([127, 0, 0, 1], [127, 0, 0, 1]), ([0; 4], [0; 4])]
    {
        let address = u32::from_ne_bytes(address);
        let (mut wait, mut polled) = (Wait::new_zeroed(), Polled::new_zeroed());
        (wait.head, wait.address) = (head(30, Wait::SIZE, RecordKind::Wait), address);
        (polled.head, polled.address) = (head(30, Polled::SIZE, RecordKind::Polled), address);
        let tasks = scrubbed_tasks([wait.as_bytes(), polled.as_bytes()].concat());
        let polled = Polled::read(&tasks[Wait::SIZE..]).expect("it is a polled file");
        assert_eq!(polled.address.to_ne_bytes(), left);
        assert_eq!(Wait::read(&tasks).expect("it is a wait").address, polled.address);
    }
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
    Scrubber { keep, kernel: BTreeSet::new(), removed: ScrubReport::default() }
}

#[test]
fn functions_of_other_programs_go() {
    let keep = ["xterm".to_owned()];
    let kept =
        [symbol(0, "schedule", ""), symbol(5, "malloc", "libc.so.6"), symbol(5, "draw", "xterm")];
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
    let (clean, removed) = scrub(&incident, &[]).expect("the document is whole");
    let left = Input::read(clean.bytes(Section::Inputs)).expect("it stays");
    assert_eq!((left.head.ts, removed.inputs), (Nanos(1_200_000_000), 1));
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
    incident.push(Section::Stacks, [&[1, 0, 0, 0, 1, 0, 0, 0][..], &place.to_le_bytes()].concat());
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

fn stack(frame: &[u8; 8]) -> Vec<u8> {
    [&3_u32.to_le_bytes()[..], &2_u32.to_le_bytes(), &[7; 8], frame].concat()
}

#[test]
fn frames_without_a_name_go() {
    let symbols = symbol(5, "malloc", "libc.so.6");
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
