// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups with a CPU quota: who is in one, and when it was throttled.
//!
//! The kernel adds the time of a throttling to a group's counter when it ends, so growth between two
//! samples tells of the time up to the later one and, for as long as it grew, before the earlier one.
//! Of that time a thread of the group was held back for as much of its ready time as the counter grew.

use crate::decode::bytes::clean;
use crate::decode::samples::samples;
use crate::timeline::tasks::Tasks;
use crate::timeline::threads::{ThreadState, Timeline};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use tipme_record::incident::{Groups, LimitedGroup};
use tipme_record::{Nanos, Pid, Tid};

/// The number of `cpu.stat` among the sources of samples.
const SOURCE: u32 = 5;

/// A member may have been in its group this long before it was seen there first, and after it was seen last.
const SEEN_SLACK: Nanos = Nanos::from_secs(3);

/// Groups and samples beyond these are not read.
const GROUPS_MAX: usize = 256;
const COUNTS_MAX: usize = 1_000_000;

/// Segments of a thread that are looked at for one window.
const SEGMENTS_MAX: usize = 4_096;

/// The counters of a group at a time.
#[derive(Clone, Copy, Default, Debug)]
struct ThrottleCount {
    at: Nanos,
    /// Periods in which it was throttled.
    times: u64,
    /// For how long, on all CPUs together.
    total: Nanos,
}

/// A time in which a group was throttled for so long.
#[derive(Clone, Copy, Debug)]
struct ThrottleWindow {
    lo: Nanos,
    hi: Nanos,
    throttled: Nanos,
}

/// A control group with a quota.
#[derive(Debug, Default)]
pub struct QuotaGroup {
    pub path: String,
    /// The file that sets the quota.
    pub file: String,
    quota: Nanos,
    period: Nanos,
    members: HashMap<Pid, (Nanos, Nanos)>,
    counts: Vec<ThrottleCount>,
    windows: Vec<ThrottleWindow>,
    /// Ready time of threads in windows, found when first asked for.
    ready: RefCell<HashMap<(Tid, usize), u64>>,
}

/// All groups with a quota.
#[derive(Debug, Default)]
pub struct Throttling {
    /// Whether the recorder looked for such groups at all.
    pub known: bool,
    limits: Vec<QuotaGroup>,
}

impl Throttling {
    /// From the section of groups, where there is one, and that of samples.
    pub fn read(groups: Option<Groups>, section: &[u8]) -> Throttling {
        let known = groups.is_some();
        let mut counts = read_counts(section);
        let groups = groups.unwrap_or_default().limited.into_iter().take(GROUPS_MAX);
        let limits = groups.map(|group| QuotaGroup::new(&group, counts.remove(&group.number).unwrap_or_default()));
        Throttling { known, limits: limits.collect() }
    }

    /// The limits that hold for a process: those of the groups that it was seen in. One that died unseen
    /// was where its parent is.
    pub(crate) fn limits_of(&self, tasks: &Tasks, pid: Pid, at: Nanos) -> Vec<&QuotaGroup> {
        let of = |pid| self.limits.iter().filter(|limit| limit.holds(pid, at)).collect::<Vec<_>>();
        let lives = |pid| tasks.process(pid, at).is_some_and(|life| life.until == Nanos(u64::MAX));
        if self.limits.is_empty() {
            return Vec::new();
        }
        let found = of(pid);
        if !found.is_empty() || lives(pid) {
            return found;
        }
        let parents = tasks.ancestors(pid, at).skip(1).map(|parent| of(parent.pid));
        parents.into_iter().find(|limits| !limits.is_empty()).unwrap_or_default()
    }
}

impl QuotaGroup {
    fn new(group: &LimitedGroup, mut counts: Vec<ThrottleCount>) -> QuotaGroup {
        counts.sort_by_key(|count| count.at);
        let period = Nanos(group.period_us.saturating_mul(1_000));
        let windows = counts.windows(2).filter_map(|pair| window(pair[0], pair[1], period)).collect();
        // Who is seen in a group has mostly been in it all along: it was looked at when it got its quota.
        let members = group.members.iter().map(|member| {
            let last = Nanos(member.last_ns).after(SEEN_SLACK);
            (Pid(member.pid), (Nanos(0), last))
        });
        QuotaGroup {
            path: clean(&group.path),
            file: clean(&group.file),
            quota: Nanos(group.quota_us.saturating_mul(1_000)),
            period,
            members: members.collect(),
            counts,
            windows,
            ready: RefCell::default(),
        }
    }

