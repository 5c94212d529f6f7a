// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparison of two or more results, with statements about their differences.
//!
//! Runs with the same name are repeats of one measurement. A difference is stated if its interval,
//! bootstrapped over the repeats, excludes zero. Otherwise no difference is shown, which does not
//! mean that there is none. Each interval by itself covers the true value in 95 of 100 cases: of
//! many intervals, some are off by chance.

mod bootstrap;
mod matching;
mod repeats;

use crate::document::{Events, Run};
use crate::excess::{Rate, excess_ns, top};
use crate::interarrival::{mean, sample_deviation};
use crate::percentile::Share;
use crate::summary::{Apdex, apdex, interaction_p98};
use crate::units::ms;
use bootstrap::{RepeatSample, estimate};
use repeats::{Repeat, Repeats, Thresholds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use matching::{ComparedSide, Unmatched};

/// Minimum number of repeats per side for a statement about a difference.
pub const REPEATS_MIN: usize = 5;

/// Maximum number of repeats per side for differences to be computed.
pub const REPEATS_MAX: usize = 200;

/// Maximum deviation of the cumulative latencies between repeats that can show small differences.
pub const DEVIATION_MAX_PERCENT: f64 = 3.0;

/// Results side by side; lists of sides are in the order in which they were given.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    pub confidence_percent: f64,
    pub resamples: usize,
    pub sides: Vec<String>,
    pub groups: Vec<RunGroup>,
    /// Runs that no other side, or not the first one, has.
    pub unmatched: Vec<Unmatched>,
}

/// Runs that are held against each other.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunGroup {
    /// The name that they have in common; `None` where each side has one kind of runs only.
    pub run: Option<String>,
    pub classes: Vec<ClassComparison>,
    /// All classes together; `None` of one class only, and where a class has no threshold.
    pub overall: Option<Overall>,
}

/// One class of events.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClassComparison {
    pub class: String,
    /// That of the first side that has one, for all sides.
    pub threshold_ms: Option<f64>,
    pub frustrated_ms: Option<f64>,
    /// Whether a side was measured with another threshold.
    pub thresholds_differ: bool,
    /// `None` of a side without such events.
    pub sides: Vec<Option<ComparedFigures>>,
    /// Of each other side against the first.
    pub differences: Vec<Differences>,
}

/// The figures of a class on one side, of all repeats together. Where events are censored they are lower bounds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ComparedFigures {
    pub repeats: usize,
    pub n: usize,
    /// `None` with fewer than 10 events.
    pub p50_ms: Option<f64>,
    /// `None` with fewer than 250 events.
    pub p98_ms: Option<f64>,
    pub max_ms: Option<f64>,
    pub ip98_ms: Option<f64>,
    /// `None` without a threshold, or where nobody interacts.
    pub elr: Option<Rate>,
    pub apdex: Option<Apdex>,
    pub censored: u64,
    /// Of all classes: of what is lost it is not known what it was.
    pub lost: u64,
    pub cumulative: CumulativeComparison,
}

/// All latencies of a repeat together, over the repeats.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CumulativeComparison {
    pub mean_ms: Option<f64>,
    /// Standard deviation as a share of the mean; `None` of one repeat.
    pub deviation_percent: Option<f64>,
    /// Whether that is above 3 %, or not known.
    pub unusable: bool,
}

/// All classes of a group together.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Overall {
    /// `None` of a side without such runs.
    pub sides: Vec<Option<Whole>>,
    pub differences: Vec<Differences>,
}

/// The figures of all classes on one side.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Whole {
    pub n: usize,
    pub ip98_ms: Option<f64>,
    pub elr: Option<Rate>,
    /// The class with the largest part of the rate at the threshold, and that part.
    pub top_class: Option<String>,
    pub top_class_percent: Option<f64>,
    pub cumulative: CumulativeComparison,
}

/// What one side differs by from the first.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Differences {
    /// Which of the sides, from 0 on.
    pub side: usize,
    /// `None` of all classes together: their percentiles mean nothing.
    pub p50_ms: Option<Difference>,
    pub p98_ms: Option<Difference>,
    pub elr_ms_per_minute: Difference,
}

/// A difference: this side less the first.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    pub statement: Statement,
    /// `None` where there is no statement; so are the ends of the interval.
    pub difference: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// What can be said of a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Statement {
    /// Longer, or a higher rate, than the first side.
    More,
    Less,
    NoDifferenceShown,
    TooFewRepeats,
    TooManyRepeats,
    TooFewEvents,
    /// A side does not have this figure.
    #[default]
    NotAvailable,
}

