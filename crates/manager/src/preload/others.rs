// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detection of other tasks that wait for disk or memory.

use std::path::Path;
use tipme_record::Nanos;
use tipme_record::proc_text::stalled_us;

/// Time between two looks; the kernel updates its averages no more often.
const PERIOD: Nanos = Nanos::from_secs(2);
/// Minimum share of the time between two looks in which some task waited, in percent.
const WAITED_PERCENT: u64 = 5;

/// Watches the kernel's pressure figures.
pub(crate) struct OthersWatch<'a> {
    proc: &'a Path,
    looked: Nanos,
    waited_us: u64,
    waits: bool,
}

impl<'a> OthersWatch<'a> {
    /// Starts a watch. Until the second look, others are assumed to wait.
    pub(crate) fn begin(proc: &'a Path, now: Nanos) -> OthersWatch<'a> {
        OthersWatch { proc, looked: now, waited_us: waited_us(proc), waits: true }
    }

    pub(crate) fn wait(&mut self, now: Nanos) -> bool {
        let span = now.since(self.looked);
        if span >= PERIOD {
            let total = waited_us(self.proc);
            let waited = total.saturating_sub(std::mem::replace(&mut self.waited_us, total));
            self.waits = waited.saturating_mul(100_000) > span.0.saturating_mul(WAITED_PERCENT);
            self.looked = now;
        }
        self.waits
    }
}

/// Returns the total stall time in microseconds since boot; 0 without PSI.
fn waited_us(proc: &Path) -> u64 {
    let files = ["io", "memory"].map(|what| proc.join("pressure").join(what));
    files.iter().filter_map(|file| stalled_us(&std::fs::read_to_string(file).ok()?)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preload::fake::FakeKernel;

    #[test]
    fn others_wait_where_disk_or_memory_is_waited_for() {
        for what in ["io", "memory"] {
            let kernel = FakeKernel::new();
            kernel.press(what, 70_000_000);
            let mut others = OthersWatch::begin(kernel.proc(), Nanos(0));
            for (total_us, ms, waits, why) in [
                (70_000_000, 0, true, "nothing is known yet"),
                (70_000_000, 1_999, true, "nothing is known yet"),
                (70_000_000, 2_000, false, "nobody has waited"),
                (70_110_000, 3_999, false, "the next look is not due"),
                (70_110_000, 4_000, true, "5.5% of the time"),
                (70_110_000, 5_999, true, "the next look is not due"),
                (70_190_000, 6_000, false, "4% of the time"),
            ] {
                kernel.press(what, total_us);
                assert_eq!(others.wait(Nanos::from_millis(ms)), waits, "{ms} ms: {why}");
            }
        }
    }

    #[test]
    fn without_pressure_figures_no_task_is_known_to_wait() {
        let kernel = FakeKernel::new();
        assert!(!OthersWatch::begin(&kernel.proc().join("gone"), Nanos(0)).wait(PERIOD));
    }
}
