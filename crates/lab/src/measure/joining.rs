// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins the inputs of a script with the drawings that answer them.
//!
//! With the display tap the join follows from the records: a recorded input is matched with the one
//! that the driver sent at that time. With drawing reports alone it is a guess from the order of
//! events.

use tipme_analysis::Timed;
use tipme_bench::measure::SentInput;
use tipme_measure::{Answer, Event, EventJoin, InputClass};
use tipme_record::Nanos;

/// Maximum time by which a recorded input may precede the driver's time stamp.
const EARLY: Nanos = Nanos(500_000);
/// Maximum delay from the driver's input to the recorded one.
const LATE: Nanos = Nanos::from_millis(100);
/// Maximum gap between drawings of one answer.
const GAP: Nanos = Nanos::from_millis(150);
/// An input counts as slow, so that others may queue behind it, if its answer takes this multiple
/// of the usual time and at least this long.
const SLOW_TIMES: u64 = 3;
const SLOW_MIN: Nanos = Nanos::from_millis(30);

/// Outcome of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputOutcome {
    Answered(Event),
    /// Nothing was drawn for it.
    Silent,
    /// The instrument no longer held its records.
    Lost,
}

/// Recorded part of a repeat.
pub struct RecordedRepeat {
    /// Start of complete records.
    pub from: Nanos,
    pub mark: Nanos,
    pub timed: Vec<Timed>,
}

/// Joins by the display tap, and by time only if the tap gives no answer.
///
/// Time decides in three cases. The tap has no answer although something was drawn before the next
/// input: another program may have drawn it, or a record was lost. It finds the answer only after
/// the next input, although something was drawn before that. It still waits for the answer,
/// although something was drawn since.
pub fn by_tap(
    sent: &[SentInput],
    pids: &[u32],
    parts: &[RecordedRepeat],
    drawn: &[Nanos],
    end: Nanos,
) -> Vec<InputOutcome> {
    let mut outcomes = Vec::with_capacity(sent.len());
    for ((event, next), guess) in with_next(sent, end).zip(guesses(sent, drawn, end)) {
        let Some(part) = part_at(parts, event.at) else {
            outcomes.push(InputOutcome::Lost);
            continue;
        };
        let was_drawn = first_after(drawn, event.at).is_some_and(|at| at <= end);
        let answer = match answer(&part.timed, event, next, pids) {
            Some(answer) if !answer.open || !was_drawn => Some(settle(answer, guess, next.0)),
            _ => guess,
        };
        outcomes.push(outcome(event, answer));
    }
    outcomes
}

/// Returns each input with the time of the next one, or of the end.
pub fn with_next(sent: &[SentInput], end: Nanos) -> impl Iterator<Item = (&SentInput, Nanos)> {
    sent.iter().zip(sent.iter().skip(1).map(|next| next.at).chain([end]))
}

/// Returns the part that has the records of a time, unless they are no longer held.
pub fn part_at(parts: &[RecordedRepeat], at: Nanos) -> Option<&RecordedRepeat> {
    parts.iter().find(|part| part.mark >= at).filter(|part| part.from <= at)
}

/// Returns the event of an input with a known answer.
fn outcome(sent: &SentInput, answer: Option<Answer>) -> InputOutcome {
    answer.map_or(InputOutcome::Silent, |answer| InputOutcome::Answered(answer.event(sent.class)))
}

/// Returns the tap's answer unless the screen contradicts it: a drawing before the next input does
/// not answer that input.
fn settle(answer: Answer, guess: Option<Answer>, next: u64) -> Answer {
    match guess.filter(|seen| seen.first < next) {
        Some(seen) if answer.first > next => seen,
        Some(seen) if answer.settled > next => {
            Answer { settled: seen.settled.max(answer.first), ..answer }
        }
        None if answer.settled > next => Answer { settled: answer.first, ..answer },
        _ => answer,
    }
}

/// Returns the interactions that start with the driver's input at one time and before the next one.
fn near(timed: &[Timed], at: Nanos, next: Nanos) -> impl Iterator<Item = &Timed> {
    let (lo, hi) =
        (at.before(EARLY), at.after(LATE).min(next.before(EARLY).max(at.after(Nanos(1)))));
    let first = timed.partition_point(|one| Nanos(one.input_ns) < lo);
    timed.get(first..).unwrap_or_default().iter().take_while(move |one| Nanos(one.input_ns) < hi)
}

