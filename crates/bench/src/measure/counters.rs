// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resource use of the application's processes, counted by the kernel.
//!
//! The counters belong to a thread that only starts the application; its processes inherit them, so
//! they cost the same for one process as for thirty. If the kernel offers no
//! counters, the text files of /proc serve as far as possible.
//!
//! A hardware counter is not always available: the kernel multiplexes counters if there are more
//! than the CPU has, and the other kind of core of a hybrid CPU has none of this kind. The kernel
//! therefore also reports the time enabled and the time running, and the count is scaled up by
//! their ratio, as in perf(1).

use crate::kernel_text::{stat, stat_words};
use crate::process::group_members;
use rustix::fd::FromRawFd;
use std::os::fd::OwnedFd;

/// Number of counters.
const KINDS: usize = 7;

const SOFTWARE: u32 = 1;
const HARDWARE: u32 = 0;
const HARDWARE_CACHE: u32 = 3;
/// Type and config of each counter for perf_event_open(2).
const EVENTS: [(u32, u64); KINDS] = [
    (SOFTWARE, 1),
    (SOFTWARE, 3),
    (SOFTWARE, 2),
    (HARDWARE, 0),
    (HARDWARE, 1),
    (HARDWARE, 3),
    // Read misses in the data TLB.
    (HARDWARE_CACHE, 3 | 1 << 16),
];
/// Children count as well.
const INHERIT: u64 = 1 << 1;
/// Reads the times with the count.
const WITH_TIMES: u64 = 1 | 1 << 1;

/// A count, with the time enabled and the time running.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CounterReading {
    pub count: u64,
    pub wanted_ns: u64,
    pub counted_ns: u64,
}

impl CounterReading {
    /// A count that is always running.
    pub fn whole(count: u64) -> CounterReading {
        CounterReading { count, ..CounterReading::default() }
    }

    /// Combines each of the three values with that of another reading.
    fn with(self, other: CounterReading, combine: fn(u64, u64) -> u64) -> CounterReading {
        CounterReading {
            count: combine(self.count, other.count),
            wanted_ns: combine(self.wanted_ns, other.wanted_ns),
            counted_ns: combine(self.counted_ns, other.counted_ns),
        }
    }

    /// Returns the count scaled to all the time enabled; `None` if the counter never ran.
    fn scaled(self) -> Option<u64> {
        let CounterReading { count, wanted_ns, counted_ns } = self;
        match counted_ns {
            0 if wanted_ns > 0 => None,
            _ if counted_ns >= wanted_ns => Some(count),
            _ => u64::try_from(u128::from(count) * u128::from(wanted_ns) / u128::from(counted_ns))
                .ok(),
        }
    }
}

/// Counted resources: CPU time in nanoseconds, context switches, page faults, cycles, instructions,
/// cache misses, TLB misses; `None` for those that this machine does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage(pub [Option<CounterReading>; KINDS]);

impl Usage {
    /// Returns the resources used since an earlier reading.
    pub fn since(self, earlier: Usage) -> Usage {
        self.with(earlier, u64::saturating_sub)
    }

    /// Returns the sum of both.
    pub fn plus(self, other: Usage) -> Usage {
        self.with(other, u64::saturating_add)
    }

    fn with(self, other: Usage, combine: fn(u64, u64) -> u64) -> Usage {
        Usage(std::array::from_fn(|at| Some(self.0[at]?.with(other.0[at]?, combine))))
    }

    /// Returns the scaled counts.
    pub fn scaled(self) -> [Option<u64>; KINDS] {
        self.0.map(|reading| reading?.scaled())
    }
}

/// Start of the kernel's `perf_event_attr`, in the size of its first version.
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

/// Counters of all processes that the calling thread starts from now on.
pub(super) struct Counters([Option<OwnedFd>; KINDS]);

impl Counters {
    /// Called by the thread that will start the application.
    pub(super) fn open() -> Counters {
        Counters(EVENTS.map(|(kind, config)| open(kind, config)))
    }

    /// Reads the counts, or those of /proc for a process group if the kernel counts nothing else.
    pub(super) fn read(&self, group: u32) -> Usage {
        if self.0[0].is_none() {
            return from_files(group);
        }
        Usage(std::array::from_fn(|at| self.0[at].as_ref().and_then(reading)))
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
        read_format: WITH_TIMES,
        flags: INHERIT,
        wakeup: 0,
        breakpoint: 0,
        address: 0,
    };
    let close_on_exec: libc::c_ulong = 8;
    // SAFETY: the kernel reads `size` bytes from the structure, which lives until the call returns.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, close_on_exec)
    };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the call returned this new descriptor, which nothing else uses.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn reading(fd: &OwnedFd) -> Option<CounterReading> {
    let mut bytes = [0; 24];
    if rustix::io::read(fd, &mut bytes) != Ok(bytes.len()) {
        return None;
    }
    let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
    Some(CounterReading {
        count: words.next()?,
        wanted_ns: words.next()?,
        counted_ns: words.next()?,
    })
}

