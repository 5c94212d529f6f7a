// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a diagnosis names the injected fault.

use serde_json::Value;

/// Number of findings that a complaint lists.
const FINDINGS_TOLD: usize = 3;
const BUSY: &str = "where that is another program on this machine, try again when it has ended";

/// Verdict on a diagnosis.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct JudgedFault {
    pub(crate) hit: bool,
    /// Reason of a miss; empty for a hit.
    pub(crate) why: String,
    /// Time that findings attribute to the fault.
    pub(crate) attributed_ms: f64,
}

impl JudgedFault {
    /// A miss because there is no readable diagnosis.
    pub(crate) fn miss(why: &str) -> JudgedFault {
        JudgedFault { hit: false, why: why.to_owned(), attributed_ms: 0.0 }
    }
}

/// Compares the findings with the expected kinds and culprits: processes and other names.
pub(crate) fn judge(
    kinds: &[&str],
    pids: &[u32],
    names: &[String],
    verdict: &Value,
) -> JudgedFault {
    let Some(findings) = verdict["findings"].as_array() else {
        return JudgedFault::miss("the diagnosis has no list of findings");
    };
    let (mut attributed_ms, mut hits) = (0.0, Vec::new());
    for (at, finding) in findings.iter().enumerate() {
        let kind = finding["kind"].as_str().unwrap_or_default();
        if kinds.contains(&kind) && blames(&finding["culprit"], pids, names) {
            attributed_ms += finding["ms"].as_f64().unwrap_or_default();
            hits.push(at);
        }
    }
    let hit = if kinds.is_empty() { findings.is_empty() } else { hits.first() == Some(&0) };
    let mut why = if hit { String::new() } else { complaint(kinds, pids, names, findings) };
    if !hit && !hits.is_empty() {
        why += &format!(", which is only behind that; {BUSY}");
    }
    JudgedFault { hit, why, attributed_ms }
}

/// Returns `true` if the culprit is one of the processes or has one of the names.
fn blames(culprit: &Value, pids: &[u32], names: &[String]) -> bool {
    let pid = culprit["pid"].as_u64();
    let [device, address, job, comm] = ["device", "address", "job", "comm"]
        .map(|field| culprit[field].as_str().unwrap_or_default());
    let named = names.iter().any(|name| {
        [device, address, job].iter().any(|text| text.contains(name.as_str())) || comm == name
    });
    named || pid.is_some_and(|pid| pids.iter().any(|known| u64::from(*known) == pid))
}

fn complaint(kinds: &[&str], pids: &[u32], names: &[String], findings: &[Value]) -> String {
    let found: Vec<String> = findings.iter().take(FINDINGS_TOLD).map(describe).collect();
    let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
    if kinds.is_empty() {
        return format!("the diagnosis finds {found} where nothing was wrong");
    }
    let culprits =
        pids.iter().take(1).map(|pid| format!("process {pid}")).chain(names.iter().cloned());
    let culprits: Vec<String> = culprits.collect();
    format!(
        "the diagnosis finds {found}; expected {} by {}",
        kinds.join(" or "),
        culprits.join(" or ")
    )
}

/// Kind and culprit of a finding.
fn describe(finding: &Value) -> String {
    format!(
        "{} by {}",
        finding["kind"].as_str().unwrap_or("a finding without a kind"),
        name_of(&finding["culprit"])
    )
}

/// Returns the name of a culprit for output.
pub(crate) fn name_of(culprit: &Value) -> String {
    if let Some(pid) = culprit["pid"].as_u64() {
        let job = culprit["job"].as_str().map_or(String::new(), |job| format!(" in {job}"));
        return format!("{} ({pid}){job}", culprit["comm"].as_str().unwrap_or("a process"));
    }
    let other = culprit["device"].as_str().or(culprit["address"].as_str());
    other.filter(|name| !name.is_empty()).unwrap_or("nobody").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn finding(kind: &str, pid: u32, ms: f64) -> Value {
        json!({"kind": kind, "culprit": {"pid": pid, "comm": "holder", "job": "make (pid 7)"}, "ms": ms})
    }

    fn judged(kinds: &[&str], pids: &[u32], findings: &[Value]) -> JudgedFault {
        judge(kinds, pids, &[], &json!({ "findings": findings }))
    }

    #[test]
    fn first_finding_must_fit() {
        let (lock, sleep) = (finding("lock-wait", 5, 90.0), finding("timer-sleep", 6, 10.0));
        let kinds = ["lock-wait", "kernel-lock"];
        let hit = JudgedFault { hit: true, why: String::new(), attributed_ms: 90.0 };
        assert_eq!(judged(&kinds, &[4, 5], &[lock.clone(), sleep.clone()]), hit);
        let behind = judged(&kinds, &[5], &[sleep, lock.clone()]);
        assert_eq!((behind.hit, behind.attributed_ms), (false, 90.0));
        let expected = "the diagnosis finds timer-sleep by holder (6) in make (pid 7), lock-wait by holder (5) in make \
                        (pid 7); expected lock-wait or kernel-lock by process 5, which is only behind that; ";
        assert_eq!(behind.why, format!("{expected}{BUSY}"));
        assert!(!judged(&kinds, &[6], &[lock]).hit && !judged(&kinds, &[5], &[]).hit);
    }

    #[test]
    fn culprits_have_names() {
        for (name, culprit, hit) in [
            ("loop3", json!({"device": "loop3 (7:3)"}), true),
            ("make", finding("", 6, 0.0)["culprit"].clone(), true),
            ("sleep", json!({"pid": 3, "comm": "sleep"}), true),
            ("sleep", json!({"pid": 3, "comm": "sleepy"}), false),
            ("10.0.0.1", json!({"address": "127.0.0.1:80"}), false),
        ] {
            let verdict = json!({"findings": [{"kind": "stall", "culprit": culprit, "ms": 1.0}]});
            assert_eq!(judge(&["stall"], &[], &[name.to_owned()], &verdict).hit, hit, "{name}");
        }
    }

    #[test]
    fn calm_means_no_finding() {
        assert!(judged(&[], &[], &[]).hit && !judged(&[], &[], &[finding("stall", 1, 5.0)]).hit);
        assert!(!judge(&[], &[], &[], &json!({})).hit);
    }
}
