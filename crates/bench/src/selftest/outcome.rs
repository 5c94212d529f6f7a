// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results as `tipme selftest --json` prints them; their field names are a contract.
//!
//! Fields are only ever added. `null` means not available.

use super::trial::Observation;
use crate::faults::stage::slowest;
use crate::faults::{Fault, JudgedFault};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use tipme_measure::ms;

/// Minimum share of faults with a correct cause.
const ACCURACY_MIN: f64 = 0.95;
/// Tolerance between attributed and injected time, as a share of the injected one.
const TOLERANCE: f64 = 0.15;
/// Maximum number of steps shown of a chain.
const STEPS_MAX: usize = 16;

/// All results of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "tipme selftest --json")]
pub struct SelftestOutcome {
    pub schema: u32,
    /// Share of faults whose cause was named correctly, excluding clean runs; `null` if there were
    /// no faults.
    pub accuracy: Option<f64>,
    /// Number of faults, each repeat counted.
    pub n: usize,
    pub clean_runs: usize,
    /// Findings in clean runs.
    pub false_findings: usize,
    pub results: Vec<TrialRow>,
    pub not_run: Vec<NotRun>,
    /// Faults with an attributed time within 15% of the injected one.
    pub attributed_well: usize,
    /// Share of the latency that stayed unexplained.
    pub unattributed_share_median: Option<f64>,
    pub unattributed_share_max: Option<f64>,
    pub diagnosis_ms_max: Option<f64>,
    /// Share of all CPUs that was busy before the faults began.
    pub usual_load_median: Option<f64>,
    pub usual_load_max: Option<f64>,
}

/// One trial.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Row")]
pub struct TrialRow {
    pub fault: String,
    pub app: String,
    /// Accepted kinds; empty for a clean run.
    pub expected_kinds: Vec<String>,
    pub expected_pids: Vec<u32>,
    pub expected_names: Vec<String>,
    /// Kind of the first finding.
    pub kind: Option<String>,
    /// Kinds of all findings.
    pub kinds: Vec<String>,
    /// Culprit of the first finding, as in the diagnosis.
    #[schemars(extend("anyOf" = [{"$ref": "verdict.schema.json#/$defs/Culprit"}, {"type": "null"}]))]
    pub culprit: Option<Value>,
    pub hit: bool,
    /// Reason of a miss; empty for a hit.
    pub why: String,
    /// Time that findings attribute to the fault.
    pub attributed_ms: f64,
    /// Measured delay.
    pub injected_ms: f64,
    pub unattributed_ms: f64,
    /// Share of the latency that stayed unexplained.
    pub unattributed_share: Option<f64>,
    /// The first finding's share of the excess, and confidence.
    pub share: Option<f64>,
    pub confidence: Option<f64>,
    /// Time from the key to its drawing on the screen, and its usual value.
    pub latency_ms: f64,
    pub usual_ms: f64,
    /// Share of all CPUs that was busy before the fault began, mostly by other programs.
    pub usual_load: Option<f64>,
    /// Latency according to the diagnosis.
    pub interval_ms: Option<f64>,
    pub diagnosis_ms: f64,
    /// Chain of waits back through the interval, shortened.
    pub chain: Vec<String>,
    /// Path of the incident if it was kept.
    pub incident: Option<PathBuf>,
}

/// A trial that could not be run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NotRun {
    pub fault: String,
    pub app: String,
    pub why: String,
    /// Required programs are not installed; nothing failed.
    pub not_installed: bool,
}

impl TrialRow {
    pub(super) fn new(fault: &Fault, app: &str, observed: &Observation) -> TrialRow {
        let (seen, verdict) = (&observed.seen, observed.verdict.as_ref());
        let judged = verdict.map(|verdict| seen.judge(fault, verdict));
        let JudgedFault { hit, why, attributed_ms } =
            judged.unwrap_or_else(|why| JudgedFault::miss(why));
        let latency_ms = seen.later_ms.as_deref().map_or(0.0, slowest);
        let usual_ms = median(seen.calm_ms.clone().unwrap_or_default()).unwrap_or_default();
        let verdict = verdict.unwrap_or(&Value::Null);
        let first = &verdict["findings"][0];
        let (unattributed_ms, interval_ms) =
            (verdict["unattributed_ms"].as_f64(), verdict["interval"]["latency_ms"].as_f64());
        let findings = verdict["findings"].as_array().into_iter().flatten();
        TrialRow {
            fault: fault.name.to_string(),
            app: app.to_string(),
            expected_kinds: fault.kinds.iter().map(ToString::to_string).collect(),
            expected_pids: seen.pids(),
            expected_names: seen.names().to_vec(),
            kind: first["kind"].as_str().map(str::to_string),
            kinds: findings
                .filter_map(|finding| finding["kind"].as_str().map(str::to_string))
                .collect(),
            culprit: first.get("culprit").cloned(),
            hit,
            why,
            attributed_ms,
            injected_ms: (latency_ms - usual_ms).max(0.0),
            unattributed_ms: unattributed_ms.unwrap_or_default(),
            unattributed_share: unattributed_ms
                .zip(interval_ms)
                .map(|(part, all)| part / all)
                .filter(|share| share.is_finite()),
            share: first["share"].as_f64(),
            confidence: first["confidence"].as_f64(),
            latency_ms,
            usual_ms,
            usual_load: observed.usual_load,
            interval_ms,
            diagnosis_ms: observed.diagnosis.as_secs_f64() * 1e3,
            chain: verdict["chain"]
                .as_array()
                .into_iter()
                .flatten()
                .take(STEPS_MAX)
                .map(step)
                .collect(),
            incident: None,
        }
    }

