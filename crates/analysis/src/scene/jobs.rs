// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs that used CPUs and disks in the interval.

use crate::explain::jobs::{Job, Members};
use crate::scene::picture::JobUse;
use crate::scene::stage::SceneStage;
use std::collections::BTreeMap;
use tipme_record::{Cpu, Nanos, Tid};

/// Maximum number of jobs listed.
const JOBS_MAX: usize = 12;
/// Maximum number of CPUs considered.
const CPUS_MAX: u32 = 1_024;

/// Resources used by one job, and its members.
#[derive(Default)]
struct Used {
    members: Members,
    cpu: u64,
    bytes: u64,
    /// Thread with the largest single amount of either resource, which determines the role.
    most: Option<(u64, Tid)>,
}

/// Returns the jobs with the most CPU time, then by bytes of disk requests.
pub(super) fn jobs(stage: &mut SceneStage<'_>) -> Vec<JobUse> {
    let (lo, hi) = (stage.problem.start, stage.problem.end);
    let mut used: BTreeMap<Job, Used> = BTreeMap::new();
    for (tid, nanos) in ran(stage, lo, hi) {
        let one = job_of(stage, &mut used, tid, nanos);
        one.cpu = one.cpu.saturating_add(nanos);
    }
    for request in stage.recording.disk.outstanding(lo, hi) {
        let one = job_of(stage, &mut used, request.tid, u64::from(request.bytes));
        one.bytes = one.bytes.saturating_add(request.bytes.into());
    }
    let mut used: Vec<(Job, Used)> = used.into_iter().collect();
    used.sort_by_key(|(_, used)| std::cmp::Reverse((used.cpu, used.bytes)));
    if used.len() > JOBS_MAX {
        stage.left_out.push(format!("{} more jobs, which used less.", used.len() - JOBS_MAX));
    }
    let all = hi.since(lo).0 as f64 * f64::from(stage.recording.meta.machine.cpus.max(1));
    let jobs = used.into_iter().take(JOBS_MAX).map(|(job, used)| JobUse {
        name: stage.budget.jobs.label(&job, &used.members),
        look: stage.actors.look(used.most.map_or(Tid(0), |(_, tid)| tid), hi),
        cpu_ms: Nanos(used.cpu).millis(),
        cpu_share: used.cpu as f64 / all.max(1.0),
        disk_bytes: used.bytes,
    });
    jobs.collect()
}

fn job_of<'a>(
    stage: &SceneStage<'_>,
    used: &'a mut BTreeMap<Job, Used>,
    tid: Tid,
    amount: u64,
) -> &'a mut Used {
    let at = stage.problem.end;
    let one = used.entry(stage.budget.jobs.of(tid, at)).or_default();
    one.members.add(stage.recording.tasks.pid(tid, at), amount);
    one.most = one.most.max(Some((amount, tid)));
    one
}

/// Returns the running time of each thread on all CPUs.
fn ran(stage: &SceneStage<'_>, lo: Nanos, hi: Nanos) -> BTreeMap<Tid, u64> {
    let mut times = BTreeMap::new();
    for cpu in 0..stage.recording.meta.machine.cpus.min(CPUS_MAX) {
        for (tid, from, to) in stage.recording.timeline.ran(Cpu(cpu), lo, hi) {
            if let Some(tid) = tid.filter(|tid| *tid != Tid(0)) {
                let time: &mut u64 = times.entry(tid).or_default();
                *time = time.saturating_add(to.since(from).0);
            }
        }
    }
    times
}
