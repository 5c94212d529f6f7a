// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time slice of a thread.
//!
//! From Linux 6.12 on a thread of the usual policy may ask for a slice of its own, 0.1 to 100 ms. It changes no
//! share of a CPU. But whoever wakes up with a shorter slice than the running thread's, and has not had
//! more than its share, takes the CPU at once, where
//! it would else wait for the end of the other's slice, which without a weight of its own comes with the next tick
//! of the timer: 4 ms at 250 Hz.
//!
//! The slice that threads have by themselves changes with the number of CPUs. A thread that sleeps meanwhile keeps
//! the old one until it runs, so every one that was ever the usual one says nothing of a wish.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Usual slices that are remembered: the kernel has four, by the number of CPUs.
const USUAL_MAX: usize = 8;
/// Where the kernel lists the CPUs that are there, as in `0-3`.
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Bytes of that list that are read; a longer one is of a machine whose CPUs come and go beyond them unnoticed.
const ONLINE_BYTES: usize = 64;
/// The flag that resets the policy on fork, as the scheduler's attributes have it.
const RESET_ON_FORK: u64 = 1;

/// What the kernel keeps of a thread: `struct sched_attr` in its first form.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct SchedAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    pub(crate) nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

impl SchedAttributes {
    /// Those of a thread; 0 is the caller.
    pub(crate) fn get(tid: u32) -> io::Result<SchedAttributes> {
        let mut found = SchedAttributes::default();
        let size = size_of::<SchedAttributes>();
        // SAFETY: the kernel writes at most `size` bytes to `found`, which is made of numbers only.
        let result = unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut found, size, 0) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(found) }
    }

    fn set(&self, tid: u32) -> io::Result<()> {
        let wanted = SchedAttributes { size: size_of::<SchedAttributes>() as u32, ..*self };
        // SAFETY: the kernel reads `size` bytes of `wanted`, which lives until the call returns.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const wanted, 0) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Whether the policy has nice values: neither a real-time priority nor a deadline.
    pub(crate) fn is_fair(&self) -> bool {
        let others = [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE];
        !others.contains(&(self.policy as libc::c_int))
    }

    /// The policy's number, with the flag that resets it on fork, as `sched_getscheduler` has it.
    pub(crate) fn scheduling(&self) -> i64 {
        let flag = if self.flags & RESET_ON_FORK == 0 { 0 } else { libc::SCHED_RESET_ON_FORK };
        i64::from(self.policy) | i64::from(flag)
    }
}

/// How this kernel tells of slices.
#[derive(Default, Debug)]
pub(crate) struct Slices {
    /// Nanoseconds that threads have had by themselves; empty where the kernel knows no slices of threads.
    usual: BTreeSet<u64>,
    /// The list of CPUs; `None` where there is none.
    online: Option<File>,
    /// As it was when the usual slice was last measured.
    cpus: Option<[u8; ONLINE_BYTES]>,
}

impl Slices {
    pub(crate) fn open() -> Slices {
        Slices { online: File::open(ONLINE).ok(), ..Slices::default() }
    }

    /// Measures the usual slice again where other CPUs are there than before.
    pub(crate) fn look(&mut self) {
        let mut cpus = [0; ONLINE_BYTES];
        // A list that cannot be read stays empty: then the slice is measured once.
        self.online.as_ref().and_then(|online| online.read_at(&mut cpus, 0).ok());
        self.learn(cpus, measure);
    }

    fn learn(&mut self, cpus: [u8; ONLINE_BYTES], measure: impl FnOnce() -> u64) {
        if self.cpus.replace(cpus) != Some(cpus) && self.usual.len() < USUAL_MAX {
            self.usual.extend(Some(measure()).filter(|nanos| *nanos > 0));
        }
    }

    pub(crate) fn are_there(&self) -> bool {
        !self.usual.is_empty()
    }

    /// Nanoseconds, 0 where the thread has what threads have by themselves. Deadline threads have no slice.
    pub(crate) fn of(&self, found: &SchedAttributes) -> i64 {
        let own = found.is_fair() && self.are_there() && !self.usual.contains(&found.runtime);
        if own { found.runtime as i64 } else { 0 }
    }
}

/// Nanoseconds that a thread has by itself: a new one asks for nothing of its own. 0 where the kernel knows no slices.
fn measure() -> u64 {
    let ask = || set(0, 0).and_then(|()| SchedAttributes::get(0)).map_or(0, |found| found.runtime);
    let asked = std::thread::Builder::new().spawn(ask).ok().and_then(|thread| thread.join().ok());
    asked.unwrap_or(0)
}

/// Gives a thread a slice, or with 0 the scheduler's own; policy and nice value stay.
///
/// A thread of the policy for idle time takes a slice only as one of the usual policy, which it is for a moment.
pub(crate) fn set(tid: u32, nanos: libc::c_int) -> io::Result<()> {
    let found = SchedAttributes::get(tid)?;
    let usual = SchedAttributes { policy: libc::SCHED_OTHER as u32, runtime: nanos.unsigned_abs().into(), ..found };
    match found.policy as libc::c_int {
        libc::SCHED_OTHER | libc::SCHED_BATCH => SchedAttributes { policy: found.policy, ..usual }.set(tid),
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

    fn of(slices: &Slices, tid: u32) -> i64 {
        slices.of(&SchedAttributes::get(tid).expect("the thread lives"))
    }

    #[test]
    fn a_slice_is_given_and_taken_back_under_either_policy() {
        let mut slices = Slices::open();
        slices.look();
        let before = SchedAttributes::get(own()).expect("of this thread");
        for policy in [libc::SCHED_OTHER, libc::SCHED_IDLE] {
            SchedAttributes { policy: policy as u32, ..before }.set(own()).expect("root may");
            set(own(), 200_000).expect("the thread lives");
            let after = SchedAttributes::get(own()).expect("of this thread");
            assert_eq!((after.policy, after.nice), (policy as u32, before.nice));
            assert_eq!(of(&slices, own()), if slices.are_there() { 200_000 } else { 0 });
            set(own(), 0).expect("the thread lives");
            assert_eq!(of(&slices, own()), 0);
        }
    }

    #[test]
    fn what_was_usual_before_the_cpus_changed_is_nobodys_wish() {
        let mut slices = Slices::default();
        let with = |runtime| SchedAttributes { runtime, ..SchedAttributes::default() };
        let cpus = |count| [count; ONLINE_BYTES];
        slices.learn(cpus(8), || 2_800_000);
        assert_eq!((slices.of(&with(2_800_000)), slices.of(&with(2_100_000))), (0, 2_100_000));
        slices.learn(cpus(8), || unreachable!("there are as many CPUs as before"));
        slices.learn(cpus(4), || 2_100_000);
        assert_eq!((slices.of(&with(2_800_000)), slices.of(&with(2_100_000))), (0, 0));
        assert_eq!(slices.of(&with(100_000)), 100_000);
    }

    #[test]
    fn the_usual_slice_is_measured_whatever_this_thread_asks_for() {
        let usual = measure();
        set(own(), 300_000).expect("the thread lives");
        assert_eq!(measure(), usual);
        set(own(), 0).expect("the thread lives");
        assert_eq!(SchedAttributes::get(own()).expect("of this thread").runtime, usual);
    }

    #[test]
    fn a_thread_that_is_not_there_has_none() {
        let error = set(i32::MAX as u32, 200_000).expect_err("no thread has this number");
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    }
}
