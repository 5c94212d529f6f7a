// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output, whose reader may go at any time: `tipme incidents | head -1`; and what kind of reader it is.

use anstream::{AutoStream, ColorChoice};
use clap::Args;
use rustix::termios::tcgetwinsize;
use std::io::{IsTerminal, Write};
use tipme_report::Layout;

/// The choice that every verb has.
#[derive(Args)]
pub struct Colours {
    /// Colours: auto, always or never; NO_COLOR is obeyed
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    color: clap::ColorChoice,
}

impl Colours {
    /// Has everything obey the user's choice.
    pub fn choose(&self) {
        let choice = match self.color {
            clap::ColorChoice::Auto => ColorChoice::Auto,
            clap::ColorChoice::Always => ColorChoice::Always,
            clap::ColorChoice::Never => ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// Writes at once; what nobody reads any more is dropped.
pub fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// How text is laid out on the standard output: a terminal has a width, and colours unless it cannot show them, `NO_COLOR`
/// is set, or the user does not want them. For anything else lines are not broken, and have colours only on demand.
pub fn layout() -> Layout {
    let out = std::io::stdout();
    let size = if out.is_terminal() { tcgetwinsize(&out).ok() } else { None };
    let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    Layout { columns, colour: AutoStream::choice(&out) != ColorChoice::Never, verbose: false }
}
