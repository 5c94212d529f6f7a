// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench typing`.

use super::beside::{BlockTimes, Results, all, comparison, load_words, turns_words};
use crate::arguments::Typing;
use crate::lines::Lines;
use crate::programs::Programs;
use anyhow::Result;
use serde_json::json;
use std::process::ExitCode;
use tipme_bench::Progress;
use tipme_bench::arms::Cell;
use tipme_bench::interrupt::Interrupt;
use tipme_bench::load::Kind;
use tipme_bench::machine::Survey;
use tipme_bench::typing::{self, Block, INTERVAL, Options};
use tipme_measure::{Class, Profile};
use tipme_report::arms::{PAPER_PROTOTYPE_MS, Scale};

const TITLE: &str = "Typing beside a load: keystroke-to-echo latency in a terminal";
const PAPER: [&str; 2] = [
    "Evans et al. (1993), figure 2, on a machine of its time: with their prototype about 0.05 s at any load",
    "average from 0 to 20; without it 0.1 s at a small load, 1 s and then 10 s as it grew",
];

pub fn run(arguments: Typing) -> Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let options = Options {
        comparison: comparison(&arguments.beside, &Programs::find()?, Kind::Cpu),
        keys: arguments.keys.into(),
    };
    let mut lines = Lines("typing");
    lines.line(&plan(&options));
    let survey = Survey::begin();
    let cells = typing::run(&options, &interrupt, &mut lines)?;
    let results = Results {
        kind: "typing",
        title: TITLE,
        of: "typing",
        times_of: "the delay",
        scale: Scale::Latency,
        bounds: vec![bounds(&options)],
        paper: &PAPER,
        line_ms: Some(PAPER_PROTOTYPE_MS),
        comparison: &options.comparison,
        machine: survey.end(),
        more: more(&options, &cells),
        times: all(&cells, "key", Some(Class::Key.limits(Profile::Default)), times),
    };
    results.publish(arguments.beside.json.as_deref(), arguments.beside.svg.as_deref())
}

/// What it will take, told before it begins.
fn plan(options: &Options) -> String {
    let turns = turns_words(&options.comparison);
    format!("{turns}; {} keys each; {}", options.keys_per_block(), options.estimate())
}

fn bounds(options: &Options) -> String {
    let every = INTERVAL.as_millis();
    format!("{} keys in each turn, {every} ms apart; {}", options.keys_per_block(), load_words(&options.comparison))
}

fn times(block: &Block) -> BlockTimes {
    BlockTimes {
        starts_ns: block.pressed.iter().map(|at| at.0).collect(),
        times_ns: block.latencies.iter().map(|time| time.0).collect(),
        unanswered: block.unanswered,
    }
}

fn more(options: &Options, cells: &[Cell<Block>]) -> serde_json::Value {
    let untyped: usize = cells.iter().flat_map(|cell| &cell.blocks).map(|block| block.untyped).sum();
    json!({ "interval_ms": INTERVAL.as_millis() as u64, "keys_per_block": options.keys_per_block(), "untyped": untyped })
}
