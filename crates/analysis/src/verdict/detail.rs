// SPDX-License-Identifier: MIT OR Apache-2.0
//! Details that would explain more. If a finding ends at a resource that is not recorded in detail
//! by default, the verdict shows how to enable that detail in the running recorder for a while.

use crate::explain::jobs::Job;
use crate::explain::partition::{BlameGroup, BlameOwner, Budget};
use crate::model::{CauseKind, Piece};
use crate::timeline::recording::Recording;
use crate::verdict::groups;
use tipme_record::Nanos;

/// Minimum unattributed share of the interval to suggest recording more.
const UNATTRIBUTED_MIN: f64 = 0.1;

/// Certainty of a kind below which recording more is suggested.
const CERTAIN: f64 = 0.7;

/// Minimum share of the samples in which a thread spins on a lock to count.
const SPIN_SHARE_MIN: f64 = 0.1;

/// Number of innermost functions checked for spinning.
const LEAVES: usize = 3;

/// Parts of the names of kernel functions in which a thread spins on a lock.
const SPINS: [&str; 4] =
    ["spin_lock_slowpath", "osq_lock", "mutex_spin_on_owner", "rwsem_spin_on_owner"];

/// Name of a detail, and the question that it answers.
type Answer = (&'static str, &'static str);

const WAITS: Answer = ("waits", "what the short waits were for");
const INTERRUPTS: Answer = ("interrupts", "which interrupts and deferred work used the CPU");
const LOCKS: Answer = ("locks", "which threads held kernel locks, and for how long");
const WRITERS: Answer = ("writers", "which programs dirtied the pages being written back");
const MEMORY: Answer = ("memory", "which programs took the memory");

/// Returns the detail that would answer the open question of a group with this certainty of its
/// kind.
fn open(budget: &Budget<'_>, group: &BlameGroup, certainty: f64) -> Option<Answer> {
    let by_kernel = matches!(group.owner, BlameOwner::Job(Job::Kernel(_)));
    match group.kind {
        CauseKind::DiskQueue | CauseKind::Fsync | CauseKind::PageIn if by_kernel => Some(WRITERS),
        CauseKind::Reclaim | CauseKind::SwapIn if by_kernel || certainty < CERTAIN => Some(MEMORY),
        CauseKind::KernelLock if groups::awaited_thaw(budget, group).is_some() => None,
        CauseKind::KernelLock if by_kernel || groups::is_held_by_waiter(budget, group) => {
            Some(LOCKS)
        }
        CauseKind::OwnComputation if spins(budget, group) => Some(LOCKS),
        CauseKind::Stall if certainty < CERTAIN => Some(INTERRUPTS),
        _ => None,
    }
}

/// Returns `true` if enough samples of a group were taken in threads spinning on a lock.
fn spins(budget: &Budget<'_>, group: &BlameGroup) -> bool {
    let names = &budget.recording.names;
    let (mut samples, mut spinning) = (0, 0);
    for piece in budget.pieces(group) {
        for sample in budget.recording.samples_of(piece.tid, piece.lo, piece.hi) {
            let mut functions = names.kernel_functions(sample.kernel_stack).take(LEAVES);
            samples += 1;
            spinning +=
                usize::from(functions.any(|name| SPINS.iter().any(|part| name.contains(part))));
        }
    }
    spinning as f64 >= SPIN_SHARE_MIN * f64::from(samples) && spinning > 0
}

/// Suggests a detail to record for a group with this certainty of its kind. Returns `None` if
/// nothing is missing or the detail was recorded already.
pub(crate) fn hint(budget: &Budget<'_>, group: &BlameGroup, certainty: f64) -> Option<String> {
    let lo = budget.pieces(group).map(|piece| piece.lo).min()?;
    let hi = budget.pieces(group).map(|piece| piece.hi).max()?;
    let open = open(budget, group, certainty)?;
    (!is_on(budget.recording, open.0, lo, hi)).then(|| advice(budget.recording, open))
}

