// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::chunk::{CHUNK_BYTES, ChunkHead, entries};
use crate::incident::FutexOwner;
use crate::records::{Head, TABLES};
use crate::units::Nanos;
use zerocopy::{FromZeros, IntoBytes};

const ANN: u32 = 1000;
const BOB: u32 = 1001;
/// Processes of Ann, of Bob, of root, and of an unknown user.
const OF_ANN: Pid = Pid(10);
const OF_BOB: Pid = Pid(11);
const OF_ROOT: Pid = Pid(12);
const LOST: Pid = Pid(13);
/// Code of an X server's reply.
const REPLY: u8 = 1;

fn head(kind: RecordKind, size: usize) -> Head {
    Head { ts: Nanos(5_000_000), tid: Tid(7), size: size as u16, kind: kind as u8, generation: 1 }
}

fn owner(pid: Pid, uid: u32) -> Vec<u8> {
    Owner { head: head(RecordKind::Owner, Owner::SIZE), pid, uid }.as_bytes().to_vec()
}

fn message(client: Pid, display: u32) -> Vec<u8> {
    let mut message = Message::new_zeroed();
    message.head = head(RecordKind::Message, Message::SIZE);
    (message.pid, message.client, message.display) = (OF_ROOT, client, display);
    message.as_bytes().to_vec()
}

/// Returns an X11 event or reply with this code, sent to a client.
fn reply(client: Pid, display: u32, code: u8) -> Vec<u8> {
    let mut message = Message::read(&message(client, display)).expect("a message");
    message.head.size += 8;
    (message.direction, message.operations) = (EVENT_SENT, 1);
    [message.as_bytes(), &[code, 0, 0, 0, 0, 0, 0, 0]].concat()
}

fn wl_message(client: Pid, server: Pid) -> Vec<u8> {
    let mut message = WlMessage::new_zeroed();
    message.head = head(RecordKind::WlMessage, WlMessage::SIZE);
    (message.pid, message.client, message.server) = (OF_ROOT, client, server);
    message.as_bytes().to_vec()
}

fn tty(session: Pid) -> Vec<u8> {
    Tty { head: head(RecordKind::Tty, Tty::SIZE), port: 1, stage: 0, session }.as_bytes().to_vec()
}

fn wait(pid: Pid) -> Wait {
    let mut wait = Wait::new_zeroed();
    wait.head = head(RecordKind::Wait, Wait::SIZE);
    (wait.pid, wait.syscall, wait.args, wait.address, wait.port) =
        (pid, 202, [0x7f12_3456_7894, 0x89, 5], 9, 80);
    wait
}

fn exit(pid: Pid) -> Vec<u8> {
    let mut exit = Exit::new_zeroed();
    exit.head = head(RecordKind::Exit, Exit::SIZE + 8);
    exit.pid = pid;
    [exit.as_bytes(), b"secret\0\0"].concat()
}

fn chunk(records: &[Vec<u8>]) -> Vec<u8> {
    let head = ChunkHead { taken: 1, opened: Nanos(4_000_000), cpu: 0, class: 1, closed: Nanos(0) };
    let mut bytes = [head.as_bytes(), &records.concat()].concat();
    bytes.resize(CHUNK_BYTES, 0);
    bytes
}

/// Withholds data that Ann, or another user, may not know.
fn conceal(incident: &mut Incident, user: u32) -> Withheld {
    let mut concealer =
        Concealer::of(incident, user, &|address| !address).expect("it is in memory");
    for (section, bytes) in &mut incident.sections {
        if matches!(section, Section::Rare | Section::Exits) {
            *bytes = bytes.chunks(CHUNK_BYTES).flat_map(|chunk| concealer.chunk(chunk)).collect();
        }
    }
    concealer.finish(incident)
}

fn records(incident: &Incident, section: Section) -> impl Iterator<Item = (RecordKind, &[u8])> {
    let entries = incident.bytes(section).chunks(CHUNK_BYTES).flat_map(entries);
    entries.map(|entry| (entry.kind, entry.bytes))
}