/// Returns CPU time and page faults of a process group.
fn from_files(group: u32) -> Usage {
    let files = group_members(group).into_iter().filter_map(|pid| from_stat(&stat(pid)?));
    let (cpu_ns, faults) = files.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let [cpu, faults] = [cpu_ns, faults].map(|count| Some(CounterReading::whole(count)));
    Usage([cpu, None, faults, None, None, None, None])
}

/// Returns CPU time in nanoseconds and page faults of a process and its reaped children.
fn from_stat(text: &str) -> Option<(u64, u64)> {
    let words: Vec<u64> = stat_words(text)?.map(|word| word.parse().unwrap_or(0)).collect();
    let (ticks, faults) = (words.get(11..15)?.iter().sum::<u64>(), words[7..11].iter().sum());
    Some((ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)), faults))
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
        let files = from_files(std::process::id());
        assert_eq!(
            (files.since(Usage::default()), Usage::default().plus(files)),
            Default::default()
        );
        assert_eq!(files.since(files).scaled(), [Some(0), None, Some(0), None, None, None, None]);
        assert_eq!(files.plus(files).scaled()[0], files.scaled()[0].map(|cpu_ns| 2 * cpu_ns));
    }

    /// Output of `perf stat` on a hybrid CPU with ten multiplexed counters, for two runs of a
    /// matrix product on the larger cores: cycles, instructions, cache misses and data TLB read
    /// misses, each with the share of the time running in hundredths of a percent; and the CPU time
    /// in microseconds. From the results kept with github.com/KargJonas/tiled-matmul (2025-05-16,
    /// main.profile and main.parallel2.profile).
    const RECORDED: [(u64, [(u64, u64); 4]); 2] = [
        (
            1_101_010,
            [
                (4_963_414_681, 7_879),
                (11_012_810_078, 8_871),
                (33_268_991, 8_872),
                (306_179, 8_879),
            ],
        ),
        (
            19_730_560,
            [
                (36_246_187_668, 5_796),
                (30_590_108_859, 6_527),
                (179_538_031, 6_529),
                (907_424_077, 6_536),
            ],
        ),
    ];

    /// Reconstructs the raw counts and times of a run.
    fn recorded((us, counts): (u64, [(u64, u64); 4])) -> Usage {
        let mut used = Usage([Some(CounterReading::default()); KINDS]);
        for (at, (scaled, share)) in counts.into_iter().enumerate() {
            let (count, counted_ns) = (scaled * share / 10_000, us * share / 10);
            used.0[3 + at] = Some(CounterReading { count, wanted_ns: 1_000 * us, counted_ns });
        }
        used
    }

    #[test]
    fn multiplexed_counters_are_scaled_for_each_operation() {
        let before = recorded(RECORDED[1]).plus(recorded(RECORDED[1]));
        for run in RECORDED {
            let used = before.plus(recorded(run)).since(before).scaled();
            for (found, (expected, _)) in used[3..].iter().zip(run.1) {
                assert!(
                    found.is_some_and(|found| found.abs_diff(expected) <= expected / 10_000 + 1),
                    "{found:?}, not {expected}"
                );
            }
        }
        let never = Usage([Some(CounterReading { count: 0, wanted_ns: 5, counted_ns: 0 }); KINDS]);
        let half = Usage([Some(CounterReading { count: 7, wanted_ns: 9, counted_ns: 7 }); KINDS]);
        assert_eq!((never.scaled()[3], never.since(never).scaled()[3]), (None, Some(0)));
        assert_eq!(
            never.plus(half).scaled()[3],
            Some(14),
            "what was counted stands for what was not"
        );
    }

    #[test]
    fn a_child_is_counted() {
        let counters = Counters::open();
        let before = counters.read(std::process::id());
        let ran = std::process::Command::new("sh").args(["-c", "exit 0"]).status();
        assert!(ran.expect("sh runs").success());
        let used = counters.read(std::process::id()).since(before);
        assert!(used.scaled()[2].is_some_and(|faults| faults > 50), "{used:?}");
    }
}
