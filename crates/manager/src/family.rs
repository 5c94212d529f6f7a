// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds a set from a display client and its descendants, and separates the background jobs of its
//! terminals.
//!
//! A descendant of the client belongs to the set unless it is a client itself or belongs to a
//! background job of one of the client's terminals, i.e. its process group is not the terminal's
//! foreground group. The session leader of a terminal, the shell, always belongs to the set: it
//! waits while a job runs, and responds when the job ends. Background jobs are sets of their own
//! without attention. A remote server of a foreground job (`terminal_servers.rs`) belongs to the
//! set with its own processes, which are sorted in the same way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tipme_policy::{Identity, Member, Membership};
use tipme_record::Nanos;
use tipme_sched::processes::Stat;

/// Maximum number of distinguished background jobs of a client; members of further ones are left
/// alone.
pub(crate) const JOBS_MAX: usize = 32;
/// Maximum number of foreground processes of a terminal for which a server is searched; ancestors
/// come first.
const FRONTS_MAX: usize = 4;
/// Maximum number of watched terminals of a client.
pub(crate) const TERMINALS_MAX: usize = 32;

/// The processes of a client, sorted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Family {
    /// The client comes first.
    pub(crate) members: Vec<Member>,
    /// Background jobs, named after their first process.
    pub(crate) jobs: BTreeMap<Identity, Vec<Member>>,
    pub(crate) terminals: Vec<Terminal>,
    /// Time of the next search for servers of its foreground.
    pub(crate) ask_again: Option<Nanos>,
    /// Number of processes beyond the bounds.
    pub(crate) dropped: u64,
}

/// A terminal below a client, as last seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Terminal {
    /// Session leader.
    pub(crate) leader: Identity,
    /// Foreground process group.
    pub(crate) foreground: i32,
}

/// Classification of a process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProcessPlace {
    Set(Membership),
    /// The background job named after this process.
    Job(Identity),
    Nowhere,
}

impl Family {
    /// Sorts the processes below a client. `is_client` identifies other clients of the display:
    /// they and their descendants belong to sets of their own.
    pub(crate) fn sort(
        client: &Stat,
        below: &[Stat],
        is_client: impl Fn(Identity) -> bool,
    ) -> Family {
        let mut sorting = Sorting::begin(client, below);
        let mut waiting = VecDeque::from([(client, ProcessPlace::Set(Membership::Client))]);
        while let Some((parent, place)) = waiting.pop_front() {
            for child in sorting.children.remove(&parent.identity.pid).unwrap_or_default() {
                if is_client(child.identity) {
                    continue;
                }
                let place = sorting.place(child, parent, place);
                sorting.put(child, place);
                waiting.push_back((child, place));
            }
        }
        sorting.family
    }

    /// Adds the processes of a server of its foreground, except those that it already has.
    pub(crate) fn take_in(&mut self, server: Family) {
        let Family { members, jobs, terminals, dropped, .. } = server;
        let own: BTreeSet<Identity> = self.processes().collect();
        for member in members.into_iter().filter(|member| !own.contains(&member.who)) {
            let is_server = member.because == Membership::Client;
            let because = if is_server { Membership::Server } else { member.because };
            self.members.push(Member { because, ..member });
        }
        for (job, mut members) in jobs {
            members.retain(|member| !own.contains(&member.who));
            self.jobs.entry(job).or_default().extend(members);
        }
        let room = TERMINALS_MAX.saturating_sub(self.terminals.len());
        self.dropped += dropped + terminals.len().saturating_sub(room) as u64;
        self.terminals.extend(terminals.into_iter().take(room));
    }

    /// Requests a search for servers of its foreground at this time.
    pub(crate) fn ask_again_at(&mut self, at: Nanos) {
        self.ask_again = Some(self.ask_again.map_or(at, |earlier| earlier.min(at)));
    }

    /// Returns the processes of the set and of its jobs.
    fn processes(&self) -> impl Iterator<Item = Identity> + '_ {
        self.members.iter().chain(self.jobs.values().flatten()).map(|member| member.who)
    }

    /// Returns the foreground processes of its terminals: the leader of each job and the children
    /// that it waits for, as a script does.
    pub(crate) fn fronts<'a>(&self, below: &'a [Stat]) -> Vec<&'a Stat> {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        let mut fronts: Vec<&Stat> = below.iter().collect();
        fronts.retain(|process| {
            is_foreground(process)
                && self.members.iter().any(|member| member.who == process.identity)
                && {
                    let count = counts.entry(process.session).or_default();
                    *count += 1;
                    *count <= FRONTS_MAX
                }
        });
        fronts
    }

    /// Returns `true` if a process belongs to the set or to one of the jobs.
    pub(crate) fn has(&self, process: Identity) -> bool {
        self.processes().any(|member| member == process)
    }
}

