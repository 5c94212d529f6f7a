// SPDX-License-Identifier: MIT OR Apache-2.0
//! Match of events with presses of an input device: by the thread that reads the devices, in order,
//! and once.

mod support;

use support::{APP, BEGIN, DRAW_TEXT, Machinery, SERVER};
use tipme_analysis::{DiagnoseOptions, diagnose};

/// The server's input thread, the processes that take the CPUs, and another client.
const READER: u32 = 101;
const HOGS: [u32; 2] = [500, 501];
const OTHER: u32 = 300;

const EPOLL_WAIT: i32 = 232;

const KEY: [u8; 4] = [2, 0, 0, 0];
const BUTTON: [u8; 4] = [4, 0, 0, 0];

/// A machine with an input thread in its server, and a hog on each CPU that is otherwise idle.
fn busy_machine() -> Machinery {
    let mut machine = Machinery::with_app("editor");
    machine.task(READER, SERVER, 1, "InputThread", 1).task(OTHER, OTHER, 1, "panel", 1);
    for (cpu, hog) in HOGS.into_iter().enumerate() {
        machine.task(hog, hog, 1, "hog", 0).switch(1_000, cpu as u32, hog, 0);
    }
    machine
}

/// Stages of a press; times in microseconds.
trait Presses {
    /// Interrupt of a key: the time stamp, and the wakeup of the reader.
    fn key(&mut self, stamp: u64) -> &mut Self;
    /// The reader runs on CPU 0 and wakes the server, which sends events from 200 µs later on.
    fn read(&mut self, us: u64) -> &mut Self;
    /// The reader ends the wait of the idle server.
    fn wake_idle(&mut self, us: u64) -> &mut Self;
    /// The server sends the event to a client, which receives it and draws a millisecond later.
    fn deliver(&mut self, us: u64, client: u32, words: &[[u8; 4]]) -> &mut Self;
    /// The server goes idle on CPU 0.
    fn rest(&mut self, us: u64) -> &mut Self;
}

impl Presses for Machinery {
    fn key(&mut self, stamp: u64) -> &mut Self {
        self.device_key(stamp).wake_from(stamp + 20, READER, HOGS[0], 2, 0)
    }

    fn read(&mut self, us: u64) -> &mut Self {
        self.switch(us, 0, READER, 0).wake_idle(us + 50).switch(us + 100, 0, SERVER, 1)
    }

    fn wake_idle(&mut self, us: u64) -> &mut Self {
        self.wake(us, SERVER, READER)
            .wait(us + 2, SERVER, us - 10_000, |wait| wait.syscall = EPOLL_WAIT)
    }

    fn deliver(&mut self, us: u64, client: u32, words: &[[u8; 4]]) -> &mut Self {
        let (connection, bytes) = ((client / 100, client), 32 * words.len() as u32);
        self.message(us, SERVER, connection, 2, bytes, words).wake_from(
            us + 5,
            client,
            SERVER,
            0,
            1,
        );
        self.switch(us + 10, 1, client, 0).message(us + 20, client, connection, 3, bytes, &[]);
        self.message(us + 1_000, client, connection, 0, 20, &[DRAW_TEXT]).switch(
            us + 1_010,
            1,
            HOGS[1],
            1,
        )
    }

    fn rest(&mut self, us: u64) -> &mut Self {
        self.switch(us, 0, HOGS[0], 1)
    }
}

/// Returns client and time of the input of all interactions, in order of that time.
fn inputs(machine: &mut Machinery) -> Vec<(u32, u64)> {
    let listed = machine.timed(6_000_000);
    listed.iter().map(|one| (one.client_pid, (one.input_ns - BEGIN) / 1_000)).collect()
}

#[test]
fn a_press_that_is_read_late_keeps_the_time_of_the_device() {
    let mut machine = busy_machine();
    machine.key(1_000_000).read(1_000_100).deliver(1_000_300, APP, &[KEY]).rest(1_003_000);
    machine.key(2_000_000).read(2_300_000).deliver(2_300_300, APP, &[KEY]).rest(2_303_000);
    assert_eq!(inputs(&mut machine), [(APP, 1_000_000), (APP, 2_000_000)]);
}

