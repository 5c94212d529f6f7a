// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that are loaded, and attached only for as long as somebody asks for what they record.
//!
//! To attach one takes a right that a recorder has given up by then. Whom it has [count](crate::count()) has it, and is
//! told which programs to attach, of those that it was given, and no others.

use crate::detail::Detail;
use anyhow::{Context, Result, ensure};
use libbpf_rs::libbpf_sys;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// What is attached for one detail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StandbyPrograms {
    pub detail: Detail,
    /// The kernel's numbers of the programs.
    pub ids: Vec<u32>,
}

/// What [`count()`](crate::count()) is told: to attach the programs of the detail with this place among those that it
/// was given.
pub fn attach_order(place: u8) -> u8 {
    b'A' + place
}

/// To detach them again.
pub fn detach_order(place: u8) -> u8 {
    b'a' + place
}

/// The place that an order is about, and whether its programs are to be attached; `None` for other orders.
pub(crate) fn ordered(order: u8) -> Option<(usize, bool)> {
    match order {
        b'A'..=b'Z' => Some((usize::from(order - b'A'), true)),
        b'a'..=b'z' => Some((usize::from(order - b'a'), false)),
        _ => None,
    }
}

/// Opens loaded programs by their numbers, which takes `SYS_ADMIN`.
///
/// # Errors
/// Where the kernel has no such program, or refuses it.
pub fn open_programs(ids: &[u32]) -> Result<Vec<OwnedFd>> {
    let one = |id: &u32| {
        // SAFETY: the call takes a number and returns a new descriptor or a negative error.
        let fd = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(*id) };
        owned(fd).with_context(|| format!("cannot open kernel program {id}"))
    };
    ids.iter().map(one).collect()
}

/// Attaches programs to the hooks that they were loaded for, for as long as the results live.
pub(crate) fn attach(programs: &[OwnedFd]) -> Result<Vec<OwnedFd>> {
    let one = |program: &OwnedFd| {
        // SAFETY: the hook is named by the program itself, so that no name is read.
        let fd = unsafe { libbpf_sys::bpf_raw_tracepoint_open(std::ptr::null(), program.as_raw_fd()) };
        owned(fd).context("cannot attach a program")
    };
    programs.iter().map(one).collect()
}

fn owned(fd: i32) -> Result<OwnedFd> {
    ensure!(fd >= 0, "{}", std::io::Error::from_raw_os_error(-fd));
    // SAFETY: the kernel has just made this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The kernel's number of a loaded program.
pub(crate) fn program_id(program: BorrowedFd<'_>) -> Result<u32> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut size = size_of_val(&info) as u32;
    // SAFETY: `info` is a plain structure of `size` bytes that the kernel fills.
    let result =
        unsafe { libbpf_sys::bpf_obj_get_info_by_fd(program.as_raw_fd(), (&raw mut info).cast(), &raw mut size) };
    ensure!(result == 0, "cannot tell a program's number: {}", std::io::Error::from_raw_os_error(-result));
    Ok(info.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_back_and_are_no_others() {
        assert_eq!([attach_order(0), detach_order(2)].map(ordered), [Some((0, true)), Some((2, false))]);
        assert_eq!([crate::BEGIN, crate::END, 0, 255].map(ordered), [None; 4]);
    }
}
