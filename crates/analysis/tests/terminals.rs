// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that read the keys of a terminal one by one, and their other work instead of an answer.

mod support;

use support::{APP, Machinery, SHELL, TO_SHELL, WORKER};
use tipme_analysis::model::{CauseKind, Culprit};
use tipme_record::records::Polled;

const READ: i32 = 0;
const EPOLL_WAIT: i32 = 232;
const CLOCK_NANOSLEEP: i32 = 230;
const FUTEX: i32 = 202;
const WAIT4: i32 = 61;
const TERMINAL_FILES: u32 = 0x1cd1;
const SOCKETS: u32 = 0xc000;
const INTERNET: u16 = 2;
const BY_TIMER: u8 = 2;

/// A thread of the program, a child of it, and a process that closes it.
const HELPER: u32 = 211;
const CHILD: u32 = 230;
const CLOSER: u32 = 700;

/// Time of the key that is not answered at once, and of its answer.
const KEY: u64 = 3_000_000;
const DONE: u64 = 4_600_000;

type File = fn(&mut Polled);

fn terminal(file: &mut Polled) {
    (file.mode, file.magic, file.inode) = (0x2000, TERMINAL_FILES, 1);
}

fn to_itself(file: &mut Polled) {
    (file.mode, file.family, file.socket, file.state, file.inode) = (SOCKETS, 1, 1, 1, 2);
    file.peer = tipme_record::Pid(SHELL);
}

fn remote(file: &mut Polled) {
    (file.mode, file.family, file.socket, file.state, file.inode) = (SOCKETS, INTERNET, 1, 2, 3);
    (file.address, file.port) = (u32::from_le_bytes([192, 0, 2, 44]), 80);
}

/// The program waited in an epoll of these files until `until`.
fn polled(machine: &mut Machinery, until: u64, from: u64, epoll: u64, context: u8, files: &[File]) {
    machine.wait(until, SHELL, from, |wait| {
        (wait.syscall, wait.args, wait.context) = (EPOLL_WAIT, [epoll, 0, 0], u16::from(context));
        wait.pid = tipme_record::Pid(SHELL);
    });
    for fill in files {
        machine.polled(until, SHELL, files.len() as u8, fill);
    }
}

/// A program that has read and answered four keys of the terminal, and received one more; it runs
/// on CPU 1.
fn program(wait_for_key: fn(&mut Machinery, u64)) -> Machinery {
    let mut machine = Machinery::with_terminal();
    machine.task(HELPER, SHELL, 1, "bash", 1);
    for us in [500_000, 1_000_000, 1_500_000, 2_000_000] {
        machine.press(us).reach_shell(us).echo(us + 800);
        wait_for_key(&mut machine, us);
    }
    machine.press(KEY).reach_shell(KEY);
    wait_for_key(&mut machine, KEY);
    machine
}

fn in_read(machine: &mut Machinery, us: u64) {
    machine.wait(us + 461, SHELL, us - 400_000, |wait| {
        (wait.syscall, wait.args, wait.magic) = (READ, [0, 0, 1], TERMINAL_FILES);
    });
}

fn in_event_loop(machine: &mut Machinery, us: u64) {
    polled(machine, us + 461, us - 400_000, 5, 0, &[terminal, to_itself]);
}

/// The program waits until a timer ends the wait, and then writes its answer.
fn until_a_timer(mut machine: Machinery, describe: impl FnOnce(&mut Machinery)) -> Machinery {
    machine.switch(KEY + 900, 1, 0, 1).wake_from(DONE, SHELL, 0, BY_TIMER, 1);
    machine.switch(DONE + 20, 1, SHELL, 0);
    describe(&mut machine);
    machine.echo(DONE + 100);
    machine
}

/// Returns kind and milestone of the first finding.
fn first(machine: &mut Machinery, mark: u64) -> Option<(CauseKind, String)> {
    let verdict = machine.diagnose(mark);
    let milestone = verdict.interval.map(|interval| interval.milestone)?;
    verdict.findings.first().map(|finding| (finding.kind, milestone))
}

/// The program waits in an epoll of these files from the key on.
fn waits_for(files: &[File]) -> Machinery {
    until_a_timer(program(in_read), |machine| polled(machine, DONE, KEY + 900, 6, BY_TIMER, files))
}

#[test]
fn a_wait_that_the_terminal_cannot_end_is_no_event_wait() {
    let files: [&[File]; 4] = [&[to_itself], &[to_itself, terminal], &[], &[to_itself, remote]];
    let [own, with_terminal, unknown, with_remote] =
        files.map(|files| first(&mut waits_for(files), 6_000_000));
    assert_eq!(own, Some((CauseKind::TimerSleep, "completed".to_owned())));
    assert_eq!(with_terminal, None, "a key would have ended it");
    assert_eq!(unknown, None, "nothing is known about its end");
    assert_eq!(with_remote.map(|(kind, _)| kind), Some(CauseKind::NetworkWait));
}

