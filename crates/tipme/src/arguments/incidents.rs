// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments of what owners do with their incidents.

use clap::Subcommand;

/// What to do with an incident.
#[derive(Subcommand)]
pub enum Verb {
    /// Remove an incident of yours for good
    Rm {
        /// Its id: the name of its file without the ending
        id: String,
    },
    /// Keep an incident of yours when the folder is full; 20 of them and 512 MiB at most
    Pin {
        /// Its id: the name of its file without the ending
        id: String,
    },
    /// Let a pinned incident go again when the folder is full
    Unpin {
        /// Its id: the name of its file without the ending
        id: String,
    },
}
