// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme bench scroll`.

use crate::arms::BesideOptions;
use clap::Args;
use tipme_command::size;

#[derive(Args)]
#[command(after_help = "Examples:
  sudo tipme bench scroll
  sudo tipme bench scroll --load 0,5,10,20 --managed --sessions 20 --json scroll.json --svg plots

In a terminal on a private display, dd if=FILE bs=100 prints a long file; it measures the time
from the key that starts it until the terminal has read all of it and stops drawing. Each block
has one turn without load and one for each arm. The load is that of tipme load.

Exit codes: 0 measured, 2 nothing could be measured.")]
pub struct Scroll {
    /// Size of the file: bytes, or with K, M or G, 1K to 256M
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = size)]
    pub bytes: u64,
    #[command(flatten)]
    pub beside: BesideOptions,
}
