// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers from a service that was asked because of a key, or over the network.

#[path = "support/asked.rs"]
mod editor;
mod support;

use editor::{
    ANSWER, ASKER, BACKEND, BY_TIMER, CLOCK_NANOSLEEP, EPOLL_WAIT, EVENT_COUNTERS, INTERNET, KEY,
    MARK, NEWS, POLL, SERVICE, SOFTIRQ, ask, assert_silent, blink, by_address, cause, connection,
    editor, exact, hand_back, hand_on, last, network, network_behind_a_service,
    network_in_the_event_loop, packet, polled, polled_files,
};
use support::{APP, Machinery, SERVER, SHELL, WORKER, tid, wayland};
use tipme_analysis::model::{CauseKind, Culprit};
use tipme_record::Pid;

/// Only the order in time supports the answer, and the verdict says so.
#[test]
fn a_packet_to_a_thread_that_a_key_reached_answers_it() {
    let mut machine = network(blink);
    assert_eq!(last(&mut machine), (KEY, 1_200, "speculative".to_owned()));
    assert_eq!(cause(&mut machine), by_address("192.0.2.7:443", false));
    // The thread does not wait in its event loop.
    let remedies = machine.diagnose(MARK).findings.into_iter().map(|finding| finding.remedy);
    assert_eq!(remedies.collect::<Vec<_>>(), ["check the network and the host"]);
}

/// Under Wayland the editor draws at the next frame callback.
#[test]
fn an_answer_from_the_network_may_wait_for_a_frame() {
    let mut machine = wayland::editor();
    machine.task(ASKER, APP, 1, "editor", 1);
    for us in [500_000, 700_000, 900_000, 1_100_000] {
        wayland::press(&mut machine, us);
        wayland::show(&mut machine, us + 400);
    }
    wayland::press(&mut machine, KEY);
    hand_on(&mut machine, KEY + 400, APP, ASKER, 400_000);
    machine.switch(KEY + 500, 1, 0, 1);
    packet(&mut machine, ASKER, KEY + 500);
    hand_on(&mut machine, ANSWER + 100, ASKER, APP, KEY + 420);
    machine.switch(ANSWER + 200, 1, 0, 1).wake_from(ANSWER + 7_900, SERVER, 0, BY_TIMER, 0);
    machine.switch(ANSWER + 7_920, 0, SERVER, 0).wake_from(ANSWER + 8_000, APP, SERVER, 0, 1);
    machine.wl_message(ANSWER + 8_002, SERVER, APP, wayland::EVENT_SENT, &wayland::done());
    machine.switch(ANSWER + 8_050, 0, 0, 1).switch(ANSWER + 8_100, 1, APP, 0);
    machine.wl_message(ANSWER + 8_150, APP, APP, wayland::EVENT_TAKEN, &[]);
    wayland::show(&mut machine, ANSWER + 8_300);
    let (_, ms, join) = last(&mut machine);
    assert_eq!((ms, join.as_str()), (1_208, "speculative"));
}

/// A packet wakes the editor after a key without effect, and a timer makes it draw 8 ms later; its
/// caret blinks 500 ms after each of the earlier, answered keys if `blinks`.
fn drawing_by_a_timer(blinks: bool) -> Machinery {
    let mut machine = Machinery::with_app("editor");
    machine.task(ASKER, APP, 1, "editor", 1);
    for us in [200_000, 900_000, 1_600_000] {
        machine.typing(us, 1);
        if blinks {
            machine.wake_from(us + 500_000, APP, 0, BY_TIMER, 1).switch(us + 500_020, 1, APP, 0);
            machine.draw(us + 500_100);
            polled(&mut machine, APP, us + 610, us + 500_000);
        }
    }
    ask(&mut machine, 2_300_000);
    machine.switch(2_300_500, 1, 0, 1);
    let us = 2_792_000;
    machine.wake_from(us, ASKER, 0, SOFTIRQ, 1).switch(us + 20, 1, ASKER, 0);
    machine.wait(us + 1, ASKER, 2_300_500, |wait| {
        (wait.syscall, wait.args) = (EPOLL_WAIT, [26, 4_096, 16])
    });
    hand_on(&mut machine, us + 100, ASKER, APP, 2_300_420);
    machine.switch(us + 200, 1, 0, 1).wake_from(us + 8_000, APP, 0, BY_TIMER, 1);
    machine.switch(us + 8_020, 1, APP, 0);
    polled(&mut machine, APP, us + 200, us + 8_000);
    machine.draw(us + 8_100);
    machine
}