#[test]
fn a_reader_preempted_before_its_wakeup_changes_nothing() {
    let mut machine = busy_machine();
    machine.key(2_000_000).switch(2_000_100, 0, READER, 0).switch(2_000_110, 0, HOGS[0], 0);
    machine.read(2_400_000).deliver(2_400_300, APP, &[KEY]).rest(2_403_000);
    assert_eq!(inputs(&mut machine), [(APP, 2_000_000)]);
}

#[test]
fn a_server_that_gets_its_turn_late_changes_nothing() {
    let mut machine = busy_machine();
    machine.key(2_000_000).switch(2_000_100, 0, READER, 0).wake_idle(2_000_150);
    machine
        .switch(2_000_200, 0, HOGS[0], 1)
        .switch(2_500_000, 0, SERVER, 0)
        .deliver(2_500_100, APP, &[KEY])
        .rest(2_503_000);
    assert_eq!(inputs(&mut machine), [(APP, 2_000_000)]);
}

#[test]
fn presses_read_together_are_delivered_in_order_and_once() {
    let mut machine = busy_machine();
    machine.key(2_000_000).device_key(2_100_000).device_key(2_200_000);
    machine
        .read(2_300_000)
        .deliver(2_300_300, APP, &[KEY, KEY])
        .deliver(2_302_000, APP, &[KEY])
        .rest(2_305_000);
    assert_eq!(inputs(&mut machine), [(APP, 2_000_000), (APP, 2_100_000), (APP, 2_200_000)]);
}

#[test]
fn an_event_of_one_client_is_not_the_next_one_of_another() {
    let mut machine = busy_machine();
    machine.key(2_000_000).device_key(2_100_000);
    machine
        .read(2_300_000)
        .deliver(2_300_300, OTHER, &[KEY])
        .deliver(2_302_000, APP, &[KEY])
        .rest(2_305_000);
    assert_eq!(inputs(&mut machine), [(OTHER, 2_000_000), (APP, 2_100_000)]);
}

#[test]
fn two_clients_may_receive_one_press() {
    let mut machine = busy_machine();
    machine
        .key(2_000_000)
        .read(2_300_000)
        .deliver(2_300_300, OTHER, &[KEY])
        .deliver(2_302_000, APP, &[KEY])
        .rest(2_305_000);
    assert_eq!(inputs(&mut machine), [(OTHER, 2_000_000), (APP, 2_000_000)]);
}

#[test]
fn an_undelivered_press_is_not_found_in_a_later_event() {
    let mut machine = busy_machine();
    machine.key(2_000_000).read(2_000_100).rest(2_000_300);
    // The server repeats a key by a timer of its own, 3 ms later.
    machine.wake_from(2_003_000, SERVER, HOGS[0], 2, 0).switch(2_003_050, 0, SERVER, 0);
    machine.deliver(2_003_100, APP, &[KEY]).rest(2_006_000);
    assert_eq!(inputs(&mut machine), [(APP, 2_003_000)]);
}

#[test]
fn an_unread_press_does_not_belong_to_an_event() {
    let mut machine = busy_machine();
    machine.key(1_000_000).read(1_000_100).deliver(1_000_300, APP, &[KEY]).rest(1_003_000);
    machine.wake_from(1_990_000, SERVER, HOGS[0], 2, 0).switch(1_990_050, 0, SERVER, 0);
    machine.key(1_995_000);
    machine.deliver(2_000_000, APP, &[KEY]).rest(2_003_000);
    machine.read(2_300_000).deliver(2_300_300, APP, &[KEY]).rest(2_303_000);
    assert_eq!(inputs(&mut machine), [(APP, 1_000_000), (APP, 1_990_000), (APP, 1_995_000)]);
}

#[test]
fn a_click_passed_on_by_a_client_keeps_its_device_time() {
    let mut machine = busy_machine();
    machine.device_button(2_000_000).wake_from(2_000_020, READER, HOGS[0], 2, 0).read(2_000_100);
    machine
        .message(2_000_300, SERVER, (3, OTHER), 2, 32, &[BUTTON])
        .wake_from(2_000_305, OTHER, SERVER, 0, 1);
    // The window manager runs late, and passes the click to the window.
    machine.rest(2_000_400).switch(2_050_000, 1, OTHER, 0).message(
        2_050_010,
        OTHER,
        (3, OTHER),
        3,
        32,
        &[],
    );
    machine.wake(2_050_100, SERVER, OTHER).switch(2_050_110, 1, HOGS[1], 1);
    machine.switch(2_050_150, 0, SERVER, 0);
    machine.deliver(2_050_300, APP, &[BUTTON]).rest(2_053_000);
    assert_eq!(inputs(&mut machine), [(APP, 2_000_000)]);
}