    /// Returns `true` if no fault was injected.
    pub(crate) fn is_clean(&self) -> bool {
        self.expected_kinds.is_empty()
    }

    /// Returns `true` if the attributed time is about the injected one.
    pub(crate) fn is_attributed_well(&self) -> bool {
        self.injected_ms > 0.0
            && (self.attributed_ms - self.injected_ms).abs() <= TOLERANCE * self.injected_ms
    }

    /// Formats kind, share, and correctness.
    pub(super) fn verdict(&self) -> String {
        let share = self.share.map_or(String::new(), |share| format!(" {:.0}%", share * 100.0));
        let kind = self.kind.as_deref().unwrap_or("no finding");
        format!("{kind}{share} {}", if self.hit { "hit" } else { "MISS" })
    }
}

/// Returns the lower median; `None` if there are no values.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

fn largest(values: Vec<f64>) -> Option<f64> {
    values.into_iter().max_by(f64::total_cmp)
}

/// Formats one step of a chain: thread, state, duration and waker.
fn step(step: &Value) -> String {
    let [start, end] = ["start_ns", "end_ns"].map(|field| step[field].as_u64().unwrap_or_default());
    let [comm, state, detail] =
        ["comm", "state", "detail"].map(|field| step[field].as_str().unwrap_or_default());
    let woken = step["woken_by"].as_str().map_or(String::new(), |by| format!(", woken by {by}"));
    let (time, pid) = (ms(end.saturating_sub(start)), &step["pid"]);
    format!("{time:.1} ms {comm} ({pid}) {state} {detail}{woken}")
}

impl SelftestOutcome {
    /// Counts the results.
    pub(super) fn new(results: Vec<TrialRow>, not_run: Vec<NotRun>) -> SelftestOutcome {
        let (clean, faults): (Vec<&TrialRow>, Vec<&TrialRow>) =
            results.iter().partition(|row| row.is_clean());
        let (n, hits) = (faults.len(), faults.iter().filter(|row| row.hit).count());
        let shares: Vec<f64> = faults.iter().filter_map(|row| row.unattributed_share).collect();
        let loads: Vec<f64> = results.iter().filter_map(|row| row.usual_load).collect();
        SelftestOutcome {
            schema: 1,
            accuracy: (n > 0).then(|| hits as f64 / n as f64),
            n,
            clean_runs: clean.len(),
            false_findings: clean.iter().map(|row| row.kinds.len()).sum(),
            attributed_well: faults.iter().filter(|row| row.is_attributed_well()).count(),
            unattributed_share_median: median(shares.clone()),
            unattributed_share_max: largest(shares),
            diagnosis_ms_max: largest(results.iter().map(|row| row.diagnosis_ms).collect()),
            usual_load_median: median(loads.clone()),
            usual_load_max: largest(loads),
            results,
            not_run,
        }
    }

    /// Returns `true` if enough causes are correct, undisturbed trials have no finding, and no
    /// trial failed.
    pub fn is_good(&self) -> bool {
        let clean = self.results.iter().filter(|row| row.is_clean()).all(|row| row.hit);
        let ran = self.not_run.iter().all(|not_run| not_run.not_installed);
        self.accuracy.is_none_or(|accuracy| accuracy >= ACCURACY_MIN) && clean && ran
    }

