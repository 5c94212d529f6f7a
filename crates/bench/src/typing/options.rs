// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme bench typing`.

use crate::arms::BesideOptions;
use crate::place::place;
use crate::screen::Place;
use clap::Args;

#[derive(Args)]
#[command(after_help = "Examples:
  sudo tipme bench typing
  sudo tipme bench typing --load 20 --managed --json typing.json
  sudo tipme bench typing --load 20 --managed --display wayland
  sudo tipme bench typing --load 0,5,10,15,20 --managed --svg plots
  sudo tipme bench typing --managed --against nice19,autogroup,weight --sessions 20
  sudo tipme bench typing --managed --backend systemd --units --sessions 20

Keys are pressed in a terminal on a private display, ten a second, the next one once the one
before is on the screen; measured is the time from a key to its drawing. Unloaded and every arm
have their turns in each block. The load is as of tipme load; its processes are in one session of
their own, as a terminal's job is, unless --sessions says otherwise. As root, what types and
watches has real-time priority; display server, terminal and its program never have. Under Wayland
pictures of the screen tell when something is shown, and with --managed a recorder runs beside
every arm, since it tells the manager who has the focus.

Exit codes: 0 measured, 2 could not measure.")]
pub struct Typing {
    /// Keys of each arm, over all blocks
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub keys: u16,
    /// Where: on a private X server, on a private compositor of Wayland, or on one that runs, by the name or path of its socket
    #[arg(long, value_name = "x11|wayland|wayland-N|PATH", default_value = "x11", value_parser = place)]
    pub display: Place,
    #[command(flatten)]
    pub beside: BesideOptions,
}
