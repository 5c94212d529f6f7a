// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arithmetic that takes CPU time and has no other effect, the time that it took, and where it can be done.

use crate::cpus::allowed_cpus;
use crate::kernel_text::schedstat;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;

/// Of the fixed piece of work: some milliseconds, and often enough that one try is not interrupted.
const WORK_ROUNDS: u64 = 2_000_000;
const WORK_TRIES: usize = 5;

/// So many rounds of arithmetic that no compiler leaves out.
#[inline(always)]
pub(crate) fn spin(rounds: u64) {
    let mut state = 1_u64;
    for _ in 0..rounds {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// CPU time of this thread.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// CPU time of a fixed piece of work, the quickest of some tries: how fast the CPU is now.
pub(crate) fn fixed_work() -> Duration {
    let once = || {
        let before = cpu_time();
        spin(WORK_ROUNDS);
        cpu_time().saturating_sub(before)
    };
    (0..WORK_TRIES).map(|_| once()).min().unwrap_or_default()
}

/// The run-queue delay of this thread so far: how long it was runnable without a CPU. Zero where the kernel does not
/// tell.
pub(crate) fn run_queue_delay() -> Duration {
    schedstat("thread-self").map_or(Duration::ZERO, |(_, waited)| waited)
}

/// The CPU with the highest number that this process may use.
pub(crate) fn last_cpu() -> Option<usize> {
    allowed_cpus().ok()?.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_takes_cpu_time() {
        let before = cpu_time();
        spin(100_000);
        assert!(cpu_time() > before);
        assert!(run_queue_delay() <= run_queue_delay());
        assert!(fixed_work() > Duration::ZERO);
    }
}
