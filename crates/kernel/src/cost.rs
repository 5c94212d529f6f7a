// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the programs cost: the kernel's own run statistics, switched on only for short samples.

use crate::load::Kernel;
use anyhow::Result;
use libbpf_rs::libbpf_sys;
use libbpf_rs::skel::Skel;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

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

impl Kernel<'_> {
    /// Switches run statistics on for as long as the result lives.
    pub fn measure_cost(&self) -> Result<OwnedFd> {
        // SAFETY: the call takes an enumerator and returns a new descriptor or a negative error.
        let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        anyhow::ensure!(fd >= 0, "cannot switch on run statistics: {}", std::io::Error::from_raw_os_error(-fd));
        // SAFETY: the kernel has just made this descriptor and nobody else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
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
