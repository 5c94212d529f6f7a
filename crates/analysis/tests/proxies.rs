// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs that another process than the client answers, at once or with its next frame.

mod support;

use support::{APP, DRAW_TEXT, Machinery, SERVER};

/// A child of the client that draws for it, its connection, and a worker thread of it.
const PROXY: u32 = 300;
const PIPE: (u32, u32) = (3, PROXY);
const WORKER: u32 = 310;
/// An unrelated process.
const UNRELATED: u32 = 400;

/// Waker context of a timer interrupt.
const BY_INTERRUPT: u8 = 2;
/// futex, and its operation for waits on conditions.
const FUTEX: i32 = 202;
const WAIT_BITSET_PRIVATE: u64 = 9 | 128;
const KEY_PRESS: [u8; 4] = [2, 0, 0, 0];

/// A browser that draws its first answer itself, at 100 ms, and receives another input at 300 ms.
fn browser() -> Machinery {
    let mut machine = Machinery::with_app("browser");
    machine.task(PROXY, PROXY, APP, "proxy", 1).task(WORKER, PROXY, APP, "worker", 1);
    machine.task(UNRELATED, UNRELATED, 1, "unrelated", 1);
    machine.typing(100_000, 1).press(300_000);
    machine
}

/// The thread on CPU 1 wakes another one, which follows it there.
fn hand_on(machine: &mut Machinery, us: u64, from: u32, to: u32) {
    machine.wake_from(us, to, from, 0, 1).switch(us + 50, 1, to, 1);
}

/// The running proxy draws and goes idle.
fn proxy_draws(machine: &mut Machinery, us: u64) {
    machine.wake(us, SERVER, PROXY).message(us + 2, PROXY, PIPE, 0, 20, &[DRAW_TEXT]);
    machine.switch(us + 10, 1, 0, 1).switch(us + 50, 0, SERVER, 0);
    machine.message(us + 60, SERVER, PIPE, 1, 20, &[]).switch(us + 200, 0, 0, 1);
}

/// A timer wakes the proxy, which has waited since `since`.
fn frame(machine: &mut Machinery, us: u64, since: u64) {
    machine.wake_from(us, PROXY, 0, BY_INTERRUPT, 1).switch(us + 10, 1, PROXY, 0);
    machine.wait(us + 1, PROXY, since, |wait| {
        (wait.syscall, wait.args, wait.context) =
            (FUTEX, [0, WAIT_BITSET_PRIVATE, 0], u16::from(BY_INTERRUPT));
    });
}

/// Returns, for each of the browser's inputs, the time from the input to the drawing in
/// microseconds, and the join.
fn joins(machine: &mut Machinery) -> Vec<(u64, String)> {
    let timed = machine.timed(1_000_000);
    timed
        .into_iter()
        .filter(|one| one.client_pid == APP)
        .map(|one| (one.drawn_ns.map_or(0, |at| (at - one.input_ns) / 1_000), one.join))
        .collect()
}

fn exact(us: u64) -> (u64, String) {
    (us, "exact".to_owned())
}

#[test]
fn a_proxy_answers_though_the_client_draws_too() {
    let mut machine = browser();
    hand_on(&mut machine, 300_400, APP, PROXY);
    proxy_draws(&mut machine, 300_600);
    assert_eq!(joins(&mut machine), [exact(590), exact(590)]);
}

#[test]
fn a_client_that_receives_input_draws_for_itself() {
    let mut machine = browser();
    machine.message(200_000, SERVER, PIPE, 2, 32, &[KEY_PRESS]);
    hand_on(&mut machine, 300_400, APP, PROXY);
    proxy_draws(&mut machine, 300_600);
    assert_eq!(joins(&mut machine), [exact(590)]);
}

#[test]
fn a_frame_that_the_input_began_answers_it() {
    let mut machine = browser();
    hand_on(&mut machine, 300_400, APP, PROXY);
    machine.switch(300_500, 1, 0, 1);
    frame(&mut machine, 312_000, 300_500);
    proxy_draws(&mut machine, 312_400);
    assert_eq!(joins(&mut machine), [exact(590), exact(12_390)]);
}

