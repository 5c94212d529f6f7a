// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output: a reader may close it at any time, as in `tipme incidents | head -1`, and
//! determines the layout.

use anstream::{AutoStream, ColorChoice};
use anyhow::{Result, bail};
use clap::Args;
use rustix::termios::tcgetwinsize;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::OnceLock;
use tipme_report::Layout;

/// Option common to all verbs.
#[derive(Args)]
pub struct Colours {
    /// When to use colours: auto, always or never; NO_COLOR is respected
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
    /// Applies the user's choice to all output.
    pub fn choose(&self) {
        let choice = match self.color {
            clap::ColorChoice::Auto => ColorChoice::Auto,
            clap::ColorChoice::Always => ColorChoice::Always,
            clap::ColorChoice::Never => ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// First write error, except for a closed pipe.
static FAILED: OnceLock<std::io::Error> = OnceLock::new();

/// Writes and flushes text; output to a closed pipe is dropped. Other errors are kept for
/// [`finish()`].
pub fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        // Only the first error is reported.
        let _ = FAILED.set(error);
    }
}

/// Returns the exit code of a program, unless its output could not be written completely.
///
/// # Errors
/// If a write failed.
pub fn finish(code: ExitCode) -> Result<ExitCode> {
    match FAILED.get() {
        Some(error) => bail!("cannot write the standard output: {error}"),
        None => Ok(code),
    }
}

/// Returns the layout for standard output. A terminal has a width, and colours unless it does not
/// support them, `NO_COLOR` is set, or the user declines them. Otherwise lines are not wrapped, and
/// coloured only on request.
pub fn layout() -> Layout {
    let out = std::io::stdout();
    let size = if out.is_terminal() { tcgetwinsize(&out).ok() } else { None };
    let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    Layout { columns, colour: AutoStream::choice(&out) != ColorChoice::Never, verbose: false }
}
