// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduling priority of threads.

use rustix::process::{getpriority_process, setpriority_process};
use std::io;

/// Nice value of urgent threads (those that answer while everything else waits), and the shortest
/// slice that the scheduler supports, in nanoseconds.
const URGENT: i32 = -10;
const URGENT_SLICE_NS: u64 = 100_000;
/// Arguments of ioprio_set: a single thread, and the idle I/O class.
const IOPRIO_WHO_PROCESS: libc::c_int = 1;
const IOPRIO_IDLE: libc::c_int = 3 << 13;

/// Gives the calling thread, and those that it starts from then on, a low nice value and a short
/// slice. Without permission for the nice value only the slice is shortened; if that is refused
/// too, nothing changes.
pub fn be_urgent() {
    if schedule(URGENT, URGENT_SLICE_NS).is_err()
        && let Ok(nice) = getpriority_process(None)
    {
        schedule(nice, URGENT_SLICE_NS).ok();
    }
}

/// Gives the calling thread, and those that it starts from then on, idle priority for CPUs, and for
/// the disk if its scheduler has classes. A refused change is ignored.
pub fn be_idle() {
    let no_priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel reads the parameters, which live until the call returns; the other call
    // takes numbers only.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const no_priority);
        libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
    }
}

/// Gives the calling thread, and those that it starts from then on, a nice value and a slice in
/// nanoseconds, 0 for the scheduler's default. A thread that wakes up with a shorter slice than the
/// running one preempts it at once, unless it has used up its share. Linux supports slices of
/// SCHED_OTHER threads from 6.12 on.
///
/// # Errors
/// If the kernel refuses it, such as a lower nice value without permission.
pub fn schedule(nice: i32, slice_ns: u64) -> io::Result<()> {
    // SAFETY: the call takes numbers only.
    if unsafe { libc::sched_getscheduler(0) } != libc::SCHED_OTHER {
        return Ok(setpriority_process(None, nice)?);
    }
    let wanted = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: slice_ns,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel reads `size` bytes of `wanted`, which lives until the call returns.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the slice of this thread in nanoseconds, or 0 if the kernel does not support slices.
    fn slice() -> u64 {
        // SAFETY: every bit pattern of these numbers is valid.
        let mut found: libc::sched_attr = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::sched_attr>();
        // SAFETY: the kernel writes at most `size` bytes to `found`.
        let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut found, size, 0) };
        assert_eq!(result, 0);
        found.sched_runtime
    }

    #[test]
    fn nice_value_and_slice_are_set_and_reset() {
        let tried = std::thread::spawn(|| {
            let usual = slice();
            schedule(3, 200_000).expect("nobody is refused a greater nice value");
            let asked = (getpriority_process(None).expect("it lives"), slice());
            schedule(4, 0).expect("nobody is refused a greater nice value");
            (usual, asked, slice())
        });
        let (usual, (nice, slice), after) = tried.join().expect("it ends");
        assert_eq!((nice, after), (3, usual));
        assert_eq!(slice, if usual == 0 { 0 } else { 200_000 });
    }

    #[test]
    fn an_idle_thread_has_idle_policies() {
        let tried = std::thread::spawn(|| {
            be_idle();
            // SAFETY: both calls take numbers only.
            unsafe {
                (
                    libc::sched_getscheduler(0),
                    libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0),
                )
            }
        });
        let (policy, io) = tried.join().expect("it ends");
        assert_eq!((policy, io), (libc::SCHED_IDLE, libc::c_long::from(IOPRIO_IDLE)));
    }
}
