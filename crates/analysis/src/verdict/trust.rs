// SPDX-License-Identifier: MIT OR Apache-2.0
//! Confidence in the explanation of an interval: unattributed time and lost records lower it.

use crate::join::answer::Join;
use crate::model::{CauseKind, Finding, Piece};
use crate::timeline::losses::SECOND;
use crate::timeline::recording::Recording;
use crate::verdict::problem::Problem;
use tipme_record::Nanos;
use tipme_record::incident::Loss;

/// Maximum confidence of a finding.
const TRUST: f64 = 0.95;
const TRUST_SPECULATIVE: f64 = 0.7;
const TRUST_INCOMPLETE: f64 = 0.6;
/// Factor for a cause of less than [`HALF`] of the interval: another one may have mattered more.
const TRUST_MINOR: f64 = 0.75;
const HALF: f64 = 0.5;

/// Factor if this share of the records or more was lost; proportional below.
const TRUST_LOSSES: f64 = 0.5;
const LOST_MANY: f64 = 0.05;

/// Minimum number of observations for a reliable baseline.
const USUAL_MIN: usize = 10;

/// Confidence of the first finding below which the verdict says that it is not sure.
pub const SURE: f64 = 0.7;

/// Explained share and certainty of a cause below which an unsure verdict mentions them.
const WELL: f64 = 0.9;

/// Confidence in an interval as a whole, with the reasons that lower it.
pub(crate) struct Trust {
    pub confidence: f64,
    explained: f64,
    /// Full sentences.
    pub doubts: Vec<String>,
}

/// Returns the confidence in the interval as a whole, with the reasons that lower it.
pub(crate) fn trust(recording: &Recording, problem: &Problem, unattributed_ms: f64) -> Trust {
    let (lost, losses) = losses(recording, problem.start, problem.end);
    let lost = (lost > 0).then(|| match lost {
        1 => "1 record was lost during the interval.".to_owned(),
        _ => format!("{lost} records were lost during the interval."),
    });
    let doubts = [
        (
            problem.join == Some(Join::Speculative),
            TRUST_SPECULATIVE,
            "Input and drawing were matched by time only.",
        ),
        (lost.is_some(), losses, lost.as_deref().unwrap_or_default()),
        (
            problem.start < recording.complete_from(),
            TRUST_INCOMPLETE,
            "The interval begins before the records are complete.",
        ),
    ];
    let applied: Vec<_> = doubts.into_iter().filter(|(applies, ..)| *applies).collect();
    let explained = explained(unattributed_ms, problem.latency());
    let confidence = applied.iter().fold(TRUST * explained, |trust, (_, factor, _)| trust * factor);
    Trust {
        confidence,
        explained,
        doubts: applied.into_iter().map(|(_, _, note)| note.to_owned()).collect(),
    }
}

/// Returns the note for a baseline of few interactions. The cause is no less certain for that.
pub(crate) fn hardly_usual(problem: &Problem) -> Option<String> {
    const NOTE: &str =
        "Few other interactions of this kind were seen, so the usual latency is uncertain.";
    (problem.usual.n() < USUAL_MIN).then(|| NOTE.to_owned())
}

/// Returns the confidence in a cause: `trust` in the interval, certainty of the evidence, and share
/// of the interval.
pub(crate) fn of_cause(trust: f64, certainty: f64, share: f64) -> f64 {
    let weight = if share < HALF { TRUST_MINOR } else { 1.0 };
    (trust * certainty * weight).clamp(0.0, 1.0)
}

/// Returns the confidence in a requested interval, which depends on its records alone.
pub(crate) fn of_records(recording: &Recording, lo: Nanos, hi: Nanos, unattributed_ms: f64) -> f64 {
    TRUST * losses(recording, lo, hi).1 * explained(unattributed_ms, hi.since(lo))
}

impl Trust {
    /// Explains the lack of confidence in the first finding and names the next candidate; returns
    /// `None` if the confidence suffices.
    pub(crate) fn unsure(&self, findings: &[Finding]) -> Option<String> {
        let (first, others) =
            findings.split_first().filter(|(first, _)| first.confidence < SURE)?;
        let mut why: Vec<String> = self.doubts.iter().map(|doubt| clause(doubt)).collect();
        if self.explained < WELL {
            why.push(format!("only {:.0}% of the interval is explained", 100.0 * self.explained));
        }
        if first.share < HALF {
            why.push("it accounts for less than half of the time".to_owned());
        } else if first.confidence < WELL * self.confidence {
            why.push("the evidence is indirect".to_owned());
        }
        let percent = (100.0 * first.confidence).floor();
        let next = others.first().map_or_else(String::new, |next| {
            let what = next.evidence.first().map_or("", String::as_str);
            format!(" The next candidate is {}: {what}.", next.kind.name())
        });
        Some(format!("Not sure of the cause (confidence {percent}%): {}.{next}", why.join("; ")))
    }
}

/// Turns a sentence into a clause.
fn clause(sentence: &str) -> String {
    let mut rest = sentence.trim_end_matches('.').chars();
    rest.next().map_or_else(String::new, |first| first.to_lowercase().chain(rest).collect())
}

/// Returns the time that no record explains.
pub(crate) fn unattributed_ms(partition: &[Piece]) -> f64 {
    let open = partition.iter().filter(|piece| piece.kind == CauseKind::Unattributed);
    open.map(|piece| piece.ms).fold(0.0, |sum, ms| sum + ms)
}

/// Returns the explained share of an interval, 0 to 1.
fn explained(unattributed_ms: f64, interval: Nanos) -> f64 {
    1.0 - (unattributed_ms / interval.millis().max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
}

/// Returns the number of records lost in the seconds that overlap `lo..hi`, and the resulting
/// factor of the confidence. The factor falls with the lost share of the records in those seconds
/// and classes.
fn losses(recording: &Recording, lo: Nanos, hi: Nanos) -> (u64, f64) {
    let losses = recording.losses.per_second.iter().zip(&recording.beside_losses);
    let within = losses
        .filter(|(loss, _)| Nanos(loss.until_ns) > lo && Nanos(loss.until_ns).before(SECOND) < hi);
    let (lost, held) =
        within.fold((0, 0), |(lost, held): (u64, u64), (loss, beside): (&Loss, &u64)| {
            (lost.saturating_add(loss.count), held.saturating_add(*beside))
        });
    let share = lost as f64 / (lost as f64 + held as f64).max(1.0);
    (lost, 1.0 - (1.0 - TRUST_LOSSES) * (share / LOST_MANY).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_of_less_than_half_of_the_time_is_less_sure_than_one_of_all_of_it() {
        assert_eq!(of_cause(TRUST, 1.0, 1.0), TRUST);
        assert_eq!(of_cause(TRUST, 1.0, HALF), TRUST);
        assert!(of_cause(TRUST, 1.0, 0.43) < of_cause(TRUST, 0.8, 1.0));
        assert_eq!(of_cause(2.0, 1.0, 1.0), 1.0);
    }
}