/// Compares results with the first of them.
pub fn compare(sides: &[ComparedSide<'_>]) -> Comparison {
    let (matched, unmatched) = matching::groups(sides);
    Comparison {
        confidence_percent: 95.0,
        resamples: bootstrap::RESAMPLES,
        sides: sides.iter().map(|side| side.name.to_owned()).collect(),
        groups: matched.iter().map(|matched| group(matched.run.clone(), &matched.sides)).collect(),
        unmatched,
    }
}

/// Returns the latencies of a class in the runs of a [`RunGroup`], by side, in milliseconds.
pub fn latencies_ms(sides: &[ComparedSide<'_>], run: Option<&str>, class: &str) -> Vec<Vec<f64>> {
    let of = |side: &ComparedSide<'_>| {
        let runs = side.runs.iter().filter(|one| run.is_none_or(|run| matching::kind(one) == run));
        let events = runs.flat_map(|run| &run.classes).filter(|events| events.class == class);
        events.flat_map(|events| &events.latencies_ns).map(|latency| ms(*latency)).collect()
    };
    sides.iter().map(of).collect()
}

impl Comparison {
    /// Returns `true` if some side is shown to be slower than the first in some figure.
    pub fn shows_slower(&self) -> bool {
        let differences = self.groups.iter().flat_map(|group| {
            let overall = group.overall.iter().flat_map(|overall| &overall.differences);
            group.classes.iter().flat_map(|class| &class.differences).chain(overall)
        });
        differences.flat_map(Differences::all).any(|one| one.statement == Statement::More)
    }

    /// Returns the number of differences with an interval.
    pub fn intervals(&self) -> usize {
        let classes = self
            .groups
            .iter()
            .flat_map(|group| &group.classes)
            .flat_map(|class| &class.differences);
        let overall = self
            .groups
            .iter()
            .filter_map(|group| group.overall.as_ref())
            .flat_map(|all| &all.differences);
        classes
            .chain(overall)
            .flat_map(Differences::all)
            .filter(|one| one.difference.is_some())
            .count()
    }
}

impl Differences {
    fn all(&self) -> impl Iterator<Item = Difference> + use<> {
        [self.p50_ms, self.p98_ms, Some(self.elr_ms_per_minute)].into_iter().flatten()
    }
}

/// Creates one group from the runs of each side.
fn group(run: Option<String>, sides: &[Vec<&Run>]) -> RunGroup {
    let names = class_names(sides);
    let thresholds: Vec<(&str, Option<u64>)> = names
        .iter()
        .map(|class| (*class, limit(sides, class, |events| events.threshold_ns)))
        .collect();
    let classes = thresholds
        .iter()
        .map(|(class, threshold)| class_comparison(sides, class, *threshold))
        .collect();
    let bounded =
        thresholds.len() > 1 && thresholds.iter().all(|(_, threshold)| threshold.is_some());
    let interact = sides.iter().flatten().all(|run| run.interactive_ns.is_some());
    RunGroup { run, classes, overall: (bounded && interact).then(|| overall(sides, &thresholds)) }
}

/// Returns the classes in order of appearance.
fn class_names<'a>(sides: &[Vec<&'a Run>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for events in sides.iter().flatten().flat_map(|run| &run.classes) {
        if !names.contains(&events.class.as_str()) {
            names.push(&events.class);
        }
    }
    names
}

/// Returns a limit of a class on the first side that has one.
fn limit(sides: &[Vec<&Run>], class: &str, of: impl Fn(&Events) -> Option<u64>) -> Option<u64> {
    let events =
        sides.iter().flatten().flat_map(|run| &run.classes).filter(|events| events.class == class);
    events.filter_map(of).next()
}

fn class_comparison(sides: &[Vec<&Run>], class: &str, threshold: Option<u64>) -> ClassComparison {
    let frustrated = limit(sides, class, |events| events.frustrated_ns);
    let mut all =
        sides.iter().flatten().flat_map(|run| &run.classes).filter(|events| events.class == class);
    let has = |runs: &[&Run]| {
        runs.iter().flat_map(|run| &run.classes).any(|events| events.class == class)
    };
    let of = |runs: &Vec<&Run>| {
        if has(runs) { gather(runs, &[(class, threshold)]) } else { Repeats::default() }
    };
    let repeats: Vec<Repeats> = sides.iter().map(of).collect();
    let figures = |repeats: &Repeats| {
        (!repeats.0.is_empty()).then(|| figures(repeats, threshold, frustrated))
    };
    ClassComparison {
        class: class.to_owned(),
        threshold_ms: threshold.map(ms),
        frustrated_ms: frustrated.map(ms),
        thresholds_differ: all.any(|events| events.threshold_ns != threshold),
        sides: repeats.iter().map(figures).collect(),
        differences: differences(&repeats, true),
    }
}

fn gather(runs: &[&Run], classes: &Thresholds<'_>) -> Repeats {
    Repeats(runs.iter().map(|run| Repeat::of(run, classes)).collect())
}

