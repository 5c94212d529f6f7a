// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who works for the foreground of a terminal from afar.
//!
//! In the foreground of a terminal may be a mere client, which hands keys and pictures over a local socket to its server:
//! that of a multiplexer (tmux), of an editor, or of a shared connection (ssh). What the person sees is the work of the
//! server and of what is in front in the server's own terminals, none of which descends from the terminal. A server is who
//! holds the other end of a local socket of the foreground job's leader, belongs to the same user, and either has that
//! very terminal open, or makes terminals.

use crate::budget::LookBudget;
use crate::connections::{OpenFiles, TERMINAL_MASTER, TERMINALS};
use crate::own_cpu::thread_time;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tipme_policy::Identity;
use tipme_record::Nanos;
use tipme_sched::processes::{self, Stat};

/// Jobs whose servers are remembered, before those that have ended are forgotten: more than that are in front of nothing.
const KNOWN_MAX: usize = 256;
/// The master of a terminal by its second name.
const MASTER_IN_TERMINALS: &str = "/dev/pts/ptmx";
/// Major numbers of pseudo terminals (`Documentation/admin-guide/devices.txt`).
const TERMINAL_MAJORS: std::ops::RangeInclusive<u32> = 136..=143;

/// The servers that were found, by the leader of the foreground job.
#[derive(Debug, Default)]
pub(crate) struct TerminalServers {
    known: BTreeMap<Identity, FoundServer>,
    /// Apart from that of looks: one search takes as long as many of these.
    budget: LookBudget,
    /// CPU time that searches took.
    searched: Nanos,
}

#[derive(Debug)]
struct FoundServer {
    /// The leader's sockets when it was looked for.
    sockets: BTreeSet<u32>,
    server: Option<Identity>,
}

impl TerminalServers {
    /// The server of who is in front. All processes of the user are looked at only where it has other sockets than before
    /// and that can be afforded; else it is found at a later look.
    pub(crate) fn of(
        &mut self,
        proc: &Path,
        user: u32,
        front: &Stat,
        now: Nanos,
        is_other: impl Fn(&Stat) -> bool,
    ) -> Option<Stat> {
        let files = OpenFiles::of(proc, front.identity.pid).filter(|files| !files.sockets.is_empty());
        let Some(files) = files else {
            self.known.remove(&front.identity);
            return None;
        };
        if let Some(known) = self.known.get(&front.identity).filter(|known| known.sockets == files.sockets) {
            let server = known.server?;
            if let Some(server) = processes::living(proc, server) {
                return Some(server);
            }
        }
        if !self.budget.is_affordable(now) {
            return None;
        }
        let begun = thread_time();
        let found = search(proc, user, front, &files.far_ends(), is_other);
        self.note(thread_time().since(begun), now);
        let server = found.as_ref().map(|server| server.identity);
        if self.known.len() >= KNOWN_MAX {
            self.known.retain(|front, _| processes::lives(proc, *front));
        }
        self.known.insert(front.identity, FoundServer { sockets: files.sockets, server });
        found
    }

    fn note(&mut self, cost: Nanos, now: Nanos) {
        self.budget.spend(cost, now);
        self.searched = self.searched.after(cost);
    }

    /// Searches that could not be afforded when they were due.
    pub(crate) fn left(&self) -> u64 {
        self.budget.left()
    }

    /// CPU time of all searches, which have a budget of their own.
    pub(crate) fn searched(&self) -> Nanos {
        self.searched
    }
}

fn search(
    proc: &Path,
    user: u32,
    front: &Stat,
    ends: &BTreeSet<u32>,
    is_other: impl Fn(&Stat) -> bool,
) -> Option<Stat> {
    if ends.is_empty() {
        return None;
    }
    let terminal = path_of(front.terminal);
    let works = |server: &Stat| {
        OpenFiles::of(proc, server.identity.pid).is_some_and(|files| {
            let has = |path: &str| files.terminals.contains(path);
            let serves = terminal.as_deref().is_some_and(has) || has(TERMINAL_MASTER) || has(MASTER_IN_TERMINALS);
            serves && !files.sockets.is_disjoint(ends)
        })
    };
    let others = processes::all(proc).into_iter().filter_map(|pid| processes::read(proc, pid));
    others.filter(|server| server.uid == user && server.is_alive() && is_other(server)).find(works)
}

/// The path of a pseudo terminal, by the number of its device as the kernel packs it.
fn path_of(device: i32) -> Option<String> {
    let device = u64::from(device.cast_unsigned());
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let first = TERMINAL_MAJORS.contains(&major).then(|| major - TERMINAL_MAJORS.start())?;
    Some(format!("{TERMINALS}{}", (first << 8) + minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_has_the_path_of_its_device() {
        assert_eq!(path_of(136 << 8 | 5), Some("/dev/pts/5".to_owned()));
        assert_eq!(path_of(137 << 8 | 1), Some("/dev/pts/257".to_owned()));
        assert_eq!([0, 4 << 8 | 1, 144 << 8].map(path_of), [None, None, None]);
    }
}
