// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme compare`.

use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
#[command(
    after_help = "Each class of events is compared with the same class of the first result: figures side by side,
then the differences of p50, p98 and excess latency rate (ELR). A difference is stated if its 95%
interval, bootstrapped over the repeats, excludes zero; each result needs at least five repeats
for that. Runs with the same name are repeats of one measurement. A folder stands for all results
in it (*.json), and their runs are its repeats; use one to compare benchmarks that measure once,
such as tipme bench timer.

Exit codes: 0 nothing was shown to be slower than the first result, 1 something was, 2 the
results could not be compared.

Examples:
  tipme measure editor --json before.json -- mousepad
  tipme compare before.json after.json
  tipme compare idle.json loaded.json --svg plots --json difference.json
  tipme compare timer-before/ timer-after/"
)]
pub struct Compare {
    /// Results of tipme measure, idle or bench, at most 16; the others are compared with the first
    #[arg(required = true, num_args = 2..=16, value_name = "FILE|DIR")]
    pub files: Vec<PathBuf>,
    /// Write the comparison as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write plots of all results on shared axes into this folder
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
}
