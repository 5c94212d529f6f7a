// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identity of threads: names, processes, parents and command lines, for each life of a thread id.

use crate::decode::bytes::{Cursor, command_line, printable};
use crate::timeline::threads::STATE_DEAD;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tipme_record::records::{Exec, Exit, Fork, Rename, Task};
use tipme_record::session_programs::NAME_BYTES;
use tipme_record::{Nanos, Pid, Tid};

/// Maximum bytes of a name from a command line.
const NAME_MAX: usize = 40;

/// Maximum number of ancestors followed.
pub(crate) const ANCESTORS_MAX: usize = 64;

/// Parent process of kernel threads.
const KTHREADD: Pid = Pid(2);

/// One life of a thread id: from creation to exit.
#[derive(Clone, Debug, Default)]
pub struct Life {
    pub tid: Tid,
    pub pid: Pid,
    pub parent: Pid,
    pub group: Pid,
    pub session: Pid,
    pub cgroup: u64,
    pub comm: String,
    /// Time of the exit; `u64::MAX` if alive at the mark.
    pub until: Nanos,
    /// Time of the creation, if it was recorded; else the end of the previous life.
    pub from: Nanos,
    /// Allowed CPUs among the first 64 as a bit mask; 0 if unknown.
    pub affinity: u64,
    cmdline: String,
}

impl Life {
    /// Returns the name, completed from the command line if the kernel has cut it off.
    pub(crate) fn name(&self) -> &str {
        let is_cut = self.comm.len() == NAME_BYTES;
        // The second word is a script that runs under its own name.
        let names = self.cmdline.split(' ').take(2).filter_map(|word| word.rsplit('/').next());
        let mut whole = names.filter(|name| is_cut && name.len() <= NAME_MAX);
        whole.find(|name| name.starts_with(&self.comm)).unwrap_or(&self.comm)
    }

    /// Returns `true` for a kernel thread.
    pub(crate) fn is_kernel(&self) -> bool {
        self.parent == KTHREADD || self.pid == KTHREADD
    }
}

