// SPDX-License-Identifier: MIT OR Apache-2.0
//! Servers that work for the foreground job of a terminal from outside of its process tree.
//!
//! The foreground job of a terminal may be a thin client, which passes keys and output over a local
//! socket to its server: that of a multiplexer (tmux), of an editor, or of a shared connection
//! (ssh). The visible work is done by the server and by the foreground jobs of the server's own
//! terminals, none of which descends from the terminal. A server holds the peer of a local socket
//! of the foreground job's leader, belongs to the same user, and either has that very terminal
//! open, or creates terminals.

use crate::budget::LookBudget;
use crate::connections::{OpenFiles, TERMINAL_MASTER, TERMINALS};
use crate::own_cpu::thread_time;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tipme_policy::Identity;
use tipme_record::Nanos;
use tipme_sched::processes::{self, Stat};

/// Number of remembered jobs after which ended ones are forgotten; no more than that are in the
/// foreground.
const KNOWN_MAX: usize = 256;
/// Second name of the terminal master device.
const MASTER_IN_TERMINALS: &str = "/dev/pts/ptmx";
/// Major numbers of pseudo terminals (`Documentation/admin-guide/devices.txt`).
const TERMINAL_MAJORS: std::ops::RangeInclusive<u32> = 136..=143;

/// Time from a job's appearance to the second search for its server: the job has to connect, and
/// the server to accept.
const SECOND: Nanos = Nanos::from_millis(250);
/// Age up to which the server of a job is searched for on credit.
const YOUNG: Nanos = Nanos::from_millis(2_000);

/// Known servers of foreground jobs.
#[derive(Debug, Default)]
pub(crate) struct TerminalServers {
    known: BTreeMap<Identity, KnownFront>,
    /// Separate from the budget of looks: one search costs as much as many looks.
    budget: LookBudget,
    /// CPU time used by searches.
    searched: Nanos,
}

#[derive(Debug)]
struct KnownFront {
    first_seen: Nanos,
    /// Time of the next search, whenever the age has doubled.
    next: Nanos,
    sockets: BTreeSet<u32>,
    server: Option<Identity>,
}

/// Result of a search for the server of a foreground job.
pub(crate) enum ServerAnswer {
    Found(Stat),
    /// Unknown; search again at this time.
    NotYet(Nanos),
}

impl TerminalServers {
    /// Returns the server of a foreground job. Searches all processes of the user only if the job
    /// has new sockets or a search is due, and if the budget allows.
    pub(crate) fn find(
        &mut self,
        proc: &Path,
        user: u32,
        front: &Stat,
        now: Nanos,
        is_other: impl Fn(&Stat) -> bool,
    ) -> ServerAnswer {
        if self.known.len() >= KNOWN_MAX {
            self.known.retain(|front, _| processes::lives(proc, *front));
        }
        let known = self.known.entry(front.identity).or_insert_with(|| KnownFront::new(now));
        let files = OpenFiles::read(proc, front.identity.pid).unwrap_or_default();
        known.connect(files.sockets.clone(), now);
        if let Some(server) = known.server.and_then(|server| processes::living(proc, server)) {
            return ServerAnswer::Found(server);
        }
        if now < known.next {
            return ServerAnswer::NotYet(known.next);
        }
        let age = now.since(known.first_seen);
        if !(if age < YOUNG { self.budget.has_credit(now) } else { self.budget.is_affordable(now) })
        {
            return ServerAnswer::NotYet(self.budget.paid().max(now.after(SECOND)));
        }
        let begun = thread_time();
        let found = search(proc, user, front, &files.far_ends(), is_other);
        known.next = now.after(age.max(SECOND));
        known.server = found.as_ref().map(|server| server.identity);
        let next = known.next;
        self.note(thread_time().since(begun), now);
        found.map_or(ServerAnswer::NotYet(next), ServerAnswer::Found)
    }