/// Returns the owners of the processes, and the starts of those other than Ann's.
fn known() -> Vec<u8> {
    let owners = [
        owner(OF_ANN, ANN),
        owner(OF_BOB, BOB),
        owner(OF_ROOT, 0),
        wait(OF_BOB).as_bytes().to_vec(),
    ];
    [owners.concat(), since_ever(OF_BOB), since_ever(OF_ROOT)].concat()
}

fn since_ever(pid: Pid) -> Vec<u8> {
    living(pid, Nanos(0))
}

fn incident(rare: &[Vec<u8>]) -> Incident {
    let mut incident = Incident::default();
    incident.push(Section::Tasks, [since_ever(OF_ANN), known()].concat());
    incident.push(Section::Rare, chunk(rare));
    incident
}

/// Returns clients and displays of the messages shown to Ann, and the number of the others.
fn shown(messages: &[(Pid, u32)]) -> (Vec<(Pid, u32)>, u64) {
    shown_of(messages, REPLY)
}

/// Returns the same for messages from the server with this code.
fn shown_of(messages: &[(Pid, u32)], code: u8) -> (Vec<(Pid, u32)>, u64) {
    let replies: Vec<_> =
        messages.iter().map(|(client, display)| reply(*client, *display, code)).collect();
    let mut incident = incident(&replies);
    let withheld = conceal(&mut incident, ANN);
    let left = records(&incident, Section::Rare).filter_map(|(_, bytes)| Message::read(bytes));
    (left.map(|message| (message.client, message.display)).collect(), withheld.messages)
}

#[test]
fn messages_are_the_clients_whoever_runs_the_server() {
    assert_eq!(shown(&[(OF_ANN, 0), (OF_BOB, 1), (LOST, 0)]), (vec![(OF_ANN, 0)], 2));
}

#[test]
fn messages_of_services_are_shown_where_nobody_else_sits() {
    let (own, mixed, greeter) =
        ([(OF_ANN, 0), (OF_ROOT, 0)], [(OF_ANN, 0), (OF_ROOT, 0), (OF_BOB, 0)], [(OF_ROOT, 3)]);
    assert_eq!(shown(&own), (own.to_vec(), 0));
    assert_eq!(shown(&mixed), (vec![(OF_ANN, 0)], 2));
    assert_eq!(shown(&greeter), (vec![], 1));
}

#[test]
fn who_is_refused_by_a_greeter_is_shown_nothing_of_its() {
    const REFUSED: u8 = 0;
    let tried = [(OF_ANN, 3), (OF_ROOT, 3)];
    assert_eq!(shown_of(&tried, REFUSED), (vec![(OF_ANN, 3)], 1));
}

/// Returns the same for Wayland: clients and compositors.
fn shown_of_wayland(messages: &[(Pid, Pid)]) -> (Vec<(Pid, Pid)>, u64) {
    let mut incident = incident(
        &messages.iter().map(|(client, server)| wl_message(*client, *server)).collect::<Vec<_>>(),
    );
    let withheld = conceal(&mut incident, ANN);
    let left = records(&incident, Section::Rare).filter_map(|(_, bytes)| WlMessage::read(bytes));
    (left.map(|message| (message.client, message.server)).collect(), withheld.messages)
}

#[test]
fn messages_of_wayland_are_the_clients_too() {
    let (own, of_bob, greeter) = (Pid(20), Pid(21), Pid(22));
    assert_eq!(
        shown_of_wayland(&[(OF_ANN, own), (OF_BOB, own), (LOST, own)]),
        (vec![(OF_ANN, own)], 2)
    );
    let services =
        [(OF_ANN, own), (OF_ROOT, own), (OF_ROOT, of_bob), (OF_BOB, of_bob), (OF_ROOT, greeter)];
    assert_eq!(shown_of_wayland(&services), (services[..2].to_vec(), 3));
}

