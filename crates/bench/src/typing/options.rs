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

Keys are pressed in a terminal on a private display, ten a second, each one once the previous one
is on the screen; it measures the time from a key to its drawing. Each block has one turn without
load and one for each arm. The load is that of tipme load; its processes share one session, as a
job in a terminal does, unless --sessions is given. As root, the measuring process has real-time
priority; the display server, the terminal and its program never do. Under Wayland screenshots
show when something is drawn, and with --managed a recorder runs beside every arm to report the
focus to the manager.

Exit codes: 0 measured, 2 nothing could be measured.")]
pub struct Typing {
    /// Keys per arm, over all blocks
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub keys: u16,
    /// Display: a private X server, a private Wayland compositor, or a running one by the name or
    /// path of its socket
    #[arg(long, value_name = "x11|wayland|wayland-N|PATH", default_value = "x11", value_parser = place)]
    pub display: Place,
    #[command(flatten)]
    pub beside: BesideOptions,
}
