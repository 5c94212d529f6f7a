// SPDX-License-Identifier: MIT OR Apache-2.0
//! Evidence: sentences with figures for each finding. The first line names the culprit and its
//! action.

use crate::explain::chain::Doing;
use crate::explain::describe::{
    address_text, count_text, doing_text, frames, span_text, thread_text, unnamed_wait_text,
    wait_text,
};
use crate::explain::io_limits;
use crate::explain::jobs::Members;
use crate::explain::limits::{self, limit_of};
use crate::explain::load::Load;
use crate::explain::partition::{BlameGroup, BlameOwner, Budget, length};
use crate::model::CauseKind;
use crate::timeline::io_limits::GroupIoLimit;
use crate::timeline::polls;
use crate::timeline::waits::Waited;
use crate::verdict::feeder;
use crate::verdict::groups::{
    awaited_thaw, device_name, frozen_device, has_given_up, held_up, is_held_by_own_thread,
    is_held_by_waiter, is_of_waiter, is_signalled, is_unowed, keeps_open, longest_wait, via_to,
    waiter,
};
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::{Device, Nanos, Tid};

/// Maximum number of lines on one question.
const LINES_MAX: usize = 2;

/// Maximum time from the first lock attempt to the start of the first sleep.
const TRIED_BEFORE: Nanos = Nanos::from_millis(10);

/// Minimum share of the samples for a function to be named.
const FUNCTION_SHARE_MIN: f64 = 0.1;

/// Returns the evidence for all causes other than disks.
pub(crate) fn of(budget: &Budget<'_>, group: &BlameGroup) -> Vec<String> {
    let mut lines = vec![headline(budget, group)];
    match group.kind {
        CauseKind::CpuCompetition => {
            lines.push(queue_line(budget, group));
            lines.extend(crate::verdict::competition::newborn_line(budget, group));
            lines.extend(crate::verdict::competition::line(budget, group));
        }
        CauseKind::Stall => {
            lines.extend(crate::verdict::stall::overdue_line(budget, group));
            lines.extend(crate::verdict::stall::line(budget, group));
            lines.extend(crate::verdict::stall::place_line(budget, group));
        }
        CauseKind::CpuThrottled => {
            lines.extend(via_line(budget, group));
            lines.extend(
                limit_of(budget, group).and_then(|limit| limits::evidence(budget, group, limit)),
            );
        }
        CauseKind::LockWait
        | CauseKind::KernelLock
        | CauseKind::KernelWait
        | CauseKind::PeerWait
        | CauseKind::ChildWait => {
            lines.extend(via_line(budget, group));
            lines.extend(attempts_line(budget, group));
            lines.extend(person_line(budget, group));
            lines.extend(thaw_line(budget, group));
            lines.extend(far_end_lines(budget, group));
        }
        CauseKind::OwnComputation => {}
        _ => lines.extend(wait_line(budget, group)),
    }
    lines.extend(feeder::line(budget, group));
    lines.extend(function_lines(budget, group));
    lines
}

