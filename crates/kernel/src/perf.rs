// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU clock events for samples.

use anyhow::{Context, Result, ensure};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const PERF_TYPE_SOFTWARE: u32 = 1;
const FREQUENCY_BIT: u64 = 1 << 10;
/// `PERF_EVENT_IOC_SET_BPF`.
const SET_PROGRAM: libc::c_ulong = 0x4004_2408;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;

/// The first version of the kernel's perf_event_attr, which suffices here.
#[repr(C)]
#[derive(Default)]
struct PerfEventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    frequency: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
}

/// Opens an event that samples one CPU `hertz` times a second; returns `None` if that CPU is
/// offline.
pub(crate) fn cpu_clock(cpu: u32, hertz: u64) -> Result<Option<OwnedFd>> {
    let attributes = PerfEventAttributes {
        kind: PERF_TYPE_SOFTWARE,
        size: size_of::<PerfEventAttributes>() as u32,
        frequency: hertz,
        flags: FREQUENCY_BIT,
        ..PerfEventAttributes::default()
    };
    // SAFETY: the kernel reads `size` bytes of the structure, which outlives the call.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            -1,
            cpu,
            -1,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    let error = std::io::Error::last_os_error();
    match fd {
        // SAFETY: the kernel has just made this descriptor and nothing else owns it.
        0.. => Ok(Some(unsafe { OwnedFd::from_raw_fd(fd as i32) })),
        _ if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        _ => Err(error).with_context(|| {
            format!("cannot sample CPU {cpu}; is kernel.perf_event_paranoid 3 or higher?")
        }),
    }
}

/// Runs a program on each tick of a clock event, while that is open.
pub(crate) fn run_at(clock: &OwnedFd, program: &OwnedFd) -> Result<()> {
    // SAFETY: the call takes a descriptor, and changes nothing of ours.
    let done = unsafe { libc::ioctl(clock.as_raw_fd(), SET_PROGRAM, program.as_raw_fd()) };
    ensure!(done == 0, "cannot take samples: {}", std::io::Error::last_os_error());
    Ok(())
}
