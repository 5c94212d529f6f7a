// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figure and unit by which turns are compared.

use super::figures::{ArmFigures, ArmRow};
use crate::choice::number;

/// The figure by which turns are compared and drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyFigure {
    /// `p95`, or `median` if any turn has too few values for it.
    pub name: &'static str,
    pub value: fn(&ArmFigures) -> Option<f64>,
}

impl KeyFigure {
    /// Chooses the same figure for all turns.
    pub(crate) fn choose(rows: &[ArmRow], scale: ArmScale) -> KeyFigure {
        let many =
            scale == ArmScale::Latency && rows.iter().all(|row| row.figures.p95_ms.is_some());
        match many {
            true => KeyFigure { name: "p95", value: |figures| figures.p95_ms },
            false => KeyFigure { name: "median", value: |figures| figures.p50_ms },
        }
    }
}

/// Scale of the times in a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArmScale {
    /// Milliseconds, with enough values for percentiles.
    Latency,
    /// Seconds, with few values: the median and the maximum.
    Elapsed,
}

impl ArmScale {
    pub(super) fn shown(self, ms: Option<f64>) -> String {
        match self {
            ArmScale::Latency => number(ms, 2),
            ArmScale::Elapsed => number(ms.map(|ms| ms / 1e3), 2),
        }
    }

    pub(super) fn unit(self) -> &'static str {
        if self == ArmScale::Latency { "ms" } else { "s" }
    }
}
