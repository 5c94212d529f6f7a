// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use fastrand::Rng;
use proptest::collection::vec;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn run(class: &str, latencies: impl IntoIterator<Item = u64>) -> Run {
    let limits = crate::ClassLimits { threshold: 100 * MS, frustrated: 400 * MS };
    let mut events = Events::of(class, Some(limits));
    latencies.into_iter().for_each(|latency| events.push(0, latency));
    Run { interactive_ns: Some(60_000_000_000), classes: vec![events], ..Run::default() }
}

/// Returns repeats of events around a latency in milliseconds; repeats differ slightly, events
/// more.
fn repeats(count: u64, events: u64, around: u64) -> Vec<Run> {
    let mut random = Rng::with_seed(around);
    (0..count)
        .map(|at| run("key", (0..events).map(|_| (around + at) * MS + random.u64(..20 * MS))))
        .collect()
}

fn held(runs: &[&[Run]]) -> Comparison {
    let names = ["one", "two", "three"];
    let sides: Vec<ComparedSide<'_>> =
        runs.iter().zip(names).map(|(runs, name)| ComparedSide { name, runs }).collect();
    compare(&sides)
}

fn statements(comparison: &Comparison) -> Vec<[Statement; 3]> {
    let differences = comparison.groups[0].classes[0].differences.iter().map(|one| {
        [one.p50_ms, one.p98_ms, Some(one.elr_ms_per_minute)]
            .map(|one| one.unwrap_or_default().statement)
    });
    differences.collect()
}

#[test]
fn a_slower_side_is_shown_with_its_interval() {
    let comparison = held(&[&repeats(5, 60, 120), &repeats(6, 60, 150), &repeats(5, 60, 90)]);
    assert_eq!(statements(&comparison), [[Statement::More; 3], [Statement::Less; 3]]);
    let class = &comparison.groups[0].classes[0];
    let p50 = class.differences[0].p50_ms.expect("percentiles were wanted");
    let ends = (p50.low.expect("it has an interval"), p50.high.expect("it has an interval"));
    assert!(ends.0 < 30.5 && ends.1 > 30.5 && ends.1 - ends.0 < 10.0, "{ends:?}");
    assert!(comparison.shows_slower());
    assert_eq!(comparison.intervals(), 6);
}

#[test]
fn the_same_again_shows_no_difference() {
    let base = repeats(5, 60, 120);
    let comparison = held(&[&base, &base]);
    assert_eq!(statements(&comparison), [[Statement::NoDifferenceShown; 3]]);
    assert!(!comparison.shows_slower());
    assert_eq!(held(&[&base, &base]), comparison);
}

#[test]
fn few_repeats_or_events_allow_no_statement() {
    let (four, five, short) = (repeats(4, 60, 120), repeats(5, 60, 120), repeats(5, 20, 120));
    assert_eq!(statements(&held(&[&four, &five])), [[Statement::TooFewRepeats; 3]]);
    assert_eq!(held(&[&four, &five]).intervals(), 0);
    // Three times as many events in the same time have three times the excess.
    let expected = [Statement::NoDifferenceShown, Statement::TooFewEvents, Statement::More];
    assert_eq!(statements(&held(&[&short, &five])), [expected]);
    let many = repeats(REPEATS_MAX as u64 + 1, 1, 120);
    assert_eq!(statements(&held(&[&many, &many]))[0][2], Statement::TooManyRepeats);
}

#[test]
fn figures_missing_on_a_side_are_not_available() {
    let comparison = held(&[&repeats(5, 60, 120), &[run("click", [MS])]]);
    let [keys, clicks] = &comparison.groups[0].classes[..] else { panic!("there are two classes") };
    assert!(keys.sides[0].is_some() && keys.sides[1].is_none() && clicks.sides[0].is_none());
    assert_eq!(keys.differences[0].p50_ms.map(|one| one.statement), Some(Statement::NotAvailable));
    assert_eq!(keys.differences[0].elr_ms_per_minute.statement, Statement::NotAvailable);
}

#[test]
fn figures_are_of_all_repeats_together() {
    let mut runs =
        vec![run("key", (1..=150).map(|ms| ms * MS)), run("key", (151..=250).map(|ms| ms * MS))];
    runs[0].classes[0].censored = 2;
    runs[1].lost = 3;
    let comparison = held(&[&runs, &runs]);
    let figures = comparison.groups[0].classes[0].sides[0].as_ref().expect("there are keys");
    assert_eq!((figures.repeats, figures.n, figures.censored, figures.lost), (2, 250, 2, 3));
    assert_eq!(
        (figures.p50_ms, figures.p98_ms, figures.max_ms),
        (Some(125.0), Some(245.0), Some(250.0))
    );
    assert_eq!(figures.ip98_ms, Some(245.0));
    assert_eq!(
        figures.elr.map(|rate| rate.at_ms_per_minute),
        Some((1..=150).sum::<u64>() as f64 / 2.0)
    );
    assert_eq!(figures.apdex.map(|apdex| apdex.score), Some(0.7));
    assert_eq!(figures.cumulative.mean_ms, Some((1..=250).sum::<u64>() as f64 / 2.0));
    assert!(figures.cumulative.unusable);
}

/// Returns the deviation of these repeats in percent, and whether they are unusable.
fn cumulative_of(sums: &[u64]) -> (Option<f64>, bool) {
    let runs: Vec<Run> = sums.iter().map(|sum| run("key", [*sum])).collect();
    let comparison = held(&[&runs, &runs]);
    let side = comparison.groups[0].classes[0].sides[0].as_ref().expect("there are keys");
    (side.cumulative.deviation_percent, side.cumulative.unusable)
}

