// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme bench warmstart`.

use crate::arms::BesideOptions;
use clap::Args;
use std::time::Duration;
use tipme_command::duration;

#[derive(Args)]
#[command(after_help = "Examples:
  sudo tipme bench warmstart --managed
  sudo tipme bench warmstart --load 8 --memory 2G --pause 10s --managed --json warmstart.json

Keys are typed into a terminal on a private display, then none for half a minute, then more;
it measures the latency of the first key after the pause. The load is of the type big unless
--type is given. It affects the terminal only if memory runs short: choose --memory close to the
available memory, on a machine that can bear it. Major page faults of terminal and display server
are counted, and the result says so if their pages had not been evicted.

Exit codes: 0 measured, 2 nothing could be measured.")]
pub struct Warmstart {
    /// Length of the pause
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub pause: Duration,
    #[command(flatten)]
    pub beside: BesideOptions,
}
