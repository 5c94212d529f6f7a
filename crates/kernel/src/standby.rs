// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that are loaded, but attached only while a user requests their records.
//!
//! Attaching one takes a privilege that the recorder has dropped by then. The [counter
//! process](crate::count()) has it, and attaches on order only programs from the sets that it was
//! started with.

use crate::detail::Detail;
use anyhow::{Context, Result, ensure};
use libbpf_rs::libbpf_sys;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Programs to attach for one detail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StandbyPrograms {
    pub detail: Detail,
    /// Kernel ids of the programs.
    pub ids: Vec<u32>,
}

/// Sampling program, and samples per second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleClock {
    /// Kernel id of the program.
    pub program: u32,
    pub hertz: u64,
}

/// Opens loaded programs by id, which takes `CAP_SYS_ADMIN`.
///
/// # Errors
/// If the kernel has no such program, or refuses access.
pub fn open_programs(ids: &[u32]) -> Result<Vec<OwnedFd>> {
    let mut programs = Vec::new();
    for id in ids {
        // SAFETY: the call takes a number and returns a new descriptor or a negative error.
        let fd = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(*id) };
        programs.push(owned(fd).with_context(|| format!("cannot open kernel program {id}"))?);
    }
    Ok(programs)
}

/// Attaches programs to the hooks that they were loaded for, until the results are dropped.
pub(crate) fn attach(programs: &[OwnedFd]) -> Result<Vec<OwnedFd>> {
    let mut links = Vec::new();
    for program in programs {
        // SAFETY: the program itself names the hook, so no name is read.
        let fd =
            unsafe { libbpf_sys::bpf_raw_tracepoint_open(std::ptr::null(), program.as_raw_fd()) };
        links.push(owned(fd).context("cannot attach a kernel program")?);
    }
    Ok(links)
}

fn owned(fd: i32) -> Result<OwnedFd> {
    ensure!(fd >= 0, "{}", std::io::Error::from_raw_os_error(-fd));
    // SAFETY: the kernel has just made this descriptor and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns the kernel id of a loaded program.
pub(crate) fn program_id(program: BorrowedFd<'_>) -> Result<u32> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut size = size_of_val(&info) as u32;
    // SAFETY: `info` is a plain structure of `size` bytes that the kernel fills.
    let result = unsafe {
        libbpf_sys::bpf_obj_get_info_by_fd(
            program.as_raw_fd(),
            (&raw mut info).cast(),
            &raw mut size,
        )
    };
    ensure!(
        result == 0,
        "cannot get the id of a kernel program: {}",
        std::io::Error::from_raw_os_error(-result)
    );
    Ok(info.id)
}
