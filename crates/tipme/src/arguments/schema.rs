// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme schema`.

use clap::{Args, ValueEnum};

/// A document that a verb prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum SchemaName {
    /// tipme diagnose
    Verdict,
    /// tipme diagnose --interactions
    Interactions,
    /// tipme incidents
    Incidents,
    /// tipme day
    Day,
    /// tipme status
    Status,
    /// tipme doctor
    Doctor,
    /// tipme manage status
    Manage,
    /// tipme why
    Why,
    /// tipme demo
    Demo,
    /// tipme selftest
    Selftest,
}

#[derive(Args)]
#[command(after_help = "Example:
  tipme schema verdict > verdict.schema.json")]
pub struct Schema {
    /// The document
    #[arg(value_enum)]
    pub document: SchemaName,
}
