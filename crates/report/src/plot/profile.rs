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
        page.remark(&[format!("The threshold of {} lies above the axis.", duration(ms))]);
    }
    page.legend(&legend(&view, drawn_ms));
    let area = page.area(PLOT_HEIGHT);
    let across = Axis { scale: view.across, name: "begin of the event, s" };
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

impl ProfileView {
    fn is_long(&self, bar: &ProfileBar) -> bool {
        self.threshold_ms.is_some_and(|ms| bar.latency_ms > ms)
    }
}

fn legend(view: &ProfileView, drawn_ms: Option<f64>) -> Vec<LegendEntry> {
    let n =
        |wanted: &dyn Fn(&ProfileBar) -> bool| view.bars.iter().filter(|bar| wanted(bar)).count();
    let long = n(&|bar| !bar.censored && view.is_long(bar));
    let short = n(&|bar| !bar.censored && !view.is_long(bar));
    let open = n(&|bar| bar.censored);
    let entry = |mark, text| LegendEntry { mark, text };
    let mut entries = match view.threshold_ms.map(duration) {
        None => vec![entry(MarkStyle::Box(CALM), format!("events: {}", count(short)))],
        Some(limit) => vec![
            entry(MarkStyle::Box(CALM), format!("up to {limit}: {}", count(short))),
            entry(MarkStyle::Box(ALARM), format!("above {limit}: {}", count(long))),
        ],
    };
    if open > 0 {
        entries.push(entry(
            MarkStyle::Open(colour(OPEN)),
            format!("not ended, at least so long: {}", count(open)),
        ));
    }
    entries.extend(drawn_ms.map(|ms| {
        entry(MarkStyle::Line(INK, axes::DASHES), format!("threshold {}", duration(ms)))
    }));
    entries
}

fn draw_bars(page: &mut Page, area: &Area, view: &ProfileView) {
    let shown = |wanted: &dyn Fn(&ProfileBar) -> bool| {
        let mut highest = Highest::new();
        let wanted = view.bars.iter().filter(|bar| wanted(bar));
        wanted.for_each(|bar| {
            highest.add(view.across.share(bar.start_s), view.upwards.share(bar.latency_ms))
        });
        highest.points().collect::<Vec<_>>()
    };
    let short = shown(&|bar| !bar.censored && !view.is_long(bar));
    let long = shown(&|bar| !bar.censored && view.is_long(bar));
    let open = shown(&|bar| bar.censored);
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
    let stick = |(x, y): &(f64, f64)| {
        let top = area.y(*y).min(area.bottom() - 1.0);
        format!("M{} {}V{}", pixel(area.x(*x)), pixel(area.bottom()), pixel(top))
    };
    points.iter().map(stick).collect()
}
