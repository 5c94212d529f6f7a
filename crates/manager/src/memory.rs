// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory samples: available memory, memory pressure and, during a shortage, the largest processes.

mod pressure;

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use tipme_control::manager::MemoryStatus;
use tipme_policy::{GroupMemory, Identity, MemoryGroup, MemorySample, SetId};
use tipme_record::Nanos;
use tipme_record::proc_text::stalled_us;
use tipme_sched::processes;

/// Time between two looks while memory is short.
const SHORT_PERIOD: Nanos = Nanos::from_millis(1_000);
/// Time from the last look to one after a change of focus while memory is short, since the
/// protected set has changed; and time between two looks otherwise.
const FOCUS_PERIOD: Nanos = Nanos::from_millis(250);
const CALM_PERIOD: Nanos = Nanos::from_millis(5_000);
/// Span of the pressure measurement.
const PRESSURE_WINDOW: Nanos = Nanos::from_millis(2_000);
/// Memory is short if less than this fraction of it is available, twice the policy's threshold.
const SHORT_DIVISOR: u64 = 8;
/// Memory is also short above this pressure, in percent, half of the policy's threshold.
const SHORT_PRESSURE: f32 = 5.0;
/// Memory is free for prefetching if more than this fraction of it is available.
const FREE_DIVISOR: u64 = 4;
/// Time between two walks over all processes while memory is short. A walk is due at once if
/// available memory has dropped by this fraction of all memory since the last one: another process
/// may have grown into a hog.
const WALK_PERIOD: Nanos = CALM_PERIOD;
const GROWN_DIVISOR: u64 = 32;
/// Maximum number of processes sized by a walk.
const WALK_MAX: usize = 4096;
/// Maximum number of largest processes in a sample.
const BIGGEST_MAX: usize = 8;
/// Maximum number of processes in a sample regardless of size.
const MOST_FAVOURED_MAX: usize = 128;
/// Maximum number of stored pressure readings: more than fit into the span.
const KEPT_MAX: usize = 8;

/// The caller's knowledge of processes.
pub(crate) trait ProcessFacts {
    /// Returns the processes of the core and of the focused set, most favoured first. They are in
    /// every sample.
    fn most_favoured(&self) -> Vec<Identity>;
    /// Returns `true` if the process may be changed; other processes are not in the sample.
    fn may_change(&self, process: Identity) -> bool;
    fn set_of(&self, pid: u32) -> Option<SetId>;
}

/// Takes memory samples, rarely while memory is plentiful.
pub(crate) struct MemoryWatch {
    proc: PathBuf,
    /// Mount point of the cgroup v2 hierarchy; `None` if there is none.
    groups: Option<PathBuf>,
    due: Nanos,
    looked: Nanos,
    /// Times of past readings, each with the total pressure stall time in microseconds.
    waited: VecDeque<(Nanos, u64)>,
    latest: MemoryStatus,
    short: bool,
    /// The last walk over all processes, valid while memory is short and the focus the same.
    walk: Option<ProcessWalk>,
}

/// Largest processes of a walk, and the memory available then.
struct ProcessWalk {
    at: Nanos,
    available: u64,
    biggest: Vec<Identity>,
}

impl ProcessWalk {
    fn is_outdated(&self, now: Nanos, total: u64, available: u64) -> bool {
        now.since(self.at) >= WALK_PERIOD
            || self.available.saturating_sub(available) > total / GROWN_DIVISOR
    }
}

impl MemoryWatch {
    pub(crate) fn new(proc: PathBuf, now: Nanos) -> MemoryWatch {
        let groups = pressure::hierarchy(&proc);
        let (waited, latest) = (VecDeque::new(), MemoryStatus::default());
        MemoryWatch {
            proc,
            groups,
            due: now,
            looked: Nanos(0),
            waited,
            latest,
            short: false,
            walk: None,
        }
    }

    pub(crate) fn latest(&self) -> MemoryStatus {
        self.latest
    }

    /// Returns `true` if enough memory is free for prefetching.
    pub(crate) fn has_plenty(&self) -> bool {
        let latest = &self.latest;
        latest.total_bytes > 0
            && latest.available_bytes > latest.total_bytes / FREE_DIVISOR
            && !self.short
    }

    /// Handles a change of focus. Returns `true` if that makes a look due sooner, because memory is
    /// short.
    pub(crate) fn bring_look_forward(&mut self, now: Nanos) -> bool {
        self.walk = None;
        let due = self.looked.after(FOCUS_PERIOD).max(now);
        let sooner = self.short && due < self.due;
        if sooner {
            self.due = due;
        }
        sooner
    }

    /// Returns the time of the next look.
    pub(crate) fn due(&self) -> Nanos {
        self.due
    }

