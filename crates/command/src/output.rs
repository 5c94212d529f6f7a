// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output, whose reader may go at any time: `tipme incidents | head -1`; and what kind of reader it is.

use anstream::{AutoStream, ColorChoice};
use anyhow::{Result, bail};
use clap::Args;
use rustix::termios::tcgetwinsize;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::OnceLock;
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

/// The first error of writing, but for readers that are gone.
static FAILED: OnceLock<std::io::Error> = OnceLock::new();

/// Writes at once; what nobody reads any more is dropped. What else fails is kept for [`finish()`].
pub fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = written.or_else(|error| gone(error.kind()).then_some(()).ok_or(error)) {
        // Only the first is told.
        let _ = FAILED.set(error);
    }
}

fn gone(kind: std::io::ErrorKind) -> bool {
    kind == std::io::ErrorKind::BrokenPipe
}

/// The exit code of a program, unless not all of its output could be written.
///
/// # Errors
/// Where it could not.
pub fn finish(code: ExitCode) -> Result<ExitCode> {
    match FAILED.get() {
        Some(error) => bail!("cannot write the standard output: {error}"),
        None => Ok(code),
    }
}

/// How text is laid out on the standard output: a terminal has a width, and colours unless it cannot show them, `NO_COLOR`
/// is set, or the user does not want them. For anything else lines are not broken, and have colours only on demand.
pub fn layout() -> Layout {
    let out = std::io::stdout();
    let size = if out.is_terminal() { tcgetwinsize(&out).ok() } else { None };
    let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    Layout { columns, colour: AutoStream::choice(&out) != ColorChoice::Never, verbose: false }
}
