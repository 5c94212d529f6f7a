// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme diagnose`.

use super::selection::SelectionArguments;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use std::path::PathBuf;
use tipme_analysis::model::CauseKind;

#[derive(Args)]
#[command(
    after_help = "Text is wrapped to the width of the terminal; in a pipe each fact is on one line.

Exit codes: 0 a cause was found, 3 no finding, 2 the file cannot be read.

Examples:
  tipme diagnose
  tipme diagnose 20260101T1200 --verbose
  tipme diagnose --explain
  tipme diagnose --explain disk-queue
  tipme diagnose FILE --app xterm --json"
)]
pub struct Diagnose {
    /// Incident: a file, an id, or the beginning of an id [default: your newest]
    #[arg(value_name = "INCIDENT")]
    pub file: Option<String>,
    /// The recorder's folder [default: /var/lib/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Also show kernel functions of waits
    #[arg(short, long)]
    pub verbose: bool,
    /// Explain a kind of cause, what usually helps, and how to observe it yourself [default: the
    /// kinds that were found]
    #[arg(
        long,
        value_name = "KIND",
        num_args = 0..=1,
        default_missing_value = FOUND,
        conflicts_with_all = ["json", "interactions"],
        value_parser = kinds(),
        hide_possible_values = true
    )]
    pub explain: Option<String>,
    #[command(flatten)]
    pub selection: SelectionArguments,
    /// List all interactions with their times instead
    #[arg(long, conflicts_with_all = ["app", "pid", "at"])]
    pub interactions: bool,
}

/// Selects the kinds named by the verdict.
pub const FOUND: &str = "found";

/// Returns a parser for names of kinds.
fn kinds() -> PossibleValuesParser {
    let kinds = CauseKind::CAUSES.iter().chain([&CauseKind::Unattributed]).map(|kind| kind.name());
    PossibleValuesParser::new(
        kinds.map(PossibleValue::new).chain([PossibleValue::new(FOUND).hide(true)]),
    )
}
