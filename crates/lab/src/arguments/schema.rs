// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme-lab schema`, which `tipme schema` starts for documents of the lab.

use clap::{Args, ValueEnum};

/// A document that a verb of the lab prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DocumentChoice {
    /// tipme demo
    Demo,
    /// tipme selftest
    Selftest,
}

#[derive(Args)]
pub struct Schema {
    /// The document
    #[arg(value_enum)]
    pub document: DocumentChoice,
}
