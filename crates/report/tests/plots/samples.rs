// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a sample of every plot to the build's directory for temporary files, for inspection.

use crate::xml;
use fastrand::Rng;
use std::path::Path;
use tipme_report::plot::{self, Figure, LatencySet, ProfileBar};

const FOOTER: &str = "kernel 6.18.44, 2 CPUs (Some CPU @ 2.00GHz), virtual machine, clock tsc, \
    HZ 250, load 0.12 0.20 0.30, steal 0.1%. n 1,300, 60.0 s, threshold 100 ms, lost 0, open 3.";

/// Returns mostly short, seldom long values, as latencies are.
fn latency(chance: &mut Rng, usual_ms: f64) -> f64 {
    let (spread, tail) = (chance.f64(), chance.f64());
    usual_ms * (0.6 + 0.8 * spread) + if tail > 0.97 { usual_ms * 20.0 * chance.f64() } else { 0.0 }
}

fn set(name: &str, n: usize, usual_ms: f64) -> LatencySet {
    let mut chance = Rng::with_seed(n as u64);
    LatencySet {
        name: name.to_owned(),
        values_ms: (0..n).map(|_| latency(&mut chance, usual_ms)).collect(),
    }
}

fn bars(n: usize, seconds: f64) -> Vec<ProfileBar> {
    let mut chance = Rng::with_seed(7);
    let bars = (0..n).map(|index| ProfileBar {
        start_s: seconds * (index as f64 + chance.f64()) / n as f64,
        latency_ms: latency(&mut chance, 20.0),
        censored: index + 3 >= n,
    });
    bars.collect()
}

fn bins(n: usize, bin_ms: f64) -> Vec<(f64, f64)> {
    let mut chance = Rng::with_seed(3);
    let bins = (0..n).map(|index| {
        let chance = chance.f64();
        let share = if index % 500 < 30 { 0.8 + 0.2 * chance } else { 0.06 * chance };
        (index as f64 * bin_ms / 1e3, share)
    });
    bins.collect()
}

const PARTS: [&str; 10] = [
    "disk queue: nightly-backup",
    "runnable, waiting for a CPU",
    "xterm at work",
    "irq",
    "softirq net_rx",
    "lock",
    "memory reclaim",
    "exit from idle",
    "timer",
    "unexplained",
];

fn parts(ms: &[f64]) -> Vec<(String, f64)> {
    PARTS.iter().zip(ms).map(|(name, ms)| ((*name).to_owned(), *ms)).collect()
}

fn rows() -> Vec<(String, Vec<(String, f64)>)> {
    vec![
        ("key at 12.302 s".to_owned(), parts(&[916.0, 3.0, 18.0, 0.4, 0.2])),
        ("key at 14.870 s".to_owned(), parts(&[500.0, 120.0, 22.0, 9.0, 40.0, 33.0])),
        (
            "click at 31.004 s in a rather long window name".to_owned(),
            parts(&[0.0, 310.0, 60.0, 0.1, 0.1, 0.0, 88.0, 2.0, 1.0, 17.0]),
        ),
        ("nothing".to_owned(), vec![]),
    ]
}

/// Intervals that are all far from zero.
fn far() -> Vec<LatencySet> {
    let mut chance = Rng::with_seed(11);
    let values_ms = (0..5_000).map(|_| 99.0 + latency(&mut chance, 1.0)).collect();
    vec![LatencySet { name: "interval".to_owned(), values_ms }]
}

fn long_name() -> String {
    "<b>&amp; Wide WORDS and 漢字 \u{1b}[31m".repeat(60)
}

fn long_names() -> Vec<LatencySet> {
    (0..18)
        .map(|index| LatencySet {
            name: format!("{index} {}", long_name()),
            values_ms: vec![f64::from(index); 3],
        })
        .collect()
}

fn many_rows() -> Vec<(String, Vec<(String, f64)>)> {
    let mut chance = Rng::with_seed(5);
    let rows = (0..50).map(|row| {
        let parts = (0..14).map(|part| (format!("part {part}"), 9.0 * chance.f64()));
        (format!("event {row}"), parts.collect())
    });
    rows.collect()
}

fn samples() -> Vec<(&'static str, String)> {
    let figure = |title| Figure { title, footer: FOOTER, ..Figure::default() };
    let typing = bars(1_300, 60.0);
    let three = [
        set("xterm, quiet", 1_300, 12.0),
        set("xterm with 4 hogs", 1_300, 31.0),
        set("mousepad", 400, 48.0),
    ];
    let pair = [set("before", 2_000, 140.0), set("after", 2_000, 12.0), set("never run", 0, 1.0)];
    let micro =
        [set("timerfd, SCHED_OTHER", 50_000, 0.052), set("timerfd, SCHED_FIFO 80", 50_000, 0.011)];
    let name = long_name();
    let named = Figure { title: &name, footer: &name, ..Figure::default() };
    let many: Vec<LatencySet> = (0..12)
        .map(|index| set(&format!("run {index} of many"), 300, 5.0 + index as f64))
        .collect();
    vec![
        (
            "profile",
            plot::latency_profile(&figure("Latency of typing in xterm"), &typing, Some(100.0)),
        ),
        (
            "profile-zoom",
            plot::latency_profile_zoom(
                &figure("The same, 2 s of it"),
                &typing,
                Some(100.0),
                20.0,
                22.0,
            ),
        ),
        (
            "profile-few",
            plot::latency_profile(
                &figure("Few, far below the threshold"),
                &bars(12, 9.0),
                Some(4_000.0),
            ),
        ),
        (
            "profile-long",
            plot::latency_profile(&figure("An hour"), &bars(200_000, 3_600.0), Some(100.0)),
        ),
        ("profile-none", plot::latency_profile(&figure("Nothing happened"), &[], Some(100.0))),
        ("histograms", plot::histograms(&figure("Touching memory, before and after"), &pair, 10.0)),
        ("histogram", plot::histograms(&figure("One set"), &three[..1], 1.0)),
        ("histogram-far", plot::histograms(&figure("Intervals of 100 ms"), &far(), 0.05)),
        ("histogram-fine", plot::histograms(&figure("Narrow buckets"), &pair, 0.5)),
        ("histogram-micro", plot::histograms(&figure("Lateness of a timer"), &micro, 0.005)),
        ("cumulative-latency", plot::cumulative_by_latency(&figure("Three runs"), &three)),
        ("cumulative-count", plot::cumulative_by_count(&figure("Three runs"), &three)),
        ("cumulative-many", plot::cumulative_by_count(&figure("Many runs"), &many)),
        ("percentiles", plot::percentiles(&figure("Three runs"), &three)),
        ("percentiles-micro", plot::percentiles(&figure("Lateness of a timer"), &micro)),
        (
            "utilisation",
            plot::utilisation(&figure("CPU 0, an idle system"), &bins(600, 10.0), 10.0),
        ),
        (
            "utilisation-fine",
            plot::utilisation(&figure("CPU 0, an idle system"), &bins(20_000, 1.0), 1.0),
        ),
        ("names", plot::percentiles(&named, &long_names())),
        ("budgets-many", plot::budgets(&figure("Many parts"), &many_rows())),
        ("budgets", plot::budgets(&figure("The worst three events"), &rows())),
    ]
}

#[test]
fn every_plot_has_a_sample() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plots");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, svg) in samples() {
        xml::check(&svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(svg.len() < 150_000, "{name} has {} bytes", svg.len());
        std::fs::write(folder.join(name).with_extension("svg"), svg).unwrap();
    }
}
