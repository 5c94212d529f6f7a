// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who kept a terminal emulator computing: it shows what others write.

use crate::explain::describe::{count_text, thread_text};
use crate::explain::partition::{BlameGroup, Budget};
use crate::model::CauseKind;
use std::collections::{BTreeSet, HashMap};
use tipme_record::{Nanos, Tid};

/// From so many writes a second on, a terminal is kept busy by them.
const WRITES_MIN_PER_S: f64 = 50.0;

/// The thread that wrote most to the terminal of whoever computed, and how often, where that is a flood. Who writes may
/// itself wait until all that is shown.
fn flood(budget: &Budget<'_>, group: &BlameGroup) -> Option<(Tid, u64)> {
    if !matches!(group.kind, CauseKind::OwnComputation | CauseKind::PeerWait) {
        return None;
    }
    let lo = budget.pieces(group).map(|piece| piece.lo).min()?;
    let hi = budget.pieces(group).map(|piece| piece.hi).max()?;
    let readers: BTreeSet<Tid> = budget.pieces(group).map(|piece| piece.tid).collect();
    let mut writes: HashMap<Tid, u64> = HashMap::new();
    for (writer, _) in readers.iter().flat_map(|reader| budget.recording.terminals.written_to(*reader, lo, hi)) {
        *writes.entry(writer).or_default() += 1;
    }
    let (writer, count) = writes.into_iter().max_by_key(|(writer, count)| (*count, *writer))?;
    (count as f64 >= WRITES_MIN_PER_S * hi.since(lo).millis() / 1e3).then_some((writer, count))
}

/// Whose output was shown meanwhile.
pub(crate) fn line(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let (writer, count) = flood(budget, group)?;
    let who = thread_text(budget.recording, writer, at(budget, group));
    Some(format!("it showed the output of {who}, which wrote {} times to the terminal meanwhile", count_text(count)))
}

/// What spares the terminal.
pub(crate) fn remedy(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let (writer, _) = flood(budget, group)?;
    let who = thread_text(budget.recording, writer, at(budget, group));
    Some(format!("send the output of {who} to a file or through a pager: the terminal shows all of it first"))
}

fn at(budget: &Budget<'_>, group: &BlameGroup) -> Nanos {
    budget.pieces(group).map(|piece| piece.hi).max().unwrap_or_default()
}
