// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory advice (`process_madvise`) for another process, used if no control group can limit it.
//!
//! Advice changes no setting, so it is not journaled: paged-out memory returns when it is used. The
//! caller bounds the bytes of a call; the next call for the same process continues where the last
//! one stopped.

use crate::processes;
use crate::world::{Advice, KnobFault, fault};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use tipme_policy::Identity;

/// Maximum number of bytes read from a list of mappings.
const MAPS_BYTES_MAX: u64 = 8 << 20;
/// Maximum number of ranges per system call; the kernel's own limit is 1024.
const RANGES_MAX: usize = 512;
/// Maximum number of remembered positions; beyond it, all processes start over.
const CURSORS_MAX: usize = 256;

/// Address at which the advice for each process continues.
pub(crate) type Cursors = BTreeMap<Identity, u64>;

/// A range of addresses in another process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct AddressRange {
    start: u64,
    bytes: u64,
}

/// Advises the next `most` bytes of the process's memory; returns the number of bytes affected.
pub(crate) fn give(
    proc: &Path,
    who: Identity,
    advice: Advice,
    most: u64,
    cursors: &mut Cursors,
) -> Result<u64, KnobFault> {
    let process = open(proc, who)?;
    let maps = read_maps(proc, who.pid)?;
    let from = cursors.remove(&who).filter(|_| advice != Advice::WillNeed).unwrap_or(0);
    let (ranges, next) = choose(&maps, advice, from, most);
    if cursors.len() >= CURSORS_MAX {
        cursors.clear();
    }
    cursors.extend(next.filter(|_| advice != Advice::WillNeed).map(|next| (who, next)));
    advise(&process, &ranges, advice)
}

/// Opens a pidfd of exactly this process: the start time is checked after the open.
fn open(proc: &Path, who: Identity) -> Result<OwnedFd, KnobFault> {
    let pid = i32::try_from(who.pid).ok().and_then(Pid::from_raw).ok_or(KnobFault::Vanished)?;
    let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| fault(error.into()))?;
    if processes::lives(proc, who) { Ok(process) } else { Err(KnobFault::Vanished) }
}

fn read_maps(proc: &Path, pid: u32) -> Result<String, KnobFault> {
    let bytes =
        processes::read_up_to(&proc.join(format!("{pid}/maps")), MAPS_BYTES_MAX).map_err(fault)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the mappings from address `from` on that suit the advice, up to the bound, and the
/// address at which to continue.
fn choose(maps: &str, advice: Advice, from: u64, most: u64) -> (Vec<AddressRange>, Option<u64>) {
    let (mut ranges, mut bytes) = (Vec::new(), 0);
    for mut range in maps.lines().filter_map(|line| parse(line, advice)) {
        let end = range.start + range.bytes;
        if end <= from {
            continue;
        }
        range.start = range.start.max(from);
        range.bytes = (end - range.start).min(most - bytes);
        bytes += range.bytes;
        ranges.push(range);
        if bytes == most {
            return (ranges, Some(range.start + range.bytes));
        }
    }
    (ranges, None)
}

/// Parses a mapping that suits the advice: no kernel or device mappings. Only private pages of the
/// process are paged out.
fn parse(line: &str, advice: Advice) -> Option<AddressRange> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let (rights, path) = (fields.next()?, fields.nth(3).unwrap_or_default());
    let fits = if advice == Advice::WillNeed { rights.starts_with('r') } else { rights == "rw-p" };
    let device = path.starts_with("/dev/") && !path.starts_with("/dev/shm/");
    let kernel = path.starts_with("[v");
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    (fits && !device && !kernel && start < end)
        .then_some(AddressRange { start, bytes: end - start })
}

fn advise(process: &OwnedFd, ranges: &[AddressRange], advice: Advice) -> Result<u64, KnobFault> {
    let (mut done, mut next) = (0, 0);
    while next < ranges.len() {
        let batch = &ranges[next..ranges.len().min(next + RANGES_MAX)];
        match call(process, batch, advice) {
            Ok(bytes) => {
                done += bytes;
                next += passed(batch, bytes);
            }
            // The first mapping of the batch rejects the advice, or is gone.
            Err(libc::EINVAL | libc::ENOMEM | libc::EFAULT | libc::EBADF) => next += 1,
            Err(code) => return Err(fault(io::Error::from_raw_os_error(code))),
        }
    }
    Ok(done)
}

/// Returns the number of ranges covered by this many bytes, including the one at which the kernel
/// stopped.
fn passed(batch: &[AddressRange], mut bytes: u64) -> usize {
    for (index, range) in batch.iter().enumerate() {
        if bytes < range.bytes {
            return index + 1;
        }
        bytes -= range.bytes;
    }
    batch.len()
}

fn call(process: &OwnedFd, batch: &[AddressRange], advice: Advice) -> Result<u64, i32> {
    let vectors = batch.iter().map(|range| libc::iovec {
        iov_base: range.start as *mut _,
        iov_len: range.bytes as usize,
    });
    let vectors: Vec<libc::iovec> = vectors.collect();
    let advice = match advice {
        Advice::Cold => libc::MADV_COLD,
        Advice::PageOut => libc::MADV_PAGEOUT,
        Advice::WillNeed => libc::MADV_WILLNEED,
    };
    let (fd, list, count) = (process.as_raw_fd(), vectors.as_ptr(), vectors.len());
    // SAFETY: the list lives across the call. The addresses in it belong to the other process; the
    // kernel does not touch memory of this one, and this advice loses no data of the other.
    let bytes = unsafe { libc::syscall(libc::SYS_process_madvise, fd, list, count, advice, 0) };
    u64::try_from(bytes).map_err(|_| io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u64 = 1 << 20;
    const MAPS: &str = "\
1000-3000 r--p 00000000 08:01 11 /usr/bin/a program
3000-5000 rw-p 00000000 00:00 0 [heap]
5000-6000 rw-s 00000000 00:05 12 /dev/dri/card0
6000-7000 ---p 00000000 00:00 0
7000-8000 r--p 00000000 00:00 0 [vvar]
damaged
8000-9000 rw-p 00000000 00:00 0
";

    #[test]
    fn only_own_pages_are_sent_away_and_no_device_is_touched() {
        for (advice, starts) in [
            (Advice::PageOut, &[0x3000, 0x8000][..]),
            (Advice::WillNeed, &[0x1000, 0x3000, 0x8000]),
        ] {
            let (ranges, _) = choose(MAPS, advice, 0, MOST);
            assert!(ranges.iter().map(|range| &range.start).eq(starts), "{ranges:?}");
        }
    }

    #[test]
    fn a_call_is_bounded_and_the_next_one_goes_on() {
        let maps = format!("1000-{:x} rw-p 0 0:0 0\n", 0x1000 + MOST + 0x2000);
        let (first, next) = choose(&maps, Advice::Cold, 0, MOST);
        assert_eq!(first, [AddressRange { start: 0x1000, bytes: MOST }]);
        let (second, end) = choose(&maps, Advice::Cold, next.unwrap(), MOST);
        assert_eq!(
            (second, end),
            (vec![AddressRange { start: 0x1000 + MOST, bytes: 0x2000 }], None)
        );
    }

    #[test]
    fn a_stop_in_the_middle_skips_one_mapping() {
        let batch = [10, 20, 30].map(|bytes| AddressRange { start: 0, bytes });
        assert_eq!([0, 10, 15, 60].map(|bytes| passed(&batch, bytes)), [1, 2, 2, 3]);
    }
}
