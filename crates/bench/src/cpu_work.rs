// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arithmetic that only takes CPU time, the time that it took, and CPUs to run it on.

use crate::cpus::allowed_cpus;
use crate::kernel_text::schedstat;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Computes for `rounds` rounds; the compiler cannot omit them.
#[inline(always)]
pub(crate) fn spin(rounds: u64) {
    let mut state = 1_u64;
    for _ in 0..rounds {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// Keeps the CPU busy for a time.
pub(crate) fn spin_for(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// Returns the CPU time of this thread.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns the CPU time that some work of this thread takes.
pub(crate) fn cpu_time_of(work: impl FnOnce()) -> Duration {
    let before = cpu_time();
    work();
    cpu_time().saturating_sub(before)
}

/// Returns the accumulated run-queue delay of this thread; zero if the kernel does not count it.
pub(crate) fn run_queue_delay() -> Duration {
    schedstat("thread-self").map_or(Duration::ZERO, |(_, waited)| waited)
}

/// Returns the highest CPU number that this process can use.
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
        assert!(cpu_time_of(|| spin(100_000)) > Duration::ZERO);
    }
}