fn headline(budget: &Budget<'_>, group: &BlameGroup) -> String {
    let culprit = label(budget, group);
    let waiters = waiters(budget, group);
    match group.kind {
        CauseKind::CpuCompetition
        | CauseKind::PageIn
        | CauseKind::SwapIn
        | CauseKind::DiskQueue
        | CauseKind::IoHeldBack
        | CauseKind::Fsync
        | CauseKind::Unattributed => culprit,
        CauseKind::CpuThrottled => throttled_line(budget, group, &culprit),
        CauseKind::OwnComputation => format!("{culprit} computed"),
        CauseKind::Reclaim => format!("{culprit} took the memory that {waiters} needed"),
        CauseKind::LockWait if is_unowed(group) => {
            format!(
                "{waiters} waited for a lock{}; its holder is unknown",
                file_words(budget, group)
            )
        }
        CauseKind::LockWait if is_signalled(budget, group) => {
            let own = is_of_waiter(budget, group);
            let whom = if own { "another of its threads" } else { &culprit };
            format!("{waiters} waited for {whom} to signal a condition or semaphore")
        }
        CauseKind::KernelLock if awaited_thaw(budget, group).is_some() => {
            frozen_line(budget, group, &waiters)
        }
        CauseKind::KernelLock if is_held_by_waiter(budget, group) => {
            kernel_wait_line(budget, group, &waiters)
        }
        CauseKind::LockWait | CauseKind::KernelLock if is_held_by_own_thread(budget, group) => {
            format!("{waiters} waited for a lock held by another of its threads")
        }
        CauseKind::LockWait | CauseKind::KernelLock => {
            format!("{culprit} held a lock that {waiters} needed")
        }
        CauseKind::KernelWait => kernel_wait_line(budget, group, &waiters),
        CauseKind::ServerBusy => format!("the display server served {culprit}"),
        CauseKind::ServerGrab => format!("{culprit} had grabbed the display server"),
        CauseKind::PeerWait if keeps_open(budget, group) => {
            format!("{culprit}, in the background, kept a pipe open that {waiters} read to its end")
        }
        CauseKind::PeerWait if is_unowed(group) => {
            format!("{waiters} waited for an answer from an unknown process")
        }
        CauseKind::PeerWait => format!("{waiters} waited for an answer from {culprit}"),
        CauseKind::NetworkWait => network_line(budget, group, &waiters, &culprit),
        CauseKind::ChildWait => format!("{waiters} waited for {culprit} to exit"),
        CauseKind::TimerSleep if has_given_up(budget, group) => {
            format!("{culprit} waited for its terminal until a time limit expired")
        }
        CauseKind::TimerSleep => format!("{culprit} slept on a timer"),
        CauseKind::Stopped => crate::verdict::stopped::headline(budget, group, &culprit, &waiters),
        CauseKind::Interrupt => format!("{culprit} took the CPU from {waiters}"),
        CauseKind::Stall => crate::verdict::stall::headline(budget, group, &waiters),
    }
}

/// Names the process that ended the wait for a frozen file system: often a part of the program that
/// froze it.
fn thaw_line(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let by = longest_wait(budget, group).filter(|_| awaited_thaw(budget, group).is_some())?;
    let waker = by.waker.filter(|waker| *waker != Tid(0))?;
    let mut members = Members::default();
    members.add(budget.recording.tasks.pid(waker, by.hi), 1);
    Some(format!("{} thawed it", budget.jobs.label(&budget.jobs.of(waker, by.hi), &members)))
}

/// Formats `bash waited in write of /srv/log until the frozen file system on loop0 is thawed`.
fn frozen_line(budget: &Budget<'_>, group: &BlameGroup, waiters: &str) -> String {
    let wait = awaited_thaw(budget, group);
    let text = wait_text(Waited::Unknown, wait.as_ref());
    let file = wait
        .and_then(|wait| budget.recording.file(&wait))
        .map(|path| format!(" of {path}"))
        .unwrap_or_default();
    let device = frozen_device(budget, group)
        .map(|device| format!(" on {}", device_name(budget, Some(device))));
    format!(
        "{waiters} {text}{file} until the frozen file system{} is thawed",
        device.unwrap_or_default()
    )
}

/// Names the control group whose quota held the waiter back, and the job that used it up.
fn throttled_line(budget: &Budget<'_>, group: &BlameGroup, culprit: &str) -> String {
    let limit =
        limit_of(budget, group).map(|limit| format!(" {}", limit.text())).unwrap_or_default();
    let pid = held_up(budget, group).unwrap_or_default();
    let held = budget.recording.tasks.comm(pid, budget.end());
    match group.owner == BlameOwner::Job(budget.jobs.of(Tid(pid.0), budget.end())) {
        true => {
            format!("{held} was throttled by the CPU quota of its control group{limit}")
        }
        false => {
            format!("{culprit} used up the CPU quota of {held}'s control group{limit}")
        }
    }
}

/// Describes the longest wait inside the kernel, as `cat waited in openat (fanotify_handle_event)`.
fn kernel_wait_line(budget: &Budget<'_>, group: &BlameGroup, waiters: &str) -> String {
    let longest = budget.pieces(group).max_by_key(|piece| length(piece));
    let (waited, wait) = longest
        .and_then(|piece| match piece.doing {
            Doing::Waited(waited, wait) if waited.is_unnamed() || waited == Waited::KernelLock => {
                Some((waited, wait))
            }
            _ => via_to(budget, group, piece).map(|via| (via.waited, via.wait)),
        })
        .unwrap_or((Waited::Unknown, None));
    let slept = longest.filter(|piece| matches!(piece.doing, Doing::Waited(..)));
    let slept = slept.map(|piece| {
        budget.recording.tasks.comm(budget.recording.tasks.pid(piece.tid, piece.lo), piece.hi)
    });
    format!(
        "{} {}",
        slept.as_deref().unwrap_or(waiters),
        unnamed_wait_text(budget.recording, waited, wait.as_ref())
    )
}

