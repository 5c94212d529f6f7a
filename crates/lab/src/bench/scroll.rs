// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench scroll`.

use super::beside::{BlockTimes, Results, all, comparison, load_words, turns_words};
use crate::arguments::Scroll;
use crate::lines::Lines;
use crate::programs::Programs;
use anyhow::Result;
use serde_json::json;
use std::process::ExitCode;
use tipme_bench::Progress;
use tipme_bench::interrupt::Interrupt;
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
    lines.line(&format!("{}; {}", turns_words(&options.comparison), options.estimate()));
    let survey = Survey::begin();
    let cells = scroll::run(&options, &interrupt, &mut lines)?;
    let bound = format!("{} KiB by dd, 100 bytes at a time; {}", options.bytes >> 10, load_words(&options.comparison));
    let results = Results {
        kind: "scroll",
        title: TITLE,
        of: "scrolling",
        times_of: "the time",
        scale: Scale::Elapsed,
        bounds: vec![bound],
        paper: &PAPER,
        line_ms: None,
        comparison: &options.comparison,
        machine: survey.end(),
        more: json!({ "bytes": options.bytes }),
        times: all(&cells, "scroll", None, times),
    };
    results.publish(arguments.beside.json.as_deref(), arguments.beside.svg.as_deref())
}

/// One that did not come to rest was given up.
fn times(scrolled: &Scrolled) -> BlockTimes {
    let unanswered = usize::from(!scrolled.rested);
    BlockTimes { starts_ns: vec![scrolled.pressed.0], times_ns: vec![scrolled.time.0], unanswered }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_record::Nanos;

    #[test]
    fn what_did_not_come_to_rest_is_counted() {
        let scrolled = |rested| times(&Scrolled { pressed: Nanos(1), time: Nanos(2), rested }).unanswered;
        assert_eq!((scrolled(true), scrolled(false)), (0, 1));
    }
}
