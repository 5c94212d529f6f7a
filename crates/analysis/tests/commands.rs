// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands and prompts of a shell in a terminal: when a key has led to all of its output.

mod support;

use support::verdicts::outline;
use support::{APP, Machinery, SHELL, TO_SHELL, TO_TERMINAL, WORKER, tid};
use tipme_analysis::model::CauseKind;

const POLL: i32 = 7;
const READ: i32 = 0;
const WAIT4: i32 = 61;
const CLOCK_NANOSLEEP: i32 = 230;
/// A process that holds a lock.
const HOLDER: u32 = 500;
/// Children of the shell.
const CHILD: u32 = 510;
const JOB: u32 = 777;
/// The thread of the program that does the work, and one between it and the input thread.
const WRITER: u32 = 205;
const BETWEEN: u32 = 206;
/// Another terminal.
const TO_ANOTHER: u64 = 81;
/// Another program on the display.
const OTHER: u32 = 600;
const TERMINAL_FILES: u32 = 0x1cd1;
const FLOCK: i32 = 73;

/// The shell has been reading its terminal when a key comes.
fn read_terminal(machine: &mut Machinery, us: u64) {
    machine.wait(us + 461, SHELL, us - 400_000, |wait| {
        (wait.syscall, wait.args, wait.magic) = (READ, [0, 0, 1], TERMINAL_FILES);
    });
}

/// The shell starts a child at 3 s, and waits for it.
fn start_child(machine: &mut Machinery) {
    machine.switch(3_001_300, 0, SHELL, 0).fork(3_001_400, SHELL, CHILD).switch(3_001_500, 0, 0, 1);
    machine.wake_from(3_001_450, CHILD, SHELL, 0, 1).switch(3_001_600, 1, CHILD, 0);
    machine.switch(3_001_700, 1, 0, 1);
}

/// The wait of the shell for its child ends.
fn reap_child(machine: &mut Machinery, us: u64) {
    machine.wait(us, SHELL, 3_001_500, |wait| {
        (wait.syscall, wait.args) = (WAIT4, [u64::from(CHILD), 0, 0])
    });
}

/// A command that a file lock delays from 3 s until `until`, after keys that are answered at once,
/// except one that takes `slow`.
fn command(until: u64, slow: u64) -> Machinery {
    let mut machine = Machinery::with_terminal();
    machine.task(HOLDER, HOLDER, 1, "indexer", 1).task(CHILD, CHILD, SHELL, "git", 1);
    for (us, takes) in [(1_000_000, 800), (1_500_000, slow), (2_000_000, 800), (3_000_000, 800)] {
        machine.press(us).reach_shell(us).echo(us + takes);
        read_terminal(&mut machine, us);
    }
    held_up(&mut machine, until);
    machine
}

/// The shell starts a child at 3 s, which waits for a file lock until `until`.
fn held_up(machine: &mut Machinery, until: u64) {
    start_child(machine);
    machine.wake_from(until - 150, HOLDER, 0, 2, 0).switch(until - 100, 0, HOLDER, 0);
    machine.wake_from(until, CHILD, HOLDER, 0, 1).switch(until + 10, 0, 0, 1);
    machine.wait(until + 1, CHILD, 3_001_700, |wait| {
        (wait.syscall, wait.waker) = (FLOCK, tid(HOLDER))
    });
    machine.switch(until + 50, 1, CHILD, 0).wake_from(until + 100, SHELL, CHILD, 0, 0);
    machine.switch(until + 120, 1, 0, 1);
    reap_child(machine, until + 101);
    machine.switch(until + 150, 0, SHELL, 0).switch(until + 300, 0, 0, 1);
}

#[test]
fn a_command_ends_when_its_terminal_is_read_again() {
    for (until, trigger, expected) in [
        (5_000_000, "command", Some(CauseKind::LockWait)),
        (3_800_000, "command", Some(CauseKind::LockWait)),
        (3_800_000, "auto", None),
        (3_400_000, "command", None),
    ] {
        let verdict = command(until, 800).triggered(trigger).diagnose(7_000_000);
        assert_eq!(outline(&verdict).2.first().copied(), expected, "{until} {trigger}");
    }
}