#[test]
fn a_caret_that_blinks_when_a_packet_comes_answers_nothing() {
    let (_, ms, join) = last(&mut drawing_by_a_timer(false));
    assert_eq!((ms, join.as_str()), (500, "speculative"));
    let (_, ms, join) = last(&mut drawing_by_a_timer(true));
    assert_eq!((ms, join.as_str()), (0, "exact"));
}

/// The thread polls a single connection with a timeout: a packet ends the wait, not the timeout.
#[test]
fn a_poll_with_a_time_limit_may_end_with_a_packet() {
    let mut machine = editor();
    ask(&mut machine, KEY);
    machine.switch(KEY + 500, 1, 0, 1).wake_from(ANSWER, ASKER, 0, SOFTIRQ, 1);
    machine.switch(ANSWER + 20, 1, ASKER, 0);
    machine.wait(ANSWER + 1, ASKER, KEY + 500, |wait| {
        (wait.syscall, wait.args, wait.context) = (POLL, [1, 1, 5_000], u16::from(SOFTIRQ));
    });
    connection(&mut machine, ANSWER + 1, ASKER, 1, 7);
    hand_back(&mut machine, ANSWER + 100, KEY + 420);
    assert_eq!(last(&mut machine), exact(KEY, 1_200));
    assert_eq!(cause(&mut machine), by_address("192.0.2.7:443", true));
}

/// The editor reads two keys at once; no record shows which of them led to the request.
#[test]
fn of_keys_that_are_read_together_the_last_has_the_answer() {
    let mut machine = editor();
    machine.press_more(KEY - 200, KEY + 300).press_more(KEY - 100, KEY + 300);
    machine.wake_from(KEY + 100, APP, SERVER, 0, 1).switch(KEY + 200, 1, APP, 0);
    hand_on(&mut machine, KEY + 400, APP, ASKER, 400_000);
    machine.switch(KEY + 500, 1, 0, 1);
    packet(&mut machine, ASKER, KEY + 500);
    hand_back(&mut machine, ANSWER + 100, KEY + 420);
    assert_eq!(last(&mut machine), (KEY - 100, 1_200, "speculative".to_owned()));
    assert_eq!(keys_with_an_answer(&mut machine), 6);
}

/// A terminal with a shell on a remote host, which has echoed four keys, or has not, as while a
/// password is typed; its output after the last key is drawn.
fn remote_shell(echoes: bool) -> Machinery {
    let mut machine = Machinery::with_terminal();
    for key in 0..4 {
        let us = 500_000 + key * 300_000;
        machine.press(us).reach_shell(us);
        if echoes {
            machine.echo(us + 800);
        } else {
            machine.switch(us + 800, 1, 0, 1);
        }
    }
    machine.press(KEY).reach_shell(KEY).switch(KEY + 800, 1, 0, 1);
    packet(&mut machine, SHELL, KEY + 800);
    machine.echo(ANSWER + 100);
    machine
}

fn keys_with_an_answer(machine: &mut Machinery) -> usize {
    machine.timed(MARK).len()
}

#[test]
fn a_remote_shell_that_echoes_answers_late() {
    let mut machine = remote_shell(true);
    assert_eq!(last(&mut machine), (KEY, 1_200, "speculative".to_owned()));
    assert_eq!(cause(&mut machine), by_address("192.0.2.7:443", false));
    assert_eq!(keys_with_an_answer(&mut remote_shell(false)), 0);
}

/// The remote shell echoes Return, and prints the answer to the command after more than a second.
#[test]
fn a_command_of_a_remote_shell_completes_its_key() {
    let mut machine = Machinery::with_terminal();
    for us in [500_000, 800_000, 1_100_000, KEY] {
        machine.press(us).reach_shell(us).echo(us + 800);
    }
    machine.switch(KEY + 1_100, 1, 0, 1);
    packet(&mut machine, SHELL, KEY + 850);
    machine.echo(ANSWER + 100);
    let timed = machine.timed(MARK);
    let completed =
        timed.iter().map(|one| one.completed_ns.map(|at| (at - one.input_ns) / 1_000_000));
    assert_eq!(completed.collect::<Vec<_>>(), [None, None, None, Some(1_200)]);
    assert_eq!(cause(&mut machine), by_address("192.0.2.7:443", true));
}

