// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading of events and counting of answers by the kernel programs' own code in user space
//! (`tests/answers/answers.c` documents its orders).

use super::drawing_minors;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;
use tipme_record::incident::{Display, Extension};

/// Kinds of presses, as numbered by the program.
const KEY: u32 = 1;
const BUTTON: u32 = 2;

/// Classes, as numbered by the program.
const WHEEL: u32 = 2;
const POINTER: u32 = 3;

/// The program's time in milliseconds, and a time shortly before.
const NOW: u32 = 100_000;
const STAMP: u32 = 99_990;

/// The program that executes orders, killed on drop.
struct EventReader {
    program: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    _folder: TempDir,
}

impl EventReader {
    fn start() -> EventReader {
        let folder = TempDir::new().expect("a folder");
        let program = folder.path().join("pointer");
        let mut clang = Command::new("clang");
        clang.args(["-O1", "-Wall", "-Werror", "-Wno-unused", "-Wno-unknown-attributes"]);
        clang.args(["-I", "tests/rings", "-iquote", "src/bpf", "-iquote", env!("OUT_DIR")]);
        assert!(
            clang
                .arg("tests/answers/answers.c")
                .arg("-o")
                .arg(&program)
                .status()
                .expect("clang runs")
                .success()
        );
        let mut program = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it was just built");
        let (orders, answers) = (
            program.stdin.take().expect("it is piped"),
            BufReader::new(program.stdout.take().expect("it is piped")),
        );
        EventReader { program, orders, answers, _folder: folder }
    }

    fn order(&mut self, order: &str) -> String {
        let mut line = String::new();
        writeln!(self.orders, "{order}").expect("it lives");
        self.answers.read_line(&mut line).expect("it answers");
        line.trim().to_owned()
    }

    /// Gives some orders, and returns the answer to the last one.
    fn last_of(&mut self, orders: &[&str]) -> String {
        orders.iter().map(|order| self.order(order)).last().expect("an order")
    }

    /// Reads a send, and returns its first press with time stamp, its moves with time stamp, and
    /// its number of presses.
    fn found(&mut self, protocol: &str, events: &[Vec<u8>]) -> [u32; 5] {
        let line = self.order(&format!("{protocol} {}", hex(&events.concat())));
        let numbers: Vec<u32> =
            line.split(' ').map(|number| number.parse().expect("a number")).collect();
        numbers.try_into().expect("as many as are asked for")
    }

    /// Reads a send, and returns its first press and moves with their time stamps.
    fn read(&mut self, protocol: &str, events: &[Vec<u8>]) -> [u32; 4] {
        let [press, stamp, moves, moved, _] = self.found(protocol, events);
        [press, stamp, moves, moved]
    }

    /// Sends requests of eight bytes with these opcodes, and checks whether they count as drawing.
    fn expect_drawing(&mut self, requests: &[(u8, u8)], draws: bool) {
        for (major, minor) in requests {
            let answer = self.order(&format!("request {major:02x}{minor:02x}020000000000"));
            assert_eq!(answer == "1 0", draws, "{major} {minor}");
        }
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        self.program.kill().ok();
        self.program.wait().ok();
    }
}

/// Returns an event of the core protocol.
fn core(code: u8, detail: u8) -> Vec<u8> {
    let mut event = vec![0; 32];
    (event[0], event[1]) = (code, detail);
    event[4..8].copy_from_slice(&STAMP.to_le_bytes());
    event
}

/// Returns an extension event with `units` beyond the 32 bytes common to all.
fn generic(kind: u8, detail: u8, units: u8) -> Vec<u8> {
    let mut event = core(35, 131);
    event.resize(32 + 4 * usize::from(units), 0);
    event[4..8].copy_from_slice(&u32::from(units).to_le_bytes());
    (event[8], event[16]) = (kind, detail);
    event[12..16].copy_from_slice(&STAMP.to_le_bytes());
    event
}

