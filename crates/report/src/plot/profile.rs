// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latency profile: a bar for each event at its start, with its latency as height.

use super::axes::{self, Axis};
use super::page::{Area, LegendEntry, MarkStyle, PLOT_HEIGHT, Page, arrow, pixel};
use super::palette::{ALARM, CALM, INK, colour};
use super::scale::Scale;
use super::thin::Highest;
use super::values::{is_moment, is_time, remarks};
use super::words::{count, duration};
use super::{Figure, ProfileBar};

/// Colour of unfinished events.
const OPEN: usize = 3;
/// Maximum ratio of the threshold to the highest bar. A higher threshold would flatten the bars, so
/// it is only named.
const HEADROOM: f64 = 3.0;

/// Plots the whole run.
pub fn latency_profile(
    figure: &Figure<'_>,
    bars: &[ProfileBar],
    threshold_ms: Option<f64>,
) -> String {
    draw(figure, bars, threshold_ms, None)
}

/// Plots the events that began in a part of the run, in seconds, across the whole width. An invalid
/// part selects the whole run.
pub fn latency_profile_zoom(
    figure: &Figure<'_>,
    bars: &[ProfileBar],
    threshold_ms: Option<f64>,
    from_s: f64,
    to_s: f64,
) -> String {
    let part = is_moment(from_s) && is_moment(to_s) && from_s < to_s;
    draw(figure, bars, threshold_ms, part.then_some((from_s, to_s)))
}

/// Visible part of the events.
struct ProfileView {
    bars: Vec<ProfileBar>,
    across: Scale,
    upwards: Scale,
    threshold_ms: Option<f64>,
}

fn draw(
    figure: &Figure<'_>,
    bars: &[ProfileBar],
    threshold_ms: Option<f64>,
    part: Option<(f64, f64)>,
) -> String {
    let mut page = Page::new(figure);
    let whole: Vec<ProfileBar> = bars
        .iter()
        .copied()
        .filter(|bar| is_moment(bar.start_s) && is_time(bar.latency_ms))
        .collect();
    page.remark(&remarks(bars.len() - whole.len(), "times", 0, ""));
    let Some(view) = view(whole, threshold_ms.filter(|ms| is_time(*ms)), part) else {
        return page.nothing("no events");
    };
    let drawn_ms = view.threshold_ms.filter(|ms| view.upwards.holds(*ms));
    if let Some(ms) = view.threshold_ms.filter(|_| drawn_ms.is_none()) {
        page.remark(&[format!("The threshold of {} is beyond the end of the axis.", duration(ms))]);
    }
    page.legend(&legend(&view, drawn_ms));
    let area = page.area(PLOT_HEIGHT);
    let across = Axis { scale: view.across, name: "start of the event, s" };
    let up = format!("{}, ms", figure.quantity.name());
    axes::draw(&mut page, &area, &across, &Axis { scale: view.upwards, name: &up });
    draw_bars(&mut page, &area, &view);
    if let Some(ms) = drawn_ms {
        axes::threshold(&mut page, &area, &view.upwards, ms);
    }
    page.finish()
}

/// Returns the visible part; `None` if no event is visible.
fn view(
    mut bars: Vec<ProfileBar>,
    threshold_ms: Option<f64>,
    part: Option<(f64, f64)>,
) -> Option<ProfileView> {
    bars.retain(|bar| part.is_none_or(|(from, to)| (from..=to).contains(&bar.start_s)));
    let first = bars.iter().map(|bar| bar.start_s).reduce(f64::min)?;
    let last = bars.iter().map(|bar| bar.start_s).fold(first, f64::max);
    let most = bars.iter().map(|bar| bar.latency_ms).fold(0.0, f64::max);
    let across = match part {
        Some((from, to)) => Scale::linear(from, to),
        None if first < 0.0 => Scale::linear(first, last),
        None => Scale::around(first, last),
    };
    let top = threshold_ms.filter(|ms| *ms <= most * HEADROOM).unwrap_or(most).max(most);
    Some(ProfileView { bars, across, upwards: Scale::up_to(top), threshold_ms })
}

/// Kinds of bars, which differ in colour.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BarKind {
    /// Up to the threshold.
    Short,
    Long,
    /// Unfinished at the end of the run.
    Open,
}

impl ProfileView {
    fn bars(&self, kind: BarKind) -> impl Iterator<Item = &ProfileBar> {
        self.bars.iter().filter(move |bar| self.kind(bar) == kind)
    }

    fn kind(&self, bar: &ProfileBar) -> BarKind {
        match self.threshold_ms {
            _ if bar.censored => BarKind::Open,
            Some(ms) if bar.latency_ms > ms => BarKind::Long,
            _ => BarKind::Short,
        }
    }

    fn count(&self, kind: BarKind) -> String {
        count(self.bars(kind).count())
    }

    /// Returns the ends of the visible bars of a kind, as shares.
    fn ends(&self, kind: BarKind) -> Vec<(f64, f64)> {
        let mut highest = Highest::new();
        for bar in self.bars(kind) {
            highest.add(self.across.share(bar.start_s), self.upwards.share(bar.latency_ms));
        }
        highest.points().collect()
    }
}

fn legend(view: &ProfileView, drawn_ms: Option<f64>) -> Vec<LegendEntry> {
    let short = view.count(BarKind::Short);
    let mut entries = match view.threshold_ms.map(duration) {
        None => vec![LegendEntry::new(MarkStyle::Box(CALM), format!("events: {short}"))],
        Some(limit) => vec![
            LegendEntry::new(MarkStyle::Box(CALM), format!("up to {limit}: {short}")),
            LegendEntry::new(
                MarkStyle::Box(ALARM),
                format!("above {limit}: {}", view.count(BarKind::Long)),
            ),
        ],
    };
    if view.bars(BarKind::Open).next().is_some() {
        entries.push(LegendEntry::new(
            MarkStyle::Open(colour(OPEN)),
            format!("unfinished, lower bound: {}", view.count(BarKind::Open)),
        ));
    }
    entries.extend(drawn_ms.map(|ms| {
        LegendEntry::new(MarkStyle::Line(INK, axes::DASHES), format!("threshold {}", duration(ms)))
    }));
    entries
}

fn draw_bars(page: &mut Page, area: &Area, view: &ProfileView) {
    let [short, long, open] =
        [BarKind::Short, BarKind::Long, BarKind::Open].map(|kind| view.ends(kind));
    let width = bar_width(short.len() + long.len() + open.len());
    // Short bars are drawn in front: they hide no end of a longer one, and would be hidden
    // otherwise.
    for (points, colour) in [(&long, ALARM), (&short, CALM), (&open, colour(OPEN))] {
        let style = format!(r#"fill="none" stroke="{colour}" stroke-width="{width}""#);
        page.path(&sticks(area, points), &style);
    }
    let heads: String = open.iter().map(|(x, y)| arrow(area.x(*x), area.y(*y) + 2.0)).collect();
    page.path(&heads, &format!(r#"fill="{}""#, colour(OPEN)));
}

/// Returns the width of bars: wide for few, narrow for many.
fn bar_width(n: usize) -> f64 {
    match n {
        0..=60 => 4.0,
        61..=200 => 2.0,
        _ => 1.0,
    }
}

/// Draws vertical lines from the axis, with a minimum visible height.
fn sticks(area: &Area, points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (x, y) in points {
        let top = area.y(*y).min(area.bottom() - 1.0);
        path += &format!("M{} {}V{}", pixel(area.x(*x)), pixel(area.bottom()), pixel(top));
    }
    path
}