    /// Returns `true` if nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Returns the faults and applications, in the order of their first result.
    pub(super) fn subjects(&self) -> Vec<(&str, &str)> {
        let mut known = BTreeSet::new();
        let all = self.results.iter().map(|row| (row.fault.as_str(), row.app.as_str()));
        all.filter(|subject| known.insert(*subject)).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::faults::InjectedFault;
    use crate::faults::stage::StageOutcome;
    use serde_json::json;

    fn fault() -> &'static Fault {
        Fault::named("lock").expect("a fault")
    }

    /// Returns a result with a finding of this kind that blames process 5, the actual culprit.
    pub(crate) fn row(kind: &str, ms: f64) -> TrialRow {
        let verdict = json!({
            "interval": {"latency_ms": 2000.0}, "unattributed_ms": 40.0,
            "findings": [{"kind": kind, "ms": ms, "share": 0.97, "confidence": 0.9,
                "culprit": {"pid": 5, "comm": "holder", "job": null}}],
            "chain": [{"start_ns": 1_000_000, "end_ns": 3_500_000, "pid": 4, "comm": "notes", "state": "blocked",
                "detail": "futex", "woken_by": "holder (5)"}],
        });
        let injection = Some(InjectedFault::new("a job").by(&[5]));
        let (calm_ms, later_ms) = (Some(vec![1.0, 0.9, 2.0]), Some(vec![2001.0, 1.0]));
        let seen = StageOutcome { injection, calm_ms, later_ms, keys: 5 };
        TrialRow::new(
            fault(),
            "xterm",
            &Observation::without_incident(Ok(verdict), seen, Some(0.03)),
        )
    }

    #[test]
    fn the_median_is_one_of_the_values() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.0));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn a_trial_becomes_a_row() {
        let row = row("lock-wait", 1950.0);
        assert!(row.hit && row.is_attributed_well() && !row.is_clean());
        assert_eq!((row.injected_ms, row.unattributed_share), (2000.0, Some(0.02)));
        assert_eq!(row.chain, ["2.5 ms notes (4) blocked futex, woken by holder (5)"]);
        assert_eq!(row.verdict(), "lock-wait 97% hit");
    }

    #[test]
    fn clean_runs_do_not_count_as_hits() {
        let clean = TrialRow {
            expected_kinds: Vec::new(),
            kinds: Vec::new(),
            hit: true,
            ..row("lock-wait", 0.0)
        };
        let outcome = SelftestOutcome::new(
            vec![row("lock-wait", 1950.0), row("stall", 1950.0), clean.clone()],
            Vec::new(),
        );
        assert_eq!(
            (outcome.accuracy, outcome.n, outcome.clean_runs, outcome.false_findings),
            (Some(0.5), 2, 1, 0)
        );
        assert!(!outcome.is_good());
        let outcome = SelftestOutcome::new(vec![clean.clone()], Vec::new());
        assert!(outcome.accuracy.is_none() && outcome.is_good());
        let false_one = TrialRow { kinds: vec!["stall".to_string()], hit: false, ..clean };
        assert!(
            !SelftestOutcome::new(vec![row("lock-wait", 1950.0), false_one], Vec::new()).is_good()
        );
    }

    #[test]
    fn a_product_that_fails_is_a_miss() {
        let failed =
            TrialRow::new(fault(), "xterm", &Observation::failed(&anyhow::anyhow!("no answer")));
        assert_eq!(
            (failed.hit, failed.why.as_str(), failed.is_attributed_well()),
            (false, "no answer", false)
        );
        let outcome = SelftestOutcome::new(vec![row("lock-wait", 1950.0), failed], Vec::new());
        assert_eq!((outcome.accuracy, outcome.is_good()), (Some(0.5), false));
    }

    #[test]
    fn only_programs_that_are_not_installed_are_forgiven() {
        for not_installed in [true, false] {
            let (fault, app) = ("lock".to_owned(), "xterm".to_owned());
            let not_run = vec![NotRun { fault, app, why: String::new(), not_installed }];
            let outcome = SelftestOutcome::new(vec![row("lock-wait", 1950.0)], not_run);
            assert_eq!(outcome.is_good(), not_installed);
        }
    }

    #[test]
    fn the_contract_holds() {
        let document =
            serde_json::to_value(SelftestOutcome::new(vec![row("lock-wait", 1950.0)], Vec::new()))
                .expect("JSON");
        for field in "schema accuracy n clean_runs false_findings results".split(' ') {
            assert!(document.get(field).is_some(), "{field}");
        }
        let fields = "fault app expected_kinds expected_pids kind culprit hit attributed_ms \
                      injected_ms unattributed_ms incident";
        for field in fields.split(' ') {
            assert!(document["results"][0].get(field).is_some(), "{field}");
        }
    }
}
