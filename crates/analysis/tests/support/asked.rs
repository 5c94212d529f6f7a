// SPDX-License-Identifier: MIT OR Apache-2.0
//! An editor that asks a service or a remote host because of a key, and the verdict on it.

use crate::support::{APP, Machinery};
use tipme_analysis::Timed;
use tipme_analysis::model::{CauseKind, Culprit};

pub const POLL: i32 = 7;
pub const EPOLL_WAIT: i32 = 232;
pub const CLOCK_NANOSLEEP: i32 = 230;
pub const SOFTIRQ: u8 = 1;
pub const BY_TIMER: u8 = 2;
pub const INTERNET: u16 = 2;
pub const EVENT_COUNTERS: u32 = 0x0904_1934;

/// The editor's thread that speaks with others, a service that it asks, and a further process.
pub const ASKER: u32 = 205;
pub const SERVICE: u32 = 600;
pub const BACKEND: u32 = 620;
/// Another program that sends messages.
pub const NEWS: u32 = 700;

pub const MARK: u64 = 5_000_000;
/// Time of the key that is answered late, and of the answer by the service or the network.
pub const KEY: u64 = 2_000_000;
pub const ANSWER: u64 = 3_200_000;

pub fn editor() -> Machinery {
    let mut machine = Machinery::with_app("editor");
    machine.task(ASKER, APP, 1, "editor", 1).task(SERVICE, SERVICE, 1, "calendar", 1);
    machine.task(NEWS, NEWS, 1, "news", 1);
    machine.typing(500_000, 5);
    machine
}

/// A thread waited in a poll of three files until `until`.
pub fn polled(machine: &mut Machinery, tid: u32, from: u64, until: u64) {
    machine.wait(until + 1, tid, from, |wait| (wait.syscall, wait.args) = (POLL, [1, 3, u64::MAX]));
}

/// A thread on CPU 1 wakes another one, which runs there from then on.
pub fn hand_on(machine: &mut Machinery, us: u64, from: u32, to: u32, waited: u64) {
    machine.wake_from(us, to, from, 0, 1).switch(us + 20, 1, to, 1);
    polled(machine, to, waited, us);
}

/// A key that the editor passes to its other thread, which runs on CPU 1 from then on.
pub fn ask(machine: &mut Machinery, us: u64) {
    machine.press(us);
    hand_on(machine, us + 400, APP, ASKER, 400_000);
}

/// A timer lets the editor draw its caret.
pub fn blink(machine: &mut Machinery) {
    let us = KEY + 500_000;
    machine.wake_from(us, APP, 0, BY_TIMER, 1).switch(us + 20, 1, APP, 0).draw(us + 100);
    polled(machine, APP, KEY + 420, us);
}

/// The editor's other thread runs, and has the editor draw.
pub fn hand_back(machine: &mut Machinery, us: u64, waited: u64) {
    hand_on(machine, us, ASKER, APP, waited);
    machine.draw(us + 100);
}

/// A packet ends a thread's wait for a remote host.
pub fn packet(machine: &mut Machinery, tid: u32, waited: u64) {
    machine.wake_from(ANSWER, tid, 0, SOFTIRQ, 1).switch(ANSWER + 20, 1, tid, 0);
    machine.wait(ANSWER + 1, tid, waited, |wait| {
        (wait.syscall, wait.args, wait.context) = (POLL, [1, 1, u64::MAX], u16::from(SOFTIRQ));
        (wait.family, wait.address, wait.port) =
            (INTERNET, u32::from_le_bytes([192, 0, 2, 7]), 443);
    });
}

/// The editor asks a remote host because of the key; `meanwhile` happens before the answer.
pub fn network(meanwhile: impl Fn(&mut Machinery)) -> Machinery {
    let mut machine = editor();
    ask(&mut machine, KEY);
    machine.switch(KEY + 500, 1, 0, 1);
    meanwhile(&mut machine);
    packet(&mut machine, ASKER, KEY + 500);
    hand_back(&mut machine, ANSWER + 100, KEY + 500_110);
    machine
}

/// A thread polled an event counter and these connections to remote hosts in `from..us`.
pub fn polled_files(machine: &mut Machinery, us: u64, tid: u32, from: u64, connections: &[u64]) {
    let files = 1 + connections.len() as u8;
    machine.wait(us, tid, from, |wait| {
        (wait.syscall, wait.args) = (POLL, [1, u64::from(files), u64::MAX])
    });
    machine.polled(us, tid, files, |file| (file.magic, file.inode) = (EVENT_COUNTERS, 1));
    connections.iter().for_each(|number| connection(machine, us, tid, files, *number));
}

