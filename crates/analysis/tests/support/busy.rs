// SPDX-License-Identifier: MIT OR Apache-2.0
//! A busy machine: an incident with a given number of records.

use super::{APP, Machinery};
use tipme_record::incident::Incident;

const MAKE: u32 = 3_000;
/// The compilers that `make` started, and the one that takes the editor's CPU.
const COMPILERS: u32 = 256;
const GREEDY: u32 = MAKE + 1 + COMPILERS;

/// Begin and end of the build, in microseconds.
const BEGIN: u64 = 50_000;
const END: u64 = 29_000_000;

/// Number of turns per wait for the disk, and per short-lived process of a compiler.
const WAITS_EVERY: u64 = 64;
const FORKS_EVERY: u64 = 512;
/// Number of records of `FORKS_EVERY` turns: two scheduler records each, and two for each wait and
/// each process.
const RECORDS: u64 = 2 * FORKS_EVERY + 2 * (FORKS_EVERY / WAITS_EVERY) + 2;

/// Typing into an editor beside a build that leaves about `records` records. One key, at 25 s, is
/// answered 700 ms late: a compiler had the editor's CPU.
pub fn busy(records: u64) -> Incident {
    let mut machine = Machinery::with_app("editor");
    machine.task(MAKE, MAKE, 1, "make", 1);
    for pid in MAKE + 1..=GREEDY {
        machine.task_in(pid, pid, MAKE, MAKE, "cc1", 1);
    }
    machine.typing(100_000, 100);
    build(&mut machine, records * FORKS_EVERY / RECORDS);
    machine.press(25_000_000).switch(25_005_000, 1, GREEDY, 0).switch(25_705_000, 1, APP, 1);
    machine.draw(25_710_000).incident(30_000_000)
}

/// Compilers take turns on CPUs 2 and 3: the one that ran before wakes the next one, which then
/// runs.
fn build(machine: &mut Machinery, turns: u64) {
    for turn in 0..turns {
        let us = BEGIN + (END - BEGIN) * turn / turns;
        let (cpu, compiler, before) =
            (2 + turn as u32 % 2, compiler(turn), compiler(turn.saturating_sub(2)));
        let state = if turn % 5 == 0 { 0 } else { 1 };
        machine.wake(us, compiler, before).switch(us + 1, cpu, compiler, state);
        if turn % WAITS_EVERY == 0 {
            machine.wait(us, compiler, us - 2_000, |wait| wait.syscall = 0);
            machine.block(us, compiler, us - 2_000, 4_096, 0);
        }
        if turn % FORKS_EVERY == 0 {
            let child = 10_000 + (turn / FORKS_EVERY) as u32;
            machine.fork(us, compiler, child).exit(us + 900, child, compiler, MAKE, "as");
        }
    }
}

fn compiler(turn: u64) -> u32 {
    let own = (turn / 2 * 7) as u32 % (COMPILERS / 2);
    MAKE + 1 + own * 2 + turn as u32 % 2
}
