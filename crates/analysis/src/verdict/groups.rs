// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of a blame group: its waiter, its longest wait, and how its owner is known.

use crate::explain::chain::{ChainPiece, Doing, Via};
use crate::explain::partition::{BlameGroup, BlameOwner, Budget, length};
use crate::model::CauseKind;
use crate::timeline::waits::{HARD_INTERRUPT, Waited, is_condition};
use std::collections::BTreeMap;
use tipme_record::records::Wait;
use tipme_record::{Device, Pid, Tid};

/// Returns `true` if the longest wait was one for a terminal that did not answer in time.
pub(crate) fn has_given_up(budget: &Budget<'_>, group: &BlameGroup) -> bool {
    let longest = budget.pieces(group).max_by_key(|piece| length(piece));
    matches!(longest.map(|piece| piece.doing), Some(Doing::Waited(Waited::Events, Some(wait)))
        if budget.recording.waits_for_terminal(&wait) && budget.recording.has_given_up(&wait))
}

/// Returns `true` if no process is known to owe the awaited answer or to hold the awaited lock.
pub(crate) fn is_unowed(group: &BlameGroup) -> bool {
    matches!(group.kind, CauseKind::PeerWait | CauseKind::LockWait)
        && group.owner == BlameOwner::Nobody
}

/// Returns `true` if the culprit merely kept a pipe open.
pub(crate) fn keeps_open(budget: &Budget<'_>, group: &BlameGroup) -> bool {
    let longest = budget.pieces(group).max_by_key(|piece| length(piece));
    group.kind == CauseKind::PeerWait
        && matches!(longest.map(|piece| piece.doing), Some(Doing::Waited(Waited::Peer, None)))
}

/// Returns `true` for a wait to be signalled, on a condition or a semaphore, rather than for a held
/// lock. Attempts that time out repeatedly are for a lock, however they are made.
pub(crate) fn is_signalled(budget: &Budget<'_>, group: &BlameGroup) -> bool {
    let longest = budget.pieces(group).max_by_key(|piece| length(piece));
    let via = longest
        .and_then(|piece| via_to(budget, group, piece))
        .filter(|_| group.kind == CauseKind::LockWait);
    via.and_then(|via| via.wait).as_ref().is_some_and(is_condition)
        && !budget.pieces(group).any(|piece| {
            let wait = via_to(budget, group, piece).and_then(|via| via.wait);
            wait.is_some_and(|wait| wait.context == HARD_INTERRUPT)
        })
}

/// Returns `true` if the process that waited most is also the one to blame most.
pub(crate) fn is_of_waiter(budget: &Budget<'_>, group: &BlameGroup) -> bool {
    let main = group.members.main().map(|(pid, _)| pid);
    main.is_some() && waiter(budget, group) == main
}

/// Returns `true` if a lock was held by another thread of the process that waited for it.
pub(crate) fn is_held_by_own_thread(budget: &Budget<'_>, group: &BlameGroup) -> bool {
    let held = match group.kind {
        CauseKind::LockWait => !is_signalled(budget, group),
        CauseKind::KernelLock => !is_held_by_waiter(budget, group),
        _ => false,
    };
    held && is_of_waiter(budget, group)
        && budget
            .pieces(group)
            .any(|piece| via_to(budget, group, piece).is_some_and(|via| via.holder != via.waiter))
}

/// Returns `true` if nothing is known about the holder of a lock except the waiter itself.
pub(crate) fn is_held_by_waiter(budget: &Budget<'_>, group: &BlameGroup) -> bool {
    let job = |piece: &ChainPiece| BlameOwner::Job(budget.jobs.of(piece.tid, piece.lo));
    budget.pieces(group).all(|piece| {
        budget.chain.vias_of(piece).all(|via| via.waited != Waited::KernelLock)
            && job(piece) == group.owner
    })
}

/// Name prefixes of kernel functions that take the lock of an address space.
const ADDRESS_SPACE: [&str; 9] = [
    "do_user_addr_fault",
    "lock_mm_and_find_vma",
    "vm_mmap_pgoff",
    "__vm_munmap",
    "do_mprotect_pkey",
    "do_madvise",
    "__do_sys_brk",
    "__do_sys_mremap",
    "exit_mm",
];

/// Returns `true` if a group's longest wait is for the lock of an address space.
pub(crate) fn is_for_address_space(budget: &Budget<'_>, group: &BlameGroup) -> bool {
    let vias = budget.pieces(group).flat_map(|piece| budget.chain.vias_of(piece));
    let waits = vias.filter(|via| via.waited == Waited::KernelLock).filter_map(|via| via.wait);
    let Some(wait) = waits.max_by_key(|wait| wait.head.ts.since(wait.start)) else { return false };
    let mut functions = budget.recording.names.kernel_functions(wait.stack);
    functions.any(|name| ADDRESS_SPACE.iter().any(|begin| name.starts_with(begin)))
}