/// Names the waiter and the address, and the silent time if no answer came for most of the wait.
fn network_line(budget: &Budget<'_>, group: &BlameGroup, waiters: &str, address: &str) -> String {
    let waits = || {
        budget.pieces(group).filter_map(|piece| match piece.doing {
            Doing::Waited(_, wait) => Some((piece, wait?)),
            _ => None,
        })
    };
    let silent =
        waits().filter(|(piece, wait)| polls::is_unanswered(wait, piece.hi, budget.recording.mark));
    let silent = silent.map(|(piece, _)| length(piece)).fold(0, u64::saturating_add);
    let server =
        if waits().any(|(_, wait)| polls::is_for_names(&wait)) { "the name server " } else { "" };
    let silence = if silent.saturating_mul(2) > group.nanos {
        format!(", and no answer came for {}", span_text(Nanos(silent)))
    } else {
        String::new()
    };
    format!("{waiters} waited for {server}{address}{silence}")
}

/// Returns the culprit's name for a sentence.
fn label(budget: &Budget<'_>, group: &BlameGroup) -> String {
    match &group.owner {
        BlameOwner::Job(job) => budget.jobs.label(job, &group.members),
        BlameOwner::Device(device) => device_name(budget, *device),
        BlameOwner::Address(address, port) => address_text(*address, *port),
        BlameOwner::Interrupt(source) => source.name(&budget.recording.meta.irq_names),
        BlameOwner::Nobody => "an unknown process".to_owned(),
    }
}

/// Returns the waiter's name.
fn waiters(budget: &Budget<'_>, group: &BlameGroup) -> String {
    waiter(budget, group)
        .map_or_else(String::new, |pid| budget.recording.tasks.comm(pid, budget.end()))
}

/// Describes the wait for the culprit.
fn via_line(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let longest = budget.pieces(group).max_by_key(|piece| length(piece))?;
    let via = via_to(budget, group, longest)?;
    let who = thread_text(budget.recording, via.waiter, longest.lo);
    if is_signalled(budget, group) {
        return Some(format!("{who} waited for a condition or semaphore in futex"));
    }
    let wait = via.wait.as_ref();
    let what = match via.waited {
        waited if waited.is_unnamed() => unnamed_wait_text(budget.recording, waited, wait),
        waited => wait_text(waited, wait),
    };
    Some(format!("{who} {what}"))
}

/// Counts the failed attempts to take a file lock, if there are any.
fn attempts_line(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let longest = budget.pieces(group).max_by_key(|piece| length(piece))?;
    let via = via_to(budget, group, longest)
        .filter(|via| via.waited == Waited::FileLock)
        .and_then(|via| via.wait);
    let own =
        || if let Doing::Waited(Waited::FileLock, wait) = longest.doing { wait } else { None };
    let wait = via.or_else(own)?;
    let (lo, hi) = (
        budget.pieces(group).map(|piece| piece.lo).min()?,
        budget.pieces(group).map(|piece| piece.hi).max()?,
    );
    let failures =
        budget.recording.attempts.failures(wait.device, wait.inode, lo.before(TRIED_BEFORE), hi);
    let file = budget.recording.file(&wait).unwrap_or("a file");
    (failures > 0).then(|| format!("failed to lock {file} {}", times_text(failures)))
}

fn times_text(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{} times", count_text(count)) }
}

fn queue_line(budget: &Budget<'_>, group: &BlameGroup) -> String {
    let cpus: BTreeSet<u16> = budget
        .pieces(group)
        .filter_map(|piece| {
            budget.recording.timeline.before(piece.tid, piece.hi).map(|span| span.segment.place)
        })
        .collect();
    let cpus: Vec<String> = cpus.iter().map(u16::to_string).collect();
    let word = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    format!(
        "ran {} while {} was runnable, on {word} {}",
        span_text(Nanos(group.nanos)),
        waiters(budget, group),
        cpus.join(", ")
    )
}

