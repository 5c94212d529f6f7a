// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of each class in columns, and a line for each difference.

use crate::plot::words::{count, duration, number, plain};
use tipme_measure::{
    ClassComparison, ComparedFigures, CumulativeComparison, DEVIATION_MAX_PERCENT, Difference,
    Differences, Overall, REPEATS_MAX, REPEATS_MIN, RunGroup, Statement, Whole,
};

/// Maximum number of characters of the names of files, runs and classes.
pub(super) const NAME_CHARS: usize = 60;

/// Placeholder for a missing figure.
const NOTHING: &str = "-";

/// Rows that need a threshold.
const BY_THRESHOLD: [&str; 4] = ["ELR at 0.9 T", "ELR at T", "ELR at 1.1 T", "Apdex"];

/// Row of a table: its name, and the figure of each side.
type Row = (&'static str, Vec<String>);

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
    let differ = if class.thresholds_differ { "; not all were measured with it" } else { "" };
    let mut lines = vec![
        String::new(),
        format!("{run}class {}: {limits}{differ}", plain(&class.class, NAME_CHARS)),
    ];
    let mut rows = class_rows(&class.sides);
    if class.threshold_ms.is_none() {
        rows.retain(|(name, _)| !BY_THRESHOLD.contains(name));
    }
    lines.extend(table(&rows));
    lines.extend(spread(
        &class
            .sides
            .iter()
            .map(|side| side.as_ref().map(|side| side.cumulative))
            .collect::<Vec<_>>(),
    ));
    lines.extend(class.differences.iter().flat_map(differences));
    lines
}

fn class_rows(sides: &[Option<ComparedFigures>]) -> Vec<Row> {
    let row = |name, of: &dyn Fn(&ComparedFigures) -> Option<String>| -> Row {
        let figure = |side: &Option<ComparedFigures>| {
            side.as_ref().and_then(of).unwrap_or_else(|| NOTHING.to_owned())
        };
        (name, sides.iter().map(figure).collect())
    };
    // Unfinished events took longer than is known, so these figures are bounds.
    let least = |side: &ComparedFigures, text: String| {
        if side.censored > 0 { format!(">= {text}") } else { text }
    };
    let time =
        |side: &ComparedFigures, figure: Option<f64>| figure.map(|ms| least(side, duration(ms)));
    let rate = |side: &ComparedFigures, figure: Option<f64>| {
        figure.map(|rate| least(side, format!("{} ms/min", number(rate))))
    };
    let most = |side: &ComparedFigures, score: f64| {
        format!("{}{score:.2}", if side.censored > 0 { "<= " } else { "" })
    };
    vec![
        row("repeats", &|side| Some(count(side.repeats))),
        row("n", &|side| Some(count(side.n))),
        row("p50", &|side| time(side, side.p50_ms)),
        row("p98", &|side| time(side, side.p98_ms)),
        row("maximum", &|side| time(side, side.max_ms)),
        row("IP98", &|side| time(side, side.ip98_ms)),
        row("ELR at 0.9 T", &|side| rate(side, side.elr.map(|elr| elr.below_ms_per_minute))),
        row("ELR at T", &|side| rate(side, side.elr.map(|elr| elr.at_ms_per_minute))),
        row("ELR at 1.1 T", &|side| rate(side, side.elr.map(|elr| elr.above_ms_per_minute))),
        row("Apdex", &|side| side.apdex.map(|apdex| most(side, apdex.score))),
        row("censored", &|side| Some(side.censored.to_string())),
        row("lost, all classes", &|side| Some(side.lost.to_string())),
        row("latency per repeat", &|side| cumulative(&side.cumulative)),
    ]
}

fn whole(run: &str, overall: &Overall) -> Vec<String> {
    let row = |name, of: &dyn Fn(&Whole) -> Option<String>| -> Row {
        let figure =
            |side: &Option<Whole>| side.as_ref().and_then(of).unwrap_or_else(|| NOTHING.to_owned());
        (name, overall.sides.iter().map(figure).collect())
    };
    let rate = |figure: Option<f64>| figure.map(|rate| format!("{} ms/min", number(rate)));
    let top = |side: &Whole| {
        let share = number(side.top_class_percent?.round());
        Some(format!("{} {share} %", plain(side.top_class.as_ref()?, NAME_CHARS)))
    };
    let rows = [
        row("n", &|side| Some(count(side.n))),
        row("IP98", &|side| side.ip98_ms.map(duration)),
        row("ELR at 0.9 T", &|side| rate(side.elr.map(|elr| elr.below_ms_per_minute))),
        row("ELR at T", &|side| rate(side.elr.map(|elr| elr.at_ms_per_minute))),
        row("ELR at 1.1 T", &|side| rate(side.elr.map(|elr| elr.above_ms_per_minute))),
        row("most of it", &top),
        row("latency per repeat", &|side| cumulative(&side.cumulative)),
    ];
    let mut lines = vec![String::new(), format!("{run}all classes, each with its own threshold")];
    lines.extend(table(&rows));
    lines.extend(spread(
        &overall
            .sides
            .iter()
            .map(|side| side.as_ref().map(|side| side.cumulative))
            .collect::<Vec<_>>(),
    ));
    lines.extend(overall.differences.iter().flat_map(differences));
    lines
}

