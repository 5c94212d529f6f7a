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
use crate::interarrival::{deviation_percent, mean};
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

/// Comparison of results; lists of sides are in the given order.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    pub confidence_percent: f64,
    pub resamples: usize,
    pub sides: Vec<String>,
    pub groups: Vec<RunGroup>,
    /// Runs missing on all other sides, or on the first one.
    pub unmatched: Vec<Unmatched>,
}

/// Runs compared with each other.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunGroup {
    /// Common name; `None` if each side has one kind of runs only.
    pub run: Option<String>,
    pub classes: Vec<ClassComparison>,
    /// All classes together; `None` for a single class, or if a class has no threshold.
    pub overall: Option<Overall>,
}

/// One class of events.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClassComparison {
    pub class: String,
    /// Threshold of the first side that has one, applied to all sides.
    pub threshold_ms: Option<f64>,
    pub frustrated_ms: Option<f64>,
    /// `true` if a side was measured with another threshold.
    pub thresholds_differ: bool,
    /// Figures by side; `None` for a side without such events.
    pub sides: Vec<Option<ComparedFigures>>,
    /// Differences of each other side from the first.
    pub differences: Vec<Differences>,
}

/// Figures of a class on one side, over all repeats; lower bounds if events are censored.
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
    /// `None` without a threshold or interaction.
    pub elr: Option<Rate>,
    pub apdex: Option<Apdex>,
    pub censored: u64,
    /// Lost events of all classes, since the class of a lost event is not known.
    pub lost: u64,
    pub cumulative: CumulativeComparison,
}

/// Sum of all latencies of a repeat, over the repeats.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CumulativeComparison {
    pub mean_ms: Option<f64>,
    /// Standard deviation in percent of the mean; `None` for a single repeat.
    pub deviation_percent: Option<f64>,
    /// `true` if the deviation is above 3% or not known.
    pub unusable: bool,
}

/// All classes of a group together.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Overall {
    /// Figures by side; `None` for a side without such runs.
    pub sides: Vec<Option<Whole>>,
    pub differences: Vec<Differences>,
}

/// Figures of all classes on one side.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Whole {
    pub n: usize,
    pub ip98_ms: Option<f64>,
    pub elr: Option<Rate>,
    /// Class with the largest part of the rate at the threshold, and that part.
    pub top_class: Option<String>,
    pub top_class_percent: Option<f64>,
    pub cumulative: CumulativeComparison,
}

/// Differences of one side from the first.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Differences {
    /// Index of the side, from 0.
    pub side: usize,
    /// `None` for all classes together, whose percentiles mean nothing.
    pub p50_ms: Option<Difference>,
    pub p98_ms: Option<Difference>,
    pub elr_ms_per_minute: Difference,
}

/// A difference: this side less the first.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    pub statement: Statement,
    /// `None` without a statement, as are the ends of the interval.
    pub difference: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// Statement about a difference.
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
    let latencies = sides.iter().map(|side| {
        let runs = side.runs.iter().filter(|one| run.is_none_or(|run| matching::kind(one) == run));
        let events = runs.flat_map(|run| &run.classes).filter(|events| events.class == class);
        events.flat_map(|events| &events.latencies_ns).map(|latency| ms(*latency)).collect()
    });
    latencies.collect()
}

impl Comparison {
    fn differences(&self) -> impl Iterator<Item = Difference> {
        let differences = self.groups.iter().flat_map(|group| {
            let overall = group.overall.iter().flat_map(|overall| &overall.differences);
            group.classes.iter().flat_map(|class| &class.differences).chain(overall)
        });
        differences.flat_map(Differences::all)
    }

    /// Returns `true` if some side is shown to be slower than the first in some figure.
    pub fn shows_slower(&self) -> bool {
        self.differences().any(|one| one.statement == Statement::More)
    }

    /// Returns the number of differences with an interval.
    pub fn intervals(&self) -> usize {
        self.differences().filter(|one| one.difference.is_some()).count()
    }
}

impl Differences {
    fn all(&self) -> impl Iterator<Item = Difference> + use<> {
        [self.p50_ms, self.p98_ms, Some(self.elr_ms_per_minute)].into_iter().flatten()
    }
}

