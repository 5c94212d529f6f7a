// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any input to a plot results in a small well-formed SVG; also writes samples of all plots for
//! inspection.

#[path = "plots/samples.rs"]
mod samples;
#[path = "plots/xml.rs"]
mod xml;

use proptest::prelude::*;
use tipme_report::plot::{self, BYTES_MAX, Figure, LatencySet, ProfileBar, Quantity};

/// Text that breaks XML, terminals and layouts.
const HOSTILE: &str =
    "</text><script>alert('&amp;')</script>\u{0}\u{1b}[31m\u{202e}\u{fffe}\"&#x3;";

/// Draws every plot of the same figures.
fn all(
    figure: &Figure<'_>,
    sets: &[LatencySet],
    bars: &[ProfileBar],
    width: f64,
) -> Vec<(&'static str, String)> {
    let bins: Vec<(f64, f64)> = bars.iter().map(|bar| (bar.start_s, bar.latency_ms)).collect();
    let rows: Vec<(String, Vec<(String, f64)>)> = sets.iter().map(row).collect();
    vec![
        ("profile", plot::latency_profile(figure, bars, Some(width))),
        ("profile without threshold", plot::latency_profile(figure, bars, None)),
        ("zoom", plot::latency_profile_zoom(figure, bars, Some(width), -width, width)),
        ("histograms", plot::histograms(figure, sets, width)),
        ("cumulative by latency", plot::cumulative_by_latency(figure, sets)),
        ("cumulative by count", plot::cumulative_by_count(figure, sets)),
        ("utilisation", plot::utilisation(figure, &bins, width)),
        ("percentiles", plot::percentiles(figure, sets)),
        ("budgets", plot::budgets(figure, &rows)),
    ]
}

fn row(set: &LatencySet) -> (String, Vec<(String, f64)>) {
    let parts = set.values_ms.iter().enumerate().take(1_000);
    (
        set.name.clone(),
        parts.map(|(index, value)| (format!("{} {index}", set.name), *value)).collect(),
    )
}

fn check_all(plots: &[(&str, String)]) {
    for (name, svg) in plots {
        xml::check(svg).unwrap_or_else(|error| panic!("{name}: {error}\n{svg}"));
        assert!(!svg.contains("NaN") && !svg.contains("inf "), "{name} has a number that is none");
        assert!(svg.len() <= BYTES_MAX, "{name} has {} bytes", svg.len());
    }
}

#[test]
fn nothing_is_drawn_as_nothing() {
    let none = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0];
    let bars =
        none.map(|latency_ms| ProfileBar { start_s: latency_ms, latency_ms, censored: false });
    let figure = Figure::default();
    let strange = [LatencySet { name: "odd".to_owned(), values_ms: none.to_vec() }];
    for plots in [all(&figure, &[], &[], f64::NAN), all(&figure, &strange, &bars[..3], 10.0)] {
        check_all(&plots);
        for (name, svg) in &plots[..8] {
            assert!(svg.contains(">no events<") || svg.contains(">no records<"), "{name}: {svg}");
        }
    }
    let one = [LatencySet { name: "one".to_owned(), values_ms: vec![0.0, 1.0] }];
    check_all(&all(&figure, &one, &[], f64::MAX));
    let (_, budgets) = &all(&figure, &[], &[], 1.0)[8];
    assert!(budgets.contains(">no events<"));
}

#[test]
fn axes_name_the_quantity() {
    let sets = [LatencySet { name: "some".to_owned(), values_ms: vec![1.0, 20.0, 300.0] }];
    let bars = [ProfileBar { start_s: 0.5, latency_ms: 20.0, censored: false }];
    let words = [
        (Quantity::Latency, "latency, ms", "cumulative latency, s"),
        (Quantity::Lateness, "lateness, ms", "cumulative lateness, s"),
        (Quantity::Interval, "interval, ms", "sum of the intervals, s"),
        (Quantity::Gap, "gap, ms", "sum of the gaps, s"),
    ];
    for (quantity, length, sum) in words {
        let plots = all(&Figure { quantity, ..Figure::default() }, &sets, &bars, 10.0);
        for index in [0, 2, 3, 4, 7] {
            let (name, svg) = &plots[index];
            assert!(svg.contains(&format!(">{length}")), "{name}: {svg}");
        }
        for (name, svg) in &plots[4..6] {
            assert!(svg.contains(&format!(">{sum}<")), "{name}: {svg}");
        }
    }
    let known = ["key", "lateness", "interval", "gap"].map(Quantity::of_class);
    assert_eq!(known, [Quantity::Latency, Quantity::Lateness, Quantity::Lateness, Quantity::Gap]);
}

