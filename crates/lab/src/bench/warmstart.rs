// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench warmstart`.

use super::beside::{BlockTimes, Results, all, comparison, load_words, turns_words};
use crate::arguments::Warmstart;
use crate::lines::Lines;
use crate::programs::Programs;
use anyhow::Result;
use serde_json::{Value, json};
use std::process::ExitCode;
use tipme_bench::Progress;
use tipme_bench::arms::{Arm, Cell};
use tipme_bench::interrupt::Interrupt;
use tipme_bench::load::Kind;
use tipme_bench::machine::Survey;
use tipme_bench::warmstart::{self, Options, Warm};
use tipme_measure::{Class, Profile, Summary};
use tipme_report::arms::Scale;

const TITLE: &str = "Warm start beside a load: the first key after a pause";
const PAPER: [&str; 2] = [
    "Evans et al. (1993), section 5.4, on a machine of its time: 0.1 s with their prototype, 1 s without it,",
    "on the average",
];

pub fn run(arguments: Warmstart) -> Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let comparison = comparison(&arguments.beside, &Programs::find()?, Kind::Big);
    let options = Options { comparison, pause: arguments.pause };
    let mut lines = Lines("warmstart");
    lines.line(&format!("{}; {}", turns_words(&options.comparison), options.estimate()));
    let survey = Survey::begin();
    let cells = warmstart::run(&options, &interrupt, &mut lines)?;
    let results = Results {
        kind: "warmstart",
        title: TITLE,
        of: "first key",
        times_of: "the first key",
        scale: Scale::Latency,
        bounds: bounds(&options, &cells),
        paper: &PAPER,
        line_ms: Some(PAPER_MS),
        comparison: &options.comparison,
        machine: survey.end(),
        more: json!({
            "pause_s": options.pause.as_secs_f64(),
            "pushed_out": pushed_out(&cells),
            "pauses": pauses(&cells),
        }),
        times: all(&cells, "key", Some(Class::Key.limits(Profile::Default)), times),
    };
    results.publish(arguments.beside.json.as_deref(), arguments.beside.svg.as_deref())
}

/// The first key with the paper's prototype.
const PAPER_MS: f64 = 100.0;

fn times(warm: &Warm) -> BlockTimes {
    let unanswered = usize::from(warm.unanswered);
    BlockTimes { starts_ns: vec![warm.pressed.0], times_ns: vec![warm.first.0], unanswered }
}

fn bounds(options: &Options, cells: &[Cell<Warm>]) -> Vec<String> {
    let pause = options.pause.as_secs_f64();
    let mut lines = vec![format!("a pause of {pause} s; {}", load_words(&options.comparison))];
    lines.extend(cells.iter().map(|cell| {
        let page_ins: u64 = cell.blocks.iter().map(|warm| warm.page_ins).sum();
        let after = Summary::new(cell.blocks.iter().flat_map(|warm| &warm.after).map(|time| time.0).collect());
        let longest = after.max().unwrap_or_default() as f64 / 1e6;
        let name = cell.turn.name();
        format!(
            "{name}: {page_ins} page faults waited for a disk; the longest of the keys behind the first {longest:.2} ms"
        )
    }));
    lines.extend((pushed_out(cells) == Some(false)).then(|| KEPT.to_owned()));
    lines
}

/// Said where memory made no difference.
const KEPT: &str = "the load pushed nothing out: after a pause of the unmanaged arm no page had to be read back, so this says nothing \
                    of memory; choose a larger --memory, or --type big, which keeps all of it; after an earlier run also: \
                    echo 3 > /proc/sys/vm/drop_caches, since what came back once is kept longest";

/// Whether pages had to be read back after every pause beside a load that nobody managed; `None` without such pauses.
fn pushed_out(cells: &[Cell<Warm>]) -> Option<bool> {
    let unmanaged = cells.iter().filter(|cell| cell.turn.level > 0 && cell.turn.arm == Arm::Unmanaged);
    let mut pauses = unmanaged.flat_map(|cell| &cell.blocks).peekable();
    pauses.peek()?;
    Some(pauses.all(|warm| warm.page_ins > 0))
}

fn pauses(cells: &[Cell<Warm>]) -> Vec<Value> {
    let all = cells.iter().flat_map(|cell| cell.blocks.iter().map(|warm| (cell.turn.name(), warm)));
    all.map(|(turn, warm)| {
        let after_ns: Vec<u64> = warm.after.iter().map(|time| time.0).collect();
        json!({ "turn": turn, "first_ns": warm.first.0, "after_ns": after_ns, "page_ins": warm.page_ins })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_bench::arms::Turn;

    fn cell(level: u32, arm: Arm, page_ins: &[u64]) -> Cell<Warm> {
        let blocks = page_ins.iter().map(|page_ins| Warm { page_ins: *page_ins, ..Warm::default() }).collect();
        Cell { turn: Turn { level, arm }, blocks, load: None }
    }

    #[test]
    fn a_load_that_pushes_nothing_out_is_told() {
        let calm = || cell(0, Arm::Unmanaged, &[0, 0]);
        let beside = |page_ins: &[u64]| pushed_out(&[calm(), cell(20, Arm::Unmanaged, page_ins)]);
        assert_eq!((beside(&[5, 9]), beside(&[5, 0])), (Some(true), Some(false)));
        assert_eq!(pushed_out(&[calm(), cell(20, Arm::Managed, &[0])]), None, "only the unmanaged arm can tell");
    }
}
