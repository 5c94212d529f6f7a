// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is recorded on demand only, since few verdicts need it: the delayed instrumentation of TIPME
//! (Endo and Seltzer 2000, section 3.4).

use crate::programs::REQUIRED;
use anyhow::{Result, bail};
use std::str::FromStr;
use tipme_record::Nanos;

/// A resource whose use can be recorded more closely.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// What blocks of 50 microseconds or more waited for, instead of a millisecond.
    Waits,
    /// Every interrupt and softirq, instead of those of 50 microseconds or more; and work items and timers by their
    /// functions.
    Interrupts,
    /// Waits for kernel locks of a microsecond or more, instead of 100.
    Locks,
    /// Who writes to files: each thread, at every 64 folios that it makes dirty.
    Writers,
    /// Who takes memory: each thread, at every 64 changes of the kernel's count for its process.
    Memory,
}

impl Detail {
    /// All of them.
    pub const ALL: [Detail; 5] = [Detail::Waits, Detail::Interrupts, Detail::Locks, Detail::Writers, Detail::Memory];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Detail::Waits => "waits",
            Detail::Interrupts => "interrupts",
            Detail::Locks => "locks",
            Detail::Writers => "writers",
            Detail::Memory => "memory",
        }
    }

    /// The detail that a class of programs is needed for only.
    pub(crate) fn of_class(class: &str) -> Option<Detail> {
        match class {
            "writers" => Some(Detail::Writers),
            "memory" => Some(Detail::Memory),
            "deferred" => Some(Detail::Interrupts),
            _ => None,
        }
    }

    /// The class of programs that records it.
    pub(crate) fn class(self) -> &'static str {
        if self == Detail::Waits { REQUIRED } else { self.name() }
    }
}

impl FromStr for Detail {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Detail> {
        match Detail::ALL.into_iter().find(|detail| detail.name() == name) {
            Some(detail) => Ok(detail),
            None => bail!("there is no detail {name:?}; known are {}", Detail::ALL.map(Detail::name).join(", ")),
        }
    }
}

/// From how long on something is recorded.
pub(crate) struct DetailThresholds {
    pub(crate) block: Nanos,
    pub(crate) interrupt: Nanos,
    pub(crate) lock: Nanos,
}

impl DetailThresholds {
    pub(crate) fn of(details: &[Detail]) -> DetailThresholds {
        let limit = |detail, close, usual| if details.contains(&detail) { Nanos(close) } else { Nanos(usual) };
        DetailThresholds {
            block: limit(Detail::Waits, 50_000, 1_000_000),
            interrupt: limit(Detail::Interrupts, 0, 50_000),
            lock: limit(Detail::Locks, 1_000, 100_000),
        }
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
        assert_eq!(error, "there is no detail \"disk\"; known are waits, interrupts, locks, writers, memory");
    }

    #[test]
    fn a_detail_lowers_its_own_limit_only() {
        let limits = DetailThresholds::of(&[Detail::Locks]);
        assert_eq!((limits.block, limits.interrupt, limits.lock), (Nanos(1_000_000), Nanos(50_000), Nanos(1_000)));
    }
}
