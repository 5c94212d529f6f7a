// SPDX-License-Identifier: MIT OR Apache-2.0
//! Process trees of terminals and other programs.

use super::*;

/// pid, parent, group, session, tpgid.
type Row = (u32, u32, u32, u32, i32);

fn stat((pid, parent, group, session, tpgid): Row) -> Stat {
    Stat {
        identity: Identity { pid, start: 1 },
        command: String::new(),
        state: 'S',
        parent,
        group,
        session,
        terminal: 0,
        tpgid,
        ticks: 0,
        ended_ticks: 0,
        nice: 0,
        threads: 1,
        policy: 0,
        uid: 1000,
        effective_uid: 1000,
    }
}

fn sort(client: Row, below: &[Row], clients: &[u32]) -> Family {
    let below: Vec<Stat> = below.iter().map(|row| stat(*row)).collect();
    Family::sort(&stat(client), &below, |process| clients.contains(&process.pid))
}

fn members(members: &[Member]) -> Vec<(u32, Membership)> {
    members.iter().map(|member| (member.who.pid, member.because)).collect()
}

const XTERM: Row = (10, 1, 10, 1, -1);
use Membership::{Child, Client, Foreground};

#[test]
fn a_shell_at_its_prompt_is_in_the_foreground() {
    let family = sort(XTERM, &[(11, 10, 11, 11, 11)], &[]);
    assert_eq!(members(&family.members), [(10, Client), (11, Foreground)]);
    assert_eq!(
        family.terminals,
        [Terminal { leader: Identity { pid: 11, start: 1 }, foreground: 11 }]
    );
}

#[test]
fn the_foreground_job_joins_its_shell_and_others_do_not() {
    let below = [
        (11, 10, 11, 11, 30),
        (20, 11, 20, 11, 30),
        (21, 20, 20, 11, 30),
        (30, 11, 30, 11, 30),
        (31, 30, 30, 11, 30),
    ];
    let family = sort(XTERM, &below, &[]);
    assert_eq!(
        members(&family.members),
        [(10, Client), (11, Child), (30, Foreground), (31, Foreground)]
    );
    let jobs: Vec<_> = family.jobs.iter().map(|(job, of)| (job.pid, members(of))).collect();
    assert_eq!(jobs, [(20, vec![(20, Child), (21, Child)])]);
}

#[test]
fn a_shell_in_a_shell_is_no_background_job() {
    let below =
        [(11, 10, 11, 11, 30), (20, 11, 20, 11, 30), (30, 20, 30, 11, 30), (40, 20, 40, 11, 30)];
    let family = sort(XTERM, &below, &[]);
    assert_eq!(
        members(&family.members),
        [(10, Client), (11, Child), (20, Child), (30, Foreground)]
    );
    assert_eq!(family.jobs.keys().map(|job| job.pid).collect::<Vec<_>>(), [40]);
}

#[test]
fn a_terminal_inside_a_background_job_is_not_in_view() {
    let below = [(11, 10, 11, 11, 11), (20, 11, 20, 11, 11), (21, 20, 21, 21, 21)];
    let family = sort(XTERM, &below, &[]);
    assert_eq!(members(&family.members), [(10, Client), (11, Foreground)]);
    assert_eq!(family.jobs.values().map(|job| job.len()).collect::<Vec<_>>(), [2]);
    // The same in the foreground, as with `script` or `sudo`.
    let below = [(11, 10, 11, 11, 20), (20, 11, 20, 11, 20), (21, 20, 21, 21, 21)];
    let family = sort(XTERM, &below, &[]);
    assert_eq!(
        members(&family.members),
        [(10, Client), (11, Child), (20, Foreground), (21, Foreground)]
    );
}

#[test]
fn another_client_below_has_a_set_of_its_own() {
    let below = [(11, 10, 11, 11, 11), (20, 11, 20, 11, 11), (21, 20, 20, 11, 11)];
    let family = sort(XTERM, &below, &[20]);
    assert_eq!(members(&family.members), [(10, Client), (11, Foreground)]);
    assert!(family.jobs.is_empty());
}

#[test]
fn a_program_that_a_background_shell_started_keeps_its_children() {
    // The client itself was started with `&`: that terminal is not its own.
    let client = (20, 11, 20, 11, 11);
    let family = sort(client, &[(21, 20, 20, 11, 11), (22, 21, 22, 22, -1)], &[]);
    assert_eq!(members(&family.members), [(20, Client), (21, Child), (22, Child)]);
    assert!(family.terminals.is_empty());
}

#[test]
fn jobs_and_terminals_are_bounded() {
    let mut below = vec![(11, 10, 11, 11, 11)];
    below.extend((0..100).map(|job| (100 + job, 11, 100 + job, 11, 11)));
    below.extend(
        (0..100).map(|shell| (300 + shell, 10, 300 + shell, 300 + shell, 300 + shell as i32)),
    );
    let family = sort(XTERM, &below, &[]);
    assert_eq!((family.jobs.len(), family.terminals.len()), (JOBS_MAX, TERMINALS_MAX));
    assert_eq!(family.dropped, 100 - JOBS_MAX as u64 + 101 - TERMINALS_MAX as u64);
}

#[test]
fn a_circle_of_parents_ends() {
    let family = sort(XTERM, &[(10, 11, 10, 1, -1), (11, 10, 10, 1, -1)], &[]);
    assert_eq!(members(&family.members), [(10, Client), (11, Child), (10, Child)]);
}