/// The remote shell passes a key to its helper.
fn reach_helper(machine: &mut Machinery, us: u64) {
    machine.press(us).reach_shell(us).wake_from(us + 720, BACKEND, SHELL, 0, 2);
    machine.switch(us + 730, 2, BACKEND, 0).switch(us + 750, 2, 0, 1).switch(us + 760, 1, 0, 1);
}

/// A packet reaches the helper, which has the shell echo.
fn echo_by_helper(machine: &mut Machinery, us: u64, waited: u64) {
    machine.wake_from(us, BACKEND, 0, SOFTIRQ, 2).switch(us + 10, 2, BACKEND, 0);
    machine.wait(us + 11, BACKEND, waited, |wait| {
        (wait.syscall, wait.args, wait.context) = (POLL, [1, 1, u64::MAX], u16::from(SOFTIRQ));
        (wait.family, wait.address, wait.port) = (INTERNET, u32::from_le_bytes([192, 0, 2, 7]), 22);
    });
    machine.wake_from(us + 30, SHELL, BACKEND, 0, 1).switch(us + 40, 1, SHELL, 0);
    machine.switch(us + 41, 2, 0, 1).echo(us + 100);
}

/// A helper of the remote shell, which reads no terminal, has brought each echo so far.
#[test]
fn a_helper_of_a_remote_shell_brings_late_echoes_too() {
    let mut machine = Machinery::with_terminal();
    machine.task(BACKEND, BACKEND, SHELL, "proxy", 1);
    for us in [500_000, 800_000, 1_100_000] {
        reach_helper(&mut machine, us);
        echo_by_helper(&mut machine, us + 1_000, us + 750);
    }
    reach_helper(&mut machine, KEY);
    echo_by_helper(&mut machine, ANSWER, KEY + 750);
    assert_eq!(last(&mut machine), (KEY, 1_200, "speculative".to_owned()));
    assert_eq!(cause(&mut machine), by_address("192.0.2.7:22", false));
}

/// The kernel thread that carries terminal data works for another terminal while a key waits for
/// nothing.
#[test]
fn what_a_kernel_thread_does_meanwhile_answers_no_key() {
    let mut machine = Machinery::with_terminal();
    for us in [500_000, 800_000, 1_100_000, 1_400_000] {
        machine.press(us).reach_shell(us).echo(us + 800);
    }
    machine.press(KEY).reach_shell(KEY).switch(KEY + 800, 1, 0, 1);
    machine.wake_from(KEY + 900, WORKER, 0, BY_TIMER, 2).switch(KEY + 910, 2, WORKER, 0);
    machine.switch(KEY + 249_500, 2, 0, 0x402);
    machine.press(KEY + 250_000).reach_shell(KEY + 250_000).echo(KEY + 250_800);
    assert_eq!(keys_with_an_answer(&mut machine), 5);
}

#[test]
fn a_remote_request_of_a_service_for_a_key_answers_it() {
    let mut machine = network_behind_a_service(blink, &[]);
    assert_eq!(last(&mut machine), exact(KEY, 1_200));
    assert_eq!(cause(&mut machine), by_address("192.0.2.7:443", true));
    assert_silent(network_behind_a_service(blink, &[7]));
}

/// A child of `parent` that sleeps before it answers the request of a message bus for a key.
fn asked_over_a_bus(parent: u32) -> Machinery {
    let mut machine = editor();
    machine.task(BACKEND, BACKEND, parent, "backend", 1);
    ask(&mut machine, KEY);
    hand_on(&mut machine, KEY + 500, ASKER, SERVICE, 400_000);
    hand_on(&mut machine, KEY + 600, SERVICE, BACKEND, 400_000);
    machine.switch(KEY + 700, 1, 0, 1).wake_from(ANSWER, BACKEND, 0, BY_TIMER, 1);
    machine.switch(ANSWER + 20, 1, BACKEND, 0);
    machine.wait(ANSWER, BACKEND, KEY + 700, |wait| {
        (wait.syscall, wait.context) = (CLOCK_NANOSLEEP, u16::from(BY_TIMER));
    });
    hand_on(&mut machine, ANSWER + 100, BACKEND, SERVICE, KEY + 620);
    hand_on(&mut machine, ANSWER + 200, SERVICE, ASKER, KEY + 520);
    hand_back(&mut machine, ANSWER + 300, KEY + 420);
    machine
}

