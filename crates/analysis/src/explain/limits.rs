// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU quotas of control groups: the quota that throttled pieces, the job that used it up, and the
//! throttled time.

use crate::explain::describe::{count_text, span_text};
use crate::explain::jobs::{Job, Members};
use crate::explain::partition::{BlameGroup, Budget, length};
use crate::timeline::recording::Recording;
use crate::timeline::throttle::QuotaGroup;
use std::collections::BTreeMap;
use tipme_record::{Nanos, Tid};

/// Job that used more of a control group's quota than any other job.
pub(crate) struct QuotaUser {
    pub job: Job,
    pub members: Members,
    /// CPU time of the whole group, and the length of the observed periods.
    all: Nanos,
    span: Nanos,
}

/// Returns the quota that caused the longest piece of a group.
pub(crate) fn limit_of<'a>(budget: &Budget<'a>, group: &BlameGroup) -> Option<&'a QuotaGroup> {
    let longest = budget.pieces(group).max_by_key(|piece| length(piece))?;
    budget.recording.throttled(longest.tid, longest.lo, longest.hi)
}

/// Finds the job that used up the quota of a throttled control group, in the periods before the
/// group was throttled. Returns `None` if the threads counted as members ran longer than the quota
/// allows: not all of them were members all the time.
pub(crate) fn user_of(budget: &Budget<'_>, group: &BlameGroup) -> Option<QuotaUser> {
    let limit = limit_of(budget, group)?;
    let (lo, hi) = extent(budget, group).and_then(|(lo, hi)| limit.used_up(lo, hi))?;
    let (mut jobs, mut all) = (BTreeMap::<Job, Members>::new(), 0_u64);
    for (tid, ran) in ran_in(budget.recording, limit, lo, hi) {
        jobs.entry(budget.jobs.of(tid, hi))
            .or_default()
            .add(budget.recording.tasks.pid(tid, hi), ran);
        all = all.saturating_add(ran);
    }
    let most = jobs
        .into_iter()
        .max_by_key(|(_, members)| members.total())
        .filter(|_| Nanos(all) <= limit.allowed(lo, hi));
    most.map(|(job, members)| QuotaUser { job, members, all: Nanos(all), span: hi.since(lo) })
}

/// Returns the threads of a control group that ran in it in `lo..hi`, with the running time of
/// each.
fn ran_in(recording: &Recording, limit: &QuotaGroup, lo: Nanos, hi: Nanos) -> Vec<(Tid, u64)> {
    let groups = |tid| recording.throttling.groups_of(&recording.tasks, tid, hi);
    let members = recording
        .timeline
        .threads()
        .filter(|tid| recording.timeline.run_time(*tid, lo, hi) > Nanos(0))
        .filter(|tid| groups(*tid).iter().any(|group| std::ptr::eq(*group, limit)));
    members
        .map(|tid| (tid, limit.ran(&recording.timeline, tid, lo, hi).0))
        .filter(|(_, ran)| *ran > 0)
        .collect()
}

impl QuotaUser {
    /// Returns `true` if the job used at least half of the group's CPU time.
    pub(crate) fn is_main(&self) -> bool {
        self.members.total() >= self.all.0 / 2
    }

    /// Formats `encoder (pid 7) ran 4.9 ms of the 5.0 ms that the group ran in the 100 ms until it
    /// was throttled last`.
    pub(crate) fn text(&self, budget: &Budget<'_>) -> String {
        let [own, all, span] = [Nanos(self.members.total()), self.all, self.span].map(span_text);
        let who = budget.jobs.label(&self.job, &self.members);
        format!(
            "{who} ran {own} of the {all} that the group ran in the {span} until it was throttled last"
        )
    }
}

/// Formats the number of throttled periods and the throttled time during a group's pieces.
pub(crate) fn evidence(
    budget: &Budget<'_>,
    group: &BlameGroup,
    limit: &QuotaGroup,
) -> Option<String> {
    let (lo, hi) = extent(budget, group)?;
    let periods = match limit.periods_within(lo, hi) {
        0 => String::new(),
        1 => " in one period".to_owned(),
        many => format!(" in {} periods", count_text(many)),
    };
    let total = Some(limit.within(lo, hi)).filter(|total| *total > Nanos(0))?;
    Some(format!(
        "the group was throttled{periods}, {} of {}",
        span_text(total),
        span_text(hi.since(lo))
    ))
}

/// Returns the first start and the last end of a group's pieces.
fn extent(budget: &Budget<'_>, group: &BlameGroup) -> Option<(Nanos, Nanos)> {
    let lo = budget.pieces(group).map(|piece| piece.lo).min()?;
    Some((lo, budget.pieces(group).map(|piece| piece.hi).max()?))
}
