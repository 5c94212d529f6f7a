// SPDX-License-Identifier: MIT OR Apache-2.0
//! A user with delayed typing that presses the key.

use crate::session_agent::press;
use std::time::Duration;
use tipme_bench::PrivateSession;
use tipme_bench::faults::{Fault, Site};
use tipme_bench::seen::DrawingWatch;
use tipme_bench::until;
use tipme_bench::worker::WorkerLauncher;
use tipme_desktop::inject::{Pace, Typist};

/// Types into a terminal, delays the typing with a lock, and presses the mark key after that.
pub fn suffer(session: &mut PrivateSession) {
    let launcher = WorkerLauncher(vec![crate::built("tipme-lab").into(), "worker".into()]);
    let site = Site { folder: session.folder().to_owned(), x11: Some(session.target()), launcher };
    let mut scenario = Fault::named("lock").unwrap().prepare(&site).unwrap();
    session.open_terminal(&scenario.prefix, &scenario.program).unwrap();
    let seen = DrawingWatch::start(session, Duration::from_millis(400)).unwrap();
    let mut typist = Typist::open(&session.target(), Pace::default()).unwrap();
    let mut keys = scenario.keys.chars().cycle();
    let mut type_some =
        |count| keys.by_ref().take(count).map(|key| typist.key(key).unwrap()).last().unwrap();
    type_some(20);
    let job = scenario.inject(session.terminal_pid().unwrap()).unwrap();
    let last = type_some(5);
    until("the terminal has answered", || {
        seen.answered(last) && seen.quiet_for() >= Duration::from_millis(400)
    });
    drop(job);
    press(session, &["ctrl+alt+minus"]);
}
