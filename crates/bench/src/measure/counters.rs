// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the application's processes use: counted by the kernel, whoever of them does it.
//!
//! The counters belong to a thread that does nothing but start the application, and are inherited by all
//! that comes of it; so they cost the same for one process as for thirty. Where the kernel offers none,
//! the text files of /proc serve, as far as they go.

use crate::kernel_text::{stat, stat_words};
use crate::process::group_members;
use rustix::fd::FromRawFd;
use std::os::fd::OwnedFd;

/// What is counted, in the order of [`Usage`].
const COUNTED: [&str; 7] =
    ["cpu_ns", "context_switches", "page_faults", "cycles", "instructions", "cache_misses", "tlb_misses"];
const KINDS: usize = COUNTED.len();

const SOFTWARE: u32 = 1;
const HARDWARE: u32 = 0;
const HARDWARE_CACHE: u32 = 3;
/// Type and number of each counter, as the kernel knows them.
const EVENTS: [(u32, u64); KINDS] = [
    (SOFTWARE, 1),
    (SOFTWARE, 3),
    (SOFTWARE, 2),
    (HARDWARE, 0),
    (HARDWARE, 1),
    (HARDWARE, 3),
    // Misses of reads in the table of data addresses.
    (HARDWARE_CACHE, 3 | 1 << 16),
];
/// Children count as well.
const INHERIT: u64 = 1 << 1;

/// Counts since the application started; `None` where this machine does not count it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage(pub [Option<u64>; KINDS]);

impl Usage {
    /// What was used between an earlier count and this one.
    pub fn since(self, earlier: Usage) -> Usage {
        let difference = |at: usize| self.0[at].zip(earlier.0[at]).map(|(now, then)| now.saturating_sub(then));
        Usage(std::array::from_fn(difference))
    }

    /// Both together.
    pub fn plus(self, other: Usage) -> Usage {
        let sum = |at: usize| self.0[at].zip(other.0[at]).map(|(one, other)| one.saturating_add(other));
        Usage(std::array::from_fn(sum))
    }
}

/// The beginning of the kernel's `perf_event_attr`, in the size of its first version.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    address: u64,
}

/// Counters of everything that the calling thread starts from now on.
pub(super) struct Counters([Option<OwnedFd>; KINDS]);

impl Counters {
    /// To be called by the thread that will start the application.
    pub(super) fn open() -> Counters {
        Counters(EVENTS.map(|(kind, config)| open(kind, config)))
    }

    /// The counts of now, those of /proc for a process group where the kernel counts nothing else.
    pub(super) fn read(&self, group: u32) -> Usage {
        if self.0[0].is_none() {
            return from_files(group);
        }
        Usage(std::array::from_fn(|at| self.0[at].as_ref().and_then(value)))
    }
}

fn open(kind: u32, config: u64) -> Option<OwnedFd> {
    let size = size_of::<Attributes>() as u32;
    let attributes = Attributes {
        kind,
        size,
        config,
        period: 0,
        sample_type: 0,
        read_format: 0,
        flags: INHERIT,
        wakeup: 0,
        breakpoint: 0,
        address: 0,
    };
    let close_on_exec: libc::c_ulong = 8;
    // SAFETY: the kernel reads `size` bytes from the structure, which lives until the call returns.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, close_on_exec) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the call gave this descriptor to us, and nobody else knows it.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn value(fd: &OwnedFd) -> Option<u64> {
    let mut bytes = [0; 8];
    (rustix::io::read(fd, &mut bytes) == Ok(8)).then(|| u64::from_ne_bytes(bytes))
}

/// CPU time and page faults of a process group.
fn from_files(group: u32) -> Usage {
    let files = group_members(group).into_iter().filter_map(|pid| from_stat(&stat(pid)?));
    let (cpu_ns, faults) = files.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    Usage([Some(cpu_ns), None, Some(faults), None, None, None, None])
}

/// CPU time in nanoseconds and page faults of a process and its children that have ended.
fn from_stat(text: &str) -> Option<(u64, u64)> {
    let words: Vec<u64> = stat_words(text)?.map(|word| word.parse().unwrap_or(0)).collect();
    let sum = |from: usize| Some(words.get(from..from + 4)?.iter().sum::<u64>());
    let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
    Some((sum(11)? * (1_000_000_000 / ticks_per_second), sum(7)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_proc_are_read() {
        let text = "12 (a) b) S 1 12 12 0 -1 0 100 20 3 4 50 60 7 8 20 0 1 0 99";
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        assert_eq!(from_stat(text), Some((125 * tick, 127)));
        assert_eq!(from_stat("12 (a) S 1"), None);
    }

    #[test]
    fn what_is_not_counted_stays_unknown() {
        let (one, other) = (Usage([Some(5), None, Some(3), None, None, None, None]), Usage::default());
        assert_eq!(one.since(other), Usage::default());
        assert_eq!(one.plus(one).0[0], Some(10));
        assert_eq!(one.since(one).0[..3], [Some(0), None, Some(0)]);
    }

    #[test]
    fn a_child_is_counted() {
        let counters = Counters::open();
        let before = counters.read(std::process::id());
        let ran = std::process::Command::new("sh").args(["-c", "exit 0"]).status();
        assert!(ran.expect("sh runs").success());
        let used = counters.read(std::process::id()).since(before);
        assert!(used.0[2].is_some_and(|faults| faults > 50), "{used:?}");
    }
}
