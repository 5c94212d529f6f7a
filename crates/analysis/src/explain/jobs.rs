// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs: processes that a user regards as one thing, such as a build with all its compilers.
//!
//! A job is everything below the topmost ancestor in the same process group. A parent that does not
//! lead a session belongs to it too, whatever its group: `timeout` and similar tools create process
//! groups of their own, while an interactive shell leads its session. If the delayed application
//! and the display server share ancestors, as under a script, the job begins below those.

use crate::timeline::tasks::{Life, Tasks};
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::{Nanos, Pid, Tid};

/// Identity of a job: its root process, or the common name of kernel threads.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Job {
    Process(Pid),
    Kernel(String),
}

/// Finds the jobs of processes. The processes in `apart` never become part of another job.
pub(crate) struct Jobs<'a> {
    tasks: &'a Tasks,
    at: Nanos,
    apart: BTreeSet<Pid>,
}

/// Members of a job, with the time that each is blamed for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    by_pid: BTreeMap<Pid, u64>,
}

/// Minimum share of the blame for one process to represent its job.
const MAIN_SHARE: f64 = 0.7;

impl<'a> Jobs<'a> {
    /// Creates the finder; `apart` are the delayed application and the display server.
    pub(crate) fn new(tasks: &'a Tasks, at: Nanos, apart: &[Pid]) -> Jobs<'a> {
        let ancestors = apart.iter().flat_map(|pid| tasks.ancestors(*pid, at)).map(|life| life.pid);
        Jobs { tasks, at, apart: ancestors.chain(apart.iter().copied()).collect() }
    }

    /// Returns the job of a thread.
    pub(crate) fn of(&self, tid: Tid, at: Nanos) -> Job {
        match self.tasks.life(tid, at) {
            Some(life) if life.is_kernel() => Job::Kernel(kernel_name(&life.comm)),
            Some(life) => Job::Process(self.root(life.pid, at)),
            None => Job::Process(Pid(tid.0)),
        }
    }

    fn root(&self, pid: Pid, at: Nanos) -> Pid {
        let mut root = pid;
        for (child, parent) in
            self.tasks.ancestors(pid, at).zip(self.tasks.ancestors(pid, at).skip(1))
        {
            if !self.together(child, parent) {
                break;
            }
            root = parent.pid;
        }
        root
    }

    fn together(&self, child: &Life, parent: &Life) -> bool {
        let same_group = child.group == parent.group && child.group != Pid(0);
        let same_session = child.session == parent.session && child.session != Pid(0);
        let led = parent.session == parent.pid;
        !self.apart.contains(&parent.pid) && (same_group || same_session && !led)
    }

    /// Returns the process that represents a job, and the job's name if that is another process.
    /// Many processes of one program are represented by the one with the most blame, unless it has
    /// ended.
    pub(crate) fn face(&self, job: &Job, members: &Members) -> (Pid, Option<String>) {
        let main = members.main();
        let program = |root: &Pid| self.is_one_program(*root, members);
        match (job, main) {
            (Job::Process(root), Some((pid, share)))
                if pid != *root && (share >= MAIN_SHARE || program(root)) =>
            {
                (pid, Some(self.name(*root)))
            }
            (Job::Process(root), Some(_)) if members.by_pid.len() > 1 => {
                (*root, Some(self.name(*root)))
            }
            (Job::Process(root), _) => (*root, None),
            (Job::Kernel(_), main) => (main.map_or(Pid(0), |(pid, _)| pid), None),
        }
    }

    fn name(&self, root: Pid) -> String {
        format!("{} (pid {root})", self.tasks.comm(root, self.at))
    }

    /// Formats a job for a sentence: `rsync (pid 4432, job "nightly")`, `cc1 x 31 (job make, pid
    /// 3988)`.
    pub(crate) fn label(&self, job: &Job, members: &Members) -> String {
        match job {
            Job::Kernel(name) => name.clone(),
            Job::Process(root) => self.process_label(*root, members),
        }
    }

    fn process_label(&self, root: Pid, members: &Members) -> String {
        let root_comm = self.tasks.comm(root, self.at);
        match members.main() {
            Some((pid, share)) if share >= MAIN_SHARE || members.by_pid.len() == 1 => {
                let comm = self.tasks.comm(pid, self.at);
                let job =
                    if pid == root { String::new() } else { format!(", job \"{root_comm}\"") };
                format!("{comm} (pid {pid}{job})")
            }
            Some(_) => {
                let (comm, count) = self.commonest(members);
                format!("{comm} x {count} (job {root_comm}, pid {root})")
            }
            None => format!("{root_comm} (pid {root})"),
        }
    }

    /// Returns `true` if most of the blame falls on processes of one name, the member with the most
    /// blame is still alive, and the root has another name.
    fn is_one_program(&self, root: Pid, members: &Members) -> bool {
        let Some((main, _)) = members.main() else { return false };
        let name = self.tasks.comm(main, self.at);
        if name == self.tasks.comm(root, self.at) {
            return false;
        }
        let same = members.by_pid.iter().filter(|(pid, _)| self.tasks.comm(**pid, self.at) == name);
        let nanos = same.fold(0, |sum: u64, (_, nanos)| sum.saturating_add(*nanos));
        !self.tasks.has_ended(Tid(main.0)) && nanos as f64 >= MAIN_SHARE * members.total() as f64
    }

    /// Returns the name with the most blame among the members, and the number of members with that
    /// name.
    fn commonest(&self, members: &Members) -> (String, usize) {
        let mut names: BTreeMap<String, (u64, usize)> = BTreeMap::new();
        for (pid, nanos) in &members.by_pid {
            let name = names.entry(self.tasks.comm(*pid, self.at)).or_default();
            *name = (name.0 + nanos, name.1 + 1);
        }
        let most = names.into_iter().max_by_key(|(_, (nanos, _))| *nanos);
        most.map(|(name, (_, count))| (name, count)).unwrap_or_default()
    }
}

impl Members {
    pub(crate) fn add(&mut self, pid: Pid, nanos: u64) {
        let blame = self.by_pid.entry(pid).or_default();
        *blame = blame.saturating_add(nanos);
    }

    pub(crate) fn has(&self, pid: Pid) -> bool {
        self.by_pid.contains_key(&pid)
    }

    pub(crate) fn merge(&mut self, other: &Members) {
        other.by_pid.iter().for_each(|(pid, nanos)| self.add(*pid, *nanos));
    }

    /// Returns the total blame of all members.
    pub(crate) fn total(&self) -> u64 {
        self.by_pid.values().fold(0, |sum, nanos| sum.saturating_add(*nanos))
    }

    /// Returns the member with the most blame and its share.
    pub(crate) fn main(&self) -> Option<(Pid, f64)> {
        let (pid, nanos) = self.by_pid.iter().max_by_key(|(_, nanos)| **nanos)?;
        Some((*pid, *nanos as f64 / self.total().max(1) as f64))
    }
}

/// Reduces the name of a kernel worker to its kind: `kworker/u4:3` becomes `kworker`.
fn kernel_name(comm: &str) -> String {
    comm.split(['/', ':', '-']).next().unwrap_or(comm).to_owned()
}
