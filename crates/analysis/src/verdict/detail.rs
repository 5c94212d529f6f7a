// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which detail would tell more: where a finding ends at a resource whose use is not recorded by
//! default, the verdict says how to have it recorded.

use crate::explain::jobs::Job;
use crate::explain::partition::{BlameGroup, BlameOwner};
use crate::model::CauseKind;
use crate::timeline::recording::Recording;

/// From this share of the interval on it is worth recording short waits to explain the rest.
const UNATTRIBUTED_MIN: f64 = 0.1;

/// What a group of pieces leaves open whose kind is that certain: the detail's name, and the question that it answers.
fn open(group: &BlameGroup, certainty: f64) -> Option<(&'static str, &'static str)> {
    let by_kernel = matches!(group.owner, BlameOwner::Job(Job::Kernel(_)));
    match group.kind {
        CauseKind::DiskQueue | CauseKind::Fsync | CauseKind::PageIn if by_kernel => {
            Some(("writers", "who wrote what is written back"))
        }
        CauseKind::Reclaim | CauseKind::SwapIn if by_kernel || certainty < 0.7 => {
            Some(("memory", "who took the memory"))
        }
        _ => None,
    }
}

/// How to learn more about a group of pieces whose kind is that certain; `None` where nothing is missing or it was recorded already.
pub(crate) fn hint(recording: &Recording, group: &BlameGroup, certainty: f64) -> Option<String> {
    open(group, certainty).filter(|(detail, _)| !is_on(recording, detail)).map(|(detail, what)| advice(detail, what))
}

/// How to learn more about time that no record explains.
pub(crate) fn hint_for_rest(recording: &Recording, unattributed_ms: f64, latency_ms: f64) -> Option<String> {
    let much = unattributed_ms >= UNATTRIBUTED_MIN * latency_ms && unattributed_ms > 0.0;
    (much && !is_on(recording, "waits")).then(|| advice("waits", "what short blocks waited for"))
}

fn is_on(recording: &Recording, detail: &str) -> bool {
    recording.meta.details.iter().any(|on| on == detail)
}

fn advice(detail: &str, what: &str) -> String {
    format!("tipme record --detail {detail} would tell {what}")
}
