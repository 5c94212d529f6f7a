// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme-lab schema`, which `tipme schema` calls for documents of the lab.

use clap::{Args, ValueEnum};

/// A document that a verb of the lab prints or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DocumentChoice {
    /// tipme demo
    Demo,
    /// tipme selftest
    Selftest,
    /// tipme bench fork
    Fork,
    /// tipme bench memory
    Memory,
    /// tipme bench typing
    Typing,
    /// tipme bench scroll
    Scroll,
    /// tipme bench system
    System,
    /// tipme bench warmstart
    Warmstart,
    /// tipme bench pagein
    Pagein,
    /// tipme bench timer
    Timer,
    /// tipme load
    Load,
    /// tipme idle
    Idle,
    /// tipme measure
    Measure,
    /// tipme compare
    Compare,
}

#[derive(Args)]
pub struct LabSchemaArguments {
    /// The document
    #[arg(value_enum)]
    pub document: DocumentChoice,
}