#[test]
fn a_timer_that_is_read_is_no_terminal() {
    let machine = &mut until_a_timer(program(in_read), |machine| {
        let stack = machine.stack(&["__schedule", "schedule", "timerfd_read_iter", "vfs_read"]);
        machine.wait(DONE, SHELL, KEY + 900, |wait| {
            (wait.syscall, wait.args, wait.magic, wait.context) =
                (READ, [4, 0, 8], 0x0904_1934, BY_TIMER.into());
            wait.stack = stack;
        });
    });
    assert_eq!(first(machine, 6_000_000), Some((CauseKind::TimerSleep, "completed".to_owned())));
}

/// The event loop waits for its timeout with a connection that it did not have before the key.
#[test]
fn giving_up_a_new_connection_answers_the_key() {
    let mut machine = until_a_timer(program(in_event_loop), |machine| {
        polled(machine, DONE, KEY + 900, 5, BY_TIMER, &[terminal, to_itself, remote]);
    });
    let verdict = machine.diagnose(6_000_000);
    let finding = verdict.findings.first().expect("the key was answered late");
    let Culprit::Address { address } = &finding.culprit else { panic!("{finding:?}") };
    assert_eq!((finding.kind, address.as_str()), (CauseKind::NetworkWait, "192.0.2.44:80"));
}

#[test]
fn own_activity_is_explained_only_at_a_users_mark() {
    let first_at_mark = first(&mut waits_for(&[to_itself]), 6_000_000);
    assert_eq!(first_at_mark.map(|(kind, _)| kind), Some(CauseKind::TimerSleep));
    assert_eq!(first(waits_for(&[to_itself]).triggered("auto"), 6_000_000), None);
    // A program to which it hands the terminal is a command.
    let mut machine = waits_for(&[to_itself]);
    machine.fork(1_200_000, SHELL, CHILD).exit(1_300_000, CHILD, SHELL, CHILD, "ls");
    let unusual: Vec<bool> =
        machine.diagnose(6_000_000).findings.iter().map(|finding| finding.unusual).collect();
    assert_eq!(unusual, [false]);
    assert_eq!(first(machine.triggered("auto"), 6_000_000), None);
}

/// A shorter delay with a sure cause followed.
#[test]
fn what_the_program_did_itself_some_time_before_goes_behind() {
    for (mark, kind) in
        [(7_000_000, CauseKind::TimerSleep), (12_000_000, CauseKind::OwnComputation)]
    {
        let mut machine = waits_for(&[to_itself]);
        machine.press(5_500_000).reach_shell(5_500_000).echo(6_200_000);
        in_read(&mut machine, 5_500_000);
        assert_eq!(first(&mut machine, mark).map(|(kind, _)| kind), Some(kind));
    }
}

/// A pager started in the terminal waits for a key until another process ends it, by a signal or in
/// an unknown way.
fn pager_ends(signal: Option<u32>) -> Option<CauseKind> {
    let mut machine = program(in_read);
    machine.task(CLOSER, CLOSER, 1, "closer", 1).fork(KEY + 720, SHELL, CHILD);
    machine.wake_from(KEY + 730, CHILD, SHELL, 0, 2);
    machine.switch(KEY + 740, 2, CHILD, 0).switch(KEY + 760, 2, 0, 1).switch(KEY + 900, 1, 0, 1);
    machine.wake_from(DONE - 200, CLOSER, 0, BY_TIMER, 0).switch(DONE - 150, 0, CLOSER, 0);
    if let Some(number) = signal {
        machine.signal(DONE - 1, CLOSER, CHILD, number);
    }
    machine.wake_from(DONE, CHILD, CLOSER, 0, 2).switch(DONE + 10, 0, 0, 1);
    machine.switch(DONE + 20, 2, CHILD, 0);
    machine.wait(DONE, CHILD, KEY + 760, |wait| {
        (wait.syscall, wait.args, wait.magic) = (READ, [3, 0, 1], TERMINAL_FILES);
    });
    machine.exit(DONE + 50, CHILD, SHELL, CHILD, "less").wake_from(DONE + 60, SHELL, CHILD, 0, 1);
    machine.switch(DONE + 70, 2, 0, 0x80).switch(DONE + 80, 1, SHELL, 0);
    machine.switch(DONE + 200, 1, 0, 1);
    machine.wait(DONE + 61, SHELL, KEY + 900, |wait| {
        (wait.syscall, wait.args) = (WAIT4, [u64::from(CHILD), 0, 0])
    });
    first(&mut machine, 6_000_000).map(|(kind, _)| kind)
}

/// A key reaches an editor that has waited for it since `since`.
fn reach_editor(machine: &mut Machinery, us: u64, since: u64) {
    machine.press(us).tty(us + 300, APP, TO_SHELL, 0).wake_from(us + 301, WORKER, APP, 0, 1);
    machine.switch(us + 400, 1, WORKER, 1).tty(us + 450, WORKER, TO_SHELL, 1);
    machine.wake_from(us + 460, CHILD, WORKER, 0, 2).switch(us + 470, 1, 0, 0x402);
    machine.switch(us + 500, 2, CHILD, 0);
    machine.wait(us + 461, CHILD, since, |wait| {
        (wait.syscall, wait.args, wait.magic) = (READ, [0, 0, 1], TERMINAL_FILES);
    });
}

