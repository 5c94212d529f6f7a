// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a diagnosis names what was injected.

use crate::demo_faults::DemoFault;
use serde_json::Value;

/// Holds the first finding against the fault and the processes of its job.
///
/// The error says what is wrong with the diagnosis.
pub(super) fn judge(fault: DemoFault, verdict: &Value, pids: &[u32]) -> Result<(), String> {
    let findings = verdict["findings"].as_array().ok_or("the diagnosis has no list of findings")?;
    match (findings.first(), fault.kinds()) {
        (None, []) => Ok(()),
        (None, _) => Err(format!("the diagnosis finds nothing; expected {}", fault.kinds().join(" or "))),
        (Some(finding), []) => Err(format!("the diagnosis finds {} where nothing was wrong", describe(finding))),
        (Some(finding), kinds) => judge_finding(finding, kinds, pids).map_err(|error| {
            let among = findings.iter().any(|finding| judge_finding(finding, kinds, pids).is_ok());
            if among { format!("{error}, and the injected job only behind that; {BUSY}") } else { error }
        }),
    }
}

const BUSY: &str = "where that is another program on this machine, try again when it has ended";

fn judge_finding(finding: &Value, kinds: &[&str], pids: &[u32]) -> Result<(), String> {
    let kind = finding["kind"].as_str().unwrap_or_default();
    if !kinds.contains(&kind) {
        return Err(format!("the diagnosis finds {}; expected {}", describe(finding), kinds.join(" or ")));
    }
    let culprit = finding["culprit"]["pid"].as_u64();
    if culprit.is_some_and(|culprit| pids.iter().any(|pid| u64::from(*pid) == culprit)) {
        return Ok(());
    }
    let root = pids.first().map_or("none".to_string(), u32::to_string);
    Err(format!("the diagnosis finds {}; the injected job is that of process {root}", describe(finding)))
}

fn describe(finding: &Value) -> String {
    format!("{} by {}", finding["kind"].as_str().unwrap_or("a finding without a kind"), finding["culprit"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn verdict(kind: &str, pid: u32) -> Value {
        json!({"findings": [{"kind": kind, "culprit": {"pid": pid, "comm": "gzip"}}, {"kind": "timer-sleep"}]})
    }

    #[test]
    fn a_busy_machine_is_told_of() {
        let findings = [99, 10].map(|pid| verdict("cpu-competition", pid)["findings"][0].clone());
        let error = judge(DemoFault::Cpu, &json!({ "findings": findings }), &[10, 12]).expect_err("another is first");
        assert!(error.contains("only behind that"), "{error}");
    }

    #[test]
    fn kind_and_culprit_must_fit() {
        assert_eq!(judge(DemoFault::Cpu, &verdict("cpu-competition", 12), &[10, 12]), Ok(()));
        assert_eq!(judge(DemoFault::Io, &verdict("page-in", 10), &[10]), Ok(()));
    }

    #[test]
    fn another_kind_is_wrong() {
        let error = judge(DemoFault::Lock, &verdict("timer-sleep", 10), &[10]).expect_err("another kind");
        assert_eq!(error, "the diagnosis finds timer-sleep by {\"comm\":\"gzip\",\"pid\":10}; expected lock-wait");
    }

    #[test]
    fn another_culprit_is_wrong() {
        let error = judge(DemoFault::Cpu, &verdict("cpu-competition", 99), &[10, 12]).expect_err("another culprit");
        assert!(error.ends_with("the injected job is that of process 10"), "{error}");
    }

    #[test]
    fn calm_means_no_finding() {
        assert_eq!(judge(DemoFault::Calm, &json!({"findings": []}), &[]), Ok(()));
        assert!(judge(DemoFault::Calm, &verdict("stall", 1), &[]).is_err());
        assert!(judge(DemoFault::Cpu, &json!({"findings": []}), &[1]).is_err());
        assert!(judge(DemoFault::Cpu, &json!({}), &[1]).is_err());
    }
}