/// Returns the interactions that an input starts. The pointer motion before a click is ignored, as
/// it is not the purpose of a click.
pub fn meant<'a>(
    timed: &'a [Timed],
    event: &SentInput,
    next: Nanos,
) -> impl Iterator<Item = &'a Timed> {
    let is_motion = event.class == InputClass::Motion;
    near(timed, event.at, next).filter(move |one| one.class != "motion" || is_motion)
}

/// Returns the answer to an input: the best joined interaction of the application itself, with all
/// its consequences.
fn answer(timed: &[Timed], event: &SentInput, next: Nanos, pids: &[u32]) -> Option<Answer> {
    let near: Vec<&Timed> = meant(timed, event, next)
        .filter(|one| one.censored || one.milestone == "response")
        .collect();
    let best =
        *near.iter().min_by_key(|one| (!pids.contains(&one.client_pid), one.join != "exact"))?;
    let own = near.iter().filter(|one| one.client_pid == best.client_pid);
    let ends = own.flat_map(|one| [Some(one.end_ns), one.settled_ns, one.completed_ns]);
    let settled = ends.flatten().max().unwrap_or(best.end_ns);
    Some(Answer {
        input: best.input_ns,
        dequeued: best.taken_ns,
        first: best.end_ns,
        settled,
        join: if best.join == "exact" { EventJoin::Exact } else { EventJoin::Speculative },
        open: best.censored,
    })
}

/// Joins by the times of drawings alone: a drawing answers the input before it.
///
/// If the next input came before any drawing, the first one has an answer only if the next one's
/// answer is unusually slow: then inputs queued up, and the drawing shows the effect of all of
/// them.
pub fn by_reports(sent: &[SentInput], drawn: &[Nanos], end: Nanos) -> Vec<InputOutcome> {
    let guesses = guesses(sent, drawn, end);
    sent.iter().zip(guesses).map(|(sent, guess)| outcome(sent, guess)).collect()
}

fn guesses(sent: &[SentInput], drawn: &[Nanos], end: Nanos) -> Vec<Option<Answer>> {
    let slow = usual(sent, drawn)
        .map_or(SLOW_MIN, |usual| Nanos(usual.0.saturating_mul(SLOW_TIMES)).max(SLOW_MIN));
    let mut guesses: Vec<Option<Answer>> = Vec::with_capacity(sent.len());
    let mut piled_until = None;
    for (index, event) in sent.iter().enumerate().rev() {
        let next = sent.get(index + 1).map(|next| next.at);
        let first = first_after(drawn, event.at).filter(|at| *at <= end);
        let within = first
            .filter(|at| next.is_none_or(|next| *at < next))
            .or(piled_until.filter(|at| first == Some(*at)));
        piled_until = within.filter(|at| at.since(event.at) > slow);
        guesses.push(within.map(|at| guess(event.at, at, drawn, next)));
    }
    guesses.reverse();
    guesses
}

/// Returns the median time to the first drawing, over inputs with a drawing before the next input.
fn usual(sent: &[SentInput], drawn: &[Nanos]) -> Option<Nanos> {
    let pairs = sent.windows(2).filter_map(|pair| {
        first_after(drawn, pair[0].at).filter(|at| *at < pair[1].at).map(|at| at.since(pair[0].at))
    });
    let mut times: Vec<Nanos> = pairs.collect();
    times.sort_unstable();
    times.get(times.len().saturating_sub(1) / 2).copied()
}

fn first_after(drawn: &[Nanos], at: Nanos) -> Option<Nanos> {
    drawn.get(drawn.partition_point(|drawing| *drawing <= at)).copied()
}