#[test]
fn a_service_is_asked_whatever_its_parent() {
    for parent in [1, APP] {
        let verdict = asked_over_a_bus(parent).diagnose(MARK);
        let finding = verdict.findings.first().expect("the key was answered late");
        let Culprit::Process { pid, .. } = finding.culprit else { panic!("{finding:?}") };
        assert_eq!((finding.kind, pid), (CauseKind::PeerWait, BACKEND), "started by {parent}");
    }
}

#[test]
fn a_connection_that_is_polled_since_a_key_answers_it() {
    let mut machine = network_in_the_event_loop(&[8], &[7, 8]);
    assert_eq!(last(&mut machine), exact(KEY, 1_200));
    assert_eq!(cause(&mut machine), by_address("192.0.2.7:443", true));
    assert_silent(network_in_the_event_loop(&[7, 8], &[7, 8]));
    // A timer of the editor opens it later.
    assert_silent(network_in_the_event_loop(&[8], &[8]));
}

/// An input method wakes the editor's first thread again because of the key; a packet on an old
/// connection afterwards is an unrelated message.
#[test]
fn an_application_woken_back_receives_messages_as_before() {
    let mut machine = editor();
    machine.press(KEY);
    polled_files(&mut machine, KEY + 101, APP, 1_300_610, &[7]);
    machine.wake_from(KEY + 400, SERVICE, APP, 0, 1).switch(KEY + 420, 1, SERVICE, 1);
    polled(&mut machine, SERVICE, 400_000, KEY + 400);
    machine.wake_from(KEY + 600, APP, SERVICE, 0, 1).switch(KEY + 620, 1, APP, 1);
    machine.switch(KEY + 700, 1, 0, 1);
    machine.wake_from(ANSWER, APP, 0, SOFTIRQ, 1).switch(ANSWER + 20, 1, APP, 0);
    polled_files(&mut machine, ANSWER + 1, APP, KEY + 700, &[7]);
    machine.draw(ANSWER + 300);
    assert_silent(machine);
}

/// The thread receives a packet every two seconds.
#[test]
fn a_stream_of_packets_answers_nothing() {
    let mut machine = Machinery::with_app("editor");
    machine.task(ASKER, APP, 1, "editor", 1).typing(500_000, 3);
    machine.wake_from(1_950_000, ASKER, 0, SOFTIRQ, 1).switch(1_950_020, 1, ASKER, 0);
    machine.wait(1_950_001, ASKER, 400_000, |wait| {
        (wait.syscall, wait.args) = (EPOLL_WAIT, [26, 4_096, 16])
    });
    machine.switch(1_950_100, 1, 0, 1).press(KEY);
    hand_on(&mut machine, KEY + 400, APP, ASKER, 1_950_100);
    machine.switch(KEY + 500, 1, 0, 1);
    packet(&mut machine, ASKER, KEY + 500);
    hand_back(&mut machine, ANSWER + 100, KEY + 420);
    assert_eq!(last(&mut machine), exact(900_000, 0));
    assert!(machine.diagnose(MARK).findings.is_empty());
}

/// The editor makes its request when the button is released, as most programs do.
#[test]
fn what_the_release_of_a_button_asked_for_answers_the_click() {
    let mut machine = editor();
    machine.press_button(KEY + 12).switch(KEY + 400, 1, 0, 1).release_button(KEY + 90_000);
    polled(&mut machine, APP, KEY + 400, KEY + 90_100);
    hand_on(&mut machine, KEY + 90_400, APP, ASKER, 400_000);
    machine.switch(KEY + 90_500, 1, 0, 1);
    packet(&mut machine, ASKER, KEY + 90_500);
    hand_back(&mut machine, ANSWER + 100, KEY + 90_420);
    assert_eq!(last(&mut machine), (KEY, 1_200, "speculative".to_owned()));
}