/// Records with the identities of threads.
#[derive(Default)]
pub struct TaskSources<'a> {
    pub tasks: Vec<Task>,
    pub exits: Vec<(Exit, &'a [u8])>,
    pub execs: Vec<(Exec, &'a [u8])>,
    pub forks: Vec<Fork>,
    pub renames: Vec<Rename>,
    pub cmdlines: &'a [u8],
}

/// All lives, by thread id and time.
#[derive(Debug, Default)]
pub struct Tasks {
    lives: Vec<Life>,
}

impl Tasks {
    pub fn new(sources: &mut TaskSources<'_>) -> Tasks {
        let mut tasks = Tasks { lives: known_lives(sources) };
        tasks.order();
        tasks.add_replaced(sources);
        tasks.order();
        tasks.add_unended(sources);
        tasks.order();
        sources.forks.iter().for_each(|fork| tasks.apply_fork(fork));
        tasks.apply_execs(sources);
        tasks.inherit_cmdlines();
        tasks
    }

    /// Adds a thread that was alive at the mark but hidden from the recorder.
    pub fn add_living(&mut self, tid: Tid, pid: Pid, comm: String) {
        self.lives.push(Life { tid, pid, comm, until: Nanos(u64::MAX), ..Life::default() });
        self.order();
    }

    fn order(&mut self) {
        self.lives.sort_by_key(|life| (life.tid, life.until));
        let mut before: Option<(Tid, Nanos)> = None;
        for life in &mut self.lives {
            life.from =
                before.filter(|(tid, _)| *tid == life.tid).map_or(Nanos(0), |(_, until)| until);
            before = Some((life.tid, life.until));
        }
    }

    /// Adds the lives whose exit record is missing because their id was reused.
    fn add_replaced(&mut self, sources: &TaskSources<'_>) {
        let created: BTreeSet<(Tid, Nanos)> =
            sources.forks.iter().map(|fork| (fork.child_tid, fork.head.ts)).collect();
        let mut replaced = BTreeMap::new();
        for (tid, pid, at) in begun(sources) {
            let mut later = created.range((tid, at.after(Nanos(1)))..=(tid, Nanos(u64::MAX)));
            let Some((_, creation)) = later.next() else { continue };
            if self.position(tid, at) == self.position(tid, *creation) {
                replaced.insert((tid, creation.before(Nanos(1))), pid);
            }
        }
        let lives = replaced.into_iter().map(|((tid, until), pid)| Life {
            tid,
            pid,
            until,
            ..Life::default()
        });
        self.lives.extend(lives);
    }

    /// Adds threads with a fork or exec record, but without exit or task record.
    fn add_unended(&mut self, sources: &TaskSources<'_>) {
        let mut seen = BTreeSet::new();
        let unended: Vec<Life> = begun(sources)
            .filter(|(tid, _, ts)| self.position(*tid, *ts).is_none() && seen.insert(*tid))
            .map(|(tid, pid, _)| Life { tid, pid, until: Nanos(u64::MAX), ..Life::default() })
            .collect();
        self.lives.extend(unended);
    }

    fn apply_fork(&mut self, fork: &Fork) {
        let creator = self.life(fork.head.tid, fork.head.ts).cloned();
        let Some(index) = self.position(fork.child_tid, fork.head.ts) else { return };
        let life = &mut self.lives[index];
        life.from = life.from.max(fork.head.ts);
        if fork.child_tid.0 == fork.child_pid.0 {
            life.parent = fork.parent;
        }
        if let Some(creator) = creator.filter(|_| life.comm.is_empty()) {
            life.comm = creator.comm;
            (life.group, life.session, life.cgroup) =
                (creator.group, creator.session, creator.cgroup);
        }
    }

    fn apply_execs(&mut self, sources: &TaskSources<'_>) {
        for (exec, tail) in &sources.execs {
            let Some(index) = self.position(exec.head.tid, exec.head.ts) else { continue };
            self.lives[index].learn(exec, tail);
        }
        for rename in &sources.renames {
            if let Some(index) = self.position(rename.head.tid, rename.head.ts) {
                self.lives[index].rename(&rename.comm);
            }
        }
    }

    fn inherit_cmdlines(&mut self) {
        for index in 0..self.lives.len() {
            let life = &self.lives[index];
            if life.cmdline.is_empty() && life.tid.0 == life.pid.0 && !life.is_kernel() {
                self.lives[index].cmdline = self.inherited(index);
            }
        }
    }

    /// Returns the command line of the nearest ancestor with the same name that has one.
    fn inherited(&self, index: usize) -> String {
        let life = &self.lives[index];
        let ancestors = self.ancestors(life.pid, life.from);
        let found = ancestors
            .skip(1)
            .take_while(|ancestor| ancestor.comm == life.comm)
            .find(|a| !a.cmdline.is_empty());
        found.map(|ancestor| ancestor.cmdline.clone()).unwrap_or_default()
    }

    fn position(&self, tid: Tid, at: Nanos) -> Option<usize> {
        let index = self.lives.partition_point(|life| (life.tid, life.until) < (tid, at));
        self.lives.get(index).filter(|life| life.tid == tid).map(|_| index)
    }

    /// Returns the life of a thread id at a time, or its last one for a later time; `None` before
    /// the creation of that life.
    pub fn life(&self, tid: Tid, at: Nanos) -> Option<&Life> {
        let index = self
            .position(tid, at)
            .or_else(|| self.lives.partition_point(|life| life.tid <= tid).checked_sub(1))?;
        self.lives.get(index).filter(|life| life.tid == tid && life.from <= at)
    }

    /// Returns `true` if the last known thread with this id had exited by the mark.
    pub(crate) fn has_ended(&self, tid: Tid) -> bool {
        self.life(tid, Nanos(u64::MAX)).is_some_and(|life| life.until < Nanos(u64::MAX))
    }

    /// Returns the main thread of a process.
    pub fn process(&self, pid: Pid, at: Nanos) -> Option<&Life> {
        self.life(Tid(pid.0), at)
    }

    /// Returns the process of a thread; its own id if nothing is known of it.
    pub fn pid(&self, tid: Tid, at: Nanos) -> Pid {
        self.life(tid, at).map_or(Pid(tid.0), |life| life.pid)
    }

    /// Returns `true` if two threads belong to one process.
    pub(crate) fn share_process(&self, one: Tid, other: Tid, at: Nanos) -> bool {
        self.pid(one, at) == self.pid(other, at)
    }

    /// Returns the name of a process.
    pub fn comm(&self, pid: Pid, at: Nanos) -> String {
        let known = self.process(pid, at).map(Life::name).filter(|name| !name.is_empty());
        known.map_or_else(|| format!("process {pid}"), str::to_owned)
    }

    /// Returns the name of a thread.
    pub(crate) fn thread_comm(&self, tid: Tid, at: Nanos) -> String {
        let known = self.life(tid, at).map(Life::name).filter(|name| !name.is_empty());
        known.map_or_else(|| format!("thread {tid}"), str::to_owned)
    }

    /// Returns the command line of a process; empty if unknown.
    pub fn cmdline(&self, pid: Pid, at: Nanos) -> &str {
        self.process(pid, at).map_or("", |life| &life.cmdline)
    }

    /// Returns a process and its ancestors, nearest first.
    pub fn ancestors(&self, pid: Pid, at: Nanos) -> impl Iterator<Item = &Life> {
        let line = std::iter::successors(self.process(pid, at), move |life| {
            self.process(life.parent, at).filter(|_| life.parent != life.pid)
        });
        line.take(ANCESTORS_MAX)
    }

    /// Returns `true` if a process is `from` or one of its descendants.
    pub(crate) fn descends(&self, pid: Pid, from: Pid, at: Nanos) -> bool {
        pid == from || self.ancestors(pid, at).any(|life| life.pid == from || life.parent == from)
    }

    /// Returns a process and all its ancestors, without duplicates.
    pub fn line(&self, pid: Pid, at: Nanos) -> BTreeSet<Pid> {
        let ancestors = self.ancestors(pid, at).flat_map(|life| [life.pid, life.parent]);
        std::iter::once(pid).chain(ancestors).collect()
    }

    pub fn lives(&self) -> &[Life] {
        &self.lives
    }
}

impl Life {
    fn learn(&mut self, exec: &Exec, tail: &[u8]) {
        if self.group == Pid(0) {
            (self.group, self.session, self.cgroup) = (exec.group, exec.session, exec.cgroup);
        }
        if self.parent == Pid(0) {
            self.parent = exec.parent;
        }
        self.rename(&exec.comm);
        if self.cmdline.is_empty() {
            self.cmdline = command_line(tail);
        }
    }

    /// Sets the name, unless the exit or task record has already given the final one.
    fn rename(&mut self, comm: &[u8; 16]) {
        if self.comm.is_empty() || self.until == Nanos(u64::MAX) && self.affinity == 0 {
            self.comm = printable(comm);
        }
    }
}

/// Returns thread, process and time of each fork and exec.
fn begun(sources: &TaskSources<'_>) -> impl Iterator<Item = (Tid, Pid, Nanos)> {
    let forked = sources.forks.iter().map(|fork| (fork.child_tid, fork.child_pid, fork.head.ts));
    forked.chain(sources.execs.iter().map(|(exec, _)| (exec.head.tid, exec.pid, exec.head.ts)))
}

fn known_lives(sources: &mut TaskSources<'_>) -> Vec<Life> {
    let cmdlines = read_cmdlines(sources.cmdlines);
    let exits = sources.exits.iter().map(|(exit, tail)| ended(exit, tail));
    let tasks = sources.tasks.iter().filter(is_alive(sources));
    exits.chain(tasks.map(|task| living(task, &cmdlines))).collect()
}

/// Returns a predicate for tasks of the walk that are alive, which excludes zombies.
fn is_alive(sources: &TaskSources<'_>) -> impl Fn(&&Task) -> bool {
    let ended: BTreeSet<(Tid, Nanos)> =
        sources.exits.iter().map(|(exit, _)| (exit.head.tid, exit.start)).collect();
    let living: BTreeSet<Pid> =
        sources.tasks.iter().filter(|task| !is_zombie(task)).map(|task| task.pid).collect();
    move |task| {
        !is_zombie(task)
            || living.contains(&task.pid)
            || !ended.contains(&(task.head.tid, task.start))
    }
}

fn is_zombie(task: &Task) -> bool {
    task.state & u32::from(STATE_DEAD) != 0
}

fn read_cmdlines(section: &[u8]) -> HashMap<Pid, &[u8]> {
    let mut cursor = Cursor::new(section);
    std::iter::from_fn(|| {
        let pid = Pid(cursor.u32()?);
        let length = cursor.u32()? as usize;
        Some((pid, cursor.take_padded(length)?))
    })
    .collect()
}

fn living(task: &Task, cmdlines: &HashMap<Pid, &[u8]>) -> Life {
    let is_main = task.head.tid.0 == task.pid.0;
    let cmdline = cmdlines.get(&task.pid).filter(|_| is_main).map(|bytes| command_line(bytes));
    Life {
        tid: task.head.tid,
        pid: task.pid,
        parent: task.parent,
        group: task.group,
        session: task.session,
        cgroup: task.cgroup,
        comm: printable(&task.comm),
        until: Nanos(u64::MAX),
        affinity: task.affinity.max(1),
        cmdline: cmdline.unwrap_or_default(),
        ..Life::default()
    }
}

fn ended(exit: &Exit, tail: &[u8]) -> Life {
    Life {
        tid: exit.head.tid,
        pid: exit.pid,
        parent: exit.parent,
        group: exit.group,
        session: exit.session,
        cgroup: exit.cgroup,
        comm: printable(&exit.comm),
        until: exit.head.ts,
        cmdline: command_line(tail),
        ..Life::default()
    }
}
