// SPDX-License-Identifier: MIT OR Apache-2.0
//! Analysis of the machine's incidents.

use super::Machinery;
use tipme_analysis::model::{CauseKind, Verdict};
use tipme_analysis::{DiagnoseOptions, IntervalExplanation, Recording, Timed, explain};
use tipme_record::{Nanos, Tid};

impl Machinery {
    /// Returns the verdict on an incident with its mark at a time.
    pub fn diagnose(&mut self, mark: u64) -> Verdict {
        tipme_analysis::diagnose(&self.incident(mark), &DiagnoseOptions::default())
            .expect("the scene is well formed")
    }

    /// Returns the interactions of an incident with its mark at a time.
    pub fn timed(&mut self, mark: u64) -> Vec<Timed> {
        tipme_analysis::timed(&self.incident(mark)).expect("the scene is well formed")
    }
}

/// Returns milestone, latency in milliseconds, and the kinds of the findings.
pub fn outline(verdict: &Verdict) -> (String, u64, Vec<CauseKind>) {
    let interval = verdict.interval.as_ref().expect("there was input");
    let kinds = verdict.findings.iter().map(|finding| finding.kind).collect();
    (interval.milestone.clone(), interval.latency_ms.round() as u64, kinds)
}

/// Explains an interval of a thread in milliseconds since the start of the machine; the mark is at
/// 4 s.
pub fn explained(
    recording: &Recording,
    tid: u32,
    (from_ms, to_ms): (u64, u64),
    usual: Nanos,
) -> Option<IntervalExplanation> {
    let begin = recording.mark.before(Nanos::from_secs(4));
    let [from, to] = [from_ms, to_ms].map(|ms| begin.after(Nanos::from_millis(ms)));
    explain(recording, Tid(tid), from, to, usual)
}
