// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups that had used up their CPU quota: which threads had to leave their CPU for it, and until when.
//!
//! The kernel tells of each thread that it takes from its CPU for a quota, with the group that the quota is set on. From
//! then on, until that thread runs again, the group is taken to be throttled, and so is who else is in it and ready: such
//! a thread leaves no CPU, since it does not get one. In a group is who was taken from its CPU for it, whoever was there
//! at the mark, and the children of both that had ended by then.

use crate::decode::bytes::clean;
use crate::timeline::tasks::Tasks;
use crate::timeline::threads::{ThreadState, Timeline};
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::incident::{Groups, LimitedGroup};
use tipme_record::records::Throttled;
use tipme_record::{Nanos, Pid};

/// Groups beyond these are not read.
const GROUPS_MAX: usize = 256;

/// A quota from here on is none: the kernel's number for it is the largest.
const NO_QUOTA: Nanos = Nanos(u64::MAX);

/// A control group with a quota.
#[derive(Debug, Default)]
pub struct QuotaGroup {
    /// Empty where it was gone at the mark.
    path: String,
    /// The file that sets the quota.
    pub file: String,
    /// What it allowed when it was used up last.
    quota: Nanos,
    period: Nanos,
    /// Whether it still did at the mark.
    is_set: bool,
    members: BTreeSet<Pid>,
    /// When it was throttled, one after the other.
    throttled: Vec<(Nanos, Nanos)>,
}

/// All groups that were throttled.
#[derive(Debug, Default)]
pub struct Throttling {
    groups: Vec<QuotaGroup>,
}

impl Throttling {
    /// From the records, and what was known of the groups at the mark.
    pub(crate) fn new(records: &[Throttled], known: &Groups, timeline: &Timeline) -> Throttling {
        let mut by_group: BTreeMap<u64, Vec<&Throttled>> = BTreeMap::new();
        for record in records {
            by_group.entry(record.group).or_default().push(record);
        }
        let groups = by_group.into_iter().take(GROUPS_MAX).map(|(number, records)| {
            let known = known.limited.iter().find(|group| group.number == number);
            QuotaGroup::new(&records, known, timeline)
        });
        Throttling { groups: groups.collect() }
    }

    /// The groups that a process was in. One that died unseen was where its parent is.
    pub(crate) fn groups_of(&self, tasks: &Tasks, pid: Pid, at: Nanos) -> Vec<&QuotaGroup> {
        let of = |pid| self.groups.iter().filter(|group| group.members.contains(&pid)).collect::<Vec<_>>();
        let lives = |pid| tasks.process(pid, at).is_some_and(|life| life.until == Nanos(u64::MAX));
        if self.groups.is_empty() {
            return Vec::new();
        }
        let found = of(pid);
        if !found.is_empty() || lives(pid) {
            return found;
        }
        let parents = tasks.ancestors(pid, at).skip(1).map(|parent| of(parent.pid));
        parents.into_iter().find(|groups| !groups.is_empty()).unwrap_or_default()
    }
}

impl QuotaGroup {
    fn new(records: &[&Throttled], known: Option<&LimitedGroup>, timeline: &Timeline) -> QuotaGroup {
        let last = records.iter().filter(|record| record.quota < NO_QUOTA).max_by_key(|record| record.head.ts);
        let at_mark = known.map(|group| group.pids.iter().copied().map(Pid)).into_iter().flatten();
        QuotaGroup {
            path: known.map(|group| clean(&group.path)).unwrap_or_default(),
            file: known.map(|group| clean(&group.file)).unwrap_or_default(),
            quota: last.map_or(Nanos(0), |record| record.quota),
            period: last.map_or(Nanos(0), |record| record.period),
            is_set: known.zip(last).is_some_and(|(known, last)| is_same(known, last)),
            members: records.iter().map(|record| record.pid).chain(at_mark).collect(),
            throttled: joined(records.iter().map(|record| held_back(record, timeline)).collect()),
        }
    }

    /// `/tipme/a (5 ms per 100 ms)`.
    pub fn text(&self) -> String {
        let is_gone = self.path.is_empty();
        let path = if is_gone { "which is gone" } else { &self.path };
        match self.amount() {
            Some(amount) if self.is_set || is_gone => format!("{path} ({amount})"),
            Some(amount) => format!("{path} ({amount}; the quota was changed since)"),
            None => path.to_owned(),
        }
    }

    /// `5 ms per 100 ms`, where the kernel told it.
    pub fn amount(&self) -> Option<String> {
        let ms = |span: Nanos| {
            let text = format!("{:.1}", span.millis());
            format!("{} ms", text.strip_suffix(".0").unwrap_or(&text))
        };
        (self.period > Nanos(0)).then(|| format!("{} per {}", ms(self.quota), ms(self.period)))
    }

    /// Whether it allowed the same at the mark.
    pub fn is_set(&self) -> bool {
        self.is_set
    }

    /// How often and how long it was throttled within `lo..hi`.
    pub fn within(&self, lo: Nanos, hi: Nanos) -> (usize, Nanos) {
        let lengths = self.times(lo, hi).map(|(begin, end)| hi.min(end).since(lo.max(begin)));
        lengths.fold((0, Nanos(0)), |(count, sum), length| (count + 1, sum.after(length)))
    }