/// Describes the activities at the far end, the longest first.
fn far_end_lines(budget: &Budget<'_>, group: &BlameGroup) -> Vec<String> {
    let mut actions: BTreeMap<String, u64> = BTreeMap::new();
    for piece in budget.pieces(group) {
        let who = budget.recording.tasks.pid(piece.tid, piece.lo);
        let who = crate::explain::describe::process_text(budget.recording, who, piece.lo);
        *actions.entry(format!("{who} {}", doing_text(budget.recording, piece))).or_default() +=
            length(piece);
    }
    let mut actions: Vec<_> = actions.into_iter().collect();
    actions.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
    actions
        .into_iter()
        .take(LINES_MAX)
        .filter(|(_, nanos)| *nanos >= group.nanos / 100)
        .map(|(action, nanos)| format!("meanwhile {action} for {}", span_text(Nanos(nanos))))
        .collect()
}

/// Names the terminal that waited for user input while a peer waited for the answer.
fn person_line(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let longest = budget.pieces(group).max_by_key(|piece| length(piece))?;
    let terminals = &budget.recording.terminals;
    let waits =
        matches!(longest.doing, Doing::Waited(Waited::Events, _)) && terminals.reads(longest.tid);
    let shown_by = terminals.other_ends(longest.tid).into_iter().next().filter(|_| waits)?;
    let [who, terminal] =
        [longest.tid, shown_by].map(|tid| thread_text(budget.recording, tid, longest.lo));
    Some(format!("{who} waited for someone to type into the terminal shown by {terminal}"))
}

/// Describes the longest wait of a group.
fn wait_line(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let longest = longest_wait(budget, group)?;
    let pid = budget.recording.tasks.pid(longest.tid, longest.lo);
    let who = crate::explain::describe::process_text(budget.recording, pid, longest.lo);
    let text = doing_text(budget.recording, longest);
    Some(format!("{who} {text}, at most {}", span_text(Nanos(length(longest)))))
}

/// Returns the kernel functions of the wait in the evidence.
pub(crate) fn kernel_frames(budget: &Budget<'_>, group: &BlameGroup) -> Vec<String> {
    let via =
        || via_to(budget, group, budget.pieces(group).max_by_key(|piece| length(piece))?)?.wait;
    let own = || match longest_wait(budget, group)?.doing {
        Doing::Waited(_, wait) => wait,
        _ => None,
    };
    let by_way = matches!(
        group.kind,
        CauseKind::LockWait | CauseKind::KernelLock | CauseKind::PeerWait | CauseKind::ChildWait
    );
    let wait = if by_way { via().or_else(own) } else { own() };
    wait.map(|wait| frames(budget.recording, &wait)).unwrap_or_default()
}

/// Lists the functions sampled most while the group's threads ran.
fn function_lines(budget: &Budget<'_>, group: &BlameGroup) -> Vec<String> {
    let (mut functions, mut total) = (BTreeMap::<String, usize>::new(), 0);
    for piece in
        budget.pieces(group).filter(|piece| matches!(piece.doing, Doing::Ran | Doing::Served(_)))
    {
        for sample in budget.recording.samples_of(piece.tid, piece.lo, piece.hi) {
            total += 1;
            *functions.entry(function_name(budget, sample)).or_default() += 1;
        }
    }
    let mut functions: Vec<_> = functions.into_iter().collect();
    functions.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let weighty =
        |(_, count): &&(String, usize)| *count as f64 >= FUNCTION_SHARE_MIN * total as f64;
    let top = functions.iter().filter(weighty).take(LINES_MAX);
    let samples = if total == 1 { "sample" } else { "samples" };
    top.map(|(name, count)| {
        format!("{}% of {total} {samples} in {name}", count * 100 / total.max(1))
    })
    .collect()
}

