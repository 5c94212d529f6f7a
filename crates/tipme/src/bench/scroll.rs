// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench scroll`.

use super::beside::{BlockTimes, Results, all, comparison, load_words, turns_words};
use super::intervals::{Lines, Programs};
use crate::arguments::Scroll;
use anyhow::Result;
use serde_json::json;
use std::process::ExitCode;
use tipme_bench::interrupt::Interrupt;
use tipme_bench::intervals::Watch;
use tipme_bench::load::Kind;
use tipme_bench::machine::Survey;
use tipme_bench::scroll::{self, Options, Scrolled};
use tipme_report::arms::Scale;

const TITLE: &str = "Scrolling beside a load: a long file in a terminal";
const PAPER: [&str; 2] = [
    "Evans et al. (1993), figure 2, on a machine of its time: with their prototype 10 to 15 s at any load average",
    "from 0 to 20, for another file",
];

pub fn run(arguments: Scroll) -> Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let comparison = comparison(&arguments.beside, &Programs::find()?, Kind::Cpu);
    let options = Options { comparison, bytes: arguments.bytes };
    let mut lines = Lines("scroll");
    let most = options.time_max().as_secs();
    lines.line(&format!("{}; {most} s in all at most", turns_words(&options.comparison)));
    let survey = Survey::begin();
    let cells = scroll::run(&options, &interrupt, &mut lines)?;
    let bound = format!("{} KiB by dd, 100 bytes at a time; {}", options.bytes >> 10, load_words(&options.comparison));
    let results = Results {
        kind: "scroll",
        title: TITLE,
        of: "scrolling",
        axis: "median of the time",
        drawn: |figures| figures.p50_ms,
        scale: Scale::Elapsed,
        bounds: vec![bound],
        paper: &PAPER,
        line_ms: None,
        comparison: &options.comparison,
        machine: survey.end(),
        more: json!({ "bytes": options.bytes }),
        times: all(&cells, "scroll", None, times),
    };
    results.publish(&arguments.beside)
}

fn times(scrolled: &Scrolled) -> BlockTimes {
    BlockTimes { starts_ns: vec![scrolled.pressed.0], times_ns: vec![scrolled.time.0], unanswered: 0 }
}