/// A program behind a terminal reads key after key; at 3 s it starts a child in a process group,
/// and waits for its exit two seconds later.
fn child_of(group: u32) -> Machinery {
    let mut machine = Machinery::with_terminal();
    for us in [500_000, 1_000_000, 1_500_000, 2_000_000, 3_000_000] {
        machine.press(us).reach_shell(us).echo(us + 800);
        read_terminal(&mut machine, us);
    }
    start_child(&mut machine);
    machine.wait(5_000_000, CHILD, 3_001_700, |wait| {
        (wait.syscall, wait.context) = (CLOCK_NANOSLEEP, 2)
    });
    machine.wake_from(5_000_000, CHILD, 0, 2, 1).switch(5_000_050, 1, CHILD, 0);
    machine.wake_from(5_000_100, SHELL, CHILD, 0, 0);
    machine.exit(5_000_110, CHILD, SHELL, group, "sort").switch(5_000_120, 1, 0, 0x80);
    reap_child(&mut machine, 5_000_101);
    machine.switch(5_000_150, 0, SHELL, 0).switch(5_000_300, 0, 0, 1);
    machine
}

/// A shell hands the terminal to the command that the user asked for; an editor keeps it, and is
/// unresponsive.
#[test]
fn a_program_that_keeps_the_terminal_waits_for_its_child() {
    for (group, trigger, cause) in [
        (SHELL, "", Some((CauseKind::ChildWait, true))),
        (CHILD, "", Some((CauseKind::TimerSleep, false))),
        (CHILD, "auto", None),
    ] {
        let verdict = child_of(group).triggered(trigger).diagnose(7_000_000);
        assert_eq!(verdict.findings.first().map(|one| (one.kind, one.unusual)), cause);
    }
}

/// A command substitution stays in the group of a shell that has handed its terminal to a job
/// before; a command gets a group of its own.
#[test]
fn prompt_is_no_command() {
    for (group, prompt, cause) in [
        (SHELL, true, (CauseKind::ChildWait, true)),
        (CHILD, false, (CauseKind::TimerSleep, false)),
    ] {
        let mut machine = child_of(group);
        machine.fork(1_200_000, SHELL, JOB).exit(1_300_000, JOB, SHELL, JOB, "ls");
        let verdict = machine.diagnose(7_000_000);
        let interval = verdict.interval.expect("a key was late");
        assert_eq!((interval.prompt, interval.command.as_str()), (prompt, "sort"));
        let first = verdict.findings.first();
        assert_eq!(first.map(|finding| (finding.kind, finding.unusual)), Some(cause));
    }
}

/// A terminal with one thread that receives the keys, and a third one, which gets its CPU 4 ms
/// later, that writes them to the shell, like those of Qt.
#[test]
fn a_terminal_may_hand_its_keys_to_another_thread() {
    let mut machine = Machinery::with_terminal();
    machine.task(WRITER, APP, 1, "xterm", 1).task(BETWEEN, APP, 1, "xterm", 1);
    machine.task(HOLDER, HOLDER, 1, "indexer", 1).task(CHILD, CHILD, SHELL, "git", 1);
    for us in [1_000_000, 1_500_000, 2_000_000, 3_000_000] {
        machine.press(us - 4_000).wake_from(us - 3_740, BETWEEN, APP, 0, 2).draw(us - 3_400);
        machine.switch(us - 3_720, 2, BETWEEN, 0).wake(us - 3_710, WRITER, BETWEEN);
        machine.switch(us - 3_700, 2, 0, 1);
        machine.switch(us + 280, 2, WRITER, 0);
        machine.tty(us + 300, WRITER, TO_SHELL, 0).wake_from(us + 301, WORKER, WRITER, 0, 3);
        machine.switch(us + 320, 2, 0, 1);
        machine.switch(us + 400, 3, WORKER, 0).tty(us + 450, WORKER, TO_SHELL, 1);
        machine.wake_from(us + 460, SHELL, WORKER, 0, 3);
        read_terminal(&mut machine, us);
        machine.switch(us + 700, 3, SHELL, 0x402).switch(us + 900, 3, 0, 1);
    }
    held_up(&mut machine, 5_000_000);
    let (milestone, _, kinds) = outline(&machine.diagnose(7_000_000));
    assert_eq!(
        (milestone.as_str(), kinds.first().copied()),
        ("completed", Some(CauseKind::LockWait))
    );
}

/// The terminal's own timer woke it while others had its CPU; the shell's output meanwhile caused
/// no wakeup.
#[test]
fn a_terminal_draws_what_was_written_while_it_was_ready() {
    let mut machine = Machinery::with_terminal();
    machine.task(HOLDER, HOLDER, 1, "indexer", 1);
    for us in [1_000_000, 1_500_000, 2_000_000] {
        machine.press(us).reach_shell(us).echo(us + 800);
    }
    let us = 3_000_000;
    machine.press(us).reach_shell(us).switch(us + 710, 1, HOLDER, 0);
    machine.wake_from(us + 600_000, APP, HOLDER, 2, 1);
    machine.wait(us + 600_001, APP, us + 400, |wait| (wait.syscall, wait.args) = (POLL, [1, 3, 0]));
    machine.switch(us + 700_000, 1, SHELL, 0).tty(us + 700_100, SHELL, TO_TERMINAL, 0);
    machine.wake_from(us + 700_101, WORKER, SHELL, 0, 1).switch(us + 700_150, 1, WORKER, 1);
    machine.tty(us + 700_160, WORKER, TO_TERMINAL, 1).switch(us + 700_200, 1, APP, 0x402);
    machine.draw(us + 700_400);
    let verdict = machine.diagnose(5_000_000);
    assert_eq!(outline(&verdict), ("response".to_owned(), 701, vec![CauseKind::CpuCompetition]));
    assert_eq!(verdict.interval.expect("there was input").join, "exact");
}

