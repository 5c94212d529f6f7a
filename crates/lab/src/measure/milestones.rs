// SPDX-License-Identifier: MIT OR Apache-2.0
//! Later milestones of each input besides its response: *handled* and *completed*. Only the display
//! tap provides them; guesses by time are left out.

use super::joining::{RecordedRepeat, meant, part_at, with_next};
use tipme_analysis::{COMPLETED, NOTICED, Timed};
use tipme_bench::measure::SentInput;
use tipme_measure::{Share, Summary, ms};
use tipme_record::Nanos;
use tipme_report::measure::MilestoneFigures;

/// Time from an input to a milestone in nanoseconds, a lower bound if it is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MilestoneLatency {
    pub latency: u64,
    pub open: bool,
}

/// Known milestones of an input after its response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Milestones {
    pub handled: Option<MilestoneLatency>,
    pub completed: Option<MilestoneLatency>,
}

/// Returns the milestones of each input.
pub fn milestones(
    sent: &[SentInput],
    pids: &[u32],
    parts: &[RecordedRepeat],
    end: Nanos,
) -> Vec<Milestones> {
    with_next(sent, end)
        .map(|(event, next)| {
            part_at(parts, event.at)
                .map_or(Milestones::default(), |part| of_input(part, event, next, pids))
        })
        .collect()
}

/// Returns the milestones in the application itself: the last interaction to be handled, and the
/// last to be completed.
fn of_input(part: &RecordedRepeat, event: &SentInput, next: Nanos, pids: &[u32]) -> Milestones {
    let own: Vec<&Timed> =
        meant(&part.timed, event, next).filter(|one| pids.contains(&one.client_pid)).collect();
    let handled = own.iter().filter_map(|one| reached(part, one, one.handled_ns));
    let completed = own.iter().filter_map(|one| reached(part, one, completed_ns(one)));
    Milestones {
        handled: handled.max_by_key(|one| one.latency),
        completed: completed.max_by_key(|one| one.latency),
    }
}

fn reached(part: &RecordedRepeat, one: &Timed, at: Option<u64>) -> Option<MilestoneLatency> {
    let at = at?;
    Some(MilestoneLatency { latency: at.saturating_sub(one.input_ns), open: at >= part.mark.0 })
}

/// Returns the time of the late completion, else that of the last drawing of an exactly joined
/// answer.
fn completed_ns(one: &Timed) -> Option<u64> {
    let answered = one.join == "exact" && one.milestone == "response" && !one.censored;
    one.completed_ns.or_else(|| answered.then(|| one.end_ns.max(one.settled_ns.unwrap_or(0))))
}

/// Returns the figures of a class up to *handled*; `None` if no input has it.
pub fn handled<'a>(of_class: impl Iterator<Item = &'a Milestones>) -> Option<MilestoneFigures> {
    figures(of_class.filter_map(|one| one.handled), NOTICED)
}

/// Returns the same up to *completed*.
pub fn completed<'a>(of_class: impl Iterator<Item = &'a Milestones>) -> Option<MilestoneFigures> {
    figures(of_class.filter_map(|one| one.completed), COMPLETED)
}

fn figures(
    reached: impl Iterator<Item = MilestoneLatency>,
    noticed: Nanos,
) -> Option<MilestoneFigures> {
    let reached: Vec<MilestoneLatency> = reached.collect();
    let summary = Summary::new(reached.iter().map(|one| one.latency).collect());
    let p98 = summary.shown(Share::P98);
    let max = summary.max()?;
    Some(MilestoneFigures {
        n: summary.n(),
        p50_ms: summary.shown(Share::P50).map(ms),
        p98_ms: p98.map(ms),
        max_ms: ms(max),
        threshold_ms: noticed.millis(),
        open: reached.iter().filter(|one| one.open).count() as u64,
        exceeded: p98.unwrap_or(max) > noticed.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_measure::InputClass;

    const MS: u64 = 1_000_000;

    fn sent(at: u64) -> SentInput {
        SentInput { at: Nanos(at * MS), label: "x".to_owned(), class: InputClass::Key }
    }

    fn timed(pid: u32, input: u64, end: u64) -> Timed {
        Timed {
            class: "key".to_owned(),
            client_pid: pid,
            input_ns: input * MS,
            end_ns: end * MS,
            join: "exact".to_owned(),
            milestone: "response".to_owned(),
            ..Timed::default()
        }
    }

    fn found(timed: Vec<Timed>, times: &[u64]) -> Vec<Milestones> {
        let part = [RecordedRepeat { from: Nanos(0), mark: Nanos(9_000 * MS), timed }];
        let sent: Vec<SentInput> = times.iter().map(|at| sent(*at)).collect();
        milestones(&sent, &[7], &part, Nanos(9_000 * MS))
    }

    /// Returns milestones in milliseconds, each with `true` if open.
    fn expected(handled: Option<(u64, bool)>, completed: Option<(u64, bool)>) -> Milestones {
        let [handled, completed] = [handled, completed].map(|milestone| {
            milestone.map(|(ms, open)| MilestoneLatency { latency: ms * MS, open })
        });
        Milestones { handled, completed }
    }

    #[test]
    fn milestones_are_apart_from_the_response() {
        let late = Timed {
            handled_ns: Some(700 * MS),
            completed_ns: Some(1_400 * MS),
            settled_ns: Some(150 * MS),
            ..timed(7, 100, 104)
        };
        let quick = Timed {
            handled_ns: Some(2_003 * MS),
            settled_ns: Some(2_009 * MS),
            ..timed(7, 2_000, 2_004)
        };
        let found = found(vec![late, quick], &[100, 2_000, 3_000]);
        assert_eq!(found[0], expected(Some((600, false)), Some((1_300, false))));
        assert_eq!(found[1], expected(Some((3, false)), Some((9, false))));
        assert_eq!(found[2], Milestones::default());
    }

    #[test]
    fn what_was_open_at_the_mark_is_so_and_others_do_not_count() {
        let hangs = Timed { handled_ns: Some(9_000 * MS), ..timed(7, 100, 104) };
        let other = Timed { handled_ns: Some(800 * MS), ..timed(8, 5_000, 5_004) };
        let early = Timed { settled_ns: Some(6_999 * MS), ..timed(7, 7_000, 7_004) };
        let guess = Timed { join: "speculative".to_owned(), ..timed(7, 6_000, 6_004) };
        let found = found(vec![hangs, other, guess, early], &[100, 5_000, 6_000, 7_000]);
        assert_eq!(found[0], expected(Some((8_900, true)), Some((4, false))));
        let none = Milestones::default();
        assert_eq!(found[1..], [none, none, expected(None, Some((4, false)))]);
    }

    #[test]
    fn each_milestone_has_its_threshold() {
        let all = [(100, false), (800, true)].map(|one| expected(Some(one), Some(one)));
        let handled = handled(all.iter()).expect("two were handled");
        assert_eq!(
            (handled.n, handled.max_ms, handled.open, handled.exceeded),
            (2, 800.0, 1, true)
        );
        assert!(!completed(all.iter()).expect("two were completed").exceeded);
        assert_eq!(completed([Milestones::default()].iter()), None);
    }
}
