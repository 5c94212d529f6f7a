// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups that exhausted their CPU quota: the throttled threads, and the duration of the
//! throttling.
//!
//! The kernel reports each thread that it throttles for a quota, with the group on which the quota
//! is set. Until that thread runs again, the analysis takes the group as throttled, and with it all
//! other runnable members: such a thread is not switched out, since it never gets a CPU. Membership
//! is known by thread (`quota_members`); a process that had exited by the mark, and of which
//! nothing is known, was in the group of its parent.
//!
//! A thread that keeps running while all throttled threads wait is not in the group, or not yet.

use crate::decode::bytes::clean;
use crate::timeline::quota_members::QuotaMembers;
use crate::timeline::tasks::{Life, Tasks};
use crate::timeline::threads::{ThreadState, Timeline};
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::incident::{Groups, LimitedGroup};
use tipme_record::records::Throttled;
use tipme_record::{Nanos, Pid, Tid};

/// Maximum number of groups read.
const GROUPS_MAX: usize = 256;

/// Maximum number of exited threads kept.
const ENDED_MAX: usize = 65_536;

/// Limit for quotas: the kernel's number for "no quota" is the largest one.
const NO_QUOTA: Nanos = Nanos(u64::MAX);

/// Maximum run time of a thread in a throttled group, from quota left on its CPU: the kernel hands
/// it out to each CPU in slices of 5 ms, and notices an overrun at the next tick.
const LEFT_OVER: Nanos = Nanos::from_millis(20);

/// Part of a period, as its divisor: threads that run again within it after a refill do so because
/// of the refill.
const SOON: u64 = 20;

/// Control group with a quota.
#[derive(Debug, Default)]
pub struct QuotaGroup {
    /// Empty if the group was gone at the mark.
    path: String,
    /// File that sets the quota.
    pub file: String,
    /// Quota at its last exhaustion.
    quota: Nanos,
    period: Nanos,
    /// `true` if it was unchanged at the mark.
    is_set: bool,
    members: QuotaMembers,
    /// Times of throttling, in chronological order.
    throttled: Vec<(Nanos, Nanos)>,
    /// The same, each only until the first of the threads ran again.
    stopped: Vec<(Nanos, Nanos)>,
    /// Time of the refill within each period.
    refilled: Nanos,
}

/// All groups that were throttled.
#[derive(Debug, Default)]
pub struct Throttling {
    groups: Vec<QuotaGroup>,
    /// Threads alive at the mark that exited before the recorder read the members of the groups.
    ended: BTreeSet<Tid>,
}

impl Throttling {
    /// Builds the groups from the records and from their state at the mark.
    pub(crate) fn new(
        records: &[Throttled],
        known: &Groups,
        tasks: &Tasks,
        timeline: &Timeline,
    ) -> Throttling {
        let mut by_group: BTreeMap<u64, Vec<&Throttled>> = BTreeMap::new();
        for record in records {
            by_group.entry(record.group).or_default().push(record);
        }
        let ended: BTreeSet<Tid> =
            known.ended.iter().take(ENDED_MAX).map(|tid| Tid(*tid)).collect();
        let groups = by_group.into_iter().take(GROUPS_MAX).map(|(number, records)| {
            let known = known.limited.iter().find(|group| group.number == number);
            QuotaGroup::new(&records, (known, &ended), tasks, timeline)
        });
        Throttling { groups: groups.collect(), ended }
    }

    /// Returns the groups of a thread. A process that exited before the members were read counts to
    /// the groups of its nearest ancestor with known ones. An ancestor that was alive then is known
    /// to be elsewhere if it is in no group.
    pub(crate) fn groups_of(&self, tasks: &Tasks, tid: Tid, at: Nanos) -> Vec<&QuotaGroup> {
        if self.groups.is_empty() {
            return Vec::new();
        }
        let pid = tasks.pid(tid, at);
        let found = self.groups_with(tid, pid);
        let mut lives = [tid, Tid(pid.0)].into_iter().filter_map(|tid| tasks.life(tid, at));
        if !found.is_empty() || lives.any(|life| self.was_read(life)) {
            return found;
        }
        let mut parents = tasks
            .ancestors(pid, at)
            .skip(1)
            .map(|parent| (self.groups_with(parent.tid, parent.pid), parent));
        let known = parents.find(|(groups, parent)| !groups.is_empty() || self.was_read(parent));
        known.map(|(groups, _)| groups).unwrap_or_default()
    }

    fn groups_with(&self, tid: Tid, pid: Pid) -> Vec<&QuotaGroup> {
        self.groups.iter().filter(|group| group.members.has(tid, pid)).collect()
    }

