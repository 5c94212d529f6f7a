// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench pagein`.

use super::beside::{BlockTimes, Results, Times, all, arm, load_words, manager, turns_words};
use crate::arguments::Pagein;
use crate::lines::Lines;
use crate::programs::Programs;
use anyhow::Result;
use serde_json::{Value, json};
use std::process::ExitCode;
use tipme_bench::Progress;
use tipme_bench::arms::{Cell, Comparison};
use tipme_bench::interrupt::Interrupt;
use tipme_bench::load::Kind;
use tipme_bench::machine::Survey;
use tipme_bench::pagein::{self, Block, Options, Room};
use tipme_record::Nanos;
use tipme_report::arms::{ArmFigures, ArmRow, KeyFigure, Scale};

const TITLE: &str = "Page-ins beside a hog: what the program with the focus waits for its own pages after a key";
const PAPER: [&str; 2] = [
    "Evans et al. (1993), section 4.4.2: \"It doesn't matter how high a process' priority is if there is no free memory",
    "available\"; it has no figures of page-ins",
];
/// Memory that a process of the hog has, where the number of them is not given.
const HOG_EACH: u64 = 1 << 30;

pub fn run(arguments: Pagein) -> Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let room = Room::here();
    let options = options(&arguments, &Programs::find()?, &room);
    options.check(&room)?;
    let mut lines = Lines("pagein");
    lines.line(&plan(&options));
    let survey = Survey::begin();
    let cells = pagein::run(&options, &interrupt, &mut lines)?;
    let times = all(&cells, "page-in", None, times);
    let results = Results {
        kind: "pagein",
        title: TITLE,
        of: "page-in wait",
        times_of: "the wait",
        scale: Scale::Latency,
        bounds: bounds(&options, &room, &cells, &times),
        paper: &PAPER,
        line_ms: None,
        comparison: &options.comparison,
        machine: survey.end(),
        more: more(&options, &room, &cells),
        times,
    };
    results.publish(arguments.json.as_deref(), arguments.svg.as_deref())
}

fn options(arguments: &Pagein, programs: &Programs, room: &Room) -> Options {
    let (working_set, shortage) = (arguments.working_set, !arguments.without_shortage);
    let hog = arguments.hog.unwrap_or_else(|| room.hog(working_set, shortage));
    let kind = Kind::from(arguments.kind);
    let hogs = arguments.hogs.unwrap_or_else(|| hog.div_ceil(HOG_EACH).max(1) as u32);
    let comparison = Comparison {
        levels: vec![hogs],
        managed: arguments.managed,
        against: arguments.against.iter().map(|against| arm(*against)).collect(),
        blocks: arguments.blocks.into(),
        kind,
        pages: kind.pages(),
        memory: hog,
        sessions: arguments.sessions,
        manager: manager(&arguments.manager, programs),
        launcher: programs.launcher.clone(),
    };
    let (keys_per_lap, every, keys) = (arguments.keys_per_lap.into(), arguments.every, arguments.keys.into());
    Options { comparison, working_set, keys_per_lap, every, keys, shortage }
}

/// What it will take, told before it begins.
fn plan(options: &Options) -> String {
    let hog = options.comparison.load_bytes() >> 20;
    let turns = turns_words(&options.comparison);
    let (keys, working_set) = (options.keys_per_block(), options.working_set >> 20);
    format!(
        "{turns}; {keys} keys each; {hog} MiB for the hog, {working_set} MiB for the program; {}",
        options.estimate()
    )
}

fn times(block: &Block) -> BlockTimes {
    BlockTimes {
        starts_ns: block.pressed.iter().map(|at| at.0).collect(),
        times_ns: block.waits.iter().map(|time| time.0).collect(),
        unanswered: block.unanswered,
    }
}