/// A worker that delivers keys does other work as well, and wakes another thread for it right
/// afterwards.
#[test]
fn the_next_wakee_of_a_worker_reads_no_terminal() {
    let mut machine = Machinery::with_terminal();
    machine.task(HOLDER, HOLDER, 1, "indexer", 1);
    for us in [1_000_000, 1_500_000, 2_000_000] {
        machine.press(us).reach_shell(us).echo(us + 800);
        read_terminal(&mut machine, us);
    }
    machine.wake_from(2_000_480, HOLDER, WORKER, 0, 2).switch(2_000_500, 2, HOLDER, 0);
    machine.wait(2_000_481, HOLDER, 500_000, |wait| (wait.syscall, wait.args) = (POLL, [1, 3, 0]));
    machine.switch(2_000_600, 2, 0, 1).wake_from(5_000_000, HOLDER, 0, 2, 2);
    machine.switch(5_000_010, 2, HOLDER, 0);
    machine.wait(5_000_001, HOLDER, 2_000_600, |wait| wait.syscall = FLOCK);
    machine.switch(5_000_100, 2, 0, 1);
    let (milestone, latency, kinds) = outline(&machine.diagnose(7_000_000));
    assert_eq!((milestone.as_str(), kinds), ("response", vec![]));
    assert!(latency < 10, "{latency} ms");
}

/// A worker delivers to several terminals in a row, and does not wake a reader that is awake.
#[test]
fn a_reader_of_another_terminal_does_not_read_this_one() {
    let mut machine = Machinery::with_terminal();
    machine.task(HOLDER, HOLDER, 1, "bash", 1);
    for us in [1_000_000, 1_500_000] {
        machine.press(us).reach_shell(us).echo(us + 800);
    }
    let us = 2_000_000;
    machine.press(us).tty(us + 300, APP, TO_SHELL, 0).wake_from(us + 301, WORKER, APP, 0, 1);
    machine.wake_from(us + 420, SHELL, 0, 2, 2).switch(us + 400, 1, WORKER, 1);
    machine.switch(us + 430, 2, SHELL, 0);
    machine.tty(us + 450, WORKER, TO_SHELL, 1).tty(us + 470, WORKER, TO_ANOTHER, 1);
    machine.wake_from(us + 480, HOLDER, WORKER, 0, 0).switch(us + 500, 0, HOLDER, 0);
    machine.switch(us + 600, 0, 0, 1);
    machine.wait(us + 481, HOLDER, 500_000, |wait| {
        (wait.syscall, wait.args, wait.magic) = (READ, [0, 0, 1], TERMINAL_FILES);
    });
    machine.echo(us + 800).switch(us + 900, 2, 0, 1);
    machine.wake_from(5_000_000, HOLDER, 0, 2, 0).switch(5_000_010, 0, HOLDER, 0);
    machine.switch(5_000_100, 0, 0, 1);
    machine.wait(5_000_001, HOLDER, us + 600, |wait| wait.syscall = FLOCK);
    let (milestone, latency, kinds) = outline(&machine.diagnose(7_000_000));
    assert_eq!((milestone.as_str(), kinds), ("response", vec![]));
    assert!(latency < 10, "{latency} ms");
}

#[test]
fn a_command_that_is_waited_for_goes_before_a_shorter_delay() {
    let mut machine = command(5_000_000, 150_000);
    let (milestone, _, kinds) = outline(&machine.diagnose(7_000_000));
    assert_eq!(
        (milestone.as_str(), kinds.first().copied()),
        ("completed", Some(CauseKind::LockWait))
    );
}

#[test]
fn a_command_that_is_left_to_itself_goes_behind() {
    let mut machine = command(5_000_000, 150_000);
    machine.task(OTHER, OTHER, 1, "editor", 1);
    machine.press_for(4_000_000, OTHER);
    let (milestone, latency, _) = outline(&machine.diagnose(7_000_000));
    assert_eq!((milestone.as_str(), latency), ("response", 150));
}
