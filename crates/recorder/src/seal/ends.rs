// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holders of the other ends of pipes that threads wait for at the mark. Only names and numbers in
//! /proc are read; no file is opened, so no process can block this.

use crate::owners::waits;
use crate::processes::{OpenFile, open_files};
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::SystemCall;
use tipme_record::incident::PipeEnd;
use tipme_record::records::Wait;

const TYPE_BITS: u32 = 0o170_000;
const TYPE_FIFO: u32 = 0o010_000;

/// Maximum number of waiters examined; the rest stay unknown.
const WAITERS_MAX: usize = 4_096;
/// Maximum number of holders recorded per end.
const HOLDERS_MAX: usize = 4;

const ACCESS_BITS: u32 = 3;

/// A pipe's inode, and `true` for its write end.
type End = (u64, bool);

/// A waiting thread and its process.
struct PipeWaiter {
    tid: u32,
    pid: u32,
}

/// Waiting threads by the pipe end that they wait for.
pub(super) struct PipeWaiters(BTreeMap<End, Vec<PipeWaiter>>);

impl PipeWaiters {
    /// Finds the waiters in a task walk.
    pub(super) fn from_tasks(tasks: &[u8]) -> PipeWaiters {
        let mut waiting: BTreeMap<End, Vec<PipeWaiter>> = BTreeMap::new();
        for (wait, end) in
            waits(tasks).filter_map(|wait| Some((wait, end_of(&wait)?))).take(WAITERS_MAX)
        {
            waiting
                .entry(end)
                .or_default()
                .push(PipeWaiter { tid: wait.head.tid.0, pid: wait.pid.0 });
        }
        PipeWaiters(waiting)
    }

    /// Searches the open files of all processes. A process that holds both ends waits for itself,
    /// which means it is idle.
    pub(super) fn resolve(self) -> Vec<PipeEnd> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let mut holders: BTreeMap<End, BTreeSet<u32>> = BTreeMap::new();
        for file in open_files() {
            for end in ends(&file).filter(|end| self.0.contains_key(end)) {
                holders.entry(end).or_default().insert(file.pid);
            }
        }
        let mut found = Vec::new();
        for (end, waiters) in &self.0 {
            let Some(holders) = holders.get(end) else { continue };
            for waiter in waiters.iter().filter(|waiter| !holders.contains(&waiter.pid)) {
                let kept = holders.iter().take(HOLDERS_MAX);
                found.extend(kept.map(|holder| PipeEnd {
                    tid: waiter.tid,
                    inode: end.0,
                    holder: *holder,
                }));
            }
        }
        found
    }
}

/// Returns the pipe end that a wait is for; `None` if it is not for a pipe, or its peer is already
/// known.
fn end_of(wait: &Wait) -> Option<End> {
    let fifo = wait.mode & TYPE_BITS == TYPE_FIFO && wait.inode != 0 && wait.peer.0 == 0;
    use SystemCall::{preadv2, read, readv, splice, vmsplice, write, writev};
    let awaits_writer = match wait.call()? {
        read | readv | preadv2 | splice => true,
        write | writev | vmsplice => false,
        _ => return None,
    };
    fifo.then_some((wait.inode, awaits_writer))
}

/// Returns the pipe ends of an open file. A named pipe has the path of a file.
fn ends(file: &OpenFile) -> impl Iterator<Item = End> + use<> {
    let may_be = file.name.to_string_lossy().starts_with(['p', '/']);
    may_be.then(|| opened(&file.info())).flatten().into_iter().flatten()
}

/// Returns the ends that an open file is, from its fdinfo: both if it was opened for reading and
/// writing.
fn opened(info: &str) -> Option<impl Iterator<Item = End> + use<>> {
    let [inode, flags] = ["ino:", "flags:"]
        .map(|name| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim));
    let inode: u64 = inode?.parse().ok()?;
    let access = u32::from_str_radix(flags?, 8).ok()? & ACCESS_BITS;
    let both = [(access != 0, true), (access != 1, false)];
    Some(both.into_iter().filter(|(has, _)| *has).map(move |(_, write)| (inode, write)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::pipe;
    use std::process::{Command, Stdio};
    use zerocopy::FromZeros;

    #[test]
    fn the_ends_of_a_pipe_are_known_from_its_flags() {
        for (flags, ends) in [
            ("0100000", &[(77, false)][..]),
            ("0100001", &[(77, true)]),
            ("02", &[(77, true), (77, false)]),
        ] {
            let info = format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t15\nino:\t77\n");
            let found: Vec<End> = opened(&info).into_iter().flatten().collect();
            assert_eq!(found, ends, "{flags}");
        }
        assert_eq!(opened("rubbish").into_iter().flatten().count(), 0);
    }

    /// Returns a thread of this process that waits for the writer of a pipe.
    fn own_wait(inode: u64) -> PipeWaiters {
        let waiter = PipeWaiter { tid: 7, pid: std::process::id() };
        PipeWaiters(BTreeMap::from([((inode, true), vec![waiter])]))
    }

    #[test]
    fn the_other_end_is_found_unless_it_is_the_waiters_own() {
        let (reader, writer) = pipe().expect("a pipe can be made");
        let inode = rustix::fs::fstat(&reader).expect("it is open").st_ino;
        assert_eq!(own_wait(inode).resolve(), []);
        let mut child =
            Command::new("sleep").arg("60").stdout(Stdio::from(writer)).spawn().expect("it starts");
        let found = own_wait(inode).resolve();
        let holder = child.id();
        child.kill().and_then(|()| child.wait()).expect("it is ours");
        assert_eq!(found, [PipeEnd { tid: 7, inode, holder }]);
    }

    #[test]
    fn only_pipes_without_a_known_peer_are_asked_for() {
        let mut wait = Wait::new_zeroed();
        (wait.mode, wait.inode, wait.syscall) = (0o010_600, 9, 0);
        assert_eq!(end_of(&wait), Some((9, true)));
        wait.syscall = 1;
        assert_eq!(end_of(&wait), Some((9, false)));
        wait.mode = 0o140_777;
        assert_eq!(end_of(&wait), None);
    }
}
