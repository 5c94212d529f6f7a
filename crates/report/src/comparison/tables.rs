// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of each class in columns, and a line for each difference.

use crate::plot::words::{count, duration, number, plain};
use crate::table::table;
use tipme_measure::{
    ClassComparison, ComparedFigures, CumulativeComparison, DEVIATION_MAX_PERCENT, Difference,
    Differences, Overall, REPEATS_MAX, REPEATS_MIN, RunGroup, Statement, Whole,
};

/// Maximum number of characters of the names of files, runs and classes.
pub(super) const NAME_CHARS: usize = 60;

/// Placeholder for a missing figure.
const NOTHING: &str = "-";

/// Row of a table: its name, and the function that formats the figure of a result, if it has one.
type Row<Figures> = (&'static str, fn(&Figures) -> Option<String>);

const CLASS_ROWS: [Row<ComparedFigures>; 13] = [
    ("repeats", |side| Some(count(side.repeats))),
    ("n", |side| Some(count(side.n))),
    ("p50", |side| at_least(side, side.p50_ms, duration)),
    ("p98", |side| at_least(side, side.p98_ms, duration)),
    ("maximum", |side| at_least(side, side.max_ms, duration)),
    ("IP98", |side| at_least(side, side.ip98_ms, duration)),
    ("ELR at 0.9 T", |side| at_least(side, Some(side.elr?.below_ms_per_minute), rate)),
    ("ELR at T", |side| at_least(side, Some(side.elr?.at_ms_per_minute), rate)),
    ("ELR at 1.1 T", |side| at_least(side, Some(side.elr?.above_ms_per_minute), rate)),
    ("Apdex", |side| {
        Some(format!("{}{:.2}", if side.censored > 0 { "<= " } else { "" }, side.apdex?.score))
    }),
    ("censored", |side| Some(side.censored.to_string())),
    ("lost, all classes", |side| Some(side.lost.to_string())),
    ("latency per repeat", |side| cumulative(&side.cumulative)),
];

/// Rows of a class that need a threshold.
const BY_THRESHOLD: [&str; 4] = ["ELR at 0.9 T", "ELR at T", "ELR at 1.1 T", "Apdex"];

const WHOLE_ROWS: [Row<Whole>; 7] = [
    ("n", |side| Some(count(side.n))),
    ("IP98", |side| side.ip98_ms.map(duration)),
    ("ELR at 0.9 T", |side| Some(rate(side.elr?.below_ms_per_minute))),
    ("ELR at T", |side| Some(rate(side.elr?.at_ms_per_minute))),
    ("ELR at 1.1 T", |side| Some(rate(side.elr?.above_ms_per_minute))),
    ("top class", |side| {
        let share = number(side.top_class_percent?.round());
        Some(format!("{} {share}%", plain(side.top_class.as_ref()?, NAME_CHARS)))
    }),
    ("latency per repeat", |side| cumulative(&side.cumulative)),
];

/// Formats the tables of a group, each after an empty line.
pub(super) fn group(group: &RunGroup) -> Vec<String> {
    let run = group.run.as_ref().map_or_else(String::new, |run| match plain(run, NAME_CHARS) {
        name if name.is_empty() => "runs without a name, ".to_owned(),
        name => format!("{name}, "),
    });
    let mut lines: Vec<String> = group.classes.iter().flat_map(|one| class(&run, one)).collect();
    lines.extend(group.overall.iter().flat_map(|overall| whole(&run, overall)));
    lines
}

fn class(run: &str, class: &ClassComparison) -> Vec<String> {
    let limits = match (class.threshold_ms, class.frustrated_ms) {
        (None, _) => "without a threshold".to_owned(),
        (Some(threshold), None) => format!("threshold {}", duration(threshold)),
        (Some(threshold), Some(limit)) => {
            format!("threshold {}, frustrating from {}", duration(threshold), duration(limit))
        }
    };
    let differ = if class.thresholds_differ { "; some were measured with another one" } else { "" };
    let mut lines = vec![
        String::new(),
        format!("{run}class {}: {limits}{differ}", plain(&class.class, NAME_CHARS)),
    ];
    let mut rows = CLASS_ROWS.to_vec();
    rows.retain(|(name, _)| class.threshold_ms.is_some() || !BY_THRESHOLD.contains(name));
    lines.extend(columns(&class.sides, &rows));
    lines.extend(noisy(class.sides.iter().map(|side| Some(side.as_ref()?.cumulative))));
    lines.extend(class.differences.iter().flat_map(differences));
    lines
}

fn whole(run: &str, overall: &Overall) -> Vec<String> {
    let mut lines = vec![String::new(), format!("{run}all classes, each with its own threshold")];
    lines.extend(columns(&overall.sides, &WHOLE_ROWS));
    lines.extend(noisy(overall.sides.iter().map(|side| Some(side.as_ref()?.cumulative))));
    lines.extend(overall.differences.iter().flat_map(differences));
    lines
}

/// Formats a figure. Unfinished events took longer than is known, so they make it a lower bound.
fn at_least(
    side: &ComparedFigures,
    figure: Option<f64>,
    format: fn(f64) -> String,
) -> Option<String> {
    let sign = if side.censored > 0 { ">= " } else { "" };
    figure.map(|figure| format!("{sign}{}", format(figure)))
}

fn rate(ms_per_minute: f64) -> String {
    format!("{} ms/min", number(ms_per_minute))
}

/// Formats `6.52 s ±1.2%`.
fn cumulative(cumulative: &CumulativeComparison) -> Option<String> {
    let mean = duration(cumulative.mean_ms?);
    let deviation = cumulative.deviation_percent.map(|percent| format!(" ±{percent:.1}%"));
    Some(format!("{mean}{}", deviation.unwrap_or_default()))
}

/// Names the results with repeats that differ too much from each other.
fn noisy(sides: impl Iterator<Item = Option<CumulativeComparison>>) -> Option<String> {
    let noisy = sides.enumerate().filter(|(_, side)| {
        side.is_some_and(|side| side.unusable && side.deviation_percent.is_some())
    });
    let letters: Vec<String> = noisy.map(|(index, _)| letter(index)).collect();
    let (of, limit) = (letters.join(", "), number(DEVIATION_MAX_PERCENT));
    (!letters.is_empty()).then(|| {
        format!("  unusable for small differences: repeats of {of} deviate by over {limit}%")
    })
}

/// Formats rows with a column for each result, under its letter.
fn columns<Figures>(sides: &[Option<Figures>], rows: &[Row<Figures>]) -> Vec<String> {
    let mut cells =
        vec![std::iter::once(String::new()).chain((0..sides.len()).map(letter)).collect()];
    for (name, format) in rows {
        let figures = sides.iter().map(|side| side.as_ref().and_then(format));
        let figures = figures.map(|figure| figure.unwrap_or_else(|| NOTHING.to_owned()));
        cells.push(std::iter::once(format!("  {name}")).chain(figures).collect());
    }
    table(&cells).lines().map(str::to_owned).collect()
}

/// Formats a line per figure, or a single line if the same reason withholds all of them.
fn differences(differences: &Differences) -> Vec<String> {
    let side = letter(differences.side);
    let figures = [
        ("p50", differences.p50_ms),
        ("p98", differences.p98_ms),
        ("ELR", Some(differences.elr_ms_per_minute)),
    ];
    let known: Vec<(&str, Difference)> = figures
        .into_iter()
        .filter_map(|(name, difference)| Some((name, difference?)))
        .filter(|(_, one)| one.statement != Statement::NotAvailable)
        .collect();
    match known.split_first() {
        None => vec![format!("  A and {side}: no figures in common")],
        Some(((_, first), rest))
            if first.difference.is_none()
                && rest.iter().all(|(_, one)| one.statement == first.statement) =>
        {
            vec![format!("  A and {side} {}", reason(first.statement))]
        }
        Some(_) => known.iter().map(|(name, one)| difference(name, &side, one)).collect(),
    }
}

/// Formats ` p50: B is 2.2 ms longer than A (1.8 ms to 2.6 ms)`.
fn difference(name: &str, side: &str, difference: &Difference) -> String {
    let (Some(by), Some(low), Some(high)) =
        (difference.difference, difference.low, difference.high)
    else {
        return format!("  {name} of A and {side} {}", reason(difference.statement));
    };
    let figure: fn(f64) -> String = if name == "ELR" { rate } else { duration };
    let (more, less) = if name == "ELR" { ("higher", "lower") } else { ("longer", "shorter") };
    let (how, [by, low, high]) = match difference.statement {
        Statement::More => (more, [by, low, high]),
        Statement::Less => (less, [-by, -high, -low]),
        _ => {
            let [low, high] = [low, high].map(|value| {
                format!("{}{}", if value < 0.0 { "-" } else { "+" }, figure(value.abs()))
            });
            return format!(
                "  {name}: no significant difference between A and {side} ({low} to {high})"
            );
        }
    };
    let [by, low, high] = [by, low, high].map(figure);
    format!("  {name}: {side} is {by} {how} than A ({low} to {high})")
}

fn reason(statement: Statement) -> String {
    match statement {
        Statement::TooFewRepeats => {
            format!("not compared: too few repeats, each result needs at least {REPEATS_MIN}")
        }
        Statement::TooManyRepeats => format!("not compared: more than {REPEATS_MAX} repeats"),
        Statement::TooFewEvents => "not compared: too few events".to_owned(),
        _ => "not available".to_owned(),
    }
}

/// Returns the letter of a result.
pub(super) fn letter(index: usize) -> String {
    u8::try_from(index).ok().filter(|index| *index < 26).map_or_else(
        || format!("#{}", index.saturating_add(1)),
        |index| char::from(b'A' + index).to_string(),
    )
}
