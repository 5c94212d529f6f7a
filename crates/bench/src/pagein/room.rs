// SPDX-License-Identifier: MIT OR Apache-2.0
//! Available memory, and the part for a hog: enough that memory runs out, but never so much that
//! the OOM killer acts.

use crate::kernel_text::memory_field;
use crate::load::memory_most;
use anyhow::{Result, ensure};
use schemars::JsonSchema;
use serde::Serialize;

/// Machines with more memory are not filled up.
const TOTAL_MAX: u64 = 4 << 30;
/// Memory that must be evicted beyond what is available, as a divisor of the total.
const PUSHED_OUT_SHARE: u64 = 16;
/// Share of the available memory for working set and hog if memory is to stay free, as a divisor.
const FREE_SHARE: u64 = 4;
/// Default hog that leaves memory free.
const HOG_FREE: u64 = 64 << 20;

/// Memory and swap of a machine, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Room")]
pub struct MemoryRoom {
    pub total: u64,
    pub available: u64,
    pub swap_free: u64,
}

impl MemoryRoom {
    /// Reads the values of this machine.
    pub(super) fn here() -> MemoryRoom {
        MemoryRoom {
            total: memory_field("MemTotal"),
            available: memory_field("MemAvailable"),
            swap_free: memory_field("SwapFree"),
        }
    }

    /// Returns the default size of the hog.
    pub(super) fn hog(&self, working_set: u64, shortage: bool) -> u64 {
        if shortage { self.most().saturating_sub(working_set) } else { HOG_FREE }
    }

    /// Maximum of working set and hog together: never more than the machine's total memory.
    fn most(&self) -> u64 {
        memory_most(self.available, self.swap_free).min(self.total)
    }

    /// Minimum of working set and hog together.
    fn least(&self) -> u64 {
        self.available + self.total / PUSHED_OUT_SHARE
    }

    /// Fails if memory cannot run out, or not safely.
    pub(super) fn check(&self, working_set: u64, hog: u64, shortage: bool) -> Result<()> {
        let both = working_set + hog;
        if !shortage {
            let most = self.available / FREE_SHARE;
            ensure!(
                both <= most,
                "working set and hog are {}, and without a shortage they may have {}; choose less",
                mib(both),
                mib(most)
            );
            return Ok(());
        }
        ensure!(
            self.total <= TOTAL_MAX,
            "this machine has {} of memory, and a measurement does not fill more than {}; use a small virtual \
             machine, such as those of the test bed (docs/internals/test-bed.md), or try it with --without-shortage",
            mib(self.total),
            mib(TOTAL_MAX)
        );
        ensure!(
            self.swap_free > 0,
            "there is no free swap, and without any the kernel ends programs where memory runs out; add some with mkswap \
             and swapon"
        );
        ensure!(
            self.least() <= self.most(),
            "{} of free swap are too little beside {} of memory that are available: memory cannot run out safely; add \
             swap with mkswap and swapon",
            mib(self.swap_free),
            mib(self.available)
        );
        let range = (self.least()..=self.most()).contains(&both);
        ensure!(
            range,
            "working set and hog are {}; memory runs out, and programs are not ended, with {} to {}; choose another --hog",
            mib(both),
            mib(self.least()),
            mib(self.most())
        );
        Ok(())
    }
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const GUEST: MemoryRoom =
        MemoryRoom { total: 980 * MIB, available: 760 * MIB, swap_free: 512 * MIB };

    fn refused(room: MemoryRoom, hog: u64) -> String {
        room.check(64 * MIB, hog, true).expect_err("refused").to_string()
    }

    #[test]
    fn a_small_guest_has_a_hog_that_pushes_out_and_fits() {
        let hog = GUEST.hog(64 * MIB, true);
        assert_eq!(hog, (760 + 512) * MIB / 4 * 3 - 64 * MIB);
        assert!(GUEST.check(64 * MIB, hog, true).is_ok());
        assert!(refused(GUEST, 100 * MIB).contains("choose another --hog"));
        assert!(refused(GUEST, 1_200 * MIB).contains("choose another --hog"));
    }

    #[test]
    fn no_more_is_taken_than_the_machine_has() {
        let swappy = MemoryRoom { swap_free: 8 << 30, ..GUEST };
        assert_eq!(swappy.hog(0, true), GUEST.total);
    }

    #[test]
    fn unsafe_shortages_are_refused_with_the_reason() {
        assert!(
            refused(MemoryRoom { total: 24 << 30, ..GUEST }, 900 * MIB)
                .contains("24576 MiB of memory")
        );
        assert!(refused(MemoryRoom { swap_free: 0, ..GUEST }, 900 * MIB).contains("no free swap"));
        assert!(
            refused(MemoryRoom { swap_free: 100 * MIB, ..GUEST }, 900 * MIB).contains("add swap")
        );
    }

    #[test]
    fn without_a_shortage_memory_stays_free() {
        let hog = GUEST.hog(8 * MIB, false);
        assert!(hog > 0 && GUEST.check(8 * MIB, hog, false).is_ok());
        assert!(GUEST.check(8 * MIB, 400 * MIB, false).is_err());
        assert!(MemoryRoom { swap_free: 0, ..GUEST }.check(8 * MIB, hog, false).is_ok());
    }
}