#[test]
fn a_click_taken_after_the_mark_has_no_drawing() {
    let mut machine = editor();
    machine.press_button(KEY + 12).switch(KEY + 400, 1, 0, 1).release_button(KEY + 90_000);
    for mark in KEY..KEY + 100 {
        let all = machine.timed(mark);
        assert_eq!(
            all.last().map(|one| (one.class.as_str(), one.drawn_ns)),
            Some(("click", None)),
            "{mark}"
        );
    }
}

/// The editor's other thread waits for events of unknown files. Another process runs when the
/// packet arrives; a packet of the editor reached it before, or did not.
fn packet_on_the_time_of_another(was_asked: bool) -> Machinery {
    let mut machine = editor();
    ask(&mut machine, KEY);
    let waker = if was_asked { ASKER } else { NEWS };
    machine.wake_from(KEY + 480, SERVICE, waker, SOFTIRQ, 0).switch(KEY + 490, 0, SERVICE, 0);
    machine.switch(KEY + 500, 1, 0, 1).wake_from(ANSWER, ASKER, SERVICE, SOFTIRQ, 1);
    machine.switch(ANSWER + 20, 1, ASKER, 0);
    machine.wait(ANSWER + 1, ASKER, KEY + 500, |wait| {
        (wait.syscall, wait.args, wait.context) = (EPOLL_WAIT, [26, 4_096, 16], u16::from(SOFTIRQ));
    });
    hand_back(&mut machine, ANSWER + 100, KEY + 420);
    machine
}

#[test]
fn the_thread_running_at_a_packet_sent_it_only_if_asked() {
    let mut asked = packet_on_the_time_of_another(true);
    assert_eq!(last(&mut asked), exact(KEY, 1_200));
    assert_eq!(cause(&mut asked), (CauseKind::PeerWait, "calendar".to_owned(), true));
    let mut innocent = packet_on_the_time_of_another(false);
    assert_eq!(last(&mut innocent), (KEY, 1_200, "speculative".to_owned()));
    assert_eq!(cause(&mut innocent), by_address("an unknown host", false));
}

fn next_key(machine: &mut Machinery) {
    machine.typing(KEY + 500_000, 1);
}

/// Output after the next key answers that one, or none.
#[test]
fn an_answer_of_others_belongs_to_the_last_key_before_it() {
    for mut machine in [network(next_key), network_behind_a_service(next_key, &[])] {
        assert_eq!(last(&mut machine), exact(KEY + 500_000, 0));
        assert!(machine.diagnose(MARK).findings.is_empty());
    }
}

/// The service was done with its request, and sends something else later.
#[test]
fn a_service_that_waits_for_requests_answers_no_key() {
    let mut machine = editor();
    ask(&mut machine, KEY);
    hand_on(&mut machine, KEY + 500, ASKER, SERVICE, 400_000);
    machine.switch(KEY + 600, 1, 0, 1);
    blink(&mut machine);
    machine.wake_from(ANSWER, SERVICE, NEWS, 0, 1).switch(ANSWER + 20, 1, SERVICE, 0);
    polled(&mut machine, SERVICE, KEY + 600, ANSWER);
    hand_on(&mut machine, ANSWER + 100, SERVICE, ASKER, KEY + 520);
    hand_back(&mut machine, ANSWER + 200, KEY + 500_110);
    assert_silent(machine);
}

/// A thread that the key did not reach receives a packet.
#[test]
fn what_comes_over_the_network_by_itself_answers_nothing() {
    let mut machine = editor();
    machine.press(KEY).switch(KEY + 400, 1, 0, 1);
    machine.wake_from(ANSWER, ASKER, 0, SOFTIRQ, 1).switch(ANSWER + 20, 1, ASKER, 0);
    polled(&mut machine, ASKER, 400_000, ANSWER);
    hand_back(&mut machine, ANSWER + 100, KEY + 400);
    assert_silent(machine);
}

