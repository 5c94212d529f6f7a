// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme compare`.

use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Each class of events is held against the same class of the first result:
figures side by side, then what the repeats say of the differences of p50, p98 and excess latency
rate (ELR). A difference is stated where its 95 % interval, bootstrapped over the repeats, leaves
out zero; for that each result needs at least five repeats. Runs of one name are repeats of one
measurement. A folder stands for the results in it (*.json), their runs together being its
repeats: so can be compared what measures once, such as tipme bench timer.

Exit codes: 0 nothing is shown to be slower than the first result, 1 something is, 2 the results
could not be compared. Examples:
  tipme measure editor --json before.json -- mousepad
  tipme compare before.json after.json
  tipme compare idle.json loaded.json --svg plots --json difference.json
  tipme compare timer-before/ timer-after/")]
pub struct Compare {
    /// Results of tipme measure, idle or bench: the first is what the others are held against; at most 16
    #[arg(required = true, num_args = 2..=16, value_name = "FILE|DIR")]
    pub files: Vec<PathBuf>,
    /// Write the comparison as one JSON document
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write plots into this folder: all results on the same axes
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
}
