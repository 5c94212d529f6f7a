// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts without a delay: nothing new since the last answer, or a recording that has just begun.

use crate::sentence::since_answer;
use crate::text::{candidate, longest};
use tipme_analysis::model::{Interval, Verdict};

/// Age of a recording in seconds below which the notice mentions it.
const YOUNG_S: f64 = 60.0;
/// Minimum number of inputs for a baseline.
const INPUTS_MIN: usize = 20;

/// Returns summary and body of the notice for a verdict without a delay beyond its threshold.
pub(crate) fn words(verdict: &Verdict) -> (String, String) {
    match (verdict.incident.answered_s, &verdict.interval) {
        (Some(seconds), interval) => nothing_new(verdict, interval.as_ref(), seconds),
        (None, _) if is_young(verdict) => {
            let need = "tipme needs some keys and clicks for a baseline; press again after the \
                        next hitch.";
            let summary = format!(
                "Nothing unusual in the {:.0} s since recording began",
                verdict.incident.recorded_s
            );
            (summary, need.to_owned())
        }
        (None, Some(interval)) => {
            let summary = format!("Nothing unusual in the last {:.0} s", verdict.incident.window_s);
            let unknown = Some(verdict.incident.input_stopped_s).filter(|stopped| *stopped > 0.0);
            let unknown =
                unknown.map(|stopped| format!(" Input was not recorded for {stopped:.1} s of it."));
            let longest = longest(verdict, interval);
            (
                summary,
                format!("The longest interaction was {longest}.{}", unknown.unwrap_or_default()),
            )
        }
        (None, None) => ("Nothing to explain was recorded".to_owned(), why_nothing(verdict)),
    }
}

/// Explains the missing interval with the last note of the verdict.
fn why_nothing(verdict: &Verdict) -> String {
    let few = match verdict.incident.inputs {
        inputs @ 1..INPUTS_MIN => {
            format!(" {inputs} keys and clicks are too few for a baseline; press again later.")
        }
        _ => String::new(),
    };
    verdict.notes.last().cloned().unwrap_or_default() + &few
}

fn is_young(verdict: &Verdict) -> bool {
    let recorded = verdict.incident.recorded_s;
    recorded > 0.0 && recorded < YOUNG_S
}

fn nothing_new(verdict: &Verdict, interval: Option<&Interval>, seconds: f64) -> (String, String) {
    let given = format!("You asked for that answer {:.0} s ago.", seconds.max(1.0));
    let earlier = verdict.earlier.first().map(|one| format!(" Before it: {}.", candidate(one)));
    (since_answer(interval), given + &earlier.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_analysis::model::Candidate;

    fn verdict(change: impl FnOnce(&mut Verdict)) -> (String, String) {
        let mut verdict = Verdict::default();
        (verdict.incident.window_s, verdict.incident.recorded_s) = (40.0, 4_000.0);
        change(&mut verdict);
        words(&verdict)
    }

    fn calm() -> Option<Interval> {
        Some(Interval {
            latency_ms: 62.0,
            threshold_ms: 100.0,
            class: "key".to_owned(),
            ..Interval::default()
        })
    }

    #[test]
    fn a_press_with_nothing_new_names_the_earlier_delay() {
        let (summary, body) = verdict(|verdict| {
            (verdict.interval, verdict.incident.answered_s) = (calm(), Some(12.0));
            let subject = "typing in xterm".to_owned();
            verdict.earlier =
                vec![Candidate { subject, latency_ms: 938.0, ..Candidate::default() }];
        });
        assert_eq!(summary, "Nothing since the last answer took longer than 62 ms");
        assert_eq!(body, "You asked for that answer 12 s ago. Before it: typing in xterm, 938 ms.");
        let (summary, _) = verdict(|verdict| verdict.incident.answered_s = Some(1.5));
        assert_eq!(summary, "Nothing new since the last answer");
    }

    #[test]
    fn a_young_recording_gives_its_age_and_needs() {
        let title = "Nothing unusual in the 18 s since recording began";
        let need =
            "tipme needs some keys and clicks for a baseline; press again after the next hitch.";
        for interval in [calm(), None] {
            let (summary, body) =
                verdict(|one| (one.interval, one.incident.recorded_s) = (interval, 18.2));
            assert_eq!((summary.as_str(), body.as_str()), (title, need));
        }
    }

    #[test]
    fn only_the_reason_is_given_where_there_is_nothing_to_explain() {
        let notes = [
            "Not shown: command lines of other users.",
            "Nothing that answered the 3 inputs was seen.",
        ];
        let (summary, body) = verdict(|verdict| {
            verdict.notes = notes.map(str::to_owned).to_vec();
            verdict.incident.inputs = 3;
        });
        assert_eq!(summary, "Nothing to explain was recorded");
        assert_eq!(
            body,
            format!(
                "{} 3 keys and clicks are too few for a baseline; press again later.",
                notes[1]
            )
        );
    }
}
