// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which limit of a control group pieces are due to, and how often it was throttled meanwhile.

use crate::explain::describe::span_text;
use crate::explain::partition::{BlameGroup, Budget, length};
use crate::timeline::throttle::QuotaGroup;

/// The limit that most of a group's pieces are due to.
pub(crate) fn limit_of<'a>(budget: &Budget<'a>, group: &BlameGroup) -> Option<&'a QuotaGroup> {
    let longest = budget.pieces(group).max_by_key(|piece| length(piece))?;
    budget.recording.throttled(longest.tid, longest.lo, longest.hi)
}

/// How often and how long the group was throttled while the group's pieces lasted.
pub(crate) fn evidence(budget: &Budget<'_>, group: &BlameGroup, limit: &QuotaGroup) -> Option<String> {
    let lo = budget.pieces(group).map(|piece| piece.lo).min()?;
    let hi = budget.pieces(group).map(|piece| piece.hi).max()?;
    let (count, total) = limit.within(lo, hi);
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    (count > 0).then(|| format!("the group was throttled {times}, {} of {}", span_text(total), span_text(hi.since(lo))))
}
