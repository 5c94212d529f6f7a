// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which limit of a control group pieces are due to, and what its counters say of them.

use crate::explain::describe::span_text;
use crate::explain::partition::{BlameGroup, Budget, length};
use crate::timeline::throttle::QuotaGroup;

/// The limit that most of a group's pieces are due to.
pub(crate) fn limit_of<'a>(budget: &Budget<'a>, group: &BlameGroup) -> Option<&'a QuotaGroup> {
    let longest = budget.pieces(group).max_by_key(|piece| length(piece))?;
    let recording = budget.recording;
    recording
        .throttled(longest.tid, longest.lo, longest.hi)
        .or_else(|| recording.uncounted_limit(longest.tid, longest.lo))
}

/// How often and how long a limit held its group back while the group's pieces lasted.
pub(crate) fn evidence(budget: &Budget<'_>, group: &BlameGroup, limit: &QuotaGroup) -> Option<String> {
    let lo = budget.pieces(group).map(|piece| piece.lo).min()?;
    let hi = budget.pieces(group).map(|piece| piece.hi).max()?;
    let (times, total, between) = limit.throttled(lo, hi);
    let total = span_text(total);
    let periods = if times == 1 { "1 period".to_owned() } else { format!("{times} periods") };
    (times > 0)
        .then(|| format!("the group was throttled in {periods}, {total} on all CPUs, within {}", span_text(between)))
}