/// A timer that ends the wait for the network brings no answer.
#[test]
fn a_time_that_is_up_is_no_packet() {
    let mut machine = editor();
    ask(&mut machine, KEY);
    machine.switch(KEY + 500, 1, 0, 1);
    machine.wake_from(ANSWER, ASKER, 0, BY_TIMER, 1).switch(ANSWER + 20, 1, ASKER, 0);
    machine.wait(ANSWER + 1, ASKER, KEY + 500, |wait| {
        (wait.syscall, wait.args, wait.context, wait.waker) =
            (POLL, [1, 3, 1_000], u16::from(BY_TIMER), tid(0));
    });
    hand_back(&mut machine, ANSWER + 100, KEY + 420);
    assert_silent(machine);
}

/// A wait of a service over loopback in `from..us`.
fn loopback(machine: &mut Machinery, us: u64, tid: u32, from: u64, context: u8) {
    machine.wait(us + 1, tid, from, |wait| {
        (wait.syscall, wait.args, wait.context) = (POLL, [1, 1, u64::MAX], u16::from(context));
        (wait.family, wait.address, wait.port) =
            (INTERNET, u32::from_le_bytes([127, 0, 0, 1]), 7_000);
    });
}

/// A key is echoed at once, and the editor asks a service over loopback. The service works until
/// the window changes; or it finishes at once, and a timer of the editor changes the window.
fn echoed_and_asked(is_slow: bool) -> Machinery {
    let mut machine = editor();
    machine.press(KEY).wake_from(KEY + 400, SERVICE, APP, SOFTIRQ, 1);
    loopback(&mut machine, KEY + 400, SERVICE, 400_000, SOFTIRQ);
    machine.draw(KEY + 600).switch(KEY + 700, 1, SERVICE, 0);
    let (from, context) = if is_slow { (SERVICE, SOFTIRQ) } else { (0, BY_TIMER) };
    if !is_slow {
        machine.switch(KEY + 900, 1, 0, 1);
    }
    machine.wake_from(ANSWER, APP, from, context, 1).switch(ANSWER + 20, 1, APP, 1);
    loopback(&mut machine, ANSWER, APP, KEY + 610, context);
    machine.draw(ANSWER + 100);
    machine
}

#[test]
fn an_echoed_key_is_completed_by_the_reply_of_its_service() {
    let mut machine = echoed_and_asked(true);
    let interval = machine.diagnose(MARK).interval.expect("it is explained");
    assert_eq!((interval.milestone.as_str(), interval.latency_ms as u64), ("completed", 1_200));
    let (_, culprit, _) = cause(&mut machine);
    assert_eq!(culprit, "calendar");
    assert!(
        echoed_and_asked(false).diagnose(MARK).findings.is_empty(),
        "a service that is done at once delays nothing"
    );
}

/// The editor polls the calendar until a timeout, with or without its display; a key comes.
fn polls_a_service(with_display: bool) -> Machinery {
    let mut machine = editor();
    machine.press(KEY).wake_from(KEY + 400, SERVICE, APP, 0, 1).switch(KEY + 420, 1, SERVICE, 1);
    machine.switch(KEY + 500, 1, 0, 1).press_more(KEY + 100_000, ANSWER + 50);
    machine.wake_from(ANSWER, APP, 0, BY_TIMER, 1).switch(ANSWER + 20, 1, APP, 0);
    let peers = if with_display { &[SERVICE, SERVER][..] } else { &[SERVICE][..] };
    let files = peers.len() as u8 + 1;
    for peer in peers {
        machine.polled(ANSWER + 1, APP, files, |file| {
            (file.mode, file.family, file.socket, file.state, file.peer) =
                (0xc000, 1, 1, 1, Pid(*peer));
        });
    }
    machine.polled(ANSWER + 1, APP, files, |file| file.magic = EVENT_COUNTERS);
    machine.wait(ANSWER + 1, APP, KEY + 420, |wait| {
        (wait.pid, wait.syscall, wait.args) = (Pid(APP), POLL, [1, u64::from(files), 1_200]);
        wait.context = u16::from(BY_TIMER);
    });
    machine.draw(ANSWER + 100);
    machine
}

#[test]
fn a_poll_without_the_display_where_a_key_lies_asks_the_peer() {
    assert_eq!(
        cause(&mut polls_a_service(false)),
        (CauseKind::PeerWait, "calendar".to_owned(), true)
    );
    assert!(
        polls_a_service(true)
            .diagnose(MARK)
            .findings
            .iter()
            .all(|one| one.kind != CauseKind::PeerWait)
    );
}
