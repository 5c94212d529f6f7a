// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time slice of a thread.
//!
//! From Linux 6.12 on a thread of the usual policy may ask for a slice of its own, 0.1 to 100 ms. It changes no
//! share of a CPU. But whoever wakes up with a shorter slice than the running thread's, and has not had
//! more than its share, takes the CPU at once, where
//! it would else wait for the end of the other's slice, which without a weight of its own comes with the next tick
//! of the timer: 4 ms at 250 Hz.

use std::io;

/// The kernel's thread daemon, which nobody gives a slice.
const KTHREADD: u32 = 2;

/// What the kernel keeps of a thread: `struct sched_attr` in its first form.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

impl Attributes {
    fn get(tid: u32) -> io::Result<Attributes> {
        let mut found = Attributes::default();
        let size = size_of::<Attributes>();
        // SAFETY: the kernel writes at most `size` bytes to `found`, which is made of numbers only.
        let result = unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut found, size, 0) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(found) }
    }

    fn set(&self, tid: u32) -> io::Result<()> {
        let wanted = Attributes { size: size_of::<Attributes>() as u32, ..*self };
        // SAFETY: the kernel reads `size` bytes of `wanted`, which lives until the call returns.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const wanted, 0) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// How this kernel tells of slices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slices {
    /// Nanoseconds that a thread has by itself; 0 where the kernel knows no slices of threads.
    usual: u64,
}

impl Slices {
    pub(crate) fn find() -> Slices {
        Slices { usual: Attributes::get(KTHREADD).map_or(0, |found| found.runtime) }
    }

    pub(crate) fn are_there(self) -> bool {
        self.usual > 0
    }

    /// Nanoseconds, 0 where the thread has what threads have by themselves. Deadline threads have no slice.
    pub(crate) fn get(self, tid: u32) -> io::Result<i64> {
        if !self.are_there() {
            return Ok(0);
        }
        let found = Attributes::get(tid)?;
        let own = found.policy != libc::SCHED_DEADLINE as u32 && found.runtime != self.usual;
        Ok(if own { found.runtime as i64 } else { 0 })
    }
}

/// Gives a thread a slice, or with 0 the scheduler's own; policy and nice value stay.
///
/// A thread of the policy for idle time takes a slice only as one of the usual policy, which it is for a moment.
pub(crate) fn set(tid: u32, nanos: libc::c_int) -> io::Result<()> {
    let found = Attributes::get(tid)?;
    let usual = Attributes { policy: libc::SCHED_OTHER as u32, runtime: nanos.unsigned_abs().into(), ..found };
    match found.policy as libc::c_int {
        libc::SCHED_OTHER | libc::SCHED_BATCH => Attributes { policy: found.policy, ..usual }.set(tid),
        libc::SCHED_IDLE => {
            usual.set(tid)?;
            found.set(tid)
        }
        _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
    }

    #[test]
    fn a_slice_is_given_and_taken_back_under_either_policy() {
        let slices = Slices::find();
        let before = Attributes::get(own()).expect("of this thread");
        for policy in [libc::SCHED_OTHER, libc::SCHED_IDLE] {
            Attributes { policy: policy as u32, ..before }.set(own()).expect("root may");
            set(own(), 200_000).expect("the thread lives");
            let after = Attributes::get(own()).expect("of this thread");
            assert_eq!((after.policy, after.nice), (policy as u32, before.nice));
            assert_eq!(slices.get(own()).expect("of this thread"), if slices.are_there() { 200_000 } else { 0 });
            set(own(), 0).expect("the thread lives");
            assert_eq!(slices.get(own()).expect("of this thread"), 0);
        }
    }

    #[test]
    fn a_thread_that_is_not_there_has_none() {
        let error = set(i32::MAX as u32, 200_000).expect_err("no thread has this number");
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    }
}
