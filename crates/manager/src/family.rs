// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a client of the display and the processes below it to a set: who belongs to it, and who only works
//! in the background of its terminals.
//!
//! A process below the client belongs to the set, unless it is a client itself, or belongs to a background
//! job of a terminal of the client: its group is not the terminal's foreground group. The leader of a
//! terminal's session, which is the shell, belongs to the set in any case: it waits while a job runs, and
//! answers when the job ends. Background jobs are sets of their own, which have nobody's attention.
//! What works for a foreground job from afar (`terminal_servers.rs`) belongs to the set with its own processes, which are
//! sorted in the same way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tipme_policy::{Identity, Member, Membership};
use tipme_record::Nanos;
use tipme_sched::processes::Stat;

/// Background jobs of one client that are told apart; members of further ones are left alone.
pub(crate) const JOBS_MAX: usize = 32;
/// Processes in front of a terminal that are looked at for who works for them from afar; those above come first.
const FRONTS_MAX: usize = 4;
/// Terminals of one client that are watched.
pub(crate) const TERMINALS_MAX: usize = 32;

/// The processes of a client, sorted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Family {
    /// The client comes first.
    pub(crate) members: Vec<Member>,
    /// Background jobs, named by the first of their processes.
    pub(crate) jobs: BTreeMap<Identity, Vec<Member>>,
    pub(crate) terminals: Vec<Terminal>,
    /// When to ask again who works for its foreground from afar.
    pub(crate) ask_again: Option<Nanos>,
    /// Processes beyond the bounds.
    pub(crate) dropped: u64,
}

/// A terminal below a client, as it was when it was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Terminal {
    /// The leader of its session.
    pub(crate) leader: Identity,
    /// Its foreground process group.
    pub(crate) foreground: i32,
}

/// Where a process has its place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProcessPlace {
    Set(Membership),
    /// The background job that is named by this process.
    Job(Identity),
    Nowhere,
}

impl Family {
    /// Sorts the processes below a client. `is_client` knows the other clients of the display: they and what
    /// is below them belong to sets of their own.
    pub(crate) fn sort(client: &Stat, below: &[Stat], is_client: impl Fn(Identity) -> bool) -> Family {
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

    /// Takes the processes of a server of its foreground in, but for those that it has.
    pub(crate) fn take_in(&mut self, server: Family) {
        let Family { members, jobs, terminals, dropped, .. } = server;
        let own: BTreeSet<Identity> = self.processes().collect();
        let new = |members: Vec<Member>| members.into_iter().filter(|member| !own.contains(&member.who));
        self.members.extend(new(members).map(|member| match member.because {
            Membership::Client => Member { because: Membership::Server, ..member },
            _ => member,
        }));
        for (job, members) in jobs {
            self.jobs.entry(job).or_default().extend(new(members));
        }
        let room = TERMINALS_MAX.saturating_sub(self.terminals.len());
        self.dropped += dropped + terminals.len().saturating_sub(room) as u64;
        self.terminals.extend(terminals.into_iter().take(room));
    }

    /// Whoever works for its foreground from afar may be found at this time.
    pub(crate) fn ask_again_at(&mut self, at: Nanos) {
        self.ask_again = Some(self.ask_again.map_or(at, |earlier| earlier.min(at)));
    }

    /// Those of the set and of its jobs.
    fn processes(&self) -> impl Iterator<Item = Identity> + '_ {
        self.members.iter().chain(self.jobs.values().flatten()).map(|member| member.who)
    }

    /// Who is in front of its terminals: of each job its leader, and what that waits for, as a script does.
    pub(crate) fn fronts<'a>(&self, below: &'a [Stat]) -> Vec<&'a Stat> {
        let belongs = |process: &&Stat| self.members.iter().any(|member| member.who == process.identity);
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        let first = |process: &&Stat| {
            let count = counts.entry(process.session).or_default();
            *count += 1;
            *count <= FRONTS_MAX
        };
        below.iter().filter(|process| is_foreground(process)).filter(belongs).filter(first).collect()
    }

    /// Whether a process belongs to the set or to one of the jobs.
    pub(crate) fn has(&self, process: Identity) -> bool {
        self.processes().any(|member| member == process)
    }
}

struct Sorting<'a> {
    client: &'a Stat,
    children: BTreeMap<u32, Vec<&'a Stat>>,
    /// Processes in the foreground of a terminal, and those above them.
    foreground: BTreeSet<u32>,
    /// The job of each process group.
    jobs: BTreeMap<u32, Identity>,
    family: Family,
}

impl<'a> Sorting<'a> {
    fn begin(client: &'a Stat, below: &'a [Stat]) -> Sorting<'a> {
        let mut children: BTreeMap<u32, Vec<&Stat>> = BTreeMap::new();
        for process in below {
            children.entry(process.parent).or_default().push(process);
        }
        let family = Family { members: vec![member(client, Membership::Client)], ..Family::default() };
        let foreground = line_of_foreground(client, below);
        Sorting { client, children, foreground, jobs: BTreeMap::new(), family }
    }

    fn place(&mut self, process: &Stat, parent: &Stat, above: ProcessPlace) -> ProcessPlace {
        let on_terminal = on_terminal(process, self.client);
        match above {
            // Another terminal within a background job, such as that of a nested program, is not in view either.
            ProcessPlace::Job(_) | ProcessPlace::Nowhere if !on_terminal || process.session != parent.session => {
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
            self.family.terminals.push(Terminal { leader: leader.identity, foreground: leader.tpgid });
        } else {
            self.family.dropped += 1;
        }
    }
}

fn member(process: &Stat, because: Membership) -> Member {
    Member { who: process.identity, because }
}

/// On a terminal of the client's own making, not on the one from which the client was started.
fn on_terminal(process: &Stat, client: &Stat) -> bool {
    process.session != client.session && process.tpgid > 0
}

fn is_foreground(process: &Stat) -> bool {
    i64::from(process.tpgid) == i64::from(process.group)
}

/// All processes in the foreground of the client's terminals, and all that are above them on the same terminal: a
/// shell in a shell is in the background of its terminal while its own job runs, and still is not a background job.
fn line_of_foreground(client: &Stat, below: &[Stat]) -> BTreeSet<u32> {
    let known: BTreeMap<u32, &Stat> = below.iter().map(|process| (process.identity.pid, process)).collect();
    let mut line = BTreeSet::new();
    for front in below.iter().filter(|process| on_terminal(process, client) && is_foreground(process)) {
        let mut next = Some(front);
        while let Some(process) = next.filter(|process| line.insert(process.identity.pid)) {
            next = known.get(&process.parent).copied().filter(|parent| parent.session == front.session);
        }
    }
    line
}

#[cfg(test)]
mod tests;
