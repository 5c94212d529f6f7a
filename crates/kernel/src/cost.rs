// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cost of the programs: the kernel's own run statistics, enabled only for short samples, since
//! timing each run has a cost too.

use crate::load::Kernel;
use crate::orders::CounterOrder;
use crate::perf::{cpu_clock, run_at};
use crate::standby::attach;
use anyhow::{Context, Result};
use libbpf_rs::libbpf_sys;
use libbpf_rs::skel::Skel;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Instant;

/// Size of an answer of [`count()`], in bytes.
pub const COUNTED_BYTES: usize = size_of::<u64>();

/// Counters of one program since it was loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramRuns {
    pub name: String,
    /// Number of runs while statistics were enabled.
    pub runs: u64,
    /// Nanoseconds in those runs; the timing itself adds some tens of nanoseconds to each.
    pub nanos: u64,
    /// Number of runs skipped because the program was already running on that CPU: lost records.
    pub missed: u64,
}

/// Programs that the counter process may attach.
#[derive(Default)]
pub struct Attachable {
    /// Sets of programs that are attached together.
    pub standby: Vec<Vec<OwnedFd>>,
    /// Sampling program, and samples per second.
    pub clock: Option<(OwnedFd, u64)>,
}

/// Attached programs by set, and sampling events by CPU.
struct AttachedNow<'a> {
    of: &'a Attachable,
    standby: Vec<Vec<OwnedFd>>,
    clocks: BTreeMap<u16, OwnedFd>,
}

/// Executes orders until their stream ends. Enables run statistics on order, and answers at the end
/// of each period with its nanoseconds, or 0 if the kernel refused. Attaches and detaches programs
/// on order, and reports those that the kernel refuses.
pub fn count(mut orders: impl Read, mut answers: impl Write, attachable: &Attachable) {
    let standby = attachable.standby.iter().map(|_| Vec::new()).collect();
    let mut attached = AttachedNow { of: attachable, standby, clocks: BTreeMap::new() };
    let mut counting = None;
    while let Some(order) = CounterOrder::read(&mut orders) {
        let answer = match order {
            CounterOrder::Begin => {
                let since = Instant::now();
                counting = switch_on().map(|count| (count, since)).ok();
                None
            }
            CounterOrder::End => Some(counting.take().map_or(0, ended)),
            _ => attached.change(order).err().map(|_| order.refusal()),
        };
        if answer.is_some_and(|answer| {
            answers.write_all(&answer.to_le_bytes()).and_then(|()| answers.flush()).is_err()
        }) {
            return;
        }
    }
}

/// Ends a period, and returns an upper bound of its length: this process may have been preempted at
/// any point, and all runs in that time count.
fn ended((count, since): (OwnedFd, Instant)) -> u64 {
    drop(count);
    since.elapsed().as_nanos() as u64
}

impl AttachedNow<'_> {
    fn change(&mut self, order: CounterOrder) -> Result<()> {
        match order {
            CounterOrder::Attach(place) => self.switch(place, true),
            CounterOrder::Detach(place) => self.switch(place, false),
            CounterOrder::Sample(cpu) => self.sample(cpu),
            CounterOrder::Begin | CounterOrder::End => Ok(()),
        }
    }

    fn switch(&mut self, place: u8, on: bool) -> Result<()> {
        let place = usize::from(place);
        let (Some(programs), Some(links)) =
            (self.of.standby.get(place), self.standby.get_mut(place))
        else {
            return Ok(());
        };
        links.clear();
        if on {
            *links = attach(programs)?;
        }
        Ok(())
    }

    /// Samples a CPU while it stays online: the kernel ends the event of one that goes offline.
    fn sample(&mut self, cpu: u16) -> Result<()> {
        self.clocks.remove(&cpu);
        let Some((program, hertz)) = &self.of.clock else { return Ok(()) };
        if let Some(clock) = cpu_clock(u32::from(cpu), *hertz)? {
            run_at(&clock, program)?;
            self.clocks.insert(cpu, clock);
        }
        Ok(())
    }
}

/// Enables run statistics until the result is dropped.
fn switch_on() -> Result<OwnedFd> {
    // SAFETY: the call takes an enumerator and returns a new descriptor or a negative error.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    anyhow::ensure!(
        fd >= 0,
        "cannot enable run-time statistics: {}",
        std::io::Error::from_raw_os_error(-fd)
    );
    // SAFETY: the kernel has just made this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns `true` if the caller may query the counters of an open program. Before Linux 5.19 that
/// takes `CAP_BPF` if `kernel.unprivileged_bpf_disabled` is set, and so does reading any map.
pub fn may_ask(program: BorrowedFd<'_>) -> bool {
    runs(String::new(), program.as_raw_fd()).is_ok()
}

impl Kernel<'_> {
    /// Returns any one of the programs.
    ///
    /// # Errors
    /// If none is loaded, or there are too many open files.
    pub fn any_program(&self) -> Result<OwnedFd> {
        let program = self.skeleton.object().progs().find(|program| program.autoload());
        Ok(program.context("no kernel program is loaded")?.as_fd().try_clone_to_owned()?)
    }

    /// Returns the counters of all loaded programs.
    pub fn program_runs(&self) -> Result<Vec<ProgramRuns>> {
        let loaded = self.skeleton.object().progs().filter(|program| program.autoload());
        loaded
            .map(|program| {
                runs(program.name().to_string_lossy().into_owned(), program.as_fd().as_raw_fd())
            })
            .collect()
    }
}

fn runs(name: String, fd: i32) -> Result<ProgramRuns> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut size = size_of_val(&info) as u32;
    // SAFETY: `info` is a plain structure of `size` bytes that the kernel fills.
    let result =
        unsafe { libbpf_sys::bpf_obj_get_info_by_fd(fd, (&raw mut info).cast(), &raw mut size) };
    anyhow::ensure!(
        result == 0,
        "cannot read the counters of {name}: {}",
        std::io::Error::from_raw_os_error(-result)
    );
    Ok(ProgramRuns {
        name,
        runs: info.run_cnt,
        nanos: info.run_time_ns,
        missed: info.recursion_misses,
    })
}
