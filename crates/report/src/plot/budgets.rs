// SPDX-License-Identifier: MIT OR Apache-2.0
//! Budgets: for each of several events a bar divided into its parts.

use super::Figure;
use super::axes::{self, Axis};
use super::page::{Anchor, Area, LegendEntry, MarkStyle, Page, SMALL_SIZE, TEXT_SIZE, font};
use super::palette::{COLOURS, REST, colour, ink_on};
use super::scale::Scale;
use super::values::{NAME_CHARS, is_time, remarks};
use super::words::{duration, number, plain, width};
use std::collections::HashMap;

/// Maximum number of rows; further ones are counted in the footer.
const ROWS_MAX: usize = 40;
/// Number of parts with a colour of their own, the largest ones; the others are summed up.
const NAMES_MAX: usize = COLOURS.len();
const ROW_HEIGHT: f64 = 26.0;
const BAR_HEIGHT: f64 = 18.0;
/// Width in pixels of the name of a row, besides the usual margin, and of its sum.
const LABELS_WIDTH: f64 = 150.0;
const SUMS_WIDTH: f64 = 60.0;
const LABEL_CHARS: usize = 32;

/// Row to draw: its name, and a time for each colour, the last one for all other parts.
struct BudgetRow {
    label: String,
    parts: [f64; NAMES_MAX + 1],
}

/// Draws a bar for each event, with its parts side by side in the order of the legend: by their
/// total in all events, the largest first.
pub fn budgets(figure: &Figure<'_>, rows: &[(String, Vec<(String, f64)>)]) -> String {
    let mut page = Page::new(figure);
    let shown = &rows[..rows.len().min(ROWS_MAX)];
    let strange = shown.iter().flat_map(|row| &row.1).filter(|part| !is_time(part.1)).count();
    page.remark(&remarks(strange, "times", rows.len() - shown.len(), "rows"));
    let (names, others) = names(shown);
    let rows: Vec<BudgetRow> = shown.iter().map(|row| row_of(row, &names)).collect();
    if rows.is_empty() {
        return page.nothing("no events");
    }
    page.legend(&legend(&names, others));
    let area = page.area_beside(LABELS_WIDTH, SUMS_WIDTH, ROW_HEIGHT * rows.len() as f64 + 6.0);
    let across = Scale::up_to(rows.iter().map(BudgetRow::total).fold(0.0, f64::max));
    axes::draw_across(&mut page, &area, &across);
    rows.iter()
        .enumerate()
        .for_each(|(index, row)| draw_row(&mut page, &area, &across, row, index));
    axes::name_across(&mut page, &area, &Axis { scale: across, name: "time, ms" });
    page.finish()
}

impl BudgetRow {
    fn total(&self) -> f64 {
        self.parts.iter().sum()
    }
}

/// Returns the parts with the most time in all rows, the largest first, and the number of other
/// parts.
fn names(rows: &[(String, Vec<(String, f64)>)]) -> (Vec<String>, usize) {
    let mut sums: HashMap<&str, f64> = HashMap::new();
    for (name, ms) in rows.iter().flat_map(|row| &row.1).filter(|part| is_time(part.1)) {
        *sums.entry(name).or_default() += ms;
    }
    let mut sums: Vec<(&str, f64)> = sums.into_iter().collect();
    sums.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(other.0)));
    let names = sums.iter().take(NAMES_MAX).map(|(name, _)| (*name).to_owned()).collect();
    (names, sums.len().saturating_sub(NAMES_MAX))
}

fn row_of((label, parts): &(String, Vec<(String, f64)>), names: &[String]) -> BudgetRow {
    let mut row = BudgetRow { label: plain(label, LABEL_CHARS), parts: [0.0; NAMES_MAX + 1] };
    for (name, ms) in parts.iter().filter(|part| is_time(part.1)) {
        let place = names.iter().position(|known| known == name).unwrap_or(NAMES_MAX);
        row.parts[place] += ms;
    }
    row
}

