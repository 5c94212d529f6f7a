// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the programs cost: the kernel's own run statistics, switched on only for short samples, since to take the time of
//! each run costs some, too.

use crate::load::Kernel;
use crate::standby::{attach, ordered};
use anyhow::{Context, Result};
use libbpf_rs::libbpf_sys;
use libbpf_rs::skel::Skel;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Instant;

/// What [`count()`] is told.
pub const BEGIN: u8 = b'1';
pub const END: u8 = b'0';
/// Bytes of its answers.
pub const COUNTED_BYTES: usize = size_of::<u64>();

/// Counters of one program since it was loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramRuns {
    pub name: String,
    /// Runs while statistics were on.
    pub runs: u64,
    /// Nanoseconds in those runs; taking the time itself adds some tens of nanoseconds to each.
    pub nanos: u64,
    /// Runs that the kernel refused because the program was running on that CPU already: lost records.
    pub missed: u64,
}

/// Has the kernel count when it is told so, and answers at the end of each time how many nanoseconds that was; 0 where the
/// kernel refuses it. Attaches and detaches the programs of `standby` when it is told so, and answers [`refused()`]
/// where the kernel does not let it. Returns when nobody tells it any more.
pub fn count(mut orders: impl Read, mut answers: impl Write, standby: &[Vec<OwnedFd>]) {
    let (mut order, mut counting) = ([0], None);
    let mut attached: Vec<Vec<OwnedFd>> = standby.iter().map(|_| Vec::new()).collect();
    while orders.read_exact(&mut order).is_ok() {
        let answer = match (order, ordered(order[0])) {
            (_, Some((place, on))) => switch(standby, &mut attached, place, on),
            ([BEGIN], _) => {
                counting = switch_on().map(|count| (count, Instant::now())).ok();
                None
            }
            _ => Some(counting.take().map_or(0, |(_, since): (OwnedFd, Instant)| since.elapsed().as_nanos() as u64)),
        };
        if answer.is_some_and(|answer| answers.write_all(&answer.to_le_bytes()).and_then(|()| answers.flush()).is_err())
        {
            return;
        }
    }
}

/// What is answered where the programs of this place cannot be attached: longer than anything is counted.
pub fn refused(place: u8) -> u64 {
    u64::MAX - u64::from(place)
}

/// Attaches or detaches the programs of one place; the answer where that is refused.
fn switch(standby: &[Vec<OwnedFd>], attached: &mut [Vec<OwnedFd>], place: usize, on: bool) -> Option<u64> {
    let (programs, links) = (standby.get(place)?, attached.get_mut(place)?);
    links.clear();
    match on.then(|| attach(programs)) {
        None => None,
        Some(Ok(made)) => {
            *links = made;
            None
        }
        Some(Err(_)) => Some(refused(place as u8)),
    }
}

/// Switches run statistics on for as long as the result lives.
fn switch_on() -> Result<OwnedFd> {
    // SAFETY: the call takes an enumerator and returns a new descriptor or a negative error.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    anyhow::ensure!(fd >= 0, "cannot switch on run statistics: {}", std::io::Error::from_raw_os_error(-fd));
    // SAFETY: the kernel has just made this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether the caller may ask for the counters of a program that is open. Before Linux 5.19 that takes `CAP_BPF` where
/// `kernel.unprivileged_bpf_disabled` is set, and so does to read any map.
pub fn may_ask(program: BorrowedFd<'_>) -> bool {
    runs(String::new(), program.as_raw_fd()).is_ok()
}

impl Kernel<'_> {
    /// One of the programs, whichever.
    ///
    /// # Errors
    /// Where none is loaded, or there are too many open files.
    pub fn any_program(&self) -> Result<OwnedFd> {
        let program = self.skeleton.object().progs().find(|program| program.autoload());
        Ok(program.context("no kernel program is loaded")?.as_fd().try_clone_to_owned()?)
    }

    /// The counters of all loaded programs.
    pub fn program_runs(&self) -> Result<Vec<ProgramRuns>> {
        let loaded = self.skeleton.object().progs().filter(|program| program.autoload());
        loaded.map(|program| runs(program.name().to_string_lossy().into_owned(), program.as_fd().as_raw_fd())).collect()
    }
}

fn runs(name: String, fd: i32) -> Result<ProgramRuns> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut size = size_of_val(&info) as u32;
    // SAFETY: `info` is a plain structure of `size` bytes that the kernel fills.
    let result = unsafe { libbpf_sys::bpf_obj_get_info_by_fd(fd, (&raw mut info).cast(), &raw mut size) };
    anyhow::ensure!(
        result == 0,
        "cannot ask for the counters of {name}: {}",
        std::io::Error::from_raw_os_error(-result)
    );
    Ok(ProgramRuns { name, runs: info.run_cnt, nanos: info.run_time_ns, missed: info.recursion_misses })
}
