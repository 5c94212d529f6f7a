// SPDX-License-Identifier: MIT OR Apache-2.0
//! Culprits of causes, and the processes that were held up.

use crate::explain::describe::address_text;
use crate::explain::jobs::Job;
use crate::explain::partition::{BlameGroup, BlameOwner, Budget};
use crate::model::{CauseKind, Culprit};
use crate::timeline::throttle::QuotaGroup;
use crate::verdict::problem::Problem;
use crate::verdict::{groups, remedy};
use tipme_record::{Pid, Tid};

pub(crate) fn culprit(
    budget: &Budget<'_>,
    problem: &Problem,
    group: &BlameGroup,
    limit: Option<&QuotaGroup>,
) -> Culprit {
    match &group.owner {
        BlameOwner::Job(job) => {
            let (mut pid, job_name) = budget.jobs.face(job, &group.members);
            if group.kind == CauseKind::ChildWait && groups::waiter(budget, group) == Some(pid) {
                // With many children none stands out, and the job is that of the waiter.
                pid = group.members.main().map_or(pid, |(child, _)| child);
            }
            let job_name = limit.map(QuotaGroup::text).or(job_name);
            process(budget, problem, pid, job_name.or_else(|| kernel_name(job)))
        }
        BlameOwner::Device(device) if group.kind == CauseKind::KernelLock => Culprit::Device {
            device: format!("the frozen file system on {}", groups::device_name(budget, *device)),
        },
        BlameOwner::Device(_) if group.kind == CauseKind::Reclaim => {
            let waiter = groups::waiter(budget, group)
                .map(|pid| budget.recording.tasks.comm(pid, problem.end));
            let device =
                format!("the memory limit of the control group of {}", waiter.unwrap_or_default());
            Culprit::Device { device }
        }
        BlameOwner::Device(device) => {
            Culprit::Device { device: groups::device_name(budget, *device) }
        }
        BlameOwner::Address(address, port) => {
            Culprit::Address { address: address_text(*address, *port) }
        }
        BlameOwner::Interrupt(source) => {
            Culprit::Device { device: source.name(&budget.recording.meta.irq_names) }
        }
        BlameOwner::Nobody => process(budget, problem, budget.judge.awaited(), None),
    }
}

/// Returns the process that was held up instead of the application, unless it is a kernel thread:
/// that works for the application.
pub(crate) fn other_waiter(
    budget: &Budget<'_>,
    problem: &Problem,
    group: &BlameGroup,
) -> Option<Pid> {
    let tasks = &budget.recording.tasks;
    let is_kernel = |pid| tasks.process(pid, problem.end).is_some_and(|life| life.is_kernel());
    groups::held_up(budget, group).filter(|pid| *pid != problem.client && !is_kernel(*pid))
}

/// Returns the target of the remedy: the culprit, or the root of its job if only the culprit has
/// ended.
pub(crate) fn target(
    budget: &Budget<'_>,
    problem: &Problem,
    group: &BlameGroup,
    culprit: &Culprit,
) -> Culprit {
    let has_ended = |pid: Pid| budget.recording.tasks.has_ended(Tid(pid.0));
    match (culprit, &group.owner) {
        (Culprit::Process { pid, .. }, BlameOwner::Job(Job::Process(root)))
            if remedy::acts_on_culprit(group.kind) && has_ended(Pid(*pid)) && !has_ended(*root) =>
        {
            process(budget, problem, *root, None)
        }
        _ => culprit.clone(),
    }
}

fn kernel_name(job: &Job) -> Option<String> {
    match job {
        Job::Kernel(name) => Some(format!("{name} (kernel)")),
        Job::Process(_) => None,
    }
}

fn process(budget: &Budget<'_>, problem: &Problem, pid: Pid, job: Option<String>) -> Culprit {
    let tasks = &budget.recording.tasks;
    let (comm, cmdline) =
        (tasks.comm(pid, problem.end), tasks.cmdline(pid, problem.end).to_owned());
    Culprit::Process { pid: pid.0, comm, cmdline, job }
}
