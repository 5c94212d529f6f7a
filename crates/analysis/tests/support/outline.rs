// SPDX-License-Identifier: MIT OR Apache-2.0
//! Outline of a verdict: the milestone of its interval, the latency, and the kinds of the findings.

use crate::support::Machinery;
use tipme_analysis::model::{CauseKind, Verdict};
use tipme_analysis::{DiagnoseOptions, diagnose};

pub fn verdict(machine: &mut Machinery, mark: u64) -> Verdict {
    diagnose(&machine.incident(mark), &DiagnoseOptions::default())
        .expect("the scene is well formed")
}

/// Returns milestone, latency in milliseconds, and the kinds of the findings.
pub fn outline(verdict: &Verdict) -> (String, u64, Vec<CauseKind>) {
    let interval = verdict.interval.as_ref().expect("there was input");
    let kinds = verdict.findings.iter().map(|finding| finding.kind).collect();
    (interval.milestone.clone(), interval.latency_ms.round() as u64, kinds)
}
