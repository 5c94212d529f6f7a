// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a diagnosis names what was done; pure.

use super::fault::InjectedCause;
use serde_json::Value;

/// Findings among which both causes of a pair must be.
const PAIR_FINDINGS: usize = 3;

/// What a diagnosis is worth.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct JudgedTrial {
    pub hit: bool,
    /// Why it is no hit; empty where it is.
    pub why: String,
    /// What the findings that name a cause say that it took.
    pub attributed_ms: f64,
}

impl JudgedTrial {
    /// There is nothing to hold against what was done.
    pub(super) fn miss(why: &str) -> JudgedTrial {
        JudgedTrial { hit: false, why: why.to_owned(), attributed_ms: 0.0 }
    }
}

/// Holds the findings against the kinds expected for each cause, and against the causes themselves.
pub(super) fn judge(expected: &[&[&str]], causes: &[InjectedCause], verdict: &Value) -> JudgedTrial {
    let Some(findings) = verdict["findings"].as_array() else {
        return JudgedTrial::miss("the diagnosis has no list of findings");
    };
    let fits = |finding: &Value, cause: usize| {
        expected.get(cause).zip(causes.get(cause)).is_some_and(|(kinds, cause)| names(finding, kinds, cause))
    };
    let any = |finding: &&Value| (0..expected.len()).any(|cause| fits(finding, cause));
    let named = findings.iter().filter(any).filter_map(|finding| finding["ms"].as_f64());
    let attributed_ms = named.fold(0.0, |sum, ms| sum + ms);
    let hit = match expected.len() {
        0 => findings.is_empty(),
        1 => findings.first().is_some_and(|finding| fits(finding, 0)),
        _ => findings.first().as_ref().is_some_and(any) && has_both(findings, &fits),
    };
    let why = if hit { String::new() } else { complaint(expected, causes, findings) };
    JudgedTrial { hit, why, attributed_ms }
}

/// Two different ones of the first findings name the two causes.
fn has_both(findings: &[Value], fits: &impl Fn(&Value, usize) -> bool) -> bool {
    let first: Vec<&Value> = findings.iter().take(PAIR_FINDINGS).collect();
    let with = |one: usize| first.iter().enumerate().any(|(at, other)| at != one && fits(other, 1));
    (0..first.len()).any(|one| fits(first[one], 0) && with(one))
}

/// A finding has one of the kinds and blames what did it.
fn names(finding: &Value, kinds: &[&str], cause: &InjectedCause) -> bool {
    finding["kind"].as_str().is_some_and(|kind| kinds.contains(&kind)) && blames(&finding["culprit"], cause)
}

/// The culprit is one of the processes, or something with one of the names.
fn blames(culprit: &Value, cause: &InjectedCause) -> bool {
    let pid = culprit["pid"].as_u64();
    let named = |text: &str| cause.names.iter().any(|name| text.contains(name.as_str()));
    pid.is_some_and(|pid| cause.pids.iter().any(|known| u64::from(*known) == pid))
        || ["device", "address", "job"].iter().any(|field| culprit[*field].as_str().is_some_and(named))
}

fn complaint(expected: &[&[&str]], causes: &[InjectedCause], findings: &[Value]) -> String {
    let found: Vec<String> = findings.iter().take(PAIR_FINDINGS).map(describe).collect();
    let found = if found.is_empty() { "nothing".to_string() } else { found.join(", ") };
    if expected.is_empty() {
        return format!("it finds {found} where nothing was wrong");
    }
    let wanted = expected.iter().enumerate().map(|(at, kinds)| wanted(kinds, causes.get(at)));
    format!("it finds {found}; expected {}", wanted.collect::<Vec<_>>().join(" and "))
}

fn wanted(kinds: &[&str], cause: Option<&InjectedCause>) -> String {
    let pids = cause.iter().flat_map(|cause| &cause.pids).map(|pid| format!("pid {pid}"));
    let names = cause.iter().flat_map(|cause| &cause.names).cloned();
    let who: Vec<String> = pids.chain(names).take(4).collect();
    let by = if who.is_empty() { String::new() } else { format!(" by {}", who.join(" or ")) };
    format!("{}{by}", kinds.join(" or "))
}

/// A finding for people: kind and culprit.
pub(super) fn describe(finding: &Value) -> String {
    format!("{} by {}", finding["kind"].as_str().unwrap_or("a finding without a kind"), who(&finding["culprit"]))
}

/// A culprit for people.
pub(super) fn who(culprit: &Value) -> String {
    if let Some(pid) = culprit["pid"].as_u64() {
        let job = culprit["job"].as_str().map_or(String::new(), |job| format!(" in {job}"));
        return format!("{} ({pid}){job}", culprit["comm"].as_str().unwrap_or("a process"));
    }
    let other = culprit["device"].as_str().or(culprit["address"].as_str());
    other.filter(|name| !name.is_empty()).unwrap_or("nobody").to_string()
}

