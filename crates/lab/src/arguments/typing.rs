// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme bench typing`.

use super::beside::BesideOptions;
use clap::Args;

#[derive(Args)]
#[command(after_help = "Examples:
  sudo tipme bench typing
  sudo tipme bench typing --load 20 --managed --json typing.json
  sudo tipme bench typing --load 0,5,10,15,20 --managed --svg plots
  sudo tipme bench typing --managed --against nice19,autogroup,weight --sessions 20

Keys are pressed in a terminal on a private display, ten a second, the next one once the one
before is on the screen; measured is the time from a key to its drawing. Unloaded and every arm
have their turns in each block. The load is as of tipme load; its processes are in one session of
their own, as a terminal's job is, unless --sessions says otherwise. As root, what types and
watches has real-time priority; display server, terminal and its program never have.

Exit codes: 0 measured, 2 could not measure.")]
pub struct Typing {
    /// Keys of each arm, over all blocks
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub keys: u16,
    #[command(flatten)]
    pub beside: BesideOptions,
}