/// Returns an answer from its first drawing on; drawings that follow closely, before the next
/// input, belong to it.
fn guess(input: Nanos, first: Nanos, drawn: &[Nanos], next: Option<Nanos>) -> Answer {
    let later = drawn.get(drawn.partition_point(|at| *at < first)..).unwrap_or_default();
    let mut settled = first;
    for at in later.iter().take_while(|at| next.is_none_or(|next| **at < next)) {
        if at.since(settled) > GAP {
            break;
        }
        settled = *at;
    }
    let (first, settled) = (first.0, settled.0);
    Answer {
        input: input.0,
        dequeued: None,
        first,
        settled,
        join: EventJoin::Speculative,
        open: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn ms(times: &[u64]) -> Vec<Nanos> {
        times.iter().map(|time| Nanos(time * MS)).collect()
    }

    fn sent(times: &[u64], class: InputClass) -> Vec<SentInput> {
        ms(times).into_iter().map(|at| SentInput { at, label: "x".to_owned(), class }).collect()
    }

    fn timed(pid: u32, input: u64, end: u64, join: &str, class: &str) -> Timed {
        Timed {
            class: class.to_owned(),
            client_pid: pid,
            input_ns: input * MS,
            taken_ns: Some(input * MS + 5),
            end_ns: end * MS,
            join: join.to_owned(),
            milestone: "response".to_owned(),
            ..Timed::default()
        }
    }

    fn first_ms(outcome: &InputOutcome) -> Option<u64> {
        match outcome {
            InputOutcome::Answered(event) => event.first_response().map(|ns| ns / MS),
            _ => None,
        }
    }

    fn one_part(from: u64, timed: Vec<Timed>) -> Vec<RecordedRepeat> {
        vec![RecordedRepeat { from: Nanos(from * MS), mark: Nanos(10_000 * MS), timed }]
    }

    #[test]
    fn each_input_gets_its_own_interaction() {
        let part = one_part(
            0,
            vec![timed(7, 100, 104, "exact", "key"), timed(7, 220, 223, "exact", "key")],
        );
        let outcomes =
            by_tap(&sent(&[100, 160, 220], InputClass::Key), &[7], &part, &[], Nanos(300 * MS));
        assert_eq!(outcomes.iter().map(first_ms).collect::<Vec<_>>(), [Some(4), None, Some(3)]);
        assert_eq!(outcomes[1], InputOutcome::Silent);
    }

    #[test]
    fn a_move_of_the_pointer_answers_where_that_is_the_input() {
        let part = one_part(0, vec![timed(7, 100, 102, "exact", "motion")]);
        let [moved, clicked] = [InputClass::Motion, InputClass::Click]
            .map(|class| by_tap(&sent(&[100], class), &[7], &part, &[], Nanos(300 * MS)).remove(0));
        assert_eq!((first_ms(&moved), clicked), (Some(2), InputOutcome::Silent));
    }

    #[test]
    fn the_application_goes_before_others_and_exact_before_guesses() {
        let others = vec![
            timed(1, 100, 190, "exact", "click"),
            timed(7, 100, 150, "speculative", "click"),
            timed(7, 100, 120, "exact", "click"),
        ];
        let outcomes = by_tap(
            &sent(&[100], InputClass::Click),
            &[7, 8],
            &one_part(0, others),
            &[],
            Nanos(300 * MS),
        );
        assert_eq!(first_ms(&outcomes[0]), Some(20));
    }

    #[test]
    fn a_page_ends_with_its_last_drawing() {
        let drawn = Timed { completed_ns: Some(180 * MS), ..timed(7, 100, 104, "exact", "key") };
        let part = one_part(0, vec![drawn]);
        for (class, latency_ms) in [(InputClass::Window, 80), (InputClass::Key, 4)] {
            let outcomes = by_tap(&sent(&[100], class), &[7], &part, &[], Nanos(300 * MS));
            let InputOutcome::Answered(event) = outcomes[0] else { panic!("{outcomes:?}") };
            assert_eq!(event.latency(), latency_ms * MS);
        }
    }

    #[test]
    fn what_is_no_longer_held_is_lost() {
        let part = one_part(150, vec![timed(7, 100, 104, "exact", "key")]);
        let outcomes =
            by_tap(&sent(&[100, 20_000], InputClass::Key), &[7], &part, &[], Nanos(300 * MS));
        assert_eq!(outcomes, [InputOutcome::Lost, InputOutcome::Lost]);
    }

    #[test]
    fn where_the_tap_sees_no_answers_time_has_to_do() {
        let outcomes = by_tap(
            &sent(&[100, 500], InputClass::Key),
            &[7],
            &one_part(0, Vec::new()),
            &ms(&[130]),
            Nanos(900 * MS),
        );
        assert_eq!(outcomes.iter().map(first_ms).collect::<Vec<_>>(), [Some(30), None]);
    }

    #[test]
    fn the_screen_may_contradict_the_tap() {
        let late = timed(7, 100, 700, "exact", "key");
        let open = Timed { censored: true, ..timed(7, 100, 9_999, "none", "key") };
        for (timed, drawn, first, join) in [
            (&late, &[130, 700][..], Some(30), EventJoin::Speculative),
            (&late, &[700], Some(600), EventJoin::Exact),
            (&open, &[130], Some(30), EventJoin::Speculative),
            (&open, &[], None, EventJoin::Speculative),
        ] {
            let outcomes = by_tap(
                &sent(&[100, 500], InputClass::Key),
                &[7],
                &one_part(0, vec![timed.clone()]),
                &ms(drawn),
                Nanos(900 * MS),
            );
            let InputOutcome::Answered(event) = outcomes[0] else { panic!("{outcomes:?}") };
            assert_eq!((first_ms(&outcomes[0]), event.times().join), (first, join));
        }
        let [InputOutcome::Answered(event)] = by_tap(
            &sent(&[100], InputClass::Key),
            &[7],
            &one_part(0, vec![open]),
            &[],
            Nanos(900 * MS),
        )[..] else {
            panic!("it is open");
        };
        assert_eq!((event.latency(), event.is_censored()), (9_899 * MS, true));
        let still_awaited = Timed { censored: true, ..timed(7, 100, 9_999, "none", "key") };
        let outcomes = by_tap(
            &sent(&[100, 500], InputClass::Key),
            &[7],
            &one_part(0, vec![still_awaited, timed(7, 500, 504, "exact", "key")]),
            &ms(&[504]),
            Nanos(900 * MS),
        );
        assert_eq!(outcomes.iter().map(first_ms).collect::<Vec<_>>(), [None, Some(4)]);
    }

    #[test]
    fn what_follows_the_next_input_does_not_belong_to_this_one() {
        let long = Timed { settled_ns: Some(800 * MS), ..timed(7, 100, 104, "exact", "key") };
        let outcomes = by_tap(
            &sent(&[100, 500], InputClass::Window),
            &[7],
            &one_part(0, vec![long]),
            &ms(&[105, 190]),
            Nanos(900 * MS),
        );
        let InputOutcome::Answered(event) = outcomes[0] else { panic!("{outcomes:?}") };
        assert_eq!((event.first_response(), event.settled()), (Some(4 * MS), Some(90 * MS)));
    }

    #[test]
    fn reports_belong_to_the_input_before_them() {
        let outcomes = by_reports(
            &sent(&[100, 200, 300], InputClass::Key),
            &ms(&[50, 104, 110, 304]),
            Nanos(500 * MS),
        );
        assert_eq!(outcomes.iter().map(first_ms).collect::<Vec<_>>(), [Some(4), None, Some(4)]);
        let InputOutcome::Answered(event) = outcomes[0] else { panic!("{outcomes:?}") };
        assert_eq!(event.settled(), Some(10 * MS));
    }

    #[test]
    fn inputs_that_pile_up_share_the_late_answer() {
        let events = sent(&[100, 200, 300, 400, 500], InputClass::Key);
        let outcomes = by_reports(&events, &ms(&[104, 204, 900]), Nanos(1_000 * MS));
        assert_eq!(
            outcomes.iter().map(first_ms).collect::<Vec<_>>(),
            [Some(4), Some(4), Some(600), Some(500), Some(400)]
        );
    }

    #[test]
    fn nothing_after_the_end_counts() {
        assert_eq!(
            by_reports(&sent(&[100], InputClass::Key), &ms(&[900]), Nanos(500 * MS)),
            [InputOutcome::Silent]
        );
        assert_eq!(by_reports(&[], &ms(&[900]), Nanos(500 * MS)), []);
    }
}