/// The proxy waits for a timer from 300.5 ms on; an unrelated process interrupts the wait at
/// `times`, and the timer ends it at `ends`.
fn interrupted(times: &[u64], ends: u64) -> Vec<(u64, String)> {
    let mut machine = browser();
    hand_on(&mut machine, 300_400, APP, PROXY);
    machine.switch(300_500, 1, 0, 1);
    for us in times {
        machine.wake_from(us - 20, UNRELATED, 0, BY_INTERRUPT, 1).switch(us - 10, 1, UNRELATED, 0);
        hand_on(&mut machine, *us, UNRELATED, PROXY);
        machine.switch(us + 100, 1, 0, 1);
    }
    let since = times.last().map_or(300_500, |us| us + 100);
    frame(&mut machine, ends, since);
    proxy_draws(&mut machine, ends + 400);
    joins(&mut machine)
}

#[test]
fn interrupted_frame_wait_leads_to_the_input_before_it() {
    assert_eq!(interrupted(&[306_000], 312_000), [exact(590), exact(12_390)]);
    assert_eq!(interrupted(&[304_000, 307_000, 310_000], 316_000), [exact(590), exact(16_390)]);
    assert_eq!(interrupted(&[306_000], 325_000), [exact(590)], "longer than a frame in all");
}

#[test]
fn what_comes_long_after_a_timer_was_set_answers_nothing() {
    let mut machine = browser();
    hand_on(&mut machine, 300_400, APP, PROXY);
    machine.switch(300_500, 1, 0, 1);
    frame(&mut machine, 500_000, 300_500);
    proxy_draws(&mut machine, 500_400);
    assert_eq!(joins(&mut machine), [exact(590)]);
}

#[test]
fn a_frame_that_would_have_come_anyway_is_a_guess() {
    let mut machine = browser();
    for number in 1..30 {
        let us = 10_000 + 16_000 * number;
        let before = us - 15_590;
        // The input at 300 ms interrupts a wait of the proxy.
        let waited = if (before..us).contains(&300_400) { 300_500 } else { before };
        frame(&mut machine, us, waited);
        proxy_draws(&mut machine, us + 400);
    }
    hand_on(&mut machine, 300_400, APP, PROXY);
    machine.switch(300_500, 1, 0, 1);
    let second = joins(&mut machine).pop().expect("there are answers");
    assert_eq!(second, (10_000 + 16_000 * 19 + 400 - 300_000 - 10, "speculative".to_owned()));
}

#[test]
fn work_for_another_program_answers_no_input() {
    let mut machine = Machinery::with_app("browser");
    machine.task(PROXY, PROXY, APP, "proxy", 1).task(WORKER, PROXY, APP, "worker", 1);
    machine.task(UNRELATED, UNRELATED, 1, "unrelated", 1).press(300_000);
    hand_on(&mut machine, 300_400, APP, WORKER);
    machine.switch(300_500, 1, 0, 1);
    machine.wake_from(400_000, UNRELATED, 0, BY_INTERRUPT, 1).switch(400_010, 1, UNRELATED, 0);
    machine.wait(400_021, WORKER, 300_500, |wait| {
        (wait.syscall, wait.args) = (FUTEX, [0, WAIT_BITSET_PRIVATE, 0]);
    });
    hand_on(&mut machine, 400_020, UNRELATED, WORKER);
    hand_on(&mut machine, 400_200, WORKER, PROXY);
    proxy_draws(&mut machine, 400_400);
    assert_eq!(joins(&mut machine), []);
}

#[test]
fn a_later_drawing_of_an_idle_client_answers_nothing() {
    for (us, expected) in
        [(310_000, vec![(9_988, "speculative".to_owned())]), (900_000, Vec::new())]
    {
        let mut machine = Machinery::with_app("browser");
        machine.press(300_000).switch(300_500, 1, 0, 1);
        // The wakeup was lost.
        machine.switch(us - 10, 1, APP, 0).message(us, APP, (2, APP), 0, 20, &[DRAW_TEXT]).switch(
            us + 10,
            1,
            0,
            1,
        );
        machine.switch(us + 20, 0, SERVER, 0).message(us + 30, SERVER, (2, APP), 1, 20, &[]);
        machine.switch(us + 200, 0, 0, 1);
        assert_eq!(joins(&mut machine), expected);
    }
}