    /// Returns `true` if a thread was alive when the members of the groups were read.
    fn was_read(&self, life: &Life) -> bool {
        life.until == Nanos(u64::MAX) && !self.ended.contains(&life.tid)
    }
}

impl QuotaGroup {
    fn new(
        records: &[&Throttled],
        (known, ended): (Option<&LimitedGroup>, &BTreeSet<Tid>),
        tasks: &Tasks,
        timeline: &Timeline,
    ) -> QuotaGroup {
        let last = records
            .iter()
            .filter(|record| record.quota < NO_QUOTA)
            .max_by_key(|record| record.head.ts);
        let times: Vec<_> = records.iter().map(|record| held_back(record, timeline)).collect();
        let period = last.map_or(Nanos(0), |record| record.period);
        QuotaGroup {
            path: known.map(|group| clean(&group.path)).unwrap_or_default(),
            file: known.map(|group| clean(&group.file)).unwrap_or_default(),
            quota: last.map_or(Nanos(0), |record| record.quota),
            period,
            is_set: known.zip(last).is_some_and(|(known, last)| is_same(known, last)),
            members: QuotaMembers::new(records, known, ended, tasks),
            stopped: joined(until_first_ran(&times)),
            refilled: refilled(&times, period),
            throttled: joined(times),
        }
    }

    /// Returns a description: `/tipme/a (5 ms per 100 ms)`.
    pub fn text(&self) -> String {
        let is_gone = self.path.is_empty();
        let path = if is_gone { "which is gone" } else { &self.path };
        match self.amount() {
            Some(amount) if self.is_set || is_gone => format!("{path} ({amount})"),
            Some(amount) => format!("{path} ({amount}; the quota has been changed since)"),
            None => path.to_owned(),
        }
    }

    /// Returns the quota as `5 ms per 100 ms`, if the kernel reported it.
    pub fn amount(&self) -> Option<String> {
        let [quota, period] = [self.quota, self.period].map(|span| {
            let text = format!("{:.1}", span.millis());
            format!("{} ms", text.strip_suffix(".0").unwrap_or(&text))
        });
        (self.period > Nanos(0)).then(|| format!("{quota} per {period}"))
    }

    /// Returns `true` if the quota was unchanged at the mark.
    pub fn is_set(&self) -> bool {
        self.is_set
    }

    /// Returns the time for which the group was throttled in `lo..hi`.
    pub fn within(&self, lo: Nanos, hi: Nanos) -> Nanos {
        let times = reaching(&self.throttled, lo, hi);
        times.fold(Nanos(0), |sum, (begin, end)| sum.after(hi.min(end).since(lo.max(begin))))
    }

    /// Returns the number of throttled periods: those that end in `lo..hi` while the group is
    /// throttled, as the kernel counts them (`nr_throttled`).
    pub(crate) fn periods_within(&self, lo: Nanos, hi: Nanos) -> u64 {
        let ended = reaching(&self.stopped, lo, hi).map(|(begin, end)| {
            let before = self.periods_until(lo.max(begin));
            self.periods_until(hi.min(end)).saturating_sub(before)
        });
        ended.sum()
    }

    /// Returns the number of periods that ended by a time.
    fn periods_until(&self, at: Nanos) -> u64 {
        at.before(self.refilled).0.checked_div(self.period.0).unwrap_or(0)
    }

    /// Returns the time in which the group used up the quota for which it was throttled in
    /// `lo..hi`: from a period before the first throttling to the begin of the last one.
    pub(crate) fn used_up(&self, lo: Nanos, hi: Nanos) -> Option<(Nanos, Nanos)> {
        let mut begins = reaching(&self.throttled, lo, hi)
            .map(|(begin, _)| begin)
            .filter(|_| self.period > Nanos(0));
        let first = begins.next()?;
        Some((first.before(self.period), begins.last().unwrap_or(first)))
    }

    /// Returns the maximum run time of the group's threads in `lo..hi`, which begins and ends
    /// within periods. The group may overrun its quota until the tick at which the kernel checks,
    /// and pays that back later.
    pub(crate) fn allowed(&self, lo: Nanos, hi: Nanos) -> Nanos {
        let periods = hi.since(lo).0 / self.period.0.max(1) + 2;
        Nanos(self.quota.0.saturating_mul(periods)).after(LEFT_OVER)
    }

    /// Returns the run time of a member in `lo..hi`, as far as it was in the group. A thread that
    /// keeps running while the group is stopped is not in it, and has not been since the kernel
    /// last throttled it.
    pub(crate) fn ran(&self, timeline: &Timeline, tid: Tid, lo: Nanos, hi: Nanos) -> Nanos {
        let (mut from, mut ran) = (lo, Nanos(0));
        for (begin, end) in reaching(&self.stopped, lo, hi) {
            if timeline.run_time(tid, lo.max(begin), hi.min(end)) > LEFT_OVER {
                let left = self.members.last_taken(tid, from, begin).unwrap_or(from);
                ran = ran.after(timeline.run_time(tid, from, left));
                from = hi.min(end);
            }
        }
        ran.after(timeline.run_time(tid, from, hi))
    }
}