/// Returns a Wayland message to an object of the client.
fn message(opcode: u32, arguments: &[u32]) -> Vec<u8> {
    let size = 8 + 4 * arguments.len() as u32;
    let words = [&[7, size << 16 | opcode][..], arguments].concat();
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[test]
fn motions_and_the_wheel_of_x11_are_read_beside_presses() {
    let mut reader = EventReader::start();
    // Sent by a client, released, entered, of another extension, raw.
    let others = [core(0x86, 0), core(5, 4), core(7, 0), generic(6, 0, 8), generic(17, 0, 14)];
    for (events, found) in [
        (&[core(6, 0)][..], [0, 0, POINTER, STAMP]),
        (&[generic(6, 0, 14)], [0, 0, POINTER, STAMP]),
        (&[core(4, 5)], [0, 0, WHEEL, STAMP]),
        (&[generic(4, 7, 14)], [0, 0, WHEEL, STAMP]),
        (&[core(4, 1)], [BUTTON, STAMP, 0, 0]),
        (&[generic(4, 8, 14)], [BUTTON, STAMP, 0, 0]),
        (&[core(6, 0), core(2, 38)], [KEY, STAMP, POINTER, STAMP]),
        (&[core(2, 38), core(6, 0)], [KEY, STAMP, POINTER, STAMP]),
        (&[core(6, 0), core(4, 4), core(6, 0)], [0, 0, WHEEL, STAMP]),
        (&others, [0; 4]),
    ] {
        assert_eq!(reader.read("x11", events), found, "{events:?}");
    }
}

#[test]
fn motions_and_the_wheel_of_wayland_are_read_beside_presses() {
    let mut reader = EventReader::start();
    let moved = message(2, &[STAMP, 0x1200, 0x3400]);
    let scrolled = message(4, &[STAMP, 0, 0xa00]);
    let clicked = message(3, &[9, STAMP, 0x110, 1]);
    let frame = message(5, &[]);
    // Without a current time stamp, and without a known axis.
    let others =
        [message(2, &[NOW + 60_000, 1, 2]), message(4, &[STAMP, 2, 3]), message(4, &[1, 0, 3])];
    for (events, found) in [
        (&[moved.clone(), frame.clone()][..], [0, 0, POINTER, STAMP]),
        (&[moved.clone(), scrolled, frame.clone()], [0, 0, WHEEL, STAMP]),
        (&[moved, clicked, frame], [BUTTON, STAMP, POINTER, STAMP]),
        (&others, [0; 4]),
    ] {
        assert_eq!(reader.read("wayland", events), found, "{events:?}");
    }
}

/// Returns the order for a press injected with the XTEST extension at this major opcode.
fn injected(major: u8) -> String {
    format!("request {major:02x}02090002260000{}", "0".repeat(58))
}

#[test]
fn only_drawing_requests_of_a_known_servers_extensions_draw() {
    let mut reader = EventReader::start();
    for other in ["", "known 139 8 10"] {
        reader.order(other);
        // The extensions of the server are not known, so that these may draw.
        reader.expect_drawing(&[(139, 8), (139, 4), (131, 40), (62, 0)], true);
        reader.expect_drawing(&[(73, 0), (14, 0)], false);
    }
    assert_eq!(
        (reader.order(&injected(132)).as_str(), reader.order("met 0").as_str()),
        ("0 1", "0 9")
    );
    reader.last_of(&["known 139 8 9", "known 139 32 9"]);
    reader.expect_drawing(&[(139, 8), (139, 32), (62, 0)], true);
    reader.expect_drawing(&[(139, 4), (131, 40), (139, 72), (255, 255), (73, 0)], false);
    assert_eq!(
        (reader.order(&injected(132)).as_str(), reader.order("met 1").as_str()),
        ("0 1", "0 9")
    );
}

/// Returns the order for a number of requests without effect, followed by the first `sent` bytes of
/// one of 64 units.
fn cut_short(requests: usize, sent: usize) -> String {
    let mut rest = vec![0xff; 4 * 64];
    rest[..4].copy_from_slice(&[72, 0, 64, 0]);
    // Read as a head, these bytes would begin a request of 262,140 bytes.
    rest[8..12].copy_from_slice(&[75, 0, 0xff, 0xff]);
    let bytes = [[127, 0, 1, 0].repeat(requests), rest[..sent].to_vec()].concat();
    format!("stream {}", hex(&bytes))
}

/// Returns the order for the rest of that request, and a number of further ones.
fn carried_on(sent: usize, requests: usize) -> String {
    let bytes =
        [[75, 0, 0xff, 0xff].repeat(64 - sent / 4), [127, 0, 1, 0].repeat(requests)].concat();
    format!("stream {}", hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn stream_position_survives_sends_of_too_many_requests() {
    let mut reader = EventReader::start();
    assert_eq!(
        [cut_short(600, 8), carried_on(8, 3)].map(|order| reader.order(&order)),
        ["601 0", "3 0"]
    );
}

#[test]
fn a_send_of_whole_requests_restores_the_stream_position() {
    let mut reader = EventReader::start();
    let sends =
        [cut_short(1_200, 8), carried_on(8, 3), cut_short(1, 8), carried_on(8, 0), cut_short(5, 0)];
    assert_eq!(sends.map(|order| reader.order(&order)), ["1024 0", "0 1", "0 2", "0 3", "5 3"]);
    assert_eq!(
        [cut_short(1, 8), carried_on(8, 1)].map(|order| reader.order(&order)),
        ["2 3", "1 3"]
    );
}

#[test]
fn requests_that_draw_are_bits_by_their_opcodes() {
    let extensions = [("RENDER", 139), ("XTEST", 132), ("MIT-SHM", 130), ("DRI2", 5)]
        .map(|(name, major)| Extension { name: name.to_owned(), major });
    let display = Display { display: 7, server_pid: 9, extensions: extensions.into() };
    let minors = drawing_minors(&display);
    let known: Vec<(usize, u64)> =
        minors.iter().copied().enumerate().filter(|(_, bits)| *bits != 0).collect();
    let render =
        [8, 10, 11, 12, 13, 23, 24, 25, 26, 32].iter().fold(0, |bits, minor| bits | 1_u64 << minor);
    assert_eq!(known, [(2, 1 << 3), (11, render)]);
}

#[test]
fn nothing_is_noticed_of_a_pointer_that_is_not_to_be_recorded() {
    let mut reader = EventReader::start();
    reader.order("hide");
    assert_eq!(reader.read("x11", &[core(6, 0), core(4, 5), core(2, 38)]), [0; 4]);
    assert_eq!(
        reader.read("wayland", &[message(2, &[STAMP, 1, 2]), message(4, &[STAMP, 0, 3])]),
        [0; 4]
    );
}

/// Simulates ten seconds with 100 moves per second over a window that draws only its caret, twice a
/// second.
#[test]
fn a_pointer_that_needs_no_answer_is_not_reported() {
    let mut reader = EventReader::start();
    for at in (0..10_000).step_by(10).map(|at| at + 1_000) {
        assert_eq!(reader.order(&format!("moves 3 {at} {at}")), "3?");
        assert_eq!(reader.order(&format!("take 5 {}", at + 1)), "");
        reader.order(&format!("sleep 5 {} {}", at + 2, at + 10));
        if at % 500 == 0 {
            assert_eq!(reader.order(&format!("draw 5 {}", at + 10)), "");
        }
    }
    // The last move was made long before the caret blinks again.
    reader.order("sleep 5 11001 14000");
    assert_eq!(
        (reader.order("draw 5 14000"), reader.order("counts")),
        (String::new(), "0 0 0 21".into())
    );
}

#[test]
fn queued_moves_are_reported_when_they_are_taken() {
    let mut reader = EventReader::start();
    assert_eq!(reader.order("moves 3 1000 1001"), "3?");
    assert_eq!(reader.order("moves 2 1400 1400"), "2?");
    assert_eq!(reader.order("press 1450 1450"), "0? 2?");
    assert_eq!(
        reader.order("take 5 1701"),
        "0 251 1 2 700 1 0?",
        "the key is open until something is drawn"
    );
    assert_eq!(reader.order("moves 3 1710 1710"), "0? 3?");
    assert_eq!(reader.order("take 5 1759"), "0?", "that was in time");
}

#[test]
fn a_thread_that_works_on_moves_until_it_draws_is_late() {
    let mut reader = EventReader::start();
    reader.order("moves 3 1000 1000");
    reader.order("take 5 1001");
    // The frame in which it works begins later.
    reader.order("sleep 5 1001 1011");
    assert_eq!(reader.order("draw 5 1711"), "3 701 0");
    assert_eq!(reader.order("draw 5 1900"), "", "the next drawing is another matter");
    reader.order("moves 3 2000 2000");
    reader.order("take 5 2001");
    assert_eq!(
        reader.order("draw 6 2700"),
        "",
        "another thread draws: what the first one did is not known"
    );
    assert_eq!(reader.order("counts"), "0 0 0 1");
}

#[test]
fn a_thread_that_takes_the_next_moves_is_done_with_those_before() {
    let mut reader = EventReader::start();
    for at in (1_000..2_000).step_by(10) {
        reader.order(&format!("moves 3 {at} {at}"));
        reader.order(&format!("take 5 {at}"));
    }
    assert_eq!(reader.order("draw 5 2010"), "");
}

#[test]
fn moves_answer_no_key_and_keys_no_moves() {
    let mut reader = EventReader::start();
    reader.order("press 1000 1000");
    reader.order("take 5 1001");
    reader.order("moves 3 1400 1400");
    assert_eq!(reader.order("take 5 1401"), "0?");
    assert_eq!(
        reader.order("draw 5 1402"),
        "",
        "a drawing is reported once the server is done with it"
    );
    assert_eq!(reader.order("counts"), "1 0 0 1");
}

/// Answers a key in the usual order, after which the connection is known.
fn answered(reader: &mut EventReader) {
    let orders = ["press 1000 1000", "take 5 1001", "draw 5 1002", "serve 9 1003", "wait 9 1004"];
    assert_eq!(reader.last_of(&orders), "0 4 0");
}

#[test]
fn the_next_drawing_answers_input_taken_before_its_send_ends() {
    let mut reader = EventReader::start();
    reader.order("press 1000 1002");
    assert_eq!(reader.order("already 5 1001 1002"), "0?");
    assert_eq!(reader.last_of(&["draw 5 1003", "serve 9 1004", "wait 9 1005"]), "0 5 0");
    assert_eq!(reader.last_of(&["take 5 2001", "press 2000 2002", "already 5 2001 2002"]), "0?");
    // The thread that read it waited for others, which is known as usual.
    reader.order("sleep 5 2002 2802");
    assert_eq!(reader.order("draw 5 2803"), "");
    reader.order("serve 9 2803");
    assert_eq!(
        (reader.order("wait 9 2804"), reader.order("counts")),
        ("0 804 0".into(), "2 0 0 0".into())
    );
}

#[test]
fn a_drawing_before_the_send_returned_answers_what_was_taken() {
    let mut reader = EventReader::start();
    answered(&mut reader);
    assert_eq!(reader.order("draw 5 2002"), "");
    assert_eq!(reader.order("press 2000 2003"), "0?");
    assert_eq!(reader.order("already 5 2001 2003"), "", "nothing is left to be answered");
    reader.order("serve 9 2004");
    assert_eq!(
        (reader.order("wait 9 2005"), reader.order("counts")),
        ("0 5 0".into(), "2 0 0 0".into())
    );
    reader.order("draw 5 3701");
    reader.order("moves 3 3000 3702");
    assert_eq!(
        (reader.order("already 5 3700 3702"), reader.order("counts")),
        ("3 701 0".into(), "2 0 0 1".into())
    );
}

#[test]
fn what_was_drawn_before_it_was_taken_answers_nothing() {
    let mut reader = EventReader::start();
    answered(&mut reader);
    assert_eq!(reader.last_of(&["draw 5 2000", "press 2000 2002", "already 5 2001 2002"]), "0?");
    assert_eq!(reader.last_of(&["draw 5 2701", "serve 9 2702", "wait 9 2703"]), "0 703 0");
}

#[test]
fn presses_that_one_drawing_answers_are_reported_together() {
    let mut reader = EventReader::start();
    answered(&mut reader);
    assert_eq!(reader.last_of(&["press 2000 2000", "take 5 2001", "draw 5 2011"]), "");
    reader.order("press 2009 2012");
    assert_eq!(reader.order("already 5 2010 2012"), "", "the server is not done with the drawing");
    reader.order("serve 9 2013");
    assert_eq!(reader.order("wait 9 2313"), "0 313 0 of 2");
}

#[test]
fn a_drawing_lasts_until_the_server_is_done_with_it() {
    let mut reader = EventReader::start();
    reader.order("press 1000 1000");
    reader.order("take 5 1001");
    assert_eq!(
        (reader.order("draw 5 1002"), reader.order("served 9 1002")),
        (String::new(), String::new())
    );
    assert_eq!(reader.order("wait 9 1010"), "0 10 0");
    // The thread that read it went on with another client's drawing.
    for order in [
        "press 2000 2000",
        "take 5 2001",
        "pressb 2000 2000",
        "takeb 6 2001",
        "drawb 6 2002",
        "draw 5 2002",
    ] {
        reader.order(order);
    }
    reader.order("serveb 9 2003");
    assert_eq!(reader.order("served 9 2004"), "0 4 0", "that of the other client is not done");
    assert_eq!(reader.order("wait 9 2303"), "0 303 0");
}

#[test]
fn byte_counts_show_what_was_taken_before_its_send_was_noted() {
    let mut reader = EventReader::start();
    assert_eq!((reader.order("sent 32"), reader.order("taken 32")), ("0".into(), String::new()));
    reader.order("taken 64");
    assert_eq!(reader.order("sent 64"), "1");
    // Beyond 2^32 bytes the counts wrap to 0.
    for _ in 0..3 {
        assert_eq!(
            (reader.order("sent 2000000000"), reader.order("taken 2000000000")),
            ("0".into(), String::new())
        );
    }
    reader.order("taken 8");
    assert_eq!((reader.order("sent 8"), reader.order("sent 8")), ("1".into(), "0".into()));
}

#[test]
fn bytes_queued_before_the_recording_are_detected() {
    let mut reader = EventReader::start();
    reader.order("taken 1000");
    assert_eq!(reader.order("sent 8"), "1", "nothing is left in the queue");
    assert_eq!((reader.order("sent 8"), reader.order("taken 8")), ("0".into(), String::new()));
    reader.order("taken 8");
    assert_eq!(reader.order("sent 8"), "1");
}

#[test]
fn a_press_taken_before_its_send_returned_keeps_its_time() {
    let mut reader = EventReader::start();
    reader.order("inject 1000");
    assert_eq!(reader.order("stamped 1030 1031"), "1000");
    assert_eq!(
        reader.last_of(&["inject 2000", "injected 2000", "stamped 2039 2040"]),
        "2040",
        "the next one was made just now"
    );
    assert_eq!(
        reader.last_of(&["inject 3000", "inject 3500", "injected 3500", "stamped 3509 3510"]),
        "3000",
        "the earlier injection is reported first"
    );
}

#[test]
fn a_client_that_waits_for_the_next_press_leaves_none_open() {
    let mut reader = EventReader::start();
    for at in [1_000, 1_100, 1_200] {
        reader.order(&format!("press {at} {at}"));
        reader.order(&format!("take 5 {}", at + 1));
        // The client works on it, and then waits until the server sends the next one.
        reader.order(&format!("woken 5 {} {}", at + 16, at + 100));
    }
    assert_eq!(
        reader.last_of(&[
            "press 1300 1300",
            "take 5 1301",
            "draw 5 1305",
            "serve 9 1305",
            "wait 9 1306"
        ]),
        "0 6 0 after 3"
    );
    assert_eq!(reader.order("counts"), "1 0 0 0");
}

#[test]
fn presses_before_a_wait_for_a_client_are_answered_together() {
    let mut reader = EventReader::start();
    for at in [1_000, 1_100] {
        reader.order(&format!("press {at} {at}"));
        reader.order(&format!("take 5 {}", at + 1));
        reader.order(&format!("sleep 5 {} {}", at + 2, at + 99));
    }
    assert_eq!(reader.last_of(&["draw 5 1200", "serve 9 1200", "wait 9 1201"]), "0 201 0 of 2");
    // A frame clock wakes it between two keys in quick succession.
    for at in [2_000, 2_010] {
        reader.order(&format!("press {at} {at}"));
        reader.order(&format!("take 5 {}", at + 1));
        reader.order(&format!("woken 5 {} {}", at + 2, at + 10));
    }
    assert_eq!(reader.last_of(&["draw 5 2021", "serve 9 2021", "wait 9 2022"]), "0 22 0 of 2");
}

#[test]
fn events_lost_to_another_cpu_are_counted_once() {
    let mut reader = EventReader::start();
    answered(&mut reader);
    reader.last_of(&["press 2000 2000", "hold"]);
    for (order, lost) in [("press 2010 2010", "1"), ("take 5 2011", "2"), ("draw 5 2012", "3")] {
        assert_eq!(reader.last_of(&[order, "unwatched"]), lost);
    }
    reader.last_of(&["release", "take 5 2020", "draw 5 2021", "serve 9 2022"]);
    assert_eq!(reader.order("wait 9 2023"), "0 23 0");
}

/// Sends far more presses than a record keeps: of Wayland 128 messages are read, of X11 a whole
/// output buffer.
#[test]
fn presses_of_a_long_send_are_counted_up_to_its_bound() {
    let mut reader = EventReader::start();
    let typed = [1, 0].map(|state| message(3, &[9, STAMP, 30, state]));
    let of_wayland = vec![typed; 70].concat();
    let of_x11 = vec![[core(2, 38), core(3, 38)]; 70].concat();
    for (protocol, events, counted) in [("wayland", of_wayland, 64), ("x11", of_x11, 70)] {
        assert_eq!(reader.found(protocol, &events[..120])[4], 60, "{protocol}");
        assert_eq!(reader.found(protocol, &events)[4], counted, "{protocol}");
    }
}

#[test]
fn keys_that_come_together_are_counted_each() {
    let mut reader = EventReader::start();
    let keys = [30, 31, 42].map(|code| message(3, &[9, STAMP, code, 1]));
    assert_eq!(reader.found("wayland", &keys)[4], 2, "one is a modifier");
    assert_eq!(reader.found("x11", &[core(2, 38), core(2, 39)])[4], 2);
    let mut later = generic(2, 39, 14);
    later[12..16].copy_from_slice(&(STAMP + 4).to_le_bytes());
    let twice = [generic(2, 38, 14), generic(2, 38, 14), generic(6, 0, 14), later.clone(), later];
    assert_eq!(
        reader.found("x11", &twice),
        [KEY, STAMP, POINTER, STAMP, 2],
        "of a device, and of all"
    );
    assert_eq!(
        reader.last_of(&[
            "press 1000 1000 3",
            "take 5 1001",
            "draw 5 1002",
            "serve 9 1002",
            "wait 9 1003"
        ]),
        "0 3 0 of 3"
    );
}
