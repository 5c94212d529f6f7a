// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times over the level of a load, with a curve for each way of scheduling it: figure 2 of the
//! paper.

use super::Figure;
use super::axes::{self, Axis};
use super::page::{LegendEntry, PLOT_HEIGHT, Page};
use super::scale::Scale;
use super::values::is_time;

/// Curve of one way of scheduling a load.
#[derive(Clone, PartialEq, Debug)]
pub struct LevelCurve {
    pub name: String,
    /// Levels in ascending order with their times in milliseconds.
    pub points: Vec<(f64, f64)>,
}

/// Plots curves over the level of the load on a logarithmic time axis, with a dashed line at a
/// reference time.
pub fn levels(
    figure: &Figure<'_>,
    curves: &[LevelCurve],
    name: &str,
    line_ms: Option<f64>,
) -> String {
    let curves: Vec<LevelCurve> = curves.iter().take(super::SETS_MAX).map(drawable).collect();
    let mut page = Page::new(figure);
    let entries = curves.iter().map(|curve| curve.name.clone()).enumerate();
    page.legend(&entries.map(|(index, name)| LegendEntry::line(index, name)).collect::<Vec<_>>());
    let points = curves.iter().flat_map(|curve| &curve.points);
    let times = points.clone().map(|point| point.1);
    let Some(least) = times.clone().reduce(f64::min) else { return page.nothing("no events") };
    let most = times.chain(line_ms).fold(least, f64::max);
    let across = Scale::up_to(points.map(|point| point.0).fold(0.0, f64::max));
    let upwards = Scale::log(least.min(line_ms.unwrap_or(least)), most);
    let area = page.area(PLOT_HEIGHT);
    let axis = Axis { scale: across, name: "load: runnable processes" };
    axes::draw(&mut page, &area, &axis, &Axis { scale: upwards, name });
    for (index, curve) in curves.iter().enumerate() {
        let places: Vec<(f64, f64)> = curve
            .points
            .iter()
            .map(|point| (across.share(point.0), upwards.share(point.1)))
            .collect();
        axes::slopes(&mut page, &area, &places, index);
        places.iter().for_each(|place| axes::dot(&mut page, &area, *place, index));
    }
    if let Some(ms) = line_ms {
        axes::threshold(&mut page, &area, &upwards, ms);
    }
    page.finish()
}

/// Removes invalid points.
fn drawable(curve: &LevelCurve) -> LevelCurve {
    let points =
        curve.points.iter().copied().filter(|point| point.0.is_finite() && is_time(point.1));
    LevelCurve { name: curve.name.clone(), points: points.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_curve_has_its_line_and_its_dots() {
        let figure = Figure { title: "typing", ..Figure::default() };
        let curves = [("unmanaged", 900.0), ("managed", 0.4)].map(|(name, ms)| LevelCurve {
            name: name.to_owned(),
            points: vec![(0.0, 0.3), (20.0, ms)],
        });
        let svg = levels(&figure, &curves, "delay, ms", Some(50.0));
        assert!(svg.starts_with("<svg") && svg.contains("unmanaged") && svg.contains("delay, ms"));
        assert_eq!(svg.matches(r#"rx="2.5""#).count(), 4);
        assert!(svg.contains("50 ms"), "the line to compare with has its value");
    }

    #[test]
    fn invalid_points_are_no_events() {
        let figure = Figure { title: "typing", ..Figure::default() };
        let hostile = LevelCurve {
            name: "<&".to_owned(),
            points: vec![(f64::NAN, 1.0), (1.0, f64::NAN), (1.0, -1.0)],
        };
        let svg = levels(&figure, &[hostile], "delay, ms", None);
        assert!(svg.contains("no events") && svg.contains("&lt;&amp;"));
    }
}
