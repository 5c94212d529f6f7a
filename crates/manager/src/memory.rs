// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much memory there is, who waits for it, and, when it is nearly used up, who has the most.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use tipme_control::manager::Memory;
use tipme_policy::{GroupMemory, Identity, MemoryGroup, MemorySample, SetId};
use tipme_record::Nanos;
use tipme_sched::processes;

/// From one look to the next while memory is short, and else.
const SHORT_PERIOD: Nanos = Nanos::from_millis(1_000);
const CALM_PERIOD: Nanos = Nanos::from_millis(5_000);
/// How far back the share of waiting reaches.
const PRESSURE_WINDOW: Nanos = Nanos::from_millis(2_000);
/// Memory is short below this share of all of it, twice what the policy acts on.
const SHORT_DIVISOR: u64 = 8;
/// Or above this share of waiting, in percent; half of what the policy acts on.
const SHORT_PRESSURE: f32 = 5.0;
/// Memory is free, so that something may be brought in ahead, above this share of all of it.
const FREE_DIVISOR: u64 = 4;
/// Processes whose size is read in one look, at most.
const WALK_MAX: usize = 4096;
/// The biggest of these are told to the policy.
const BIGGEST_MAX: usize = 8;
/// Processes that are told of whatever their size, at most.
const DEAREST_MAX: usize = 128;
/// Looks that are kept for the share of waiting: more than lie in its window.
const KEPT_MAX: usize = 8;

/// What the caller knows of processes.
pub(crate) trait Circle {
    /// Those of the core and of the set with the focus, which are told of whatever their size.
    fn dearest(&self) -> BTreeSet<u32>;
    /// It is one of those that may be changed; others are not told of.
    fn may_change(&self, process: Identity) -> bool;
    fn set_of(&self, pid: u32) -> Option<SetId>;
}

/// Looks at memory, seldom while there is enough.
pub(crate) struct Watch {
    proc: PathBuf,
    due: Nanos,
    /// When a look was taken, and microseconds of waiting until then.
    waited: VecDeque<(Nanos, u64)>,
    latest: Memory,
    short: bool,
}

impl Watch {
    pub(crate) fn new(proc: PathBuf, now: Nanos) -> Watch {
        Watch { proc, due: now, waited: VecDeque::new(), latest: Memory::default(), short: false }
    }

    pub(crate) fn latest(&self) -> Memory {
        self.latest
    }

    /// So much is free that something may be brought in ahead.
    pub(crate) fn has_plenty(&self) -> bool {
        let latest = &self.latest;
        latest.total_bytes > 0 && latest.available_bytes > latest.total_bytes / FREE_DIVISOR && !self.short
    }

    /// Takes a look if one is due.
    pub(crate) fn look(&mut self, now: Nanos, circle: &impl Circle) -> Option<MemorySample> {
        if now < self.due {
            return None;
        }
        let (total, available) = self.sizes()?;
        let some_percent = self.pressure(now);
        self.short = available < total / SHORT_DIVISOR || some_percent > SHORT_PRESSURE;
        self.due = now.after(if self.short { SHORT_PERIOD } else { CALM_PERIOD });
        let mut groups = self.dearest(circle);
        if self.short {
            groups.extend(self.biggest(circle));
        }
        let looks = self.latest.looks + 1;
        let (total_bytes, available_bytes) = (total, available);
        self.latest = Memory { total_bytes, available_bytes, some_percent, looks, ..self.latest };
        Some(MemorySample { total, available, some_percent, groups })
    }

    pub(crate) fn count_actions(&mut self, actions: usize) {
        self.latest.actions += actions as u64;
    }

    fn sizes(&self) -> Option<(u64, u64)> {
        let text = std::fs::read_to_string(self.proc.join("meminfo")).ok()?;
        Some((line(&text, "MemTotal:")?, line(&text, "MemAvailable:")?))
    }

    /// Share of time in which some task waited for memory, in percent; 0 where the kernel does not tell.
    fn pressure(&mut self, now: Nanos) -> f32 {
        let text = std::fs::read_to_string(self.proc.join("pressure/memory")).unwrap_or_default();
        let Some(total) = some_total(&text) else { return 0.0 };
        // One look from before the window stays, so that the share reaches back far enough.
        while self.waited.len() > 1 && now.since(self.waited[1].0) >= PRESSURE_WINDOW || self.waited.len() >= KEPT_MAX {
            self.waited.pop_front();
        }
        self.waited.push_back((now, total));
        let (from, before) = self.waited[0];
        let time_us = now.since(from).0 / 1000;
        if time_us == 0 { 0.0 } else { total.saturating_sub(before) as f32 * 100.0 / time_us as f32 }
    }

    /// What those have that are told of in any case: only they can be protected.
    fn dearest(&self, circle: &impl Circle) -> Vec<GroupMemory> {
        let pids = circle.dearest().into_iter().take(DEAREST_MAX);
        pids.filter_map(|pid| self.group(resident(&self.proc, pid)?, processes::identity(&self.proc, pid)?, circle))
            .collect()
    }

    /// The biggest of the other processes.
    fn biggest(&self, circle: &impl Circle) -> Vec<GroupMemory> {
        let dearest = circle.dearest();
        let pids = processes::all(&self.proc).into_iter().take(WALK_MAX).filter(|pid| !dearest.contains(pid));
        let mut sizes: Vec<(u64, u32)> = pids.filter_map(|pid| Some((resident(&self.proc, pid)?, pid))).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let known = sizes.into_iter().filter_map(|(bytes, pid)| Some((bytes, processes::identity(&self.proc, pid)?)));
        known.filter_map(|(bytes, who)| self.group(bytes, who, circle)).take(BIGGEST_MAX).collect()
    }

    /// `None` for a process that may not be changed.
    fn group(&self, bytes: u64, who: Identity, circle: &impl Circle) -> Option<GroupMemory> {
        let group = MemoryGroup::Process(who);
        circle.may_change(who).then(|| GroupMemory { group, bytes, full_percent: 0.0, set: circle.set_of(who.pid) })
    }
}

/// Bytes of a process that are in memory.
pub(crate) fn resident(proc: &Path, pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(proc.join(pid.to_string()).join("statm")).ok()?;
    let page = rustix::param::page_size() as u64;
    Some(text.split(' ').nth(1)?.parse::<u64>().ok()?.saturating_mul(page))
}

/// The bytes in a line such as `MemTotal:   24594056 kB`.
fn line(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Microseconds in `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`.
fn some_total(text: &str) -> Option<u64> {
    text.lines().find(|line| line.starts_with("some "))?.rsplit_once("total=")?.1.trim().parse().ok()
}

#[cfg(test)]
#[path = "memory/tests.rs"]
mod tests;