fn figures(repeats: &Repeats, threshold: Option<u64>, frustrated: Option<u64>) -> ComparedFigures {
    let summary = repeats.summary();
    let sum = |of: fn(&Repeat) -> u64| repeats.0.iter().map(of).fold(0, u64::saturating_add);
    ComparedFigures {
        repeats: repeats.0.len(),
        n: summary.n(),
        p50_ms: summary.shown(Share::P50).map(ms),
        p98_ms: summary.shown(Share::P98).map(ms),
        max_ms: summary.max().map(ms),
        ip98_ms: interaction_p98(&summary).map(ms),
        elr: repeats.rate(),
        apdex: threshold
            .zip(frustrated)
            .and_then(|(threshold, limit)| apdex(&summary, threshold, limit)),
        censored: sum(|repeat| repeat.censored),
        lost: sum(|repeat| repeat.lost),
        cumulative: cumulative(repeats),
    }
}

fn cumulative(repeats: &Repeats) -> CumulativeComparison {
    let sums: Vec<f64> = repeats.0.iter().map(Repeat::cumulative_ms).collect();
    let mean_ms = mean(&sums);
    let share = |(deviation, mean): (f64, f64)| {
        if deviation > 0.0 { 100.0 * deviation / mean } else { 0.0 }
    };
    let deviation_percent = sample_deviation(&sums).zip(mean_ms).map(share);
    let unusable = deviation_percent.is_none_or(|percent| percent > DEVIATION_MAX_PERCENT);
    CumulativeComparison { mean_ms, deviation_percent, unusable }
}

fn overall(sides: &[Vec<&Run>], thresholds: &Thresholds<'_>) -> Overall {
    let repeats: Vec<Repeats> = sides.iter().map(|runs| gather(runs, thresholds)).collect();
    let whole = |(runs, repeats): (&Vec<&Run>, &Repeats)| {
        (!runs.is_empty()).then(|| whole(runs, repeats, thresholds))
    };
    Overall {
        sides: sides.iter().zip(&repeats).map(whole).collect(),
        differences: differences(&repeats, false),
    }
}

fn whole(runs: &[&Run], repeats: &Repeats, thresholds: &Thresholds<'_>) -> Whole {
    let summary = repeats.summary();
    let excess = |events: &Events| {
        let (class, threshold) = thresholds.iter().find(|(class, _)| *class == events.class)?;
        Some((*class, excess_ns(&events.latencies_ns, (*threshold)?)))
    };
    let top = top(runs.iter().flat_map(|run| &run.classes).filter_map(excess));
    Whole {
        n: summary.n(),
        ip98_ms: interaction_p98(&summary).map(ms),
        elr: repeats.rate(),
        top_class: top.as_ref().map(|(class, _)| class.clone()),
        top_class_percent: top.map(|(_, share)| 100.0 * share),
        cumulative: cumulative(repeats),
    }
}

/// Returns the differences of each other side from the first; `percentiles` includes those of
/// percentiles.
fn differences(sides: &[Repeats], percentiles: bool) -> Vec<Differences> {
    let Some((base, others)) = sides.split_first() else { return Vec::new() };
    let of = |(index, other): (usize, &Repeats)| Differences {
        side: index + 1,
        p50_ms: percentiles.then(|| percentile_difference(base, other, Share::P50)),
        p98_ms: percentiles.then(|| percentile_difference(base, other, Share::P98)),
        elr_ms_per_minute: difference(base.rates(), other.rates()),
    };
    others.iter().enumerate().map(of).collect()
}

fn percentile_difference(base: &Repeats, other: &Repeats, share: Share) -> Difference {
    let n = |side: &Repeats| side.0.iter().map(|repeat| repeat.latencies.len()).sum::<usize>();
    let (least, repeats) = (n(base).min(n(other)), base.0.len().min(other.0.len()));
    if least > 0 && repeats >= REPEATS_MIN && !share.is_shown(least) {
        return Difference { statement: Statement::TooFewEvents, ..Difference::default() };
    }
    difference(base.percentiles(share), other.percentiles(share))
}

