// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Wayland compositor with an editor and other clients.

use super::words::word;
use super::{APP, Machinery, SERVER};
use tipme_analysis::Timed;
use tipme_record::wayland::{ENTERED, MODIFIERS, NEAR, PRESENTED, PRESSED, WlWord};

/// Directions.
pub const REQUEST_SENT: u8 = 0;
pub const REQUEST_TAKEN: u8 = 1;
pub const EVENT_SENT: u8 = 2;
pub const EVENT_TAKEN: u8 = 3;

/// Objects of the application.
pub const DISPLAY: u32 = 1;
pub const SEAT_OBJECT: u32 = 4;
pub const KEYBOARD: u32 = 8;
pub const SURFACE: u32 = 9;
pub const CALLBACK: u32 = 30;
pub const FEEDBACKS: u32 = 10;
pub const FEEDBACK: u32 = 31;

/// Begin of a scene, in microseconds.
pub const BEGIN_US: u64 = 1_000_000;

/// Another application on the same compositor.
pub const OTHER: u32 = 640;

pub const POLL: i32 = 7;

/// The thread of the application that reads from the compositor, if another one draws.
pub const READER: u32 = APP + 1;

/// Waker context of a timer interrupt.
pub const BY_INTERRUPT: u8 = 2;

pub fn key(us: u64) -> WlWord {
    word(KEYBOARD, 3, 6, PRESSED | NEAR, ((BEGIN_US + us) / 1_000) as u32)
}

/// Requests that show a frame and ask for the next callback.
pub fn frame() -> [WlWord; 3] {
    [word(SURFACE, 1, 5, 0, 0), word(SURFACE, 3, 3, 0, CALLBACK), word(SURFACE, 6, 2, 0, 0)]
}

/// Events of a frame callback.
pub fn done() -> [WlWord; 2] {
    [word(CALLBACK, 0, 3, 0, 0), word(DISPLAY, 1, 3, 0, CALLBACK)]
}

/// The compositor sends a key to the application, which runs from 200 µs later on.
pub fn press(machine: &mut Machinery, us: u64) {
    press_for(machine, us, APP);
}

pub fn press_for(machine: &mut Machinery, us: u64, client: u32) {
    machine.wake_from(us, SERVER, 0, BY_INTERRUPT, 0).switch(us + 20, 0, SERVER, 0);
    machine.wake_from(us + 100, client, SERVER, 0, 1);
    machine.wl_message(us + 102, SERVER, client, EVENT_SENT, &[key(us)]).switch(us + 150, 0, 0, 1);
    machine.switch(us + 200, 1, client, 0).wl_message(us + 250, client, client, EVENT_TAKEN, &[]);
}

/// The application shows a frame and goes idle; the compositor composes it and sends the frame
/// callback.
pub fn show(machine: &mut Machinery, us: u64) {
    show_of(machine, us, APP);
}

pub fn show_of(machine: &mut Machinery, us: u64, client: u32) {
    machine.wake(us, SERVER, client).wl_message(us + 2, client, client, REQUEST_SENT, &frame());
    machine.switch(us + 10, 1, 0, 1).switch(us + 50, 0, SERVER, 0);
    machine.wl_message(us + 60, SERVER, client, REQUEST_TAKEN, &[]).switch(us + 200, 0, 0, 1);
    machine.wake_from(us + 5_000, SERVER, 0, BY_INTERRUPT, 0).switch(us + 5_020, 0, SERVER, 0);
    machine.wake_from(us + 5_100, client, SERVER, 0, 1);
    machine.wl_message(us + 5_102, SERVER, client, EVENT_SENT, &done());
    machine.switch(us + 5_150, 0, 0, 1).switch(us + 5_200, 1, client, 0);
    machine.wl_message(us + 5_250, client, client, EVENT_TAKEN, &[]).switch(us + 5_300, 1, 0, 1);
}

/// The application asks for presentation feedback; its frame is presented 8 ms after the commit,
/// and the event comes 3 ms later.
pub fn show_and_ask(machine: &mut Machinery, us: u64) {
    let [attach, ask, commit] = frame();
    let feedback = word(FEEDBACKS, 1, 4, 0, FEEDBACK);
    machine.wake(us, SERVER, APP);
    machine.wl_message(us + 2, APP, APP, REQUEST_SENT, &[attach, ask, feedback, commit]);
    machine.switch(us + 10, 1, 0, 1).switch(us + 50, 0, SERVER, 0);
    machine.wl_message(us + 60, SERVER, APP, REQUEST_TAKEN, &[]).switch(us + 200, 0, 0, 1);
    machine.wake_from(us + 11_000, SERVER, 0, BY_INTERRUPT, 0).switch(us + 11_020, 0, SERVER, 0);
    let shown = word(FEEDBACK, 1, 9, PRESENTED, (BEGIN_US + us + 8_000) as u32);
    machine.wl_message(us + 11_102, SERVER, APP, EVENT_SENT, &[shown]).switch(us + 11_150, 0, 0, 1);
}

pub fn editor() -> Machinery {
    Machinery::with_app("editor")
}

pub fn editor_and_mail() -> Machinery {
    let mut machine = editor();
    machine.task(OTHER, OTHER, 1, "mail", 1);
    machine
}

/// The keyboard enters a surface of a client, or leaves it.
pub fn enter(machine: &mut Machinery, us: u64, client: u32) {
    let words = [word(KEYBOARD, 1, 5, ENTERED, SURFACE), word(KEYBOARD, 4, 7, MODIFIERS, 0)];
    machine.wl_message(us, SERVER, client, EVENT_SENT, &words);
}

pub fn leave(machine: &mut Machinery, us: u64, client: u32) {
    machine.wl_message(us, SERVER, client, EVENT_SENT, &[word(KEYBOARD, 2, 4, 0, 0)]);
}

pub fn interactions(machine: &mut Machinery) -> Vec<Timed> {
    machine.timed(2_000_000)
}

/// Stopped by a signal, until another process continues it.
pub const STOPPED: u16 = 4;
