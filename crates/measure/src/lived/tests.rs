// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// Start of a full hour of some day.
const HOUR: u64 = 480_000 * HOUR_S * S;

fn answer(
    at: u64,
    presses: u32,
    first: u64,
    last: u64,
    slept: u64,
    silent: u32,
) -> AnsweredPresses {
    let [first, last, slept] = [first, last, slept].map(|time| time * MS);
    AnsweredPresses { at: HOUR + at * MS, first, last, slept, presses, silent }
}

fn latencies_ms(answer: &AnsweredPresses) -> Vec<u64> {
    answer.latencies().map(|latency| latency / MS).collect()
}

#[test]
fn one_press_has_the_whole_latency_and_sleep_is_no_wait() {
    let answer = answer(500, 1, 40, 40, 16, 0);
    assert_eq!((latencies_ms(&answer), answer.wait() / MS), (vec![40], 24));
}

#[test]
fn presses_that_pile_up_behind_a_busy_program_are_each_answered() {
    let busy = answer(2_000, 5, 900, 100, 0, 0);
    assert_eq!((latencies_ms(&busy), busy.wait() / MS), (vec![900, 700, 500, 300, 100], 900));
}

#[test]
fn presses_without_an_answer_are_counted_apart() {
    let day = lived(&[(InputClass::Key, "editor", answer(2_000, 2, 16, 6, 12, 3))]);
    let class = &day.hours[0].applications[0].classes[0];
    assert_eq!(
        (class.silent, class.counts.n(), class.sum_ns, class.max_ns),
        (3, 2, 22 * MS, 16 * MS)
    );
}

#[test]
fn absence_is_no_interaction() {
    let mut last = LastAnswer::default();
    assert_eq!(
        last.extend(&answer(1_000, 1, 50, 50, 0, 0)),
        50 * MS,
        "the time before the first press is not known"
    );
    assert_eq!(last.extend(&answer(3_000, 1, 50, 50, 0, 0)), 2 * S);
    assert_eq!(last.extend(&answer(40_000, 1, 50, 50, 0, 0)), 50 * MS);
    assert_eq!(last.extend(&answer(39_990, 1, 50, 50, 0, 0)), 0, "nothing counts twice");
}

fn lived(answers: &[NamedAnswer]) -> LivedDay {
    let (mut day, mut last) = (LivedDay::default(), LastAnswer::default());
    for (class, application, answer) in answers {
        day.add(*class, application, answer, last.extend(answer));
    }
    day
}

