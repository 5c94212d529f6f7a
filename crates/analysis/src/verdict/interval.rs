// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explanation of a late thread without user input: for benchmarks, which know its deadline.

use crate::explain::blame::Waiter;
use crate::explain::chain::Chain;
use crate::explain::partition::Budget;
use crate::join::answer::Milestone;
use crate::model::{Finding, Piece};
use crate::timeline::recording::Recording;
use crate::verdict::baseline::Usual;
use crate::verdict::findings::findings;
use crate::verdict::problem::{Problem, ProblemSubject};
use crate::verdict::trust::{of_records, unattributed_ms};
use schemars::JsonSchema;
use serde::Serialize;
use tipme_measure::Summary;
use tipme_record::{Nanos, Tid};

/// Where an interval of one thread went, and the causes of what was more than usual.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Explanation")]
pub struct IntervalExplanation {
    pub start_ns: u64,
    pub end_ns: u64,
    pub interval_ms: f64,
    /// What the thread needs by itself.
    pub usual_ms: f64,
    /// Sums to the interval.
    pub partition: Vec<Piece>,
    pub unattributed_ms: f64,
    /// The largest first.
    pub findings: Vec<Finding>,
    /// `true` if the incident contains the whole interval.
    pub complete: bool,
}

/// Explains the activity of a thread in an interval, of which `usual` is its own work.
///
/// Kinds, culprits and remedies are those of a verdict. Returns `None` if the incident ends before
/// the interval does, or if the interval is empty.
pub fn explain(
    recording: &Recording,
    tid: Tid,
    from: Nanos,
    to: Nanos,
    usual: Nanos,
) -> Option<IntervalExplanation> {
    if to <= from || to > recording.mark {
        return None;
    }
    let problem = problem(recording, tid, from, to, usual);
    let chain = Chain::of_thread(recording, tid, from, to);
    let budget =
        Budget::new(recording, &chain, Waiter { client: problem.client, command: None }, to);
    let partition = budget.shares();
    let unattributed_ms = unattributed_ms(&partition);
    let trust = of_records(recording, from, to, unattributed_ms);
    Some(IntervalExplanation {
        start_ns: from.0,
        end_ns: to.0,
        interval_ms: to.since(from).millis(),
        usual_ms: usual.millis(),
        unattributed_ms,
        findings: findings(&budget, &problem, trust),
        partition,
        complete: from >= recording.complete_from(),
    })
}

/// Creates a problem from an interval. Everything beyond the usual is to be explained, since the
/// caller has chosen the interval.
fn problem(recording: &Recording, tid: Tid, from: Nanos, to: Nanos, usual: Nanos) -> Problem {
    Problem {
        start: from,
        end: to,
        class: None,
        milestone: Milestone::Handled,
        client: recording.tasks.pid(tid, from),
        focus: None,
        join: None,
        censored: false,
        subject: ProblemSubject::Thread(tid),
        usual: Usual::Window(Summary::new(vec![usual.0])),
        excess: to.since(from).before(usual),
        threshold: Nanos(0),
        longer: None,
    }
}