#[test]
fn keys_read_by_an_editor_are_not_answered_by_the_prompt() {
    let mut machine = program(in_read);
    machine.fork(KEY + 720, SHELL, CHILD).wake_from(KEY + 730, CHILD, SHELL, 0, 2);
    machine.switch(KEY + 740, 2, CHILD, 0);
    machine.switch(KEY + 760, 2, 0, 1).switch(KEY + 900, 1, 0, 1);
    reach_editor(&mut machine, KEY + 500_000, KEY + 760);
    machine.switch(KEY + 500_700, 2, 0, 1);
    reach_editor(&mut machine, DONE, KEY + 500_700);
    machine.exit(DONE + 550, CHILD, SHELL, CHILD, "vi").wake_from(DONE + 560, SHELL, CHILD, 0, 1);
    machine.switch(DONE + 570, 2, 0, 0x80).switch(DONE + 580, 1, SHELL, 0).echo(DONE + 700);
    machine.wait(DONE + 561, SHELL, KEY + 900, |wait| {
        (wait.syscall, wait.args) = (WAIT4, [u64::from(CHILD), 0, 0])
    });
    let timed = machine.timed(6_000_000);
    let latencies: Vec<u64> =
        timed.iter().map(|one| one.drawn_ns.map_or(0, |at| (at - one.input_ns) / 1_000)).collect();
    assert_eq!(
        latencies,
        [990, 990, 990, 990, 890],
        "four keys of the shell, and the one that ended the editor"
    );
}

#[test]
fn a_process_that_ends_a_program_was_not_waited_for() {
    assert_eq!([1, 9, 15].map(|number| pager_ends(Some(number))), [None; 3]);
    assert_eq!(pager_ends(None), None, "it waited for a key");
}

/// The program hands the work to another of its threads and still waits in a condition at the mark;
/// the other thread computes, or has nothing to do.
fn hangs(computes: bool) -> Option<(CauseKind, String)> {
    let mut machine = program(in_read);
    machine.wake_from(KEY + 750, HELPER, SHELL, 0, 2).switch(KEY + 760, 2, HELPER, 0);
    machine.switch(KEY + 800, 1, 0, 1);
    machine.wait(KEY + 751, HELPER, 100_000, |wait| {
        (wait.syscall, wait.args) = (FUTEX, [0x7000, 0x89, 0])
    });
    machine.still_waiting(5_000_000, SHELL, KEY + 800, |wait| {
        (wait.syscall, wait.args) = (FUTEX, [0x8000, 0x89, 0])
    });
    if !computes {
        machine.switch(KEY + 1_000, 2, 0, 1);
        machine.still_waiting(5_000_000, HELPER, KEY + 1_000, |wait| {
            (wait.syscall, wait.args) = (FUTEX, [0x7000, 0x89, 0]);
        });
    }
    machine.switch(KEY + 1_000_000, 3, WORKER, 0).switch(KEY + 1_000_100, 3, 0, 1);
    first(&mut machine, 5_000_000)
}

#[test]
fn waiting_for_a_busy_thread_at_the_mark_is_no_answer() {
    assert_eq!(hangs(true), Some((CauseKind::OwnComputation, "hanging".to_owned())));
    assert_eq!(hangs(false), None);
}

/// A child of the program signals its end by a file, and lives on, or exits at `ends`.
fn polls_a_flag(ends: u64) -> (CauseKind, String) {
    let mut machine = program(in_read);
    machine
        .fork(KEY + 720, SHELL, CHILD)
        .switch(KEY + 730, 0, CHILD, 0)
        .exit(ends, CHILD, SHELL, SHELL, "spell")
        .switch(KEY + 900, 1, 0, 1);
    for out in (KEY + 900..DONE).step_by(100_000) {
        let until = (out + 99_000).min(DONE);
        machine.wake_from(until, SHELL, 0, BY_TIMER, 1).switch(until + 20, 1, SHELL, 0);
        machine.switch(until + 100, 1, 0, 1);
        machine.wait(until, SHELL, out, |wait| {
            (wait.syscall, wait.context) = (CLOCK_NANOSLEEP, BY_TIMER.into());
        });
    }
    machine.wake_from(DONE + 200, SHELL, 0, BY_TIMER, 1).switch(DONE + 220, 1, SHELL, 0);
    machine.echo(DONE + 300);
    let finding =
        machine.diagnose(7_000_000).findings.into_iter().next().expect("the key was answered late");
    (finding.kind, finding.evidence[0].clone())
}

#[test]
fn a_child_that_lives_on_was_not_waited_for_to_end() {
    assert_eq!(
        polls_a_flag(6_500_000),
        (CauseKind::TimerSleep, "bash (pid 210) slept on a timer".to_owned())
    );
    let (kind, evidence) = polls_a_flag(DONE + 50);
    assert_eq!(kind, CauseKind::ChildWait);
    assert!(evidence.starts_with("bash waited for spell (pid 230"), "{evidence}");
}
