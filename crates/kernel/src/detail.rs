// SPDX-License-Identifier: MIT OR Apache-2.0
//! Details recorded only on demand, since few verdicts need them: the delayed instrumentation of
//! TIPME (Endo and Seltzer 2000, section 3.4).

use crate::programs::REQUIRED;
use anyhow::{Context, Result};
use std::str::FromStr;
use tipme_record::{Nanos, named};

named! {
    /// A part of the recording that can have more detail.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Detail {
        /// Waits of 50 µs or more, instead of 1 ms.
        Waits = "waits",
        /// All interrupts and softirqs, instead of those of 50 µs or more, and work items and
        /// timers with their functions.
        Interrupts = "interrupts",
        /// Contention of kernel locks of 1 µs or more, instead of 100 µs.
        Locks = "locks",
        /// File writes by thread: one record per 64 folios that it makes dirty.
        Writers = "writers",
        /// Memory use by thread: one record per 64 changes of its process's RSS counters.
        Memory = "memory",
    }
}

impl Detail {
    /// Returns the detail that is the only one to need a class of programs.
    pub(crate) fn of_class(class: &str) -> Option<Detail> {
        match class {
            "writers" => Some(Detail::Writers),
            "memory" => Some(Detail::Memory),
            "deferred" => Some(Detail::Interrupts),
            _ => None,
        }
    }

    /// Returns the class of programs that records it.
    pub(crate) fn class(self) -> &'static str {
        if self == Detail::Waits { REQUIRED } else { self.name() }
    }
}

impl FromStr for Detail {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Detail> {
        Detail::named(name).with_context(|| {
            let known = Detail::ALL.map(Detail::name).join(", ");
            format!("there is no detail {name:?}; known are {known}")
        })
    }
}

/// Minimum durations that are recorded.
pub(crate) struct DetailThresholds {
    pub(crate) block: Nanos,
    pub(crate) interrupt: Nanos,
    pub(crate) lock: Nanos,
}

impl DetailThresholds {
    pub(crate) fn of(details: &[Detail]) -> DetailThresholds {
        let mut thresholds = DetailThresholds {
            block: Nanos(1_000_000),
            interrupt: Nanos(50_000),
            lock: Nanos(100_000),
        };
        for detail in details {
            match detail {
                Detail::Waits => thresholds.block = Nanos(50_000),
                Detail::Interrupts => thresholds.interrupt = Nanos(0),
                Detail::Locks => thresholds.lock = Nanos(1_000),
                Detail::Writers | Detail::Memory => {}
            }
        }
        thresholds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for detail in Detail::ALL {
            assert_eq!(detail.name().parse::<Detail>().ok(), Some(detail));
        }
        let error = "disk".parse::<Detail>().expect_err("no such detail").to_string();
        assert_eq!(
            error,
            "there is no detail \"disk\"; known are waits, interrupts, locks, writers, memory"
        );
    }

    #[test]
    fn a_detail_lowers_its_own_limit_only() {
        let limits = DetailThresholds::of(&[Detail::Locks]);
        assert_eq!(
            (limits.block, limits.interrupt, limits.lock),
            (Nanos(1_000_000), Nanos(50_000), Nanos(1_000))
        );
    }
}
