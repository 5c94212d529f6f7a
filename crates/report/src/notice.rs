// SPDX-License-Identifier: MIT OR Apache-2.0
//! Short form of the verdict for a notification: the symptom, the first cause in a sentence, and
//! its remedy.

use crate::nothing;
use crate::sentence::{cause, symptom};
use tipme_analysis::model::{Interval, Verdict};

/// Text of a notification. The summary is never empty, since notification daemons refuse an empty
/// one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    pub summary: String,
    pub body: String,
}

impl Notice {
    pub fn new(summary: impl Into<String>, body: impl Into<String>) -> Notice {
        Notice { summary: summary.into(), body: body.into() }
    }
}

/// Returns the notice for the first finding of a verdict, or for the lack of one.
pub fn notice(verdict: &Verdict) -> Notice {
    match &verdict.interval {
        Some(interval) if interval.exceeded => {
            Notice::new(symptom(verdict, interval), body(verdict, interval))
        }
        _ => {
            let (summary, body) = nothing::words(verdict);
            Notice { summary, body }
        }
    }
}

/// Formats the cause in a sentence, with its remedy on a separate line.
fn body(verdict: &Verdict, interval: &Interval) -> String {
    let cause = cause(verdict, interval);
    verdict
        .findings
        .first()
        .map_or_else(|| cause.clone(), |finding| format!("{cause}\nTry: {}", finding.remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_analysis::model::{CauseKind, Client, Culprit, Finding};

    fn verdict(latency_ms: f64, findings: Vec<Finding>) -> Verdict {
        let client = Client { pid: 7, comm: "xterm".to_owned(), cmdline: String::new() };
        let class = "key".to_owned();
        let exceeded = latency_ms > 100.0;
        let interval = Interval {
            latency_ms,
            class,
            client,
            threshold_ms: 100.0,
            exceeded,
            ..Interval::default()
        };
        let mut verdict = Verdict { interval: Some(interval), findings, ..Verdict::default() };
        verdict.incident.window_s = 39.97;
        verdict
    }

    fn finding(kind: CauseKind, evidence: &[&str]) -> Finding {
        let evidence = evidence.iter().map(ToString::to_string).collect();
        let culprit =
            Culprit::Process { pid: 9, comm: "cc1".to_owned(), cmdline: String::new(), job: None };
        let remedy = "ionice -c 3 -p 9".to_owned();
        Finding {
            kind,
            culprit,
            ms: 916.0,
            unusual: true,
            confidence: 0.9,
            evidence,
            remedy,
            ..Finding::default()
        }
    }

    fn shown(verdict: &Verdict) -> (String, String) {
        let Notice { summary, body } = notice(verdict);
        (summary, body)
    }

    #[test]
    fn the_first_finding_is_a_sentence_with_its_remedy() {
        let disk = finding(
            CauseKind::DiskQueue,
            &["cc1 (pid 9) had 2 writes queued on sda ahead of xterm's request"],
        );
        let (summary, body) = shown(&verdict(938.0, vec![disk, Finding::default()]));
        assert_eq!(summary, "Typing in xterm stalled for 938 ms");
        let sentence = "cc1 saturated the disk that xterm was waiting for (98% of the time).";
        assert_eq!(body, format!("{sentence}\nTry: ionice -c 3 -p 9"));
    }

    #[test]
    fn a_usual_delay_is_the_longest_wait() {
        let usual = Finding {
            unusual: false,
            ..finding(CauseKind::OwnComputation, &["cc1 (pid 9) computed"])
        };
        assert_eq!(
            shown(&verdict(938.0, vec![usual])).0,
            "The longest wait was typing in xterm, 938 ms"
        );
    }

    #[test]
    fn a_compositor_that_was_starved_is_named() {
        let taken =
            Finding { waiter: "sway".to_owned(), ..finding(CauseKind::CpuCompetition, &[]) };
        let (_, body) = shown(&verdict(938.0, vec![taken]));
        assert_eq!(
            body.lines().next(),
            Some("cc1 took the CPU time that sway needed (98% of the time).")
        );
    }

    fn joined(verdict: &Verdict) -> String {
        let (summary, body) = shown(verdict);
        format!("{summary}: {body}")
    }

    #[test]
    fn a_verdict_without_a_finding_admits_it() {
        let calm = "Nothing unusual in the last 40 s: The longest interaction was typing in xterm, \
                    11 ms (noticeable from 100 ms on).";
        assert_eq!(joined(&verdict(11.0, vec![])), calm);
        let unexplained = "Typing in xterm showed something new after 938 ms: No cause was found. \
                           Perhaps nothing was slow: some keys and clicks draw nothing by \
                           themselves, such as the first key of a two-key command.";
        assert_eq!(joined(&verdict(938.0, vec![])), unexplained);
        let open = Verdict { unattributed_ms: 800.0, ..verdict(938.0, vec![]) };
        assert!(
            joined(&open)
                .ends_with("No cause was found. The records do not explain most of this time.")
        );
        let empty =
            Verdict { notes: vec!["No display was recorded.".to_owned()], ..Verdict::default() };
        assert_eq!(joined(&empty), "Nothing to explain was recorded: No display was recorded.");
    }
}
