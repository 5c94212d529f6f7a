// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme report`.

use super::selection::SelectionArguments;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
#[command(
    after_help = "The page is self-contained: you can mail it, print it, and read it offline.

Examples:
  tipme report
  tipme report 20260101T12 -o hang.html
  tipme report 20260101T12 -o hang.svg      only the timeline, of all programs
  tipme report FILE --app xterm -o - > hang.html
  tipme measure editor --json editor.json && tipme report editor.json"
)]
pub struct Report {
    /// Incident: a file, an id, or the beginning of an id; or a result of measure or bench, a
    /// file that ends in .json [default: your newest incident]
    #[arg(value_name = "INCIDENT|RESULT")]
    pub file: Option<String>,
    /// Output file, or - for standard output; for an incident, a name that ends in .svg gets only
    /// the timeline [default: tipme-ID.html in this folder]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub force: bool,
    /// The recorder's folder [default: /var/lib/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    #[command(flatten)]
    pub selection: SelectionArguments,
}