fn bounds(options: &Options, room: &Room, cells: &[Cell<Block>], times: &[Times]) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{} keys in each turn behind a lap that does not count, {} s apart; a working set of {} MiB, once in {} keys",
            options.keys_per_block(),
            options.every.as_secs_f64(),
            options.working_set >> 20,
            options.keys_per_lap
        ),
        load_words(&options.comparison),
        format!(
            "{} MiB of memory, of which {} were available, and {} of free swap{}",
            room.total >> 20,
            room.available >> 20,
            room.swap_free >> 20,
            if options.shortage { "" } else { "; memory did not run out: nothing is compared" }
        ),
    ];
    lines.extend(cells.iter().map(turn_words));
    lines.extend(against_unmanaged(times));
    lines
}

fn turn_words(cell: &Cell<Block>) -> String {
    let page_ins: u64 = cell.blocks.iter().map(|block| block.page_ins).sum();
    let seen = figures(cell, |block| &block.latencies);
    let ms = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.2}"));
    format!(
        "{}: {page_ins} page faults waited for a disk; from the key to the drawing p50 {}, p95 {}, max {} ms",
        cell.turn.name(),
        ms(seen.p50_ms),
        ms(seen.p95_ms),
        ms(seen.max_ms)
    )
}

fn figures(cell: &Cell<Block>, times: fn(&Block) -> &Vec<Nanos>) -> ArmFigures {
    ArmFigures::of(cell.blocks.iter().flat_map(times).map(|time| time.0).collect(), 0)
}

/// A line for each arm beside the hog: its wait as a share of that of the unmanaged one.
fn against_unmanaged(times: &[Times]) -> Vec<String> {
    let rows: Vec<ArmRow> = times.iter().map(|times| times.row.clone()).collect();
    let key_figure = KeyFigure::of(&rows, Scale::Latency);
    let beside = |row: &&ArmRow| row.level > 0;
    let unmanaged = rows.iter().filter(beside).find(|row| row.arm == "unmanaged");
    let Some(before) = unmanaged.and_then(|row| (key_figure.of)(&row.figures)).filter(|ms| *ms > 0.0) else {
        return Vec::new();
    };
    let others = rows.iter().filter(beside).filter(|row| row.arm != "unmanaged");
    let shares = others.filter_map(|row| Some((&row.turn, (key_figure.of)(&row.figures)? / before)));
    shares
        .map(|(turn, share)| format!("{turn}: {} of the wait {share:.3} times that of unmanaged", key_figure.name))
        .collect()
}

fn more(options: &Options, room: &Room, cells: &[Cell<Block>]) -> Value {
    let untyped: usize = cells.iter().flat_map(|cell| &cell.blocks).map(|block| block.untyped).sum();
    json!({
        "working_set_bytes": options.working_set,
        "keys_per_lap": options.keys_per_lap,
        "keys_per_block": options.keys_per_block(),
        "every_s": options.every.as_secs_f64(),
        "hog_bytes": options.comparison.load_bytes(),
        "shortage": options.shortage,
        "room": room,
        "untyped": untyped,
        "turns": cells.iter().map(turn).collect::<Vec<Value>>(),
    })
}

fn turn(cell: &Cell<Block>) -> Value {
    json!({
        "turn": cell.turn.name(),
        "page_ins": cell.blocks.iter().map(|block| block.page_ins).sum::<u64>(),
        "walk": figures(cell, |block| &block.walks),
        "key_to_drawing": figures(cell, |block| &block.latencies),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arm: &str, level: u32, ms: u64) -> Times {
        let figures = ArmFigures::of(vec![ms * 1_000_000; 100], 0);
        let turn = format!("load {level}, {arm}");
        Times { row: ArmRow { turn, arm: arm.to_owned(), level, figures, ..ArmRow::default() }, blocks: Vec::new() }
    }

    #[test]
    fn managed_is_held_against_unmanaged() {
        let all = [times("unmanaged", 0, 0), times("unmanaged", 1, 400), times("managed", 1, 10)];
        assert_eq!(against_unmanaged(&all), ["load 1, managed: p95 of the wait 0.025 times that of unmanaged"]);
        assert!(against_unmanaged(&[times("unmanaged", 1, 0), times("managed", 1, 10)]).is_empty());
    }
}