#[test]
fn without_a_known_reader_a_press_belongs_to_the_next_event() {
    let mut machine = busy_machine();
    machine.device_key(2_000_000).read(2_004_000).deliver(2_004_300, APP, &[KEY]).rest(2_007_000);
    machine.device_key(3_000_000).read(3_300_000).deliver(3_300_300, APP, &[KEY]).rest(3_303_000);
    assert_eq!(inputs(&mut machine), [(APP, 2_000_000), (APP, 3_300_050)]);
}

#[test]
fn an_event_taken_unread_delivers_the_unassigned_press() {
    let of_app = [(APP, 1_000_000), (APP, 2_000_000), (APP, 3_000_000)];
    let of_other = [(OTHER, 1_000_000), (OTHER, 3_000_000)];
    for (known, expected) in [(APP, &of_app[..]), (OTHER, &of_other)] {
        let mut machine = busy_machine();
        machine.key(1_000_000).read(1_000_100).deliver(1_000_300, known, &[KEY]).rest(1_003_000);
        machine.key(2_000_000).read(2_000_100).wake_from(2_000_300, APP, SERVER, 0, 1);
        machine.switch(2_000_310, 1, APP, 0);
        machine.message(2_000_400, APP, (2, APP), 3, 32, &[]).unread(
            2_020_000,
            SERVER,
            (2, APP),
            2,
            32,
        );
        machine
            .message(2_001_000, APP, (2, APP), 0, 20, &[DRAW_TEXT])
            .switch(2_001_010, 1, HOGS[1], 1);
        machine.rest(2_023_000);
        // A later event that the client has received since does not change this.
        machine.key(3_000_000).read(3_000_100).deliver(3_000_300, known, &[KEY]).rest(3_003_000);
        assert_eq!(inputs(&mut machine), expected);
    }
}

#[test]
fn a_given_time_selects_the_delay_that_includes_it() {
    let mut machine = busy_machine();
    machine.key(2_000_000).read(4_000_000).deliver(4_000_300, APP, &[KEY]).rest(4_003_000);
    machine.key(4_200_000).read(4_800_000).deliver(4_800_300, APP, &[KEY]).rest(4_803_000);
    for (at_s, start) in [(5.5, 4_200_000_000), (7.0, 2_000_000_000), (5.9, 2_000_000_000)] {
        let options = DiagnoseOptions { at_s: Some(at_s), ..DiagnoseOptions::default() };
        let verdict = diagnose(&machine.incident(10_000_000), &options).unwrap();
        assert_eq!(verdict.interval.unwrap().start_ns - BEGIN, start, "{at_s}");
    }
}

/// Explains the longer of two late inputs, unless the other ended just before the hot key was
/// pressed; then the longer one is mentioned.
#[test]
fn a_delay_just_before_the_mark_is_preferred() {
    let mut machine = busy_machine();
    machine.key(2_000_000).read(4_000_000).deliver(4_000_300, APP, &[KEY]).rest(4_003_000);
    machine.key(30_000_000).read(30_900_000).deliver(30_900_300, APP, &[KEY]).rest(30_903_000);
    let words = "Another delay of 2.00 s ended 29.00 s before the mark: tipme diagnose --at 30.0";
    for (mark, at_s, start, other) in [
        (33_000_000, None, 30_000_000_000, Some(words)),
        (33_000_000, Some(30.0), 2_000_000_000, None),
        (18_000_000, None, 2_000_000_000, None),
    ] {
        let options = DiagnoseOptions { at_s, ..DiagnoseOptions::default() };
        let verdict = diagnose(&machine.incident(mark), &options).unwrap();
        let note = verdict.notes.iter().find(|note| note.starts_with("Another delay"));
        assert_eq!(verdict.interval.unwrap().start_ns - BEGIN, start);
        assert_eq!(note.map(String::as_str), other);
    }
}