struct Sorting<'a> {
    client: &'a Stat,
    children: BTreeMap<u32, Vec<&'a Stat>>,
    /// Foreground processes of a terminal, and their ancestors.
    foreground: BTreeSet<u32>,
    /// Job of each process group.
    jobs: BTreeMap<u32, Identity>,
    family: Family,
}

impl<'a> Sorting<'a> {
    fn begin(client: &'a Stat, below: &'a [Stat]) -> Sorting<'a> {
        let mut children: BTreeMap<u32, Vec<&Stat>> = BTreeMap::new();
        for process in below {
            children.entry(process.parent).or_default().push(process);
        }
        let family =
            Family { members: vec![member(client, Membership::Client)], ..Family::default() };
        let foreground = line_of_foreground(client, below);
        Sorting { client, children, foreground, jobs: BTreeMap::new(), family }
    }

    fn place(&mut self, process: &Stat, parent: &Stat, above: ProcessPlace) -> ProcessPlace {
        let on_terminal = on_terminal(process, self.client);
        match above {
            // Another terminal within a background job, such as that of a nested program, is not in
            // view either.
            ProcessPlace::Job(_) | ProcessPlace::Nowhere
                if !on_terminal || process.session != parent.session =>
            {
                return above;
            }
            _ if !on_terminal => return ProcessPlace::Set(Membership::Child),
            _ if is_foreground(process) => return ProcessPlace::Set(Membership::Foreground),
            _ => {}
        }
        let leads = process.identity.pid == process.session;
        if leads || self.foreground.contains(&process.identity.pid) {
            return ProcessPlace::Set(Membership::Child);
        }
        match self.jobs.get(&process.group) {
            Some(job) => ProcessPlace::Job(*job),
            None if self.jobs.len() >= JOBS_MAX => ProcessPlace::Nowhere,
            None => ProcessPlace::Job(*self.jobs.entry(process.group).or_insert(process.identity)),
        }
    }

    fn put(&mut self, process: &Stat, place: ProcessPlace) {
        match place {
            ProcessPlace::Set(because) => self.family.members.push(member(process, because)),
            ProcessPlace::Job(job) => {
                self.family.jobs.entry(job).or_default().push(member(process, Membership::Child));
            }
            ProcessPlace::Nowhere => self.family.dropped += 1,
        }
        if on_terminal(process, self.client) && process.identity.pid == process.session {
            self.put_terminal(process);
        }
    }

    fn put_terminal(&mut self, leader: &Stat) {
        if self.family.terminals.len() < TERMINALS_MAX {
            self.family
                .terminals
                .push(Terminal { leader: leader.identity, foreground: leader.tpgid });
        } else {
            self.family.dropped += 1;
        }
    }
}

fn member(process: &Stat, because: Membership) -> Member {
    Member { who: process.identity, because }
}

/// Returns `true` if the process is on a terminal that the client created, not on the one from
/// which the client was started.
fn on_terminal(process: &Stat, client: &Stat) -> bool {
    process.session != client.session && process.tpgid > 0
}

fn is_foreground(process: &Stat) -> bool {
    i64::from(process.tpgid) == i64::from(process.group)
}

/// Returns all foreground processes of the client's terminals and their ancestors on the same
/// terminal. A nested shell is in the background of its terminal while its own job runs, but is not
/// a background job.
fn line_of_foreground(client: &Stat, below: &[Stat]) -> BTreeSet<u32> {
    let known: BTreeMap<u32, &Stat> =
        below.iter().map(|process| (process.identity.pid, process)).collect();
    let mut line = BTreeSet::new();
    for front in
        below.iter().filter(|process| on_terminal(process, client) && is_foreground(process))
    {
        let mut next = Some(front);
        while let Some(process) = next.filter(|process| line.insert(process.identity.pid)) {
            next = known
                .get(&process.parent)
                .copied()
                .filter(|parent| parent.session == front.session);
        }
    }
    line
}

#[cfg(test)]
mod tests;