#[test]
fn steady_repeats_are_usable() {
    let (percent, _) = cumulative_of(&[100, 103, 97, 103, 97]);
    assert!(percent.is_some_and(|percent| (percent - 3.0).abs() < 1e-9));
    assert!(!cumulative_of(&[1000, 1029, 971, 1029, 971]).1);
    assert!(cumulative_of(&[100, 104, 96, 103, 97]).1);
    assert_eq!(cumulative_of(&[7]), (None, true));
    assert_eq!(cumulative_of(&[0, 0]), (Some(0.0), false));
}

#[test]
fn all_classes_add_up() {
    let mut both = run("key", [110 * MS, 90 * MS]);
    both.classes.extend(run("click", [130 * MS]).classes);
    let runs = vec![both; 5];
    let comparison = held(&[&runs, &runs]);
    let overall =
        comparison.groups[0].overall.as_ref().expect("there are two classes with thresholds");
    let whole = overall.sides[0].as_ref().expect("it has runs");
    assert_eq!(
        (whole.n, whole.ip98_ms, whole.top_class.as_deref()),
        (15, Some(130.0), Some("click"))
    );
    assert_eq!(
        (whole.top_class_percent, whole.elr.map(|rate| rate.at_ms_per_minute)),
        (Some(75.0), Some(40.0))
    );
    assert_eq!(overall.differences[0].p50_ms, None);
    assert_eq!(overall.differences[0].elr_ms_per_minute.statement, Statement::NoDifferenceShown);
}

#[test]
fn thresholds_are_those_of_the_first_side() {
    let mut strict = repeats(5, 60, 80);
    strict.iter_mut().for_each(|run| run.classes[0].threshold_ns = Some(50 * MS));
    let class = held(&[&repeats(5, 60, 80), &strict]).groups[0].classes[0].clone();
    assert!(class.thresholds_differ);
    assert_eq!(class.threshold_ms, Some(100.0));
    assert_eq!(
        class.sides[0].as_ref().map(|side| side.elr),
        class.sides[1].as_ref().map(|side| side.elr)
    );
}

#[test]
fn wild_values_are_answered() {
    let wild = vec![run("key", [u64::MAX; 60]); 5];
    let mut none = vec![Run { interactive_ns: Some(u64::MAX), ..Run::default() }; 5];
    none[0].classes =
        vec![Events { censored: u64::MAX, starts_ns: vec![1], ..Events::default() }; 3];
    none[1].lost = u64::MAX;
    none[2].lost = u64::MAX;
    for pair in [
        [&wild[..], &none[..]],
        [&none, &wild],
        [&wild, &[]],
        [&[], &[]],
        [&none, &repeats(5, 60, 1)],
    ] {
        held(&pair);
    }
    assert_eq!(compare(&[]).groups, []);
}

fn sets() -> impl Strategy<Value = Vec<Vec<u64>>> {
    vec(vec(0..1_000_u64, 12..30), REPEATS_MIN..9)
}

fn shifted(set: &[Vec<u64>], by: u64) -> Vec<Run> {
    set.iter().map(|latencies| run("key", latencies.iter().map(|one| (one + by) * MS))).collect()
}

fn values() -> impl Strategy<Value = Vec<u64>> {
    vec(prop_oneof![0..9_u64, any::<u64>()], 0..12)
}

fn limit() -> impl Strategy<Value = Option<u64>> {
    proptest::option::of(any::<u64>())
}

fn any_run() -> impl Strategy<Value = Run> {
    let class = prop_oneof![Just("key"), Just("click")];
    let events = (class, limit(), limit(), values(), values(), any::<u64>()).prop_map(
        |(class, threshold_ns, frustrated_ns, starts_ns, latencies_ns, censored)| Events {
            class: class.to_owned(),
            threshold_ns,
            frustrated_ns,
            starts_ns,
            latencies_ns,
            censored,
        },
    );
    let name = prop_oneof![Just("hog"), Just("7")];
    (name, limit(), any::<u64>(), vec(events, 0..4)).prop_map(
        |(name, interactive_ns, lost, classes)| Run {
            name: name.to_owned(),
            duration_ns: lost,
            interactive_ns,
            lost,
            classes,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_runs_are_answered(
        runs in vec(any_run(), 0..9),
        others in vec(any_run(), 0..9),
    ) {
        let comparison = held(&[&runs, &others, &runs]);
        for class in comparison.groups.iter().flat_map(|group| &group.classes) {
            prop_assert_eq!((class.sides.len(), class.differences.len()), (3, 2));
            for one in class.differences[1].all() {
                let differs = matches!(one.statement, Statement::More | Statement::Less);
                prop_assert!(!differs, "{:?}", one);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn identical_sets_show_no_difference(set in sets()) {
        let runs = shifted(&set, 0);
        let mut turned = runs.clone();
        turned.reverse();
        let [p50, _, elr] = statements(&held(&[&runs, &turned]))[0];
        prop_assert_eq!([p50, elr], [Statement::NoDifferenceShown; 2]);
    }

    #[test]
    fn sets_far_apart_show_the_difference(set in sets(), by in 5_000..1_000_000_u64) {
        let (near, far) = (shifted(&set, 0), shifted(&set, by));
        let [p50, _, elr] = statements(&held(&[&near, &far]))[0];
        prop_assert_eq!(p50, Statement::More);
        let [back, ..] = statements(&held(&[&far, &near]))[0];
        prop_assert_eq!((back, elr != Statement::Less), (Statement::Less, true));
    }
}