    /// When it used up what it then was throttled for in `lo..hi`: from a period before it was for the first time on, until
    /// it was for the last time.
    pub(crate) fn used_up(&self, lo: Nanos, hi: Nanos) -> Option<(Nanos, Nanos)> {
        let mut begins = self.times(lo, hi).map(|(begin, _)| begin).filter(|_| self.period > Nanos(0));
        let first = begins.next()?;
        Some((first.before(self.period), begins.last().unwrap_or(first)))
    }

    /// What its threads may run at most in `lo..hi`, which begins and ends within periods.
    pub(crate) fn allowed(&self, lo: Nanos, hi: Nanos) -> Nanos {
        let periods = hi.since(lo).0 / self.period.0.max(1) + 2;
        Nanos(self.quota.0.saturating_mul(periods))
    }

    /// When it was throttled, as far as that reaches into `lo..hi`.
    fn times(&self, lo: Nanos, hi: Nanos) -> impl Iterator<Item = (Nanos, Nanos)> {
        let first = self.throttled.partition_point(|(_, end)| *end <= lo);
        self.throttled.iter().skip(first).take_while(move |(begin, _)| *begin < hi).copied()
    }
}

/// Whether a group has the quota at the mark that it had used up, in the kernel's file in microseconds.
fn is_same(known: &LimitedGroup, last: &Throttled) -> bool {
    [known.quota_us, known.period_us] == [last.quota, last.period].map(|span| span.0 / 1_000)
}

/// From when on, and until when, a thread was kept from running.
fn held_back(record: &Throttled, timeline: &Timeline) -> (Nanos, Nanos) {
    let ready = timeline.at(record.head.tid, record.head.ts);
    let end = ready.filter(|span| span.segment.state == ThreadState::Runnable).map(|span| span.end);
    (record.head.ts, end.unwrap_or(record.head.ts))
}

/// Times that overlap become one.
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

    fn ms(count: u64) -> Nanos {
        Nanos::from_millis(count)
    }

    fn group(known: Option<LimitedGroup>, quota: Nanos) -> QuotaGroup {
        let mut record = Throttled::read(&[0; Throttled::SIZE]).unwrap();
        (record.quota, record.period) = (quota, ms(100));
        QuotaGroup::new(&[&record], known.as_ref(), &Timeline::default())
    }

    #[test]
    fn times_that_overlap_are_one_and_are_counted_within_others() {
        let throttled = joined(vec![(ms(50), ms(60)), (ms(10), ms(20)), (ms(15), ms(30)), (ms(30), ms(35))]);
        assert_eq!(throttled, [(ms(10), ms(35)), (ms(50), ms(60))]);
        let group = QuotaGroup { throttled, ..QuotaGroup::default() };
        assert_eq!(group.within(ms(0), ms(100)), (2, ms(35)));
        assert_eq!(group.within(ms(20), ms(55)), (2, ms(20)));
        assert_eq!(group.within(ms(35), ms(50)), (0, Nanos(0)));
        assert_eq!(group.used_up(ms(0), ms(100)), None, "its period is not known");
        let group = QuotaGroup { period: ms(5), ..group };
        assert_eq!(group.used_up(ms(34), ms(100)), Some((ms(5), ms(50))));
        assert_eq!(group.used_up(ms(34), ms(50)), Some((ms(5), ms(10))));
        assert_eq!(group.used_up(ms(35), ms(50)), None);
    }

    #[test]
    fn a_group_is_told_with_what_it_allows_and_whether_it_still_does() {
        let (path, quota_us, period_us) = ("/a".to_owned(), 5_000, 100_000);
        let known = LimitedGroup { path, quota_us, period_us, ..LimitedGroup::default() };
        let raised = LimitedGroup { quota_us: 90_000, ..known.clone() };
        let lifted = LimitedGroup { quota_us: 0, period_us: 0, ..known.clone() };
        assert_eq!(group(Some(known.clone()), ms(5)).text(), "/a (5 ms per 100 ms)");
        for changed in [raised, lifted] {
            let text = group(Some(changed), ms(5)).text();
            assert_eq!(text, "/a (5 ms per 100 ms; the quota was changed since)");
        }
        assert_eq!(group(Some(known), NO_QUOTA).text(), "/a");
        assert_eq!(group(None, Nanos(1_500_000)).text(), "which is gone (1.5 ms per 100 ms)");
    }

    #[test]
    fn the_latest_quota_is_told_whichever_cpu_wrote_first() {
        let [mut first, mut later] = [0, 1].map(|_| Throttled::read(&[0; Throttled::SIZE]).unwrap());
        (first.head.ts, first.quota, first.period) = (ms(1), ms(5), ms(100));
        (later.head.ts, later.quota, later.period) = (ms(2), ms(7), ms(100));
        let told = QuotaGroup::new(&[&later, &first], None, &Timeline::default());
        assert_eq!(told.amount().as_deref(), Some("7 ms per 100 ms"));
    }
}
