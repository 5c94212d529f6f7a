// SPDX-License-Identifier: MIT OR Apache-2.0
//! An editor that stalls once, and the findings on it.

use crate::support::Machinery;
use tipme_analysis::model::{Culprit, Finding, Verdict};

pub const NEIGHBOUR: u32 = 500;

/// An editor that types well, with a key at 3 s that `fill` makes slow; it answers at 4 s.
pub fn stall(fill: impl FnOnce(&mut Machinery)) -> Verdict {
    let mut machine = Machinery::with_app("editor");
    machine.task(NEIGHBOUR, NEIGHBOUR, 1, "neighbour", 1).typing(100_000, 12).press(3_000_000);
    fill(&mut machine);
    machine.draw(4_000_000).diagnose(6_000_000)
}

pub fn first(verdict: &Verdict) -> &Finding {
    verdict.findings.first().expect("there is a finding")
}

pub fn culprit(finding: &Finding) -> (u32, Option<&str>) {
    match &finding.culprit {
        Culprit::Process { pid, job, .. } => (*pid, job.as_deref()),
        other => panic!("{other:?} is not a process"),
    }
}
