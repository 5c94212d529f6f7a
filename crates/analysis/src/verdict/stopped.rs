// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptions of stops: by a signal, by the freezer of the control group, by a debugger, or of
//! terminal output.

use crate::explain::chain::Doing;
use crate::explain::partition::{BlameGroup, Budget, length};
use crate::model::Culprit;
use crate::timeline::waits::{is_frozen, is_traced, writes_to_terminal};
use tipme_record::{Nanos, Pid, Tid};

/// Kernel functions on the stacks of frozen and of traced threads.
const FREEZES: [&str; 2] = ["do_freezer_trap", "__refrigerator"];
const TRACES: &str = "ptrace_stop";

/// Signals to a process that reads its terminal, or writes to it, while another process group is in
/// the foreground.
const SIGTTIN: u32 = 21;
const SIGTTOU: u32 = 22;

/// Mechanism that stopped a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    Signal,
    Keyboard,
    Frozen,
    Traced,
    Output,
    /// By the terminal, since the process was not in its foreground: `true` if it read, and not
    /// wrote or changed settings.
    Background(bool),
}

/// Returns the mechanism of a group's longest stop, and the stopped process.
fn hold(budget: &Budget<'_>, group: &BlameGroup) -> Option<(Hold, Pid)> {
    let longest = budget.pieces(group).max_by_key(|piece| length(piece))?;
    let Doing::Waited(_, Some(wait)) = longest.doing else { return None };
    if writes_to_terminal(&wait) {
        return Some((Hold::Output, wait.pid));
    }
    if is_frozen(&wait) {
        return Some((Hold::Frozen, wait.pid));
    }
    if is_traced(&wait) {
        return Some((Hold::Traced, wait.pid));
    }
    let mut functions = budget.recording.names.kernel_functions(wait.stack);
    let how = functions.find_map(|name| match name {
        name if FREEZES.contains(&name) => Some(Hold::Frozen),
        TRACES => Some(Hold::Traced),
        _ => None,
    });
    Some((
        how.or_else(|| by_terminal(budget, longest.tid, longest.hi)).unwrap_or(Hold::Signal),
        wait.pid,
    ))
}

/// Returns how a terminal stopped a thread: by Ctrl-Z, or in the background, where the kernel sends
/// the signal as the thread itself.
fn by_terminal(budget: &Budget<'_>, tid: Tid, hi: Nanos) -> Option<Hold> {
    let span = budget.recording.timeline.before(tid, hi)?;
    let signal = budget.recording.stop_signal(&span)?;
    let pid = |tid| budget.recording.tasks.pid(tid, span.start);
    let group = |tid| budget.recording.tasks.process(pid(tid), span.start).map(|life| life.group);
    let by_own_group = pid(signal.head.tid) == pid(tid) || group(signal.head.tid) == group(tid);
    match signal.number {
        SIGTTIN if by_own_group => Some(Hold::Background(true)),
        SIGTTOU if by_own_group => Some(Hold::Background(false)),
        _ => budget.recording.is_typed(signal).then_some(Hold::Keyboard),
    }
}

/// Returns the name of the process that leads the group of a stopped process, if it is another one.
fn group_leader(budget: &Budget<'_>, group: &BlameGroup, stopped: Pid) -> Option<String> {
    let tasks = &budget.recording.tasks;
    let at = budget.pieces(group).map(|piece| piece.lo).min()?;
    let leader = tasks.process(stopped, at)?.group;
    Some(tasks.comm(leader, at)).filter(|comm| leader != stopped && !comm.is_empty())
}

/// Describes the stop with its culprit and the stopped process.
pub(crate) fn headline(
    budget: &Budget<'_>,
    group: &BlameGroup,
    culprit: &str,
    waiters: &str,
) -> String {
    match hold(budget, group) {
        Some((Hold::Frozen, _)) => format!("the control group of {waiters} was frozen"),
        Some((Hold::Traced, held)) if group.members.has(held) => {
            format!("a debugger held {waiters}")
        }
        Some((Hold::Traced, _)) => format!("{culprit} held {waiters} as a debugger does"),
        Some((Hold::Background(reads), stopped)) => {
            let comm = budget.recording.tasks.comm(stopped, budget.end());
            let (what, signal) =
                if reads { ("reading", "SIGTTIN") } else { ("writing to", "SIGTTOU") };
            let settings = if reads { "" } else { " or changing its settings" };
            format!(
                "the terminal stopped {comm} (pid {stopped}) for {what} it{settings} while in the background ({signal})"
            )
        }
        Some((Hold::Output, _)) => {
            format!("the output of {waiters}'s terminal was stopped, as by Ctrl-S")
        }
        Some((Hold::Keyboard, _)) => format!("Ctrl-Z stopped {culprit}"),
        Some((Hold::Signal, stopped)) if group.members.has(stopped) => {
            format!("{culprit} stopped itself")
        }
        Some((Hold::Signal, stopped)) if is_namesake(budget, group, stopped) => {
            format!("{culprit} stopped another {waiters}")
        }
        Some((Hold::Signal, _)) | None => format!("{culprit} stopped {waiters}"),
    }
}

/// Returns `true` if the process that stopped another one has the same name.
fn is_namesake(budget: &Budget<'_>, group: &BlameGroup, stopped: Pid) -> bool {
    let comm = |pid| budget.recording.tasks.comm(pid, budget.end());
    group.members.main().is_some_and(|(pid, _)| comm(pid) == comm(stopped))
}

/// Returns the remedy that resumes the process.
pub(crate) fn remedy(budget: &Budget<'_>, group: &BlameGroup, culprit: &Culprit) -> Option<String> {
    Some(match hold(budget, group)? {
        (Hold::Signal, stopped) => {
            let Culprit::Process { pid, comm, .. } = culprit else { return None };
            let who = if *pid == stopped.0 {
                "it stopped".to_owned()
            } else {
                format!("{comm} (pid {pid}) stopped it")
            };
            format!("kill -CONT {stopped}, if it is still stopped; see why {who}")
        }
        (Hold::Keyboard, stopped) => {
            format!(
                "kill -CONT {stopped}, or fg in the shell of its terminal, if it is still stopped"
            )
        }
        (Hold::Frozen, pid) => format!(
            "thaw its control group: 0 into cgroup.freeze, or THAWED into freezer.state, of the group in /proc/{pid}/cgroup"
        ),
        (Hold::Background(_), stopped) => {
            let leader = group_leader(budget, group, stopped);
            let process_group = leader.map_or_else(
                || "its process group".to_owned(),
                |leader| format!("the process group of {leader}"),
            );
            format!(
                "let {process_group} have the terminal (timeout --foreground; fg in a shell), or give it no \
                 terminal (</dev/null, setsid)"
            )
        }
        (Hold::Output, _) => {
            "press Ctrl-Q to continue the output; stty -ixon makes Ctrl-S an ordinary key"
                .to_owned()
        }
        (Hold::Traced, held) => match culprit {
            Culprit::Process { pid, comm, .. }
                if *pid != held.0 && budget.recording.tasks.has_ended(Tid(*pid)) =>
            {
                format!("find out what attaches {comm} to it; this instance (pid {pid}) has ended")
            }
            Culprit::Process { pid, comm, .. } if *pid != held.0 => {
                format!("continue it in {comm} (pid {pid}), or end {comm}")
            }
            _ => format!("continue it in the debugger: TracerPid in /proc/{held}/status"),
        },
    })
}