fn difference(base: RepeatSample<'_>, other: RepeatSample<'_>) -> Difference {
    let (least, most) = (base.repeats.min(other.repeats), base.repeats.max(other.repeats));
    let without = |statement| Difference { statement, ..Difference::default() };
    if base.observed().is_none() || other.observed().is_none() {
        return without(Statement::NotAvailable);
    }
    if least < REPEATS_MIN {
        return without(Statement::TooFewRepeats);
    }
    if most > REPEATS_MAX {
        return without(Statement::TooManyRepeats);
    }
    let Some(estimate) = estimate(&base, &other) else { return without(Statement::TooFewEvents) };
    let statement = match (estimate.low, estimate.high) {
        (low, _) if low > 0.0 => Statement::More,
        (_, high) if high < 0.0 => Statement::Less,
        _ => Statement::NoDifferenceShown,
    };
    Difference {
        statement,
        difference: Some(estimate.difference),
        low: Some(estimate.low),
        high: Some(estimate.high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
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
        let repeat = |at: u64| {
            run(
                "key",
                (0..events)
                    .map(|_| (around + at) * MS + random.u64(..20 * MS))
                    .collect::<Vec<u64>>(),
            )
        };
        (0..count).map(repeat).collect()
    }

    fn held(runs: &[&[Run]]) -> Comparison {
        let names = ["one", "two", "three"];
        let sides: Vec<ComparedSide<'_>> =
            runs.iter().zip(names).map(|(runs, name)| ComparedSide { name, runs }).collect();
        compare(&sides)
    }

    fn statements(comparison: &Comparison) -> Vec<[Statement; 3]> {
        let told = |one: &Differences| {
            [one.p50_ms, one.p98_ms, Some(one.elr_ms_per_minute)]
                .map(|one| one.unwrap_or_default().statement)
        };
        comparison.groups[0].classes[0].differences.iter().map(told).collect()
    }

    #[test]
    fn a_slower_side_is_told_with_its_interval() {
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
    fn what_a_side_does_not_have_is_not_available() {
        let comparison = held(&[&repeats(5, 60, 120), &[run("click", [MS])]]);
        let [keys, clicks] = &comparison.groups[0].classes[..] else {
            panic!("there are two classes")
        };
        assert!(keys.sides[0].is_some() && keys.sides[1].is_none() && clicks.sides[0].is_none());
        assert_eq!(
            keys.differences[0].p50_ms.map(|one| one.statement),
            Some(Statement::NotAvailable)
        );
        assert_eq!(keys.differences[0].elr_ms_per_minute.statement, Statement::NotAvailable);
    }

    #[test]
    fn figures_are_of_all_repeats_together() {
        let mut runs = vec![
            run("key", (1..=150).map(|ms| ms * MS)),
            run("key", (151..=250).map(|ms| ms * MS)),
        ];
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

    #[test]
    fn steady_repeats_are_usable() {
        let of = |sums: &[u64]| {
            let runs: Vec<Run> = sums.iter().map(|sum| run("key", [*sum])).collect();
            held(&[&runs, &runs]).groups[0].classes[0].sides[0]
                .as_ref()
                .expect("there are keys")
                .cumulative
        };
        assert!(
            of(&[100, 103, 97, 103, 97])
                .deviation_percent
                .is_some_and(|percent| (percent - 3.0).abs() < 1e-9)
        );
        assert_eq!(
            [of(&[1000, 1029, 971, 1029, 971]).unusable, of(&[100, 104, 96, 103, 97]).unusable],
            [false, true]
        );
        assert_eq!((of(&[7]).deviation_percent, of(&[7]).unusable), (None, true));
        assert_eq!((of(&[0, 0]).deviation_percent, of(&[0, 0]).unusable), (Some(0.0), false));
    }

    #[test]
    fn all_classes_add_up() {
        let both = |key: u64, click: u64| {
            let mut both = run("key", [key * MS, 90 * MS]);
            both.classes.extend(run("click", [click * MS]).classes);
            both
        };
        let runs = vec![both(110, 130); 5];
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
        assert_eq!(
            overall.differences[0].elr_ms_per_minute.statement,
            Statement::NoDifferenceShown
        );
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
        proptest::collection::vec(proptest::collection::vec(0..1_000_u64, 12..30), REPEATS_MIN..9)
    }

    fn shifted(set: &[Vec<u64>], by: u64) -> Vec<Run> {
        set.iter()
            .map(|latencies| run("key", latencies.iter().map(|one| (one + by) * MS)))
            .collect()
    }

    fn any_run() -> impl Strategy<Value = Run> {
        let values = || proptest::collection::vec(prop_oneof![0..9_u64, any::<u64>()], 0..12);
        let limit = || proptest::option::of(any::<u64>());
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
        (name, limit(), any::<u64>(), proptest::collection::vec(events, 0..4)).prop_map(
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
            runs in proptest::collection::vec(any_run(), 0..9),
            others in proptest::collection::vec(any_run(), 0..9),
        ) {
            let comparison = held(&[&runs, &others, &runs]);
            for class in comparison.groups.iter().flat_map(|group| &group.classes) {
                prop_assert_eq!((class.sides.len(), class.differences.len()), (3, 2));
                let again = class.differences[1].all().any(|one| matches!(one.statement, Statement::More | Statement::Less));
                prop_assert!(!again, "{:?}", class.differences[1]);
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
            prop_assert_eq!((p50, elr), (Statement::NoDifferenceShown, Statement::NoDifferenceShown));
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
}