fn legend(names: &[String], others: usize) -> Vec<LegendEntry> {
    let mut entries = Vec::new();
    for (index, name) in names.iter().enumerate() {
        entries.push(LegendEntry::new(MarkStyle::Box(colour(index)), plain(name, NAME_CHARS)));
    }
    if others > 0 {
        entries.push(LegendEntry::new(MarkStyle::Box(REST), format!("{others} others")));
    }
    entries
}

fn colour_of(place: usize) -> &'static str {
    if place == NAMES_MAX { REST } else { colour(place) }
}

fn draw_row(page: &mut Page, area: &Area, across: &Scale, row: &BudgetRow, index: usize) {
    let top = area.top + 6.0 + ROW_HEIGHT * index as f64;
    let baseline = top + 13.0;
    page.text(
        (area.left - 8.0, baseline),
        Anchor::End,
        &font(TEXT_SIZE),
        &fitted(&row.label, area.left - 20.0),
    );
    let mut before = 0.0;
    for (place, ms) in row.parts.iter().enumerate().filter(|(_, ms)| **ms > 0.0) {
        let (left, right) = (area.x(across.share(before)), area.x(across.share(before + ms)));
        let style = format!(r##"fill="{}" stroke="#ffffff" stroke-width="0.5""##, colour_of(place));
        page.rect((left, top, right - left, BAR_HEIGHT), &style);
        inside(page, (left, right, baseline), *ms, colour_of(place));
        before += ms;
    }
    let sum = if before > 0.0 { duration(before) } else { "no time".to_owned() };
    page.text(
        (area.x(across.share(before)) + 6.0, baseline),
        Anchor::Start,
        &font(SMALL_SIZE),
        &sum,
    );
}

/// Draws the time of a part inside it, if there is room.
fn inside(page: &mut Page, (left, right, baseline): (f64, f64, f64), ms: f64, colour: &str) {
    let text = number(ms);
    if width(&text, SMALL_SIZE) + 8.0 <= right - left {
        let style = format!(r#"{} fill="{}""#, font(SMALL_SIZE), ink_on(colour));
        page.text(((left + right) / 2.0, baseline), Anchor::Middle, &style, &text);
    }
}

/// Cuts a name to the room beside the bars.
fn fitted(label: &str, pixels: f64) -> String {
    let cuts = (1..=LABEL_CHARS).rev().map(|chars| plain(label, chars));
    let mut fitting = cuts.filter(|cut| width(cut, TEXT_SIZE) <= pixels);
    fitting.next().unwrap_or_else(|| plain(label, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(parts: &[(&str, f64)]) -> (String, Vec<(String, f64)>) {
        ("row".to_owned(), parts.iter().map(|(name, ms)| ((*name).to_owned(), *ms)).collect())
    }

    #[test]
    fn the_largest_parts_have_colours_and_all_time_is_kept() {
        let many: Vec<(String, f64)> =
            (0..12).map(|index| (format!("part {index}"), f64::from(index))).collect();
        let rows = [("a".to_owned(), many), row(&[("part 3", 50.0), ("part 0", f64::NAN)])];
        let (names, others) = names(&rows);
        assert_eq!((names.len(), others, names[0].as_str()), (NAMES_MAX, 4, "part 3"));
        let drawn: Vec<BudgetRow> = rows.iter().map(|row| row_of(row, &names)).collect();
        assert_eq!(drawn.iter().map(BudgetRow::total).collect::<Vec<_>>(), [66.0, 50.0]);
        assert_eq!(drawn[0].parts[NAMES_MAX], 7.0);
    }

    #[test]
    fn long_names_are_cut_to_their_room() {
        assert!(width(&fitted(&"W".repeat(32), 100.0), TEXT_SIZE) <= 100.0);
        assert_eq!(fitted("key 17", 100.0), "key 17");
    }
}