/// Returns the function of a sample: the one in user space, or else the first named one in its
/// stacks.
fn function_name(budget: &Budget<'_>, sample: &tipme_record::records::Sample) -> String {
    let names = &budget.recording.names;
    let user = [sample.ip].into_iter().chain(names.stack(sample.user_stack).iter().copied());
    let function = user
        .filter_map(|ip| names.function(sample.pid, ip))
        .find(|function| !function.name.is_empty());
    match function {
        Some(function) if function.module.is_empty() => function.name.clone(),
        Some(function) => format!("{} ({})", function.name, function.module),
        None => kernel_or_module(budget, sample),
    }
}

fn kernel_or_module(budget: &Budget<'_>, sample: &tipme_record::records::Sample) -> String {
    let names = &budget.recording.names;
    let module = names.function(sample.pid, sample.ip).map(|function| function.module.clone());
    let kernel =
        names.kernel_functions(sample.kernel_stack).next().map(|name| format!("{name} (kernel)"));
    let module = module.filter(|module| !module.is_empty());
    kernel.or(module).unwrap_or_else(|| "unknown code".to_owned())
}

/// Returns the evidence for waits for a device.
pub(crate) fn disk(
    budget: &Budget<'_>,
    group: &BlameGroup,
    device: Option<Device>,
    load: &Load,
) -> Vec<String> {
    let name = device_name(budget, device);
    let (waiters, wait) = (waiters(budget, group), wait_word(group.kind));
    let first = match &load.other {
        Some((job, requests)) => {
            let label = budget.jobs.label(job, &requests.members);
            let file = file_words(budget, group);
            let also = match &load.rest {
                (_, rest) if rest.weight() < requests.weight() / 10 => String::new(),
                (1, rest) => format!("; another job had {}", rest.text()),
                (more, rest) => format!("; {more} other jobs had {}", rest.text()),
            };
            format!(
                "{label} had {} queued on {name} ahead of {waiters}'s {wait}{file}{also}",
                requests.text()
            )
        }
        None if load.own.weight() == 0 => format!("{waiters} waited for {name}"),
        None => format!("{waiters} waited for {name}, with {} of its own queued", load.own.text()),
    };
    let back = load
        .written_back
        .then(|| "the kernel was writing back pages that it had dirtied".to_owned());
    [Some(first), back, wait_line(budget, group)].into_iter().flatten().collect()
}

/// Returns the evidence for waits for an idle device, with the limits that were reached.
pub(crate) fn held_back(
    budget: &Budget<'_>,
    group: &BlameGroup,
    device: Option<Device>,
    idle: Nanos,
    limits: &[&GroupIoLimit],
) -> Vec<String> {
    let (name, who) = (device_name(budget, device), label(budget, group));
    let [idle, all] = [idle, Nanos(group.nanos)].map(span_text);
    let first = format!(
        "I/O of {who} was held back before it reached {name}, which was idle for {idle} of {all}"
    );
    let limits =
        limits.iter().take(LINES_MAX).map(|limit| io_limits::text(budget.recording, limit));
    std::iter::once(first).chain(limits).chain(wait_line(budget, group)).collect()
}

/// Names the process that took the memory of pages that had to be read again.
pub(crate) fn evictor(budget: &Budget<'_>, group: &BlameGroup, taker: Tid, at: Nanos) -> String {
    let mut members = Members::default();
    members.add(budget.recording.tasks.pid(taker, at), 1);
    let label = budget.jobs.label(&budget.jobs.of(taker, at), &members);
    let what = if group.kind == CauseKind::SwapIn { "memory" } else { "pages" };
    format!("{label} took memory, so {}'s {what} had to be read again", waiters(budget, group))
}

/// Returns the file with the longest waits of a group, as ` of /usr/bin/xterm`; empty if none is
/// known.
fn file_words(budget: &Budget<'_>, group: &BlameGroup) -> String {
    let mut files: BTreeMap<&str, u64> = BTreeMap::new();
    for piece in budget.pieces(group) {
        let Doing::Waited(_, Some(wait)) = &piece.doing else { continue };
        if let Some(path) = budget.recording.file(wait) {
            *files.entry(path).or_default() += length(piece);
        }
    }
    let most = files.into_iter().max_by_key(|(_, nanos)| *nanos);
    most.map(|(path, _)| format!(" of {path}")).unwrap_or_default()
}

fn wait_word(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::PageIn => "page-in",
        CauseKind::SwapIn => "swap-in",
        CauseKind::Fsync => "fsync",
        _ => "request",
    }
}
