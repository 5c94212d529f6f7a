// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme idle`.

use super::cpu_list::{CpuList, cpu_list};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tipme_command::duration;

#[derive(Args)]
#[command(after_help = "A loop of the lowest priority (SCHED_IDLE) runs on every CPU and notices when
it does not: that time was somebody else's. It needs no right and no tracing. With root, tipme's
own recorder runs beside it and gives every gap a name.

The loop keeps its CPU out of deep idle states and at a high clock, and a virtual machine's CPU
from being given to others: what is measured is a machine that never sleeps. Its heat and its fan
are part of that.

Exit codes: 0 measured, 1 the figures disagree with the kernel's own account by more than two
points, or --validate found errors above their limits, 2 could not be measured. Examples:
  tipme idle
  sudo tipme idle -d 30s --json idle.json --svg plots
  tipme idle --cpus 1-2 --resolution 500us --no-trace
  tipme idle --validate")]
pub struct Idle {
    /// How long to measure
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub duration: Duration,
    /// A loop of fixed length, as the paper has it, instead of one that watches the counter
    #[arg(long)]
    pub classic: bool,
    /// CPU time of the loop that makes a record
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = duration)]
    pub resolution: Duration,
    /// CPUs to watch, such as 0,2-3 [default: all that this process may use]
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<CpuList>,
    /// Write the result as one JSON document
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write plots into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "validate")]
    pub svg: Option<PathBuf>,
    /// Record nothing beside the measurement, even as root: gaps have no names
    #[arg(long)]
    pub no_trace: bool,
    /// Let programs of known work be watched, for 40 seconds, and say how well they are seen
    #[arg(long, conflicts_with_all = ["classic", "duration"])]
    pub validate: bool,
}