/// Returns the longest wait of a group if it is for a file system to be thawed.
pub(crate) fn awaited_thaw(budget: &Budget<'_>, group: &BlameGroup) -> Option<Wait> {
    match longest_wait(budget, group)?.doing {
        Doing::Waited(Waited::Thaw, wait) => wait,
        _ => None,
    }
}

/// Returns the device of a frozen file system if the wait names a file.
pub(crate) fn frozen_device(budget: &Budget<'_>, group: &BlameGroup) -> Option<Device> {
    awaited_thaw(budget, group).map(|wait| wait.device).filter(|device| *device != Device(0))
}

/// Returns the name of a device, or a generic one if it is not known.
pub(crate) fn device_name(budget: &Budget<'_>, device: Option<Device>) -> String {
    device.map_or_else(|| "a disk".to_owned(), |device| budget.recording.device_name(device))
}

/// Returns the process that waited most, at the near end of the chain. This is the application if
/// the process found is the culprit that owes the awaited answer or exit.
pub(crate) fn waiter(budget: &Budget<'_>, group: &BlameGroup) -> Option<Pid> {
    let for_another =
        matches!(group.kind, CauseKind::PeerWait | CauseKind::ChildWait) && !is_unowed(group);
    let of_job =
        |piece: &ChainPiece| group.owner == BlameOwner::Job(budget.jobs.of(piece.tid, piece.lo));
    // A child may belong to the job of its waiter.
    let ends =
        |piece: &ChainPiece| group.members.has(budget.recording.tasks.pid(piece.tid, piece.lo));
    let is_culprit = |piece: &ChainPiece| {
        for_another && of_job(piece) && (group.kind != CauseKind::ChildWait || ends(piece))
    };
    most_of(budget, group, |piece| match via_to(budget, group, piece) {
        Some(via) => via.waiter,
        None if is_culprit(piece) => Tid(budget.judge.client.0),
        // An idle display server waits for no one in particular: its client does.
        None if is_unowed(group)
            && budget
                .recording
                .messages
                .is_server(budget.recording.tasks.pid(piece.tid, piece.lo)) =>
        {
            budget.chain.vias_of(piece).next().map_or(piece.tid, |via| via.waiter)
        }
        None => piece.tid,
    })
}

/// Returns the process that the cause held up: the throttled one, or else the waiter.
pub(crate) fn held_up(budget: &Budget<'_>, group: &BlameGroup) -> Option<Pid> {
    match group.kind {
        CauseKind::CpuThrottled => most_of(budget, group, |piece| piece.tid),
        _ => waiter(budget, group),
    }
}

/// Returns the process that most of a group's time belongs to, by the thread chosen for each piece.
pub(crate) fn most_of(
    budget: &Budget<'_>,
    group: &BlameGroup,
    thread: impl Fn(&ChainPiece) -> Tid,
) -> Option<Pid> {
    let mut lengths: BTreeMap<Pid, u64> = BTreeMap::new();
    for piece in budget.pieces(group) {
        *lengths.entry(budget.recording.tasks.pid(thread(piece), piece.lo)).or_default() +=
            length(piece);
    }
    lengths.into_iter().max_by_key(|(_, nanos)| *nanos).map(|(pid, _)| pid)
}

/// Returns the wait through which the chain reached the culprit's job, if any.
pub(crate) fn via_to<'a>(
    budget: &Budget<'a>,
    group: &BlameGroup,
    piece: &ChainPiece,
) -> Option<&'a Via> {
    let BlameOwner::Job(job) = &group.owner else { return None };
    let (chain, jobs) = (budget.chain, &budget.jobs);
    chain.vias_of(piece).filter(|via| jobs.of(via.holder, piece.lo) == *job).last()
}

/// Returns the longest wait of a group.
pub(crate) fn longest_wait<'a>(budget: &Budget<'a>, group: &BlameGroup) -> Option<&'a ChainPiece> {
    let waits = budget.pieces(group).filter(|piece| matches!(piece.doing, Doing::Waited(..)));
    waits.max_by_key(|piece| length(piece))
}

/// Returns the process that waited for memory at the limit of its control group, where reclaim
/// freed nothing.
pub(crate) fn at_memory_limit(budget: &Budget<'_>, group: &BlameGroup) -> Option<Pid> {
    let longest = budget.pieces(group).max_by_key(|piece| length(piece))?;
    let Doing::Waited(_, Some(wait)) = longest.doing else { return None };
    let mut functions = budget.recording.names.kernel_functions(wait.stack);
    functions.any(|name| name.starts_with("mem_cgroup_oom_")).then_some(wait.pid)
}