/// Suggests a detail to record for the unattributed time of `lo..hi`.
pub(crate) fn hint_for_rest(
    recording: &Recording,
    partition: &[Piece],
    lo: Nanos,
    hi: Nanos,
) -> Option<String> {
    let rest = |state: &str| {
        let pieces = partition.iter().filter(|piece| piece.kind == CauseKind::Unattributed);
        pieces
            .filter(|piece| state.is_empty() || piece.state == state)
            .map(|piece| piece.ms)
            .sum::<f64>()
    };
    let much = rest("") >= UNATTRIBUTED_MIN * hi.since(lo).millis() && rest("") > 0.0;
    let open = if 2.0 * rest("runnable") > rest("") { INTERRUPTS } else { WAITS };
    (much && !is_on(recording, open.0, lo, hi)).then(|| advice(recording, open))
}

/// Returns `true` if a detail was recorded throughout `lo..hi`.
fn is_on(recording: &Recording, detail: &str, lo: Nanos, hi: Nanos) -> bool {
    let meta = &recording.meta;
    let mut spans = meta.detail_spans.iter().filter(|span| span.name == detail).peekable();
    match spans.peek() {
        None => meta.details.iter().any(|on| on == detail),
        Some(_) => spans.any(|span| span.from_ns <= lo.0 && span.until_ns >= hi.0),
    }
}

/// Returns the command, or a reference to `tipme doctor` if the whole class of records was off.
fn advice(recording: &Recording, (detail, what): Answer) -> String {
    let off = recording.meta.missing.iter().any(|missing| missing.what == detail);
    match off {
        true => format!(
            "{detail}, which would show {what}, are not recorded on this machine (tipme doctor says why)"
        ),
        false => {
            format!("next time, tipme record --detail {detail} --for=600 would show {what}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_record::incident::{DetailSpan, Missing};

    const LO: Nanos = Nanos::from_millis(1_000);
    const HI: Nanos = Nanos::from_millis(2_000);

    fn rest(recording: &Recording, shares: &[(&str, f64)]) -> Option<String> {
        let piece = |(state, ms): &(&str, f64)| Piece {
            state: (*state).to_owned(),
            kind: CauseKind::Unattributed,
            ms: *ms,
            pid: 7,
            comm: String::new(),
            detail: String::new(),
        };
        hint_for_rest(recording, &shares.iter().map(piece).collect::<Vec<_>>(), LO, HI)
    }

    fn recorded(name: &str, spans: &[(u64, u64)]) -> Recording {
        let mut recording = Recording::default();
        recording.meta.details.push(name.to_owned());
        recording.meta.detail_spans.extend(spans.iter().map(|(from, until): &(u64, u64)| {
            DetailSpan {
                name: name.to_owned(),
                from_ns: Nanos::from_millis(*from).0,
                until_ns: Nanos::from_millis(*until).0,
            }
        }));
        recording
    }

    #[test]
    fn time_that_nothing_explains_names_the_command_that_would_tell_more() {
        let plain = Recording::default();
        let blocked = rest(&plain, &[("blocked", 80.0), ("runnable", 40.0)]).unwrap();
        assert!(
            blocked.starts_with(
                "next time, tipme record --detail waits --for=600 would show what the"
            ),
            "{blocked}"
        );
        let ready = rest(&plain, &[("blocked", 40.0), ("runnable", 80.0)]).unwrap();
        assert!(
            ready.starts_with(
                "next time, tipme record --detail interrupts --for=600 would show which interrupts"
            ),
            "{ready}"
        );
        assert_eq!(rest(&plain, &[("blocked", 99.0)]), None);
    }

    #[test]
    fn what_was_recorded_all_the_time_is_not_asked_for_again() {
        let short = [("blocked", 500.0)];
        assert_eq!(rest(&recorded("waits", &[]), &short), None);
        assert_eq!(rest(&recorded("waits", &[(900, 2_000)]), &short), None);
        assert!(rest(&recorded("waits", &[(900, 1_500), (1_600, 2_000)]), &short).is_some());
        assert!(rest(&recorded("locks", &[]), &short).is_some());
    }

    #[test]
    fn a_class_that_is_off_is_told_as_such() {
        let mut recording = Recording::default();
        recording.meta.missing.push(Missing { what: "interrupts".to_owned(), why: String::new() });
        let hint = rest(&recording, &[("runnable", 500.0)]).unwrap();
        assert!(
            hint.ends_with("are not recorded on this machine (tipme doctor says why)"),
            "{hint}"
        );
    }
}