/// Formats `6.52 s ±1.2 %`.
fn cumulative(cumulative: &CumulativeComparison) -> Option<String> {
    let mean = duration(cumulative.mean_ms?);
    let deviation = cumulative.deviation_percent.map(|percent| format!(" ±{percent:.1} %"));
    Some(format!("{mean}{}", deviation.unwrap_or_default()))
}

/// Names the sides with repeats that differ too much from each other.
fn spread(sides: &[Option<CumulativeComparison>]) -> Option<String> {
    let unusable = |side: &Option<CumulativeComparison>| {
        side.is_some_and(|cumulative| cumulative.unusable && cumulative.deviation_percent.is_some())
    };
    let letters: Vec<String> = sides
        .iter()
        .enumerate()
        .filter(|(_, side)| unusable(side))
        .map(|(index, _)| letter(index))
        .collect();
    let of = letters.join(", ");
    let limit = number(DEVIATION_MAX_PERCENT);
    (!letters.is_empty()).then(|| {
        format!("  unusable for small differences: repeats of {of} deviate by over {limit} %")
    })
}

/// Formats rows under the letters of the sides, with right-aligned figures.
fn table(rows: &[Row]) -> Vec<String> {
    let sides = rows.first().map_or(0, |(_, figures)| figures.len());
    let head: Row = ("", (0..sides).map(letter).collect());
    let rows: Vec<&Row> = std::iter::once(&head).chain(rows).collect();
    let chars = |text: &str| text.chars().count();
    let names = rows.iter().map(|(name, _)| chars(name)).max().unwrap_or_default();
    let width = |side: usize| {
        rows.iter().filter_map(|(_, row)| row.get(side)).map(|text| chars(text)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..sides).map(width).collect();
    let line = |(name, figures): &&Row| {
        let cells =
            figures.iter().zip(&widths).map(|(figure, width)| format!("  {figure:>width$}"));
        format!("  {name:names$}{}", cells.collect::<String>()).trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Formats a line per figure, or a single line if the same reason withholds all of them.
fn differences(differences: &Differences) -> Vec<String> {
    let side = letter(differences.side);
    let figures = [
        ("p50", differences.p50_ms),
        ("p98", differences.p98_ms),
        ("ELR", Some(differences.elr_ms_per_minute)),
    ];
    let figures: Vec<(&str, Difference)> =
        figures.into_iter().filter_map(|(name, difference)| Some((name, difference?))).collect();
    let told: Vec<&(&str, Difference)> =
        figures.iter().filter(|(_, one)| one.statement != Statement::NotAvailable).collect();
    match told.split_first() {
        None => vec![format!("  {side} and A: no figure that both have")],
        Some(((_, first), rest))
            if withheld(first) && rest.iter().all(|(_, one)| one.statement == first.statement) =>
        {
            vec![format!("  {side} and A: {}", reason(first.statement))]
        }
        Some(_) => told.into_iter().map(|(name, one)| difference(name, &side, one)).collect(),
    }
}

fn withheld(difference: &Difference) -> bool {
    difference.difference.is_none()
}

/// Formats ` p50: B is 2.2 ms longer than A (1.8 ms to 2.6 ms)`.
fn difference(name: &str, side: &str, difference: &Difference) -> String {
    let (Some(by), Some(low), Some(high)) =
        (difference.difference, difference.low, difference.high)
    else {
        return format!("  {name} of {side} and A: {}", reason(difference.statement));
    };
    let figure = |value: f64| {
        if name == "ELR" { format!("{} ms/min", number(value)) } else { duration(value) }
    };
    let (more, less) = if name == "ELR" { ("higher", "lower") } else { ("longer", "shorter") };
    let signed =
        |value: f64| format!("{}{}", if value < 0.0 { "-" } else { "+" }, figure(value.abs()));
    match difference.statement {
        Statement::More => {
            format!(
                "  {name}: {side} is {} {more} than A ({} to {})",
                figure(by),
                figure(low),
                figure(high)
            )
        }
        Statement::Less => {
            format!(
                "  {name}: {side} is {} {less} than A ({} to {})",
                figure(-by),
                figure(-high),
                figure(-low)
            )
        }
        _ => format!(
            "  {name}: no difference of {side} and A shown ({} to {})",
            signed(low),
            signed(high)
        ),
    }
}

fn reason(statement: Statement) -> String {
    match statement {
        Statement::TooFewRepeats => {
            format!("no statement: too few repeats, each needs at least {REPEATS_MIN}")
        }
        Statement::TooManyRepeats => format!("no statement: more than {REPEATS_MAX} repeats"),
        Statement::TooFewEvents => "no statement: too few events".to_owned(),
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
