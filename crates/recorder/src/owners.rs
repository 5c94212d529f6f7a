// SPDX-License-Identifier: MIT OR Apache-2.0
//! Owners of the locks that threads wait for at the mark.

use crate::processes::text;
use std::fs::File;
use std::os::unix::fs::FileExt;
use tipme_record::incident::FutexOwner;
use tipme_record::records::Wait;
use tipme_record::{Head, RecordKind, SystemCall};
use zerocopy::{FromBytes, IntoBytes};

/// Maximum number of waiters examined; the rest have no owner in the file.
const WAITERS: usize = 4096;
/// Maximum bytes of /proc/locks.
const LOCKS_BYTES: u64 = 256 * 1024;

/// Returns the kernel's list of file locks.
pub(crate) fn file_locks() -> String {
    text("/proc/locks", LOCKS_BYTES)
}

/// Returns the futex waits of a task walk.
pub(crate) fn futex_waits(tasks: &[u8]) -> impl Iterator<Item = Wait> {
    waits(tasks).filter(|wait| wait.call() == Some(SystemCall::futex)).take(WAITERS)
}

/// Returns the wait records of a task walk.
pub(crate) fn waits(bytes: &[u8]) -> impl Iterator<Item = Wait> {
    loose(bytes, RecordKind::Wait).filter_map(Wait::read)
}

/// Returns the records of one kind in a task walk.
pub(crate) fn loose(mut bytes: &[u8], kind: RecordKind) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        loop {
            let (head, _) = Head::read_from_prefix(bytes).ok()?;
            let (record, rest) = bytes.split_at_checked(usize::from(head.size).max(1))?;
            bytes = rest;
            if head.kind == kind as u8 {
                return Some(record);
            }
        }
    })
}

/// Reads the owner from the lock word. glibc stores the owner's tid eight bytes after the word of a
/// contended mutex (value 2); a priority-inheritance futex has it in the word itself.
pub(crate) fn futex_owner(wait: &Wait) -> Option<FutexOwner> {
    let mut words = [0u32; 3];
    let memory = File::open(format!("/proc/{}/mem", wait.pid)).ok()?;
    memory.read_exact_at(words.as_mut_bytes(), wait.args[0]).ok()?;
    let inherits = matches!(wait.args[1] & 0x7f, 6 | 13);
    let owner = match words.map(u32::from_le) {
        [value, ..] if inherits => value & 0x3fff_ffff,
        [2, _, owner] => owner,
        _ => return None,
    };
    let lives = owner != 0 && std::path::Path::new(&format!("/proc/{owner}")).exists();
    lives.then_some(FutexOwner { tid: wait.head.tid.0, address: wait.args[0], owner })
}
