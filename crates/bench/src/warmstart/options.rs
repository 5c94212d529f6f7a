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

Somebody types into a terminal on a private display, stops for half a minute, and types again;
measured is the time of the first key after the pause. The load is of the type big unless --type
says otherwise. It only matters to the terminal where memory runs short: choose --memory close to
what is available, on a machine that can bear it. Page faults of terminal and display server that
waited for a disk are counted, and the result says so where their pages had not gone.

Exit codes: 0 measured, 2 could not measure.")]
pub struct Warmstart {
    /// How long nobody types
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub pause: Duration,
    #[command(flatten)]
    pub beside: BesideOptions,
}
