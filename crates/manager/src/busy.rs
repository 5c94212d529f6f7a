// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detection of processes that compute without a pause while CPUs are scarce.
//!
//! Most competitors of the focused set have no window: a build in another session, a nightly job.
//! No process is looked at while CPUs are free; checking that costs one small file read each
//! second, four a second while there is input. A process that has just started has used too little
//! CPU time to be recognized. The first looks after CPUs became scarce are therefore close
//! together: the gap before each equals the time for which CPUs have been scarce.

use crate::own_cpu::thread_time;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tipme_policy::{BUSY_MAX, Identity};
use tipme_record::Nanos;
use tipme_sched::processes::{self, Stat};
use tipme_sched::{LoadFile, runnable};

/// Minimum time between two looks at the processes, once CPUs have been scarce for that long.
const PERIOD: Nanos = Nanos::from_millis(4_000);
/// Minimum time between two looks just after CPUs became scarce.
const PERIOD_MIN: Nanos = Nanos::from_millis(200);
/// Minimum time between two looks as a multiple of the CPU time of the last one: looks use at most
/// a thousandth of a CPU, or a two-hundredth in the first ones.
const COST_FACTOR: u64 = 1_000;
const COST_FACTOR_AT_FIRST: u64 = 200;
/// Time after the last scarcity for which CPUs still count as scarce.
const SCARCE: Nanos = Nanos::from_millis(10_000);
/// Gap after which scarcity starts over: a load with shorter pauses is one load. Two looks a second
/// apart are closer than this.
const APART: Nanos = Nanos::from_millis(2_500);
/// Share of a CPU at which a process becomes busy, in percent, including reaped children.
const BUSY_PERCENT: u64 = 4;
/// Share of a CPU down to which a process stays busy, in percent. It also stays busy if less than
/// [`PERIOD`] has passed, in which it may not have had its turn.
const CALM_PERCENT: u64 = 1;
/// Minimum number of ticks of a busy process: a single tick may be chance.
const BUSY_TICKS_MIN: u64 = 2;
/// Maximum number of processes to look at.
const WALK_MAX: usize = 4096;

/// Finds busy processes.
pub(crate) struct BusyWatch {
    proc: PathBuf,
    load: LoadFile,
    cpus: u64,
    /// Start of the present scarcity, and time at which CPUs were last scarce.
    since: Nanos,
    last: Option<Nanos>,
    looked: Nanos,
    /// CPU time of the last look.
    cost: Nanos,
    due: Nanos,
    /// Clock ticks used by each process at the last look.
    ticks: BTreeMap<Identity, u64>,
    reported: Vec<Identity>,
}

impl BusyWatch {
    pub(crate) fn new(proc: PathBuf) -> BusyWatch {
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
        let [since, looked, cost, due] = [Nanos(0); 4];
        let load = LoadFile::open(&proc);
        BusyWatch {
            proc,
            load,
            cpus,
            since,
            last: None,
            looked,
            cost,
            due,
            ticks: BTreeMap::new(),
            reported: Vec::new(),
        }
    }

    /// Returns the busy processes if they changed. `may_change` selects those to report.
    pub(crate) fn look(
        &mut self,
        now: Nanos,
        may_change: impl Fn(Identity) -> bool,
    ) -> Option<Vec<Identity>> {
        if self.are_cpus_scarce() {
            if self.last.is_none_or(|last| now.since(last) >= APART) {
                self.since = now;
                self.due = self.due.min(self.looked.after(self.until_next(now)));
            }
            self.last = Some(now);
        }
        if self.last.is_none_or(|last| now.since(last) >= SCARCE) {
            self.ticks.clear();
            self.due = now;
            return self.changed(Vec::new());
        }
        if now < self.due {
            return None;
        }
        let begun = thread_time();
        let busy = self.walk(now, may_change);
        self.cost = thread_time().since(begun);
        self.due = now.after(self.until_next(now));
        self.changed(busy)
    }

    /// Returns the time between the last look and the next.
    fn until_next(&self, now: Nanos) -> Nanos {
        let scarce_for = now.since(self.since).clamp(PERIOD_MIN, PERIOD);
        let factor = if scarce_for < PERIOD { COST_FACTOR_AT_FIRST } else { COST_FACTOR };
        scarce_for.max(Nanos(self.cost.0.saturating_mul(factor)))
    }

    /// Returns `true` if more tasks are runnable than there are CPUs; the calling thread is one of
    /// them.
    fn are_cpus_scarce(&self) -> bool {
        let count = self
            .load
            .runnable()
            .or_else(|| runnable(&std::fs::read_to_string(self.proc.join("loadavg")).ok()?));
        count.is_some_and(|count| count > self.cpus + 1)
    }

    /// Returns the busy processes if they differ from those returned last.
    fn changed(&mut self, busy: Vec<Identity>) -> Option<Vec<Identity>> {
        let changed = busy != self.reported;
        self.reported.clone_from(&busy);
        changed.then_some(busy)
    }

    fn walk(&mut self, now: Nanos, may_change: impl Fn(Identity) -> bool) -> Vec<Identity> {
        let before = std::mem::take(&mut self.ticks);
        let span = ticks(now.since(std::mem::replace(&mut self.looked, now)));
        let up = self.up_ticks();
        let mut busy = Vec::new();
        for pid in processes::all(&self.proc).into_iter().take(WALK_MAX) {
            let Some(process) = processes::stat(&self.proc, pid).filter(Stat::is_alive) else {
                continue;
            };
            let who = process.identity;
            let taken = process.ticks.saturating_add(process.ended_ticks);
            self.ticks.insert(who, taken);
            // For a new process, the CPU time over its whole life.
            let (taken, span) = match before.get(&who) {
                Some(before) => (taken.saturating_sub(*before), span),
                None => (taken, up.saturating_sub(who.start)),
            };
            if is_busy(taken, span, self.reported.contains(&who)) && may_change(who) {
                busy.push((taken, who));
            }
        }
        busiest(busy)
    }

    /// Returns the uptime in clock ticks.
    fn up_ticks(&self) -> u64 {
        let text = std::fs::read_to_string(self.proc.join("uptime")).unwrap_or_default();
        let seconds: f64 =
            text.split(' ').next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0.0);
        (seconds * rustix::param::clock_ticks_per_second() as f64) as u64
    }
}

/// Decides whether a process with `taken` ticks in a span is busy; `before` is `true` if it was
/// reported as busy.
fn is_busy(taken: u64, span: u64, before: bool) -> bool {
    let (ticks_min, percent) =
        if before { (1, CALM_PERCENT) } else { (BUSY_TICKS_MIN, BUSY_PERCENT) };
    let reaches = taken.saturating_mul(100) >= span.max(1).saturating_mul(percent);
    before && span < ticks(PERIOD) || taken >= ticks_min && reaches
}

fn ticks(span: Nanos) -> u64 {
    span.0.saturating_mul(rustix::param::clock_ticks_per_second()) / 1_000_000_000
}

/// Returns the busiest processes, sorted by identity so that equal sets compare equal.
fn busiest(mut busy: Vec<(u64, Identity)>) -> Vec<Identity> {
    busy.sort_unstable_by(|a, b| b.cmp(a));
    busy.truncate(BUSY_MAX);
    let mut busy: Vec<Identity> = busy.into_iter().map(|(_, who)| who).collect();
    busy.sort_unstable();
    busy
}

#[cfg(test)]
mod tests;