    fn holds(&self, pid: Pid, at: Nanos) -> bool {
        self.members.get(&pid).is_some_and(|(first, last)| *first <= at && at <= *last)
    }

    /// `/tipme/a (5 ms per 100 ms)`.
    pub fn text(&self) -> String {
        format!("{} ({})", self.path, self.amount())
    }

    /// `5 ms per 100 ms`; a quota that was taken away before it was looked at is not known.
    pub fn amount(&self) -> String {
        if !self.is_set() {
            return "the quota was taken away since".to_owned();
        }
        let ms = |span: Nanos| {
            let text = format!("{:.1}", span.millis());
            format!("{} ms", text.strip_suffix(".0").unwrap_or(&text))
        };
        format!("{} per {}", ms(self.quota), ms(self.period))
    }

    /// Whether the group still had its quota when it was looked at last.
    pub fn is_set(&self) -> bool {
        self.period > Nanos(0)
    }

    /// Whether counters tell of a time.
    pub(crate) fn is_counted(&self, lo: Nanos) -> bool {
        self.counts.first().is_some_and(|count| count.at <= lo)
    }

    /// How long a thread of the group was held back in `lo..hi`, of which it was ready all the time.
    pub fn held_back(&self, timeline: &Timeline, tid: Tid, lo: Nanos, hi: Nanos) -> f64 {
        let first = self.windows.partition_point(|window| window.hi <= lo);
        let windows = self.windows.iter().enumerate().skip(first).take_while(|(_, window)| window.lo < hi);
        let shares = windows.map(|(index, window)| {
            let overlap = hi.min(window.hi).since(lo.max(window.lo)).0 as f64;
            let ready = self.ready(timeline, tid, index, window).max(1) as f64;
            overlap * (window.throttled.0 as f64 / ready).min(1.0)
        });
        shares.sum()
    }

    fn ready(&self, timeline: &Timeline, tid: Tid, index: usize, window: &ThrottleWindow) -> u64 {
        let find = || ready_time(timeline, tid, window.lo, window.hi);
        *self.ready.borrow_mut().entry((tid, index)).or_insert_with(find)
    }

    /// How often and how long the group was throttled between the samples around `lo..hi`, and what time is between these.
    pub fn throttled(&self, lo: Nanos, hi: Nanos) -> (u64, Nanos, Nanos) {
        let before = self.counts.partition_point(|count| count.at <= lo).saturating_sub(1);
        let after = self.counts.partition_point(|count| count.at < hi).min(self.counts.len().saturating_sub(1));
        match (self.counts.get(before), self.counts.get(after)) {
            (Some(from), Some(to)) => {
                (to.times.saturating_sub(from.times), to.total.since(from.total), to.at.since(from.at))
            }
            _ => (0, Nanos(0), Nanos(0)),
        }
    }
}

/// The throttling between two samples; `None` where there was none.
fn window(from: ThrottleCount, to: ThrottleCount, period: Nanos) -> Option<ThrottleWindow> {
    let throttled = to.total.since(from.total);
    let before = Nanos(throttled.0.min(period.0));
    (throttled > Nanos(0)).then(|| ThrottleWindow { lo: from.at.before(before), hi: to.at, throttled })
}

/// How long a thread was ready for a CPU in `lo..hi`.
fn ready_time(timeline: &Timeline, tid: Tid, lo: Nanos, hi: Nanos) -> u64 {
    let first = timeline.at(tid, lo).map_or(0, |span| span.index);
    let spans = (first..).map_while(|index| timeline.span(tid, index)).take_while(|span| span.start < hi);
    let ready = spans.take(SEGMENTS_MAX).filter(|span| span.segment.state == ThreadState::Runnable);
    ready.map(|span| span.end.min(hi).since(span.start.max(lo)).0).fold(0, u64::saturating_add)
}

