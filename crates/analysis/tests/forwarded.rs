// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers that a thread passes on: what a program on another machine draws through it, and what a
//! helper has computed for it.

mod support;

use support::{APP, Machinery};
use tipme_analysis::Timed;
use tipme_analysis::model::CauseKind;

const POLL: i32 = 7;
const SOFTIRQ: u8 = 1;
const BY_TIMER: u8 = 2;
const INTERNET: u16 = 2;
const HELPER: u32 = 510;
const MARK: u64 = 5_000_000;

/// Time of the key that is answered late.
const KEY: u64 = 2_000_000;

fn last(machine: &mut Machinery) -> Timed {
    let all = machine.timed(MARK);
    all.into_iter().next_back().expect("there was input")
}

/// A key that the program takes, and sends over the network; it draws after a packet.
fn forwarded(machine: &mut Machinery, us: u64, answer: u64) {
    machine.press(us).switch(us + 400, 1, 0, 1);
    machine.wake_from(answer, APP, 0, SOFTIRQ, 1).switch(answer + 20, 1, APP, 0);
    machine.wait(answer + 1, APP, us + 400, |wait| {
        (wait.syscall, wait.args, wait.context) = (POLL, [1, 1, u64::MAX], u16::from(SOFTIRQ));
        (wait.family, wait.address, wait.port) = (INTERNET, u32::from_le_bytes([192, 0, 2, 7]), 22);
    });
    machine.draw(answer + 100);
}

#[test]
fn forwarded_display_answers_late() {
    let mut machine = Machinery::with_app("ssh");
    for us in [500_000, 800_000, 1_100_000, 1_400_000] {
        forwarded(&mut machine, us, us + 40_000);
    }
    forwarded(&mut machine, KEY, KEY + 1_200_000);
    let key = last(&mut machine);
    assert_eq!(key.drawn_ns.map(|at| (at - key.input_ns) / 1_000_000), Some(1_200));
    assert_eq!(machine.diagnose(MARK).findings[0].kind, CauseKind::NetworkWait);
}

/// An editor draws a key at once and starts a helper, which computes for 1.5 s. By a timer the
/// editor polls for its exit, and draws this long after it.
fn helper_of_a_key(shown_after: u64) -> Machinery {
    let mut machine = Machinery::with_app("editor");
    machine.typing(500_000, 5).press(KEY).fork(KEY + 400, APP, HELPER);
    machine.wake_from(KEY + 410, HELPER, APP, 0, 2);
    machine.switch(KEY + 420, 2, HELPER, 0).draw(KEY + 600);
    let end = KEY + 1_500_000;
    machine.exit(end, HELPER, APP, APP, "preview").switch(end + 10, 2, 0, 0x80);
    let shown = end + shown_after;
    machine.wake_from(shown, APP, 0, BY_TIMER, 1).switch(shown + 20, 1, APP, 0).draw(shown + 100);
    machine
}

#[test]
fn helper_end_completes_the_key() {
    let mut machine = helper_of_a_key(20_000);
    let key = last(&mut machine);
    assert_eq!(key.completed_ns.map(|at| (at - key.input_ns) / 1_000_000), Some(1_520));
    let finding = machine.diagnose(MARK).findings.remove(0);
    assert!(finding.evidence.iter().any(|line| line.contains("preview")), "{finding:?}");
}

#[test]
fn drawing_long_after_the_helper_is_no_completion() {
    assert_eq!(last(&mut helper_of_a_key(300_000)).completed_ns, None);
}