#[test]
fn hostile_names_stay_names() {
    let long = HOSTILE.repeat(200);
    let sets: Vec<LatencySet> = (0..3)
        .map(|_| LatencySet { name: long.clone(), values_ms: vec![1.0, 20.0, 300.0] })
        .collect();
    let bars = [ProfileBar { start_s: 0.5, latency_ms: 20.0, censored: true }];
    let plots =
        all(&Figure { title: &long, footer: &long, ..Figure::default() }, &sets, &bars, 10.0);
    check_all(&plots);
    for (name, svg) in &plots {
        assert!(!svg.contains("<script") && svg.len() < 60_000, "{name} has {} bytes", svg.len());
    }
}

#[test]
fn a_million_points_keep_their_maximum_and_stay_small() {
    let mut values_ms: Vec<f64> =
        (0..1_000_000_u64).map(|index| (index * 7_919 % 9_973) as f64 / 100.0).collect();
    values_ms[654_321] = 7_777.0;
    let bars = values_ms.iter().enumerate().map(|(index, latency_ms)| ProfileBar {
        start_s: index as f64 / 1e3,
        latency_ms: *latency_ms,
        censored: index % 100_000 == 0,
    });
    let bars: Vec<ProfileBar> = bars.collect();
    let sets = [LatencySet { name: "many".to_owned(), values_ms }];
    let plots = all(&Figure { title: "many", ..Figure::default() }, &sets, &bars, 10.0);
    check_all(&plots);
    for (name, svg) in &plots {
        assert!(svg.len() < 200_000, "{name} has {} bytes", svg.len());
    }
    let (_, profile) = &plots[0];
    // The axis ends at 8,000 ms, and the bar of 7,777 ms begins at 654 of 1,000 s.
    let area = 320.0;
    let found = profile
        .split('M')
        .filter_map(|stick| stick.split_once('V')?.1.split('"').next()?.parse::<f64>().ok());
    let highest = found.fold(f64::MAX, f64::min);
    let bottom = profile
        .split('M')
        .filter_map(|stick| stick.split_once(' ')?.1.split('V').next()?.parse::<f64>().ok());
    let bottom = bottom.fold(0.0, f64::max);
    assert!((bottom - highest - area * 7_777.0 / 8_000.0).abs() < 0.1, "{bottom} {highest}");
}

#[test]
fn many_sets_stay_below_the_bound() {
    let sets = (0..40).map(|seed| LatencySet {
        name: format!("set {seed}"),
        values_ms: (0..20_000)
            .map(|index| ((index * (seed + 7_919)) % 19_997) as f64 * 0.05)
            .collect(),
    });
    let sets: Vec<LatencySet> = sets.collect();
    let plots = all(&Figure { title: "many sets", ..Figure::default() }, &sets, &[], 0.05);
    check_all(&plots);
    assert!(plots[3].1.contains("Further sets, not drawn: 24."));
}

fn any_sets() -> impl Strategy<Value = Vec<LatencySet>> {
    let value = prop_oneof![any::<f64>(), 0f64..1e4, 0f64..1e-3, Just(0.0)];
    let set = (any::<String>(), prop::collection::vec(value, 0..40));
    prop::collection::vec(set.prop_map(|(name, values_ms)| LatencySet { name, values_ms }), 0..6)
}

fn any_bars() -> impl Strategy<Value = Vec<ProfileBar>> {
    let start = prop_oneof![any::<f64>(), 0f64..1e3, -1e12f64..1e12];
    let latency = prop_oneof![any::<f64>(), 0f64..1e4, 0f64..=1.0];
    let bar = (start, latency, any::<bool>());
    prop::collection::vec(
        bar.prop_map(|(start_s, latency_ms, censored)| ProfileBar {
            start_s,
            latency_ms,
            censored,
        }),
        0..40,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_input_gives_a_well_formed_plot(
        title in any::<String>(),
        footer in any::<String>(),
        sets in any_sets(),
        bars in any_bars(),
        width in prop_oneof![any::<f64>(), 0f64..100.0],
    ) {
        check_all(&all(&Figure { title: &title, footer: &footer, ..Figure::default() }, &sets, &bars, width));
    }
}
