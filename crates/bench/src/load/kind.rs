// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kinds of load, and their use of memory.

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of processes of a load.
pub(crate) const LEVEL_MAX: u32 = 64;

/// Maximum page demand: pages that a process touches in a millisecond.
pub(crate) const DEMAND_MAX: u32 = 4_096;

/// The types of background load of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Kind")]
pub enum LoadKind {
    /// Small and CPU-bound
    Cpu,
    /// Many short-lived children
    Forks,
    /// Large and CPU-bound
    Big,
    /// A stream through memory or files
    Stream,
}

/// Memory access of a process while it works.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Pages {
    /// Different pages touched in a millisecond of CPU time.
    pub demand: u32,
    /// Share of these that the millisecond before had touched too, from 0 to 1.
    pub reuse: f64,
}

/// How a load uses its memory.
#[derive(Args)]
pub struct PageOptions {
    /// Different pages that each process touches per millisecond of CPU time [default: that of
    /// the type]
    #[arg(long, value_name = "PAGES", value_parser = clap::value_parser!(u32).range(1..=i64::from(DEMAND_MAX)))]
    pub demand: Option<u32>,
    /// Share of the pages that were also touched in the previous millisecond, 0 to 1 [default: that
    /// of the type]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub reuse: Option<f64>,
}

impl PageOptions {
    /// Returns the requested values, with the defaults of the kind for the others.
    pub(crate) fn with_defaults_of(&self, kind: LoadKind) -> Pages {
        let usual = kind.pages();
        Pages {
            demand: self.demand.unwrap_or(usual.demand),
            reuse: self.reuse.unwrap_or(usual.reuse),
        }
    }
}

impl LoadKind {
    /// Defaults of the kind.
    pub fn pages(self) -> Pages {
        let (demand, reuse) = match self {
            LoadKind::Cpu => (2, 0.95),
            LoadKind::Forks => (4, 0.1),
            LoadKind::Big => (200, 0.95),
            LoadKind::Stream => (200, 0.0),
        };
        Pages { demand, reuse }
    }

    /// Returns `true` if its processes use all the memory of the load.
    pub(super) fn is_large(self) -> bool {
        matches!(self, LoadKind::Big | LoadKind::Stream)
    }

    /// Returns `true` if its processes touch all of their memory before they begin.
    pub(super) fn has_touched_all(self) -> bool {
        matches!(self, LoadKind::Cpu | LoadKind::Big)
    }
}

/// Parses a share from 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "a number from 0 to 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_bounds() {
        assert_eq!(share("0.5"), Ok(0.5));
        assert!(share("1.1").is_err() && share("NaN").is_err() && share("half").is_err());
    }
}