/// One of the files that a thread polled is a connection to a remote host.
pub fn connection(machine: &mut Machinery, us: u64, tid: u32, files: u8, number: u64) {
    machine.polled(us, tid, files, |file| {
        (file.mode, file.family, file.socket, file.state, file.inode) =
            (0xc000, INTERNET, 1, 1, number);
        (file.address, file.port) = (u32::from_le_bytes([192, 0, 2, number as u8]), 443);
    });
}

/// A service asks a remote host because of the key, over a new connection, or one in `before`.
pub fn network_behind_a_service(meanwhile: impl Fn(&mut Machinery), before: &[u64]) -> Machinery {
    let mut machine = editor();
    ask(&mut machine, KEY);
    machine.wake_from(KEY + 500, SERVICE, ASKER, 0, 1).switch(KEY + 520, 1, SERVICE, 1);
    polled_files(&mut machine, KEY + 501, SERVICE, 400_000, before);
    machine.switch(KEY + 600, 1, 0, 1);
    meanwhile(&mut machine);
    machine.wake_from(ANSWER, SERVICE, 0, SOFTIRQ, 1).switch(ANSWER + 20, 1, SERVICE, 0);
    polled_files(&mut machine, ANSWER + 1, SERVICE, KEY + 600, &[7]);
    hand_on(&mut machine, ANSWER + 100, SERVICE, ASKER, KEY + 520);
    hand_back(&mut machine, ANSWER + 200, KEY + 500_110);
    machine
}

/// The editor's first thread polls connections `before` and `after` the key, and gets a packet.
pub fn network_in_the_event_loop(before: &[u64], after: &[u64]) -> Machinery {
    let mut machine = editor();
    machine.press(KEY);
    polled_files(&mut machine, KEY + 101, APP, 1_300_610, before);
    machine.switch(KEY + 500, 1, 0, 1);
    machine.wake_from(KEY + 500_000, APP, 0, BY_TIMER, 1).switch(KEY + 500_020, 1, APP, 0);
    machine.draw(KEY + 500_100);
    polled_files(&mut machine, KEY + 500_001, APP, KEY + 500, after);
    machine.wake_from(ANSWER, APP, 0, SOFTIRQ, 1).switch(ANSWER + 20, 1, APP, 0);
    polled_files(&mut machine, ANSWER + 1, APP, KEY + 500_110, &[7, 8]);
    machine.draw(ANSWER + 300);
    machine
}

/// Returns input time, milliseconds to the drawing, and join of the editor's last interaction.
pub fn last(machine: &mut Machinery) -> (u64, u64, String) {
    let timed = machine.timed(MARK);
    let of_editor: Vec<&Timed> = timed.iter().filter(|one| one.client_pid == APP).collect();
    let first = of_editor.first().expect("there was input");
    let last = of_editor.last().expect("there was input");
    let input = (last.input_ns - first.input_ns) / 1_000 + 500_000;
    (input, last.drawn_ns.map_or(0, |at| (at - last.input_ns) / 1_000_000), last.join.clone())
}

pub fn exact(input: u64, ms: u64) -> (u64, u64, String) {
    (input, ms, "exact".to_owned())
}

/// Returns the last key that is answered at once.
fn nothing_new() -> (u64, u64, String) {
    exact(500_000 + 4 * 200_000, 0)
}

/// Returns kind and culprit of the first finding, and `true` if the verdict is sure of it.
pub fn cause(machine: &mut Machinery) -> (CauseKind, String, bool) {
    let finding = machine.diagnose(MARK).findings.into_iter().next().expect("it is explained");
    let culprit = match finding.culprit {
        Culprit::Process { comm, .. } => comm,
        Culprit::Address { address } => address,
        Culprit::Device { device } => device,
    };
    (finding.kind, culprit, finding.confidence >= tipme_analysis::SURE)
}

pub fn by_address(address: &str, is_sure: bool) -> (CauseKind, String, bool) {
    (CauseKind::NetworkWait, address.to_owned(), is_sure)
}

pub fn assert_silent(mut machine: Machinery) {
    assert_eq!(last(&mut machine), nothing_new());
    assert!(machine.diagnose(MARK).findings.is_empty());
}