/// Returns the times that overlap `lo..hi`.
fn reaching(
    times: &[(Nanos, Nanos)],
    lo: Nanos,
    hi: Nanos,
) -> impl Iterator<Item = (Nanos, Nanos)> {
    let first = times.partition_point(|(_, end)| *end <= lo);
    times.iter().skip(first).take_while(move |(begin, _)| *begin < hi).copied()
}

/// Returns the time of the refill within each period: just before most throttled threads run again.
/// In between, a CPU may get quota that another one left over.
fn refilled(times: &[(Nanos, Nanos)], period: Nanos) -> Nanos {
    let ends = times.iter().filter(|(begin, end)| begin < end).map(|(_, end)| end.0);
    let mut first: Vec<u64> = ends.filter_map(|end| end.checked_rem(period.0)).collect();
    first.sort_unstable();
    let next = first.iter().map(|at| at.saturating_add(period.0));
    let all: Vec<u64> = first.iter().copied().chain(next).collect();
    let most = first.iter().enumerate().max_by_key(|(index, at)| {
        let until = at.saturating_add(period.0 / SOON);
        all.partition_point(|other| *other <= until) - index
    });
    Nanos(most.map_or(0, |(_, at)| *at))
}

/// Returns `true` if the quota of a group at the mark, in microseconds in the kernel's file, is the
/// one it exhausted.
fn is_same(known: &LimitedGroup, last: &Throttled) -> bool {
    [known.quota_us, known.period_us] == [last.quota, last.period].map(|span| span.0 / 1_000)
}

/// Returns begin and end of the time for which a thread was throttled.
fn held_back(record: &Throttled, timeline: &Timeline) -> (Nanos, Nanos) {
    let ready = timeline.at(record.head.tid, record.head.ts);
    let end = ready.filter(|span| span.segment.state == ThreadState::Runnable).map(|span| span.end);
    (record.head.ts, end.unwrap_or(record.head.ts))
}

/// Cuts each time at the first end of any of them.
fn until_first_ran(times: &[(Nanos, Nanos)]) -> Vec<(Nanos, Nanos)> {
    let held = times.iter().filter(|(begin, end)| begin < end);
    let mut ends: Vec<Nanos> = held.clone().map(|(_, end)| *end).collect();
    ends.sort_unstable();
    let cut = held.filter_map(|(begin, _)| {
        let first = ends.partition_point(|end| end <= begin);
        Some((*begin, *ends.get(first)?))
    });
    cut.collect()
}