impl Difference {
    /// Creates a difference without values, for this reason.
    fn without(statement: Statement) -> Difference {
        Difference { statement, ..Difference::default() }
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

fn events_of<'a>(sides: &'a [Vec<&Run>], class: &'a str) -> impl Iterator<Item = &'a Events> {
    sides.iter().flatten().flat_map(|run| &run.classes).filter(move |events| events.class == class)
}

/// Returns a limit of a class on the first side that has one.
fn limit(sides: &[Vec<&Run>], class: &str, of: impl Fn(&Events) -> Option<u64>) -> Option<u64> {
    events_of(sides, class).find_map(of)
}

fn class_comparison(sides: &[Vec<&Run>], class: &str, threshold: Option<u64>) -> ClassComparison {
    let frustrated = limit(sides, class, |events| events.frustrated_ns);
    let mut repeats = Vec::new();
    for runs in sides {
        let has_class = events_of(std::slice::from_ref(runs), class).next().is_some();
        repeats.push(if has_class {
            gather(runs, &[(class, threshold)])
        } else {
            Repeats::default()
        });
    }
    let figures = repeats
        .iter()
        .map(|repeats| (!repeats.0.is_empty()).then(|| figures(repeats, threshold, frustrated)));
    ClassComparison {
        class: class.to_owned(),
        threshold_ms: threshold.map(ms),
        frustrated_ms: frustrated.map(ms),
        thresholds_differ: events_of(sides, class).any(|events| events.threshold_ns != threshold),
        sides: figures.collect(),
        differences: differences(&repeats, true),
    }
}

fn gather(runs: &[&Run], classes: &Thresholds<'_>) -> Repeats {
    Repeats(runs.iter().map(|run| Repeat::of(run, classes)).collect())
}

fn figures(repeats: &Repeats, threshold: Option<u64>, frustrated: Option<u64>) -> ComparedFigures {
    let summary = repeats.summary();
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
        censored: repeats.0.iter().fold(0, |sum, repeat| repeat.censored.saturating_add(sum)),
        lost: repeats.0.iter().fold(0, |sum, repeat| repeat.lost.saturating_add(sum)),
        cumulative: cumulative(repeats),
    }
}

fn cumulative(repeats: &Repeats) -> CumulativeComparison {
    let sums: Vec<f64> = repeats.0.iter().map(Repeat::cumulative_ms).collect();
    let (mean_ms, deviation_percent) = (mean(&sums), deviation_percent(&sums));
    let unusable = deviation_percent.is_none_or(|percent| percent > DEVIATION_MAX_PERCENT);
    CumulativeComparison { mean_ms, deviation_percent, unusable }
}

fn overall(sides: &[Vec<&Run>], thresholds: &Thresholds<'_>) -> Overall {
    let repeats: Vec<Repeats> = sides.iter().map(|runs| gather(runs, thresholds)).collect();
    let sides = sides
        .iter()
        .zip(&repeats)
        .map(|(runs, repeats)| (!runs.is_empty()).then(|| whole(runs, repeats, thresholds)));
    Overall { sides: sides.collect(), differences: differences(&repeats, false) }
}

fn whole(runs: &[&Run], repeats: &Repeats, thresholds: &Thresholds<'_>) -> Whole {
    let summary = repeats.summary();
    let top = top(runs.iter().flat_map(|run| &run.classes).filter_map(|events| {
        let (class, threshold) = thresholds.iter().find(|(class, _)| *class == events.class)?;
        Some((*class, excess_ns(&events.latencies_ns, (*threshold)?)))
    }));
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
    let differences = (1..).zip(others).map(|(side, other)| Differences {
        side,
        p50_ms: percentiles.then(|| percentile_difference(base, other, Share::P50)),
        p98_ms: percentiles.then(|| percentile_difference(base, other, Share::P98)),
        elr_ms_per_minute: difference(base.rates(), other.rates()),
    });
    differences.collect()
}

fn percentile_difference(base: &Repeats, other: &Repeats, share: Share) -> Difference {
    let (least, repeats) = (base.n().min(other.n()), base.0.len().min(other.0.len()));
    if least > 0 && repeats >= REPEATS_MIN && !share.is_shown(least) {
        return Difference::without(Statement::TooFewEvents);
    }
    difference(base.percentiles(share), other.percentiles(share))
}

fn difference(base: RepeatSample<'_>, other: RepeatSample<'_>) -> Difference {
    let (least, most) = (base.repeats.min(other.repeats), base.repeats.max(other.repeats));
    if base.observed().is_none() || other.observed().is_none() {
        return Difference::without(Statement::NotAvailable);
    }
    if least < REPEATS_MIN {
        return Difference::without(Statement::TooFewRepeats);
    }
    if most > REPEATS_MAX {
        return Difference::without(Statement::TooManyRepeats);
    }
    let Some(estimate) = estimate(&base, &other) else {
        return Difference::without(Statement::TooFewEvents);
    };
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
mod tests;