    fn note(&mut self, cost: Nanos, now: Nanos) {
        self.budget.spend(cost, now);
        self.searched = self.searched.after(cost);
    }

    /// Number of due searches that were not affordable.
    pub(crate) fn left(&self) -> u64 {
        self.budget.left()
    }

    /// CPU time of all searches, which have a budget of their own.
    pub(crate) fn searched(&self) -> Nanos {
        self.searched
    }
}

impl KnownFront {
    fn new(now: Nanos) -> KnownFront {
        KnownFront { first_seen: now, next: now, sockets: BTreeSet::new(), server: None }
    }

    /// Updates its sockets: with different ones it may have another server.
    fn connect(&mut self, sockets: BTreeSet<u32>, now: Nanos) {
        if self.sockets != sockets {
            *self = KnownFront { sockets, server: None, next: now, ..*self };
        }
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
    let serving = [Some(TERMINAL_MASTER), Some(MASTER_IN_TERMINALS), terminal.as_deref()];
    let mut others = processes::all(proc).into_iter().filter_map(|pid| processes::read(proc, pid));
    others.find(|server| {
        server.uid == user
            && server.is_alive()
            && is_other(server)
            && OpenFiles::read(proc, server.identity.pid).is_some_and(|files| {
                serving.iter().flatten().any(|path| files.terminals.contains(*path))
                    && !files.sockets.is_disjoint(ends)
            })
    })
}

/// Returns the path of a pseudo terminal from its packed device number.
fn path_of(device: i32) -> Option<String> {
    let device = u64::from(device.cast_unsigned());
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let first = TERMINAL_MAJORS.contains(&major).then(|| major - TERMINAL_MAJORS.start())?;
    Some(format!("{TERMINALS}{}", (first << 8) + minor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    /// Searches for a server that is this process; returns its PID, or the time of the next search
    /// in milliseconds.
    fn ask(servers: &mut TerminalServers, proc: &Path, front: &Stat, ms: u64) -> Result<u32, u64> {
        let found = servers.find(proc, front.uid, front, Nanos::from_millis(ms), |other| {
            other.identity.pid == std::process::id()
        });
        match found {
            ServerAnswer::Found(server) => Ok(server.identity.pid),
            ServerAnswer::NotYet(next) => Err(next.0 / 1_000_000),
        }
    }

    /// A client is in the foreground before its server is recognizable: the search is repeated when
    /// the age of the client has doubled.
    #[test]
    fn a_late_server_is_found_by_a_later_search() {
        let (own, far) = UnixStream::pair().unwrap();
        let mut client = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::from(OwnedFd::from(far)))
            .spawn()
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let proc = folder.path();
        for pid in [client.id(), std::process::id()] {
            std::os::unix::fs::symlink(format!("/proc/{pid}"), proc.join(pid.to_string())).unwrap();
        }
        let front = processes::read(proc, client.id()).unwrap();
        let mut servers = TerminalServers::default();
        let without =
            [0, 100, 250, 499, 500, 999, 5_000].map(|ms| ask(&mut servers, proc, &front, ms));
        let master = std::fs::File::open(TERMINAL_MASTER).unwrap();
        let with = [9_999, 20_000, 20_001].map(|ms| ask(&mut servers, proc, &front, ms));
        drop(master);
        drop(own);
        client.kill().unwrap();
        client.wait().unwrap();
        assert_eq!(without, [250, 250, 500, 500, 1_000, 1_000, 10_000].map(Err));
        assert_eq!(with, [Err(10_000), Ok(std::process::id()), Ok(std::process::id())]);
    }

    #[test]
    fn a_terminal_has_the_path_of_its_device() {
        assert_eq!(path_of(136 << 8 | 5), Some("/dev/pts/5".to_owned()));
        assert_eq!(path_of(137 << 8 | 1), Some("/dev/pts/257".to_owned()));
        assert_eq!([0, 4 << 8 | 1, 144 << 8].map(path_of), [None, None, None]);
    }
}