/// Merges overlapping times.
fn joined(mut times: Vec<(Nanos, Nanos)>) -> Vec<(Nanos, Nanos)> {
    times.sort();
    times.into_iter().fold(Vec::new(), |mut joined, (begin, end)| {
        match joined.last_mut() {
            Some((_, last)) if *last >= begin => *last = (*last).max(end),
            _ => joined.push((begin, end)),
        }
        joined
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::events::SchedEvent;

    fn ms(count: u64) -> Nanos {
        Nanos::from_millis(count)
    }

    fn record(at: Nanos, tid: Tid) -> Throttled {
        let mut record = Throttled::read(&[0; Throttled::SIZE]).expect("it has its size");
        (record.head.ts, record.head.tid) = (at, tid);
        record
    }

    fn group(known: Option<LimitedGroup>, quota: Nanos) -> QuotaGroup {
        let mut record = record(ms(0), Tid(0));
        (record.quota, record.period) = (quota, ms(100));
        QuotaGroup::new(
            &[&record],
            (known.as_ref(), &BTreeSet::new()),
            &Tasks::default(),
            &Timeline::default(),
        )
    }

    #[test]
    fn overlapping_times_are_merged_and_counted_once() {
        let throttled =
            joined(vec![(ms(50), ms(60)), (ms(10), ms(20)), (ms(15), ms(30)), (ms(30), ms(35))]);
        assert_eq!(throttled, [(ms(10), ms(35)), (ms(50), ms(60))]);
        let group = QuotaGroup { throttled, ..QuotaGroup::default() };
        assert_eq!(group.within(ms(0), ms(100)), ms(35));
        assert_eq!(group.within(ms(20), ms(55)), ms(20));
        assert_eq!(group.within(ms(35), ms(50)), Nanos(0));
        assert_eq!(group.used_up(ms(0), ms(100)), None, "its period is not known");
        let group = QuotaGroup { period: ms(5), ..group };
        assert_eq!(group.used_up(ms(34), ms(100)), Some((ms(5), ms(50))));
        assert_eq!(group.used_up(ms(34), ms(50)), Some((ms(5), ms(10))));
        assert_eq!(group.used_up(ms(35), ms(50)), None);
    }

    fn switch(at: u64, tid: u32, other: u32) -> SchedEvent {
        SchedEvent::switched(ms(at), 0, tid, other)
    }

    /// The thread runs for 10 ms, for 50 ms while the group is stopped, and for 10 ms again.
    #[test]
    fn a_thread_that_runs_in_a_stopped_group_was_not_in_it() {
        let runs = [(0, 10), (30, 80), (100, 110)].into_iter();
        let switches = runs.flat_map(|(from, to)| [switch(from, 0, 7), switch(to, 7, 0)]);
        let timeline = Timeline::new(switches, &[], ms(200));
        for (until, taken, expected, why) in [
            (90, None, 10, "it came into the group meanwhile"),
            (90, Some(10), 20, "it was elsewhere for a time"),
            (45, None, 70, "its CPU had some of the quota left"),
        ] {
            let records: Vec<Throttled> =
                taken.map(|at| record(ms(at), Tid(7))).into_iter().collect();
            let records: Vec<&Throttled> = records.iter().collect();
            let members = QuotaMembers::new(&records, None, &BTreeSet::new(), &Tasks::default());
            let stopped = vec![(ms(20), ms(until))];
            let group = QuotaGroup { stopped, members, ..QuotaGroup::default() };
            assert_eq!(group.ran(&timeline, Tid(7), ms(0), ms(120)), ms(expected), "{why}");
        }
    }

    /// Periods end at 101, 201, 301 ms and so on; at 232 ms a CPU gets the quota that another one
    /// left over.
    #[test]
    fn each_throttled_period_counts_once() {
        let times = [(60, 101), (70, 104), (150, 201), (230, 232), (240, 302), (350, 601)]
            .map(|(lo, hi)| (ms(lo), ms(hi)));
        let [stopped, throttled] = [until_first_ran(&times), times.to_vec()].map(joined);
        let (period, refilled) = (ms(100), refilled(&times, ms(100)));
        let group = QuotaGroup { period, refilled, stopped, throttled, ..QuotaGroup::default() };
        assert_eq!((group.refilled, group.periods_within(ms(0), ms(700))), (ms(1), 6));
        assert_eq!(group.periods_within(ms(0), ms(210)), 2);
        assert_eq!(
            group.periods_within(ms(103), ms(240)),
            1,
            "a thread that waits for a CPU waits for no quota"
        );
        assert_eq!(
            QuotaGroup { period: Nanos(0), ..group }.periods_within(ms(0), ms(700)),
            0,
            "it is not known"
        );
    }

    #[test]
    fn a_group_is_stopped_until_any_of_its_threads_runs_again() {
        let times = [(ms(10), ms(100)), (ms(20), ms(130)), (ms(120), ms(120)), (ms(125), ms(210))];
        let stopped = joined(until_first_ran(&times));
        assert_eq!(stopped, [(ms(10), ms(100)), (ms(125), ms(130))]);
    }

    #[test]
    fn the_text_of_a_group_has_its_quota_and_any_later_change() {
        let (path, quota_us, period_us) = ("/a".to_owned(), 5_000, 100_000);
        let known = LimitedGroup { path, quota_us, period_us, ..LimitedGroup::default() };
        let raised = LimitedGroup { quota_us: 90_000, ..known.clone() };
        let lifted = LimitedGroup { quota_us: 0, period_us: 0, ..known.clone() };
        assert_eq!(group(Some(known.clone()), ms(5)).text(), "/a (5 ms per 100 ms)");
        for changed in [raised, lifted] {
            let text = group(Some(changed), ms(5)).text();
            assert_eq!(text, "/a (5 ms per 100 ms; the quota has been changed since)");
        }
        assert_eq!(group(Some(known), NO_QUOTA).text(), "/a");
        assert_eq!(group(None, Nanos(1_500_000)).text(), "which is gone (1.5 ms per 100 ms)");
    }

    #[test]
    fn the_latest_quota_counts_in_any_order_of_records() {
        let [mut first, mut later] = [1, 2].map(|at| record(ms(at), Tid(0)));
        (first.quota, first.period) = (ms(5), ms(100));
        (later.quota, later.period) = (ms(7), ms(100));
        let group = QuotaGroup::new(
            &[&later, &first],
            (None, &BTreeSet::new()),
            &Tasks::default(),
            &Timeline::default(),
        );
        assert_eq!(group.amount().as_deref(), Some("7 ms per 100 ms"));
    }
}