fn read_counts(section: &[u8]) -> HashMap<u32, Vec<ThrottleCount>> {
    let mut counts: HashMap<u32, Vec<ThrottleCount>> = HashMap::new();
    for (at, _, text) in samples(section).filter(|(_, source, _)| *source == SOURCE).take(COUNTS_MAX) {
        if let Some((number, count)) = read_count(at, text) {
            counts.entry(number).or_default().push(count);
        }
    }
    counts
}

/// The number of the group in the first line, and the counters of either version: nanoseconds in
/// `throttled_time`, microseconds in `throttled_usec`.
fn read_count(at: Nanos, text: &str) -> Option<(u32, ThrottleCount)> {
    let mut lines = text.lines();
    let number = lines.next()?.strip_prefix("group ")?.parse().ok()?;
    let values: BTreeMap<&str, u64> = lines
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
        .collect();
    let value = |name: &str| values.get(name).copied();
    let micros = value("throttled_usec").map(|micros| micros.saturating_mul(1_000));
    let total = Nanos(value("throttled_time").or(micros)?);
    Some((number, ThrottleCount { at, times: value("nr_throttled").unwrap_or(0), total }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_record::incident::GroupMember;

    fn sample(at: u64, text: &str) -> Vec<u8> {
        let mut bytes = Nanos::from_millis(at).0.to_le_bytes().to_vec();
        bytes.extend(SOURCE.to_le_bytes());
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn limit(totals_ms: &[u64]) -> QuotaGroup {
        let counts = totals_ms.iter().enumerate().map(|(index, total)| ThrottleCount {
            at: Nanos::from_millis(100 * index as u64 + 1_000),
            times: *total / 95,
            total: Nanos::from_millis(*total),
        });
        let members = vec![GroupMember { pid: 7, first_ns: 5_000_000_000, last_ns: 6_000_000_000 }];
        let group =
            LimitedGroup { quota_us: 5_000, period_us: 100_000, path: "/a".into(), members, ..LimitedGroup::default() };
        QuotaGroup::new(&group, counts.collect())
    }

    #[test]
    fn both_versions_of_the_counters_are_read() {
        let one = sample(100, "group 3\nnr_periods 9\nnr_throttled 4\nthrottled_time 950000000\n");
        let two = sample(200, "group 3\nusage_usec 7\nnr_throttled 5\nthrottled_usec 1000000\n");
        let other = sample(300, "group 4\nrubbish\n");
        let counts = read_counts(&[one, two, other].concat());
        let totals: Vec<_> = counts[&3].iter().map(|count| (count.times, count.total.millis())).collect();
        assert_eq!((counts.len(), totals), (1, vec![(4, 950.0), (5, 1_000.0)]));
    }

    #[test]
    fn growth_tells_of_the_time_before_it_was_counted() {
        let windows = limit(&[0, 0, 95, 95, 285, 0]).windows;
        let spans: Vec<_> = windows.iter().map(|window| (window.lo.millis(), window.hi.millis())).collect();
        assert_eq!(spans, [(1_005.0, 1_200.0), (1_200.0, 1_400.0)]);
    }

    #[test]
    fn what_is_told_has_figures() {
        let (limit, ms) = (limit(&[0, 95, 190, 190]), Nanos::from_millis);
        assert_eq!(limit.text(), "/a (5 ms per 100 ms)");
        assert_eq!(limit.throttled(Nanos::from_millis(1_010), Nanos::from_millis(1_150)), (2, ms(190), ms(200)));
        let past = QuotaGroup::new(&LimitedGroup { path: "/a".into(), ..LimitedGroup::default() }, Vec::new());
        assert_eq!(past.text(), "/a (the quota was taken away since)");
        assert_eq!(limit.throttled(Nanos(0), Nanos::from_secs(9)), (2, ms(190), ms(300)));
        assert_eq!(self::limit(&[]).throttled(Nanos(0), Nanos(9)), (0, Nanos(0), Nanos(0)));
    }

    #[test]
    fn members_count_from_the_begin_until_after_they_were_last_seen() {
        let limit = limit(&[]);
        let held = [1, 3, 8, 10].map(|at| limit.holds(Pid(7), Nanos::from_secs(at)));
        assert_eq!(held, [true, true, true, false]);
        assert!(!limit.holds(Pid(8), Nanos::from_secs(5)));
    }
}