#[test]
fn a_terminal_is_of_the_user_of_its_session() {
    let mut incident = incident(&[tty(OF_ANN), tty(OF_BOB), tty(OF_ROOT), tty(Pid(0))]);
    let withheld = conceal(&mut incident, ANN);
    let left = records(&incident, Section::Rare).filter_map(|(_, bytes)| Tty::read(bytes));
    assert_eq!(left.map(|tty| tty.session).collect::<Vec<_>>(), [OF_ANN]);
    assert_eq!((withheld.inputs, withheld.users), (3, 1));
    assert_eq!(withheld.summary().as_deref(), Some("input of 1 other user"));
}

/// Returns a process of Bob's with Ann's later pid, which ended at 5 ms; its start may be lost.
fn reused(ended: &[(Pid, Nanos)]) -> Vec<u8> {
    let exits = ended.iter().map(|(pid, start)| {
        let mut exit = Exit::new_zeroed();
        exit.head = Head { tid: Tid(pid.0), ..head(RecordKind::Exit, Exit::SIZE) };
        (exit.pid, exit.start) = (*pid, *start);
        exit.as_bytes().to_vec()
    });
    chunk(&exits.chain([owner(OF_ANN, BOB)]).collect::<Vec<_>>())
}

/// Returns a process that lives at the mark.
fn living(pid: Pid, start: Nanos) -> Vec<u8> {
    let mut task = Task::new_zeroed();
    task.head = Head { tid: Tid(pid.0), ..head(RecordKind::Task, Task::SIZE) };
    (task.pid, task.start) = (pid, start);
    task.as_bytes().to_vec()
}

/// Returns the number of messages withheld from Ann, of three with one pid: while Bob had it, while
/// it was free, and while Ann has it.
fn kept_from_ann(exits: Vec<u8>, lives: Vec<u8>) -> u64 {
    let messages = [4, 8, 12].map(|ms| {
        let mut message = Message::read(&message(OF_ANN, 0)).expect("a message");
        message.head.ts = Nanos::from_millis(ms);
        message.as_bytes().to_vec()
    });
    let mut incident = incident(&messages);
    incident.push(Section::Exits, exits);
    let tasks = incident.sections.iter_mut().find(|(section, _)| *section == Section::Tasks);
    tasks.expect("it has tasks").1 = [known(), lives].concat();
    let withheld = conceal(&mut incident, ANN);
    let left = records(&incident, Section::Rare).filter_map(|(_, bytes)| Message::read(bytes));
    assert!(
        left.into_iter().all(|message| message.head.ts == Nanos::from_millis(12)),
        "a message from Bob's time is left"
    );
    withheld.messages
}

#[test]
fn a_reused_pid_belongs_to_each_user_in_turn() {
    let bob = reused(&[(OF_ANN, Nanos(1_000_000))]);
    assert_eq!(kept_from_ann(bob, living(OF_ANN, Nanos::from_millis(10))), 2);
}

#[test]
fn a_reused_pid_belongs_to_neither_user_at_an_unknown_time() {
    let bob = reused(&[(OF_ANN, Nanos(1_000_000))]);
    assert_eq!(kept_from_ann(bob, Vec::new()), 3);
    assert_eq!(kept_from_ann(reused(&[]), living(OF_ANN, Nanos::from_millis(10))), 2);
}

#[test]
fn records_before_the_only_known_process_of_a_pid_are_nobodys() {
    assert_eq!(kept_from_ann(chunk(&[]), living(OF_ANN, Nanos::from_millis(10))), 2);
}

#[test]
fn arguments_of_others_are_disguised_and_their_addresses_go() {
    for (pid, root, other) in
        [(OF_ANN, false, false), (OF_ROOT, true, false), (OF_BOB, true, true), (LOST, true, true)]
    {
        let mut incident = incident(&[wait(pid).as_bytes().to_vec()]);
        conceal(&mut incident, ANN);
        let found = records(&incident, Section::Rare)
            .find_map(|(_, bytes)| Wait::read(bytes))
            .expect("it stays");
        assert_eq!(
            (found.args[0] != wait(pid).args[0], found.address == 0, found.port == 0),
            (root, other, other)
        );
        assert_eq!((found.args[0] & 0xf, &found.args[1..]), (4, &[0x89, 5][..]));
    }
}

