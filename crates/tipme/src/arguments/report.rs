// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme report`.

use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
#[command(
    after_help = "The page is complete in itself: it can be mailed, printed, and read without a network. Examples:
  tipme report
  tipme report 20260101T12 -o hang.html
  tipme report 20260101T12 -o hang.svg      the timeline alone, with the states of all programs
  tipme report FILE --app xterm -o - > hang.html
  tipme measure editor --json editor.json && tipme report editor.json"
)]
pub struct Report {
    /// The incident: its file, its id, or the beginning of its id; or a result of measure or bench, a file that
    /// ends in .json [default: your newest incident]
    #[arg(value_name = "INCIDENT|RESULT")]
    pub file: Option<String>,
    /// Where to write it; - is standard output, and a name that ends in .svg gets the timeline of an incident as a picture
    /// [default: tipme-ID.html in this folder]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long)]
    pub force: bool,
    /// The recorder's folder [default: /var/lib/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Look at this application only
    #[arg(long, value_name = "NAME")]
    pub app: Option<String>,
    /// Look at this process only
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Look at what happened this long before the mark
    #[arg(long, value_name = "SECONDS_BEFORE_MARK")]
    pub at: Option<f64>,
}