    /// Takes a sample if one is due.
    pub(crate) fn look(&mut self, now: Nanos, facts: &impl ProcessFacts) -> Option<MemorySample> {
        if now < self.due {
            return None;
        }
        let (total, available) = sizes(&self.proc)?;
        self.looked = now;
        let some_percent = self.pressure(now);
        self.short = available < total / SHORT_DIVISOR || some_percent > SHORT_PRESSURE;
        self.due = now.after(if self.short { SHORT_PERIOD } else { CALM_PERIOD });
        let mut most_favoured = facts.most_favoured();
        most_favoured.truncate(MOST_FAVOURED_MAX);
        let mut groups: Vec<GroupMemory> =
            most_favoured.iter().filter_map(|who| self.group(*who, facts)).collect();
        self.walk.take_if(|walk| !self.short || walk.is_outdated(now, total, available));
        if self.short {
            let known = self.walk.take();
            let walk = known.unwrap_or_else(|| ProcessWalk {
                at: now,
                available,
                biggest: self.biggest(&most_favoured, facts),
            });
            groups.extend(walk.biggest.iter().filter_map(|who| self.big(*who, facts)));
            self.walk = Some(walk);
        }
        let looks = self.latest.looks + 1;
        let (total_bytes, available_bytes) = (total, available);
        self.latest =
            MemoryStatus { total_bytes, available_bytes, some_percent, looks, ..self.latest };
        Some(MemorySample { total, available, some_percent, groups })
    }

    pub(crate) fn count_actions(&mut self, actions: usize) {
        self.latest.actions += actions as u64;
    }

    /// Returns the share of time in which some task waited for memory, in percent; 0 without PSI.
    fn pressure(&mut self, now: Nanos) -> f32 {
        let text = std::fs::read_to_string(self.proc.join("pressure/memory")).unwrap_or_default();
        let Some(total) = stalled_us(&text) else { return 0.0 };
        // Keep one reading from before the span, so that the measurement covers all of it.
        while self.waited.len() > 1 && now.since(self.waited[1].0) >= PRESSURE_WINDOW
            || self.waited.len() >= KEPT_MAX
        {
            self.waited.pop_front();
        }
        self.waited.push_back((now, total));
        let (from, before) = self.waited[0];
        let time_us = now.since(from).0 / 1000;
        if time_us == 0 {
            0.0
        } else {
            total.saturating_sub(before) as f32 * 100.0 / time_us as f32
        }
    }

    /// Returns the largest of the other processes.
    fn biggest(&self, most_favoured: &[Identity], facts: &impl ProcessFacts) -> Vec<Identity> {
        let most_favoured: BTreeSet<u32> = most_favoured.iter().map(|who| who.pid).collect();
        let pids = processes::all(&self.proc)
            .into_iter()
            .take(WALK_MAX)
            .filter(|pid| !most_favoured.contains(pid));
        let mut sizes: Vec<(u64, u32)> =
            pids.filter_map(|pid| Some((processes::resident(&self.proc, pid)?, pid))).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let known = sizes.into_iter().filter_map(|(_, pid)| processes::identity(&self.proc, pid));
        known.filter(|who| facts.may_change(*who)).take(BIGGEST_MAX).collect()
    }

    /// Returns the present size of a large process, with the pressure of its control group.
    fn big(&self, who: Identity, facts: &impl ProcessFacts) -> Option<GroupMemory> {
        let group = processes::lives(&self.proc, who).then(|| self.group(who, facts))??;
        Some(GroupMemory { full_percent: self.full_percent(who), ..group })
    }

    fn full_percent(&self, who: Identity) -> f32 {
        let groups = self.groups.as_ref();
        groups.and_then(|groups| pressure::full_percent(&self.proc, groups, who.pid)).unwrap_or(0.0)
    }

    /// Returns `None` for a process that may not be changed, or is gone.
    fn group(&self, who: Identity, facts: &impl ProcessFacts) -> Option<GroupMemory> {
        let bytes = facts.may_change(who).then(|| processes::resident(&self.proc, who.pid))??;
        Some(GroupMemory {
            group: MemoryGroup::Process(who),
            bytes,
            full_percent: 0.0,
            set: facts.set_of(who.pid),
        })
    }
}

/// Returns the memory available without paging, in bytes.
pub(crate) fn available(proc: &Path) -> Option<u64> {
    sizes(proc).map(|(_, available)| available)
}

/// Returns the total and the available memory, in bytes.
fn sizes(proc: &Path) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(proc.join("meminfo")).ok()?;
    Some((line(&text, "MemTotal:")?, line(&text, "MemAvailable:")?))
}

/// Returns the bytes of a line such as `MemTotal:   24594056 kB`.
fn line(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests;
