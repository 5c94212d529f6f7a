// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time slice of a thread.
//!
//! From Linux 6.12 on, a thread of the normal policy may request a slice of its own, 0.1 to 100 ms.
//! CPU shares do not change. But a thread that wakes up with a shorter slice than the running
//! thread's, and has not used more than its share, preempts it at once. Otherwise it would wait for
//! the end of the running thread's slice, which comes at the next timer tick for default slices: 4
//! ms at 250 Hz.
//!
//! The default slice of threads depends on the number of CPUs. A sleeping thread keeps the old
//! default until it runs, so any value that was ever the default does not count as the user's wish.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Maximum number of remembered default slices: the kernel has four, depending on the number of
/// CPUs.
const USUAL_MAX: usize = 8;
/// The kernel's list of online CPUs, such as `0-3`.
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Number of bytes read from that list; changes beyond them go unnoticed.
const ONLINE_BYTES: usize = 64;
/// Flag of `sched_attr` that resets the policy on fork.
const RESET_ON_FORK: u64 = 1;

/// Scheduling attributes of a thread: `struct sched_attr` in its first version.
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
    /// Reads the attributes of a thread; 0 is the caller.
    pub(crate) fn get(tid: u32) -> io::Result<SchedAttributes> {
        let mut found = SchedAttributes::default();
        let size = size_of::<SchedAttributes>();
        // SAFETY: the kernel writes at most `size` bytes to `found`, which consists of numbers
        // only.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut found, size, 0) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(found) }
    }

    fn set(&self, tid: u32) -> io::Result<()> {
        let wanted = SchedAttributes { size: size_of::<SchedAttributes>() as u32, ..*self };
        // SAFETY: the kernel reads `size` bytes of `wanted`, which lives until the call returns.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const wanted, 0) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Returns `true` if the policy has nice values, i.e. neither a real-time priority nor a
    /// deadline.
    pub(crate) fn is_fair(&self) -> bool {
        let others = [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE];
        !others.contains(&(self.policy as libc::c_int))
    }

    /// Returns the policy with the reset-on-fork flag, in the format of `sched_getscheduler`.
    pub(crate) fn scheduling(&self) -> i64 {
        let flag = if self.flags & RESET_ON_FORK == 0 { 0 } else { libc::SCHED_RESET_ON_FORK };
        i64::from(self.policy) | i64::from(flag)
    }
}

/// Slice support of this kernel.
#[derive(Default, Debug)]
pub(crate) struct Slices {
    /// Observed default slices in nanoseconds; empty if the kernel has no per-thread slices.
    usual: BTreeSet<u64>,
    /// The list of CPUs; `None` if there is none.
    online: Option<File>,
    /// Contents of the list when the default slice was last measured.
    cpus: Option<[u8; ONLINE_BYTES]>,
}

impl Slices {
    pub(crate) fn open() -> Slices {
        Slices { online: File::open(ONLINE).ok(), ..Slices::default() }
    }

    /// Measures the default slice again if the set of CPUs has changed.
    pub(crate) fn look(&mut self) {
        let mut cpus = [0; ONLINE_BYTES];
        // An unreadable list stays empty: then the slice is measured once.
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

    /// Returns the slice in nanoseconds, 0 for the default. Deadline threads have no slice.
    pub(crate) fn slice(&self, found: &SchedAttributes) -> i64 {
        let own = found.is_fair() && self.are_there() && !self.usual.contains(&found.runtime);
        if own { found.runtime as i64 } else { 0 }
    }
}

/// Measures the default slice in nanoseconds on a new thread. Returns 0 if the kernel has no
/// per-thread slices.
fn measure() -> u64 {
    let thread = std::thread::Builder::new().spawn(|| {
        set(0, 0)?;
        SchedAttributes::get(0)
    });
    let found = thread.ok().and_then(|thread| thread.join().ok()?.ok());
    found.map_or(0, |found| found.runtime)
}

/// Sets the slice of a thread, 0 for the default; policy and nice value stay.
///
/// A SCHED_IDLE thread accepts a slice only under the normal policy, to which it is switched for a
/// moment.
pub(crate) fn set(tid: u32, nanos: libc::c_int) -> io::Result<()> {
    let found = SchedAttributes::get(tid)?;
    let usual = SchedAttributes {
        policy: libc::SCHED_OTHER as u32,
        runtime: nanos.unsigned_abs().into(),
        ..found
    };
    match found.policy as libc::c_int {
        libc::SCHED_OTHER | libc::SCHED_BATCH => {
            SchedAttributes { policy: found.policy, ..usual }.set(tid)
        }
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

    fn own_slice(slices: &Slices) -> i64 {
        slices.slice(&SchedAttributes::get(own()).expect("the thread lives"))
    }

    fn requested(slices: &Slices, runtime: u64) -> i64 {
        slices.slice(&SchedAttributes { runtime, ..SchedAttributes::default() })
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
            assert_eq!(own_slice(&slices), if slices.are_there() { 200_000 } else { 0 });
            set(own(), 0).expect("the thread lives");
            assert_eq!(own_slice(&slices), 0);
        }
    }

    #[test]
    fn former_default_slices_are_nobodys_wish() {
        let mut slices = Slices::default();
        let [four, eight] = [4, 8].map(|count| [count; ONLINE_BYTES]);
        slices.learn(eight, || 2_800_000);
        assert_eq!(requested(&slices, 2_800_000), 0);
        assert_eq!(requested(&slices, 2_100_000), 2_100_000);
        slices.learn(eight, || unreachable!("there are as many CPUs as before"));
        slices.learn(four, || 2_100_000);
        assert_eq!(requested(&slices, 2_800_000), 0);
        assert_eq!(requested(&slices, 2_100_000), 0);
        assert_eq!(requested(&slices, 100_000), 100_000);
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