type NamedAnswer = (InputClass, &'static str, AnsweredPresses);

/// Returns a key press and its answer, at these times in milliseconds.
fn key(at: u64, latency: u64) -> NamedAnswer {
    (InputClass::Key, "editor", answer(at, 1, latency, latency, 0, 0))
}

fn figures_of(day: LivedDay) -> DayFigures {
    DayFigures::of(day, HOUR / S, HOUR / S + 24 * HOUR_S)
}

#[test]
fn figures_are_by_application_and_of_all() {
    let click = (InputClass::Click, "browser", answer(60_000, 1, 300, 300, 100, 0));
    let day = figures_of(lived(&[key(100, 10), key(20_000, 20), key(40_000, 150), click]));
    let names: Vec<&str> = day.applications.iter().map(|one| one.application.as_str()).collect();
    assert_eq!(names, ["editor", "browser"]);
    assert_eq!((day.all.n, day.all.total_ms, day.all.max_ms), (4, 480.0, Some(300.0)));
    assert_eq!((day.all.wait_ms, day.all.noticed_wait_ms), (380.0, 350.0));
    assert_eq!(day.all.think_ms + day.all.wait_ms, 10.0 + 59_900.0);
    let elr = day.all.elr.unwrap();
    let minutes = 59_910.0 / 60_000.0;
    assert!((elr.at_ms_per_minute - 250.0 / minutes).abs() < 1e-9);
    assert!(
        (elr.below_ms_per_minute - 270.0 / minutes).abs() < 1e-9
            && elr.above_ms_per_minute < elr.at_ms_per_minute
    );
    assert_eq!((elr.top_class.as_deref(), elr.top_share), (Some("click"), Some(0.8)));
    let long: Vec<f64> = day.longest.iter().map(|long| long.latency_ms).collect();
    assert_eq!(
        (long, day.distribution.iter().map(|(_, n)| n).sum::<u64>()),
        (vec![300.0, 150.0], 4)
    );
}

#[test]
fn only_the_time_that_is_asked_for_counts() {
    let day = lived(&[0, 23, 24].map(|hour| key(hour * HOUR_S * 1_000 + 5_000, 200)));
    let figures = figures_of(day);
    assert_eq!((figures.all.n, figures.longest.len(), figures.hours.len()), (2, 2, 2));
}

#[test]
fn rows_and_longest_are_bounded_and_nothing_is_lost() {
    let mut day = LivedDay::default();
    for index in 0..100u64 {
        day.add(
            InputClass::Key,
            &format!("app{index}"),
            &answer(index, 1, 101 + index, 101 + index, 0, 0),
            MS,
        );
    }
    assert_eq!((day.hours[0].applications.len(), day.longest.len()), (APPLICATIONS_MAX, LONG_MAX));
    assert_eq!(day.longest[0].latency_ns, 200 * MS);
    assert!(day.is_bounded(1, 15) && !day.is_bounded(1, 4) && !day.is_bounded(0, 15));
    let figures = figures_of(day);
    assert_eq!(
        (figures.all.n, figures.applications.iter().map(|one| one.n).sum::<u64>()),
        (100, 100)
    );
    assert!(figures.applications.iter().any(|one| one.application == OTHERS));
}

#[test]
fn too_few_have_no_percentile() {
    let keys: Vec<NamedAnswer> = (0..10).map(|index| key(index * 100, 10)).collect();
    let few = figures_of(lived(&keys[..9]));
    assert_eq!((few.all.p50_ms, few.all.max_ms), (None, Some(10.0)));
    let some = figures_of(lived(&keys));
    assert_eq!(
        (some.all.p50_ms, some.all.p98_ms, some.all.interaction_p98_ms),
        (Some(10.0), None, Some(10.0))
    );
}

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![0..2_000 * MS, any::<u64>()]
}

fn any_answer() -> impl Strategy<Value = AnsweredPresses> {
    (any::<u64>(), time(), time(), time(), 0..100u32, 0..100u32).prop_map(
        |(at, first, last, slept, presses, silent)| AnsweredPresses {
            at,
            first,
            last,
            slept,
            presses,
            silent,
        },
    )
}

fn counted(part: &[(AnsweredPresses, usize)]) -> LivedDay {
    let mut day = LivedDay::default();
    for (answer, name) in part {
        day.add(InputClass::Key, ["a", "b", "c"][*name], answer, 7);
    }
    day
}

proptest! {
    #[test]
    fn every_press_has_a_latency_no_longer_than_the_first(answer in any_answer()) {
        prop_assert_eq!(answer.latencies().count() as u32, answer.presses);
        prop_assert!(answer.latencies().all(|latency| latency <= answer.first));
        prop_assert!(answer.wait() <= answer.first);
    }

    #[test]
    fn parts_of_a_day_join_to_the_whole(
        answers in proptest::collection::vec((any_answer(), 0..3usize), 0..30),
        cut in 0..30usize,
    ) {
        let (before, after) = answers.split_at(cut.min(answers.len()));
        let mut joined = counted(before);
        joined.join(&counted(after));
        let joined = DayFigures::of(joined, 0, u64::MAX);
        let whole = DayFigures::of(counted(&answers), 0, u64::MAX);
        prop_assert_eq!((joined.all.n, joined.all.silent), (whole.all.n, whole.all.silent));
        prop_assert_eq!(joined.all.max_ms, whole.all.max_ms);
        prop_assert_eq!(joined.applications.len(), whole.applications.len());
    }
}
