// SPDX-License-Identifier: MIT OR Apache-2.0
//! An X11 program on a Wayland compositor: the X server in between is a client of the one and
//! serves the other.

mod support;

use support::{APP, BEGIN, KEY_PRESS, Machinery, SERVER, WINDOW};
use tipme_analysis::timed;
use tipme_record::wayland::{NEAR, PRESSED, WlWord};

const COMPOSITOR: u32 = 110;
const LINK: (u32, u32) = (COMPOSITOR, SERVER);
const EVENT_SENT: u8 = 2;
const EVENT_TAKEN: u8 = 3;

/// Two keys that are answered within a millisecond.
fn nested() -> Machinery {
    let mut machine = Machinery::with_app("xterm");
    machine.task(COMPOSITOR, COMPOSITOR, 1, "compositor", 1);
    for us in [100_000, 300_000] {
        send_to_server(&mut machine, us, 200);
        send_to_program(&mut machine, us + 400);
    }
    machine
}

/// The compositor wakes, computes for `computed`, and sends a key to the X server.
fn send_to_server(machine: &mut Machinery, us: u64, computed: u64) {
    let sent = us + computed;
    machine.wake_from(us, COMPOSITOR, 0, 2, 0).switch(us + 20, 0, COMPOSITOR, 0);
    let key = WlWord {
        object: 8,
        opcode: 3,
        units: 6,
        hint: PRESSED | NEAR,
        unused: 0,
        argument: (BEGIN / 1_000_000 + us / 1_000) as u32,
    };
    machine.wl_message_between(sent, COMPOSITOR, LINK, EVENT_SENT, &[key]);
    machine.wake(sent + 2, SERVER, COMPOSITOR);
    machine.switch(sent + 20, 0, 0, 1);
}

/// The X server receives the key and passes it to the program, which draws.
fn send_to_program(machine: &mut Machinery, us: u64) {
    machine.switch(us, 0, SERVER, 0).wl_message_between(us + 10, SERVER, LINK, EVENT_TAKEN, &[]);
    machine.message(us + 30, SERVER, WINDOW, EVENT_SENT, 32, &[KEY_PRESS]).wake_from(
        us + 32,
        APP,
        SERVER,
        0,
        1,
    );
    machine.switch(us + 50, 0, 0, 1).switch(us + 100, 1, APP, 0).message(
        us + 150,
        APP,
        WINDOW,
        EVENT_TAKEN,
        32,
        &[],
    );
    machine.draw(us + 400);
}

/// Keys of a program that draws only with an extension, on the display of a server that does not
/// listen there itself.
fn rendering() -> Machinery {
    /// RENDER's composite.
    const COMPOSITE: [u8; 4] = [139, 8, 9, 0];
    let mut machine = Machinery::with_app("java");
    machine.displays.iter_mut().for_each(|display| display.server_pid = COMPOSITOR);
    for key in 0..3 {
        let us = 100_000 + key * 200_000;
        machine.press(us).wake(us + 600, SERVER, APP).message(
            us + 602,
            APP,
            WINDOW,
            0,
            20,
            &[COMPOSITE],
        );
        machine.switch(us + 610, 1, 0, 1).switch(us + 650, 0, SERVER, 0);
        machine.message(us + 660, SERVER, WINDOW, 1, 20, &[]).switch(us + 800, 0, 0, 1);
    }
    machine
}

#[test]
fn a_key_goes_through_both_servers_to_one_program() {
    let mut machine = nested();
    let found = machine.timed(2_000_000);
    let found: Vec<_> = found
        .iter()
        .map(|timed| (timed.client_pid, timed.input_ns / 1_000, timed.end_ns / 1_000))
        .collect();
    assert_eq!(found, [(APP, 1_100_000, 1_101_000), (APP, 1_300_000, 1_301_000)]);
}

#[test]
fn a_computing_compositor_is_named_for_an_x11_program() {
    let mut machine = nested();
    send_to_server(&mut machine, 500_000, 700_000);
    send_to_program(&mut machine, 1_200_200);
    let verdict = machine.diagnose(2_000_000);
    let interval = verdict.interval.as_ref().expect("there was input");
    assert_eq!(interval.client.pid, APP);
    let finding = serde_json::to_string(&verdict.findings[0]).expect("a finding is a document");
    assert!(finding.contains("compositor"), "{finding}");
}

#[test]
fn an_x_server_that_takes_no_key_delays_its_program() {
    let mut machine = nested();
    send_to_server(&mut machine, 500_000, 200);
    send_to_program(&mut machine, 1_300_000);
    let verdict = machine.diagnose(2_000_000);
    let interval = verdict.interval.as_ref().expect("there was input");
    assert_eq!((interval.client.pid, interval.latency_ms.round()), (APP, 801.0));
}

#[test]
fn drawings_are_known_beside_a_compositor_on_the_display() {
    let found = timed(&rendering().incident(2_000_000)).expect("the scene is well formed");
    let joins: Vec<_> = found.iter().map(|timed| (timed.client_pid, timed.join.as_str())).collect();
    assert_eq!(joins, [(APP, "exact"); 3]);
}

#[test]
fn inputs_were_seen_though_it_is_not_known_what_answered_them() {
    let mut machine = rendering();
    machine.displays.clear();
    let notes = machine.diagnose(2_000_000).notes;
    let note = "No response to the 3 inputs to ";
    assert!(notes.iter().any(|line| line.starts_with(note)), "{notes:?}");
}