#[test]
fn a_lock_and_its_waiter_have_the_same_disguise() {
    let mut incident = incident(&[]);
    let futex = FutexOwner { tid: 7, address: wait(OF_BOB).args[0], owner: 8 };
    let locks = Locks { futexes: vec![futex], ..Locks::default() };
    incident.push_json(Section::Locks, &locks).expect("it is a document");
    conceal(&mut incident, ANN);
    let locks: Locks = incident.json(Section::Locks).expect("it is a document");
    let waits = rewrite::tasks(&incident)
        .find_map(|(kind, bytes)| Wait::read(bytes).filter(|_| kind == RecordKind::Wait));
    assert_eq!(locks.futexes[0].address, waits.expect("it stays").args[0]);
    assert_ne!(locks.futexes[0].address, wait(OF_BOB).args[0]);
}

fn lines(pids: &[Pid]) -> Vec<u8> {
    let lines = pids.iter();
    lines
        .flat_map(|pid| [&pid.0.to_le_bytes()[..], &[6, 0, 0, 0], b"secret\0\0"].concat())
        .collect()
}

#[test]
fn command_lines_of_others_go_and_root_keeps_all() {
    let mut incident = incident(&[]);
    incident.push(Section::Cmdlines, lines(&[OF_ANN, OF_BOB, OF_ROOT, LOST]));
    incident.push(Section::Exits, chunk(&[exit(OF_BOB), exit(OF_ROOT)]));
    let whole = incident.clone();
    let withheld = conceal(&mut incident, ANN);
    assert_eq!(incident.bytes(Section::Cmdlines), lines(&[OF_ANN, OF_ROOT]));
    let tails: Vec<&[u8]> =
        records(&incident, Section::Exits).map(|(_, bytes)| &bytes[Exit::SIZE..]).collect();
    assert_eq!(tails, [[0; 8], *b"secret\0\0"]);
    assert_eq!((withheld.command_lines, withheld.users), (3, 1));
    let mut root = whole.clone();
    assert_eq!(conceal(&mut root, 0).summary(), None);
    assert_eq!(root.sections, whole.sections);
}

/// Treatment of a record about another user's process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Decision {
    Stays,
    Changed,
    Goes,
}

/// Returns the concealer's decision for a record of this kind: its columns and tail name a process
/// of an unknown user.
fn decision(kind: RecordKind) -> Decision {
    let mut record = head(kind, kind.size() + 8).as_bytes().to_vec();
    record.resize(kind.size() + 8, 0x11);
    let mut incident = incident(&[record.clone()]);
    conceal(&mut incident, ANN);
    let left = records(&incident, Section::Rare).next().map(|(_, bytes)| bytes);
    match left {
        None => Decision::Goes,
        Some(bytes) if bytes == record => Decision::Stays,
        Some(_) => Decision::Changed,
    }
}

/// A new kind has no row here, and fails the test until it has one that agrees with
/// `docs/internals/security.md`.
#[test]
fn every_kind_has_a_decision() {
    use RecordKind::*;
    let gone = [Message, WlMessage, Tty, Input, FarEnd];
    let changed = [Wait, Polled, Exec, Exit, Sample];
    let threads = [
        Switch, Waking, Migrate, Fork, Rename, Task, Owner, Throttled, Attempt, Lock, Signal, Tally,
    ];
    let load = [Irq, Block, Reclaim, Deferred, Withdrawn, Overdue];
    let stays = [&threads[..], &load].concat();
    for table in TABLES {
        let kind = RecordKind::from_number(table.kind).expect("it is declared");
        let expected: Vec<Decision> =
            [(&gone[..], Decision::Goes), (&changed, Decision::Changed), (&stays, Decision::Stays)]
                .into_iter()
                .filter_map(|(kinds, decision)| kinds.contains(&kind).then_some(decision))
                .collect();
        assert_eq!(expected, [decision(kind)], "{}", table.name);
    }
}