/// How long each cause delayed the key: what is known, and an even share of the rest where it is not.
pub(super) fn injected_ms(causes: &[InjectedCause], excess_ms: f64) -> f64 {
    let known: f64 = causes.iter().filter_map(|cause| cause.ms).sum();
    let all_known = causes.iter().all(|cause| cause.ms.is_some());
    if all_known { known } else { known.max(excess_ms) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn by(pid: u32) -> InjectedCause {
        InjectedCause { pids: vec![pid], ..InjectedCause::default() }
    }

    fn finding(kind: &str, pid: u32, ms: f64) -> Value {
        json!({"kind": kind, "culprit": {"pid": pid, "comm": "holder", "job": "make (pid 7)"}, "ms": ms})
    }

    fn verdict(findings: &[Value]) -> Value {
        json!({ "findings": findings })
    }

    #[test]
    fn one_cause_must_be_the_first_finding() {
        let (lock, sleep) = (finding("lock-wait", 5, 90.0), finding("timer-sleep", 6, 10.0));
        let kinds: &[&[&str]] = &[&["lock-wait", "kernel-lock"]];
        let judged = judge(kinds, &[by(5)], &verdict(&[lock.clone(), sleep.clone()]));
        assert_eq!(judged, JudgedTrial { hit: true, why: String::new(), attributed_ms: 90.0 });
        let judged = judge(kinds, &[by(5)], &verdict(&[sleep, lock]));
        assert_eq!((judged.hit, judged.attributed_ms), (false, 90.0));
        assert!(judged.why.ends_with("expected lock-wait or kernel-lock by pid 5"), "{}", judged.why);
    }

    #[test]
    fn another_culprit_is_a_miss() {
        let found = verdict(&[finding("lock-wait", 5, 90.0)]);
        assert!(!judge(&[&["lock-wait"]], &[by(6)], &found).hit);
        let job = InjectedCause { names: vec!["make".into()], ..by(6) };
        assert!(judge(&[&["lock-wait"]], &[job], &found).hit);
        assert!(!judge(&[&["lock-wait"]], &[InjectedCause::default()], &found).hit);
    }

    #[test]
    fn devices_and_addresses_go_by_name() {
        let named = |name: &str| InjectedCause { names: vec![name.into()], ..InjectedCause::default() };
        let device = verdict(&[json!({"kind": "disk-queue", "culprit": {"device": "loop3 (7:3)"}, "ms": 1.0})]);
        assert!(judge(&[&["disk-queue"]], &[named("loop3")], &device).hit);
        let address = verdict(&[json!({"kind": "network-wait", "culprit": {"address": "127.0.0.1:80"}, "ms": 1.0})]);
        assert!(!judge(&[&["network-wait"]], &[named("10.0.0.1")], &address).hit);
    }

    #[test]
    fn nothing_wrong_means_no_finding() {
        assert!(judge(&[], &[], &verdict(&[])).hit);
        assert!(!judge(&[], &[], &verdict(&[finding("stall", 1, 5.0)])).hit);
        assert!(!judge(&[&["stall"]], &[by(1)], &verdict(&[])).hit);
        assert!(!judge(&[], &[], &json!({})).hit);
    }

    #[test]
    fn a_pair_must_be_among_the_first_three() {
        let kinds: &[&[&str]] = &[&["lock-wait"], &["disk-queue"]];
        let causes = [by(5), by(6)];
        let (lock, disk) = (finding("lock-wait", 5, 60.0), finding("disk-queue", 6, 30.0));
        let other = finding("stall", 9, 1.0);
        let hit = |findings: &[&Value]| {
            judge(kinds, &causes, &verdict(&findings.iter().map(|one| (*one).clone()).collect::<Vec<_>>()))
        };
        assert_eq!(hit(&[&lock, &disk]).attributed_ms, 90.0);
        assert!(hit(&[&lock, &disk]).hit && hit(&[&disk, &other, &lock]).hit);
        assert!(!hit(&[&other, &lock, &disk]).hit && !hit(&[&lock]).hit);
        assert!(!hit(&[&lock, &other, &other, &disk]).hit);
    }

    #[test]
    fn one_finding_does_not_name_two_causes() {
        let kinds: &[&[&str]] = &[&["lock-wait"], &["lock-wait"]];
        let same = [by(5), by(5)];
        assert!(!judge(kinds, &same, &verdict(&[finding("lock-wait", 5, 60.0)])).hit);
        let two = [finding("lock-wait", 5, 60.0), finding("lock-wait", 5, 30.0)];
        assert!(judge(kinds, &same, &verdict(&two)).hit);
    }

    #[test]
    fn what_is_not_known_is_the_rest() {
        let known = |ms| InjectedCause { ms, ..InjectedCause::default() };
        assert_eq!(injected_ms(&[known(Some(40.0))], 90.0), 40.0);
        assert_eq!(injected_ms(&[known(None)], 90.0), 90.0);
        assert_eq!(injected_ms(&[known(Some(40.0)), known(None)], 90.0), 90.0);
        assert_eq!(injected_ms(&[known(Some(40.0)), known(Some(20.0))], 90.0), 60.0);
    }
}
