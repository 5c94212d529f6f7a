// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes as /proc tells of them, read below a root that is an argument.
//!
//! Everything here can vanish between two reads, so "not there" is the normal answer `None` or a
//! shorter list, never an error. Nothing that stands in a file can make a reader fail in another
//! way: names hold spaces, brackets and bytes that are not UTF-8 text; numbers are checked; every list
//! and every file has a bound.

use rustix::fs::{CWD, Mode, OFlags};
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use tipme_policy::Identity;
use tipme_record::proc_text::{StatLine, users};

/// Processes that [`all`] lists at most.
pub const PROCESSES_MAX: usize = 32_768;
/// Processes that [`descendants`] lists at most.
pub(crate) const DESCENDANTS_MAX: usize = 4_096;
/// Threads that [`threads`] lists at most.
pub const THREADS_MAX: usize = 4_096;
/// Parents that [`ancestors`] follows at most.
pub const ANCESTORS_MAX: usize = 128;
/// What a small file usually fits into.
const TEXT_BYTES: usize = 4_096;
/// Bytes that are read of one small file at most.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// What `/proc/PID/stat` and `/proc/PID/status` tell of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stat {
    pub identity: Identity,
    /// The name of the program: at most 15 bytes, chosen by the program itself.
    pub command: String,
    pub state: char,
    pub parent: u32,
    /// The process group.
    pub group: u32,
    pub session: u32,
    /// The device number of the controlling terminal, 0 without one.
    pub terminal: i32,
    /// The terminal's foreground process group; -1 without a terminal.
    pub tpgid: i32,
    /// User and system time since the start, in clock ticks.
    pub ticks: u64,
    /// The same of the children that have ended and of theirs, once it has taken note of that.
    pub ended_ticks: u64,
    pub nice: i8,
    pub threads: u32,
    /// The scheduling policy's number, 0 for SCHED_OTHER.
    pub policy: u32,
    /// The real user.
    pub uid: u32,
    /// The user whose rights count, another one in a set-user-id program.
    pub effective_uid: u32,
}

impl Stat {
    /// False for a zombie: it is gone but for its number. One whose first thread alone has ended lives on.
    pub fn is_alive(&self) -> bool {
        !self.has_ended() || (self.state == 'Z' && self.threads > 1)
    }

    /// The same of a thread: whether this one has ended.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// A process's folder below the root, held open. What is read through it is of one process: when that is
/// gone nothing can be read any more, whoever has its number then.
#[derive(Debug)]
pub(crate) struct ProcFolder(OwnedFd);

impl ProcFolder {
    pub(crate) fn open(root: &Path, pid: u32) -> Option<ProcFolder> {
        open_folder(CWD, &root.join(pid.to_string())).map(ProcFolder)
    }

    /// As [`read`] without the users, which cost a second file: they are given as `u32::MAX`.
    pub(crate) fn stat(&self) -> Option<Stat> {
        parse(&record(self.0.as_fd(), "stat")?)
    }

    /// The real and the effective user.
    pub(crate) fn users(&self) -> Option<(u32, u32)> {
        users(&record(self.0.as_fd(), "status")?)
    }

    /// The same of one thread: state, nice, policy and start are the thread's own.
    pub(crate) fn thread(&self, tid: u32) -> Option<Stat> {
        parse(&record(self.0.as_fd(), format!("task/{tid}/stat"))?)
    }

    /// The threads, the first one (`pid`) first, [`THREADS_MAX`] at most.
    pub(crate) fn threads(&self, pid: u32) -> Vec<u32> {
        open_folder(self.0.as_fd(), Path::new("task")).map(|task| sorted_threads(task, pid)).unwrap_or_default()
    }
}

impl AsFd for ProcFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reads what is known of process `pid`; `None` where it is gone.
pub fn read(root: &Path, pid: u32) -> Option<Stat> {
    let folder = ProcFolder::open(root, pid)?;
    let mut stat = folder.stat()?;
    (stat.uid, stat.effective_uid) = folder.users()?;
    Some(stat)
}

/// The identity of the process that has the number `pid` now.
pub fn identity(root: &Path, pid: u32) -> Option<Identity> {
    Some(stat(root, pid)?.identity)
}

/// True while exactly this process lives; a zombie is gone.
pub fn lives(root: &Path, who: Identity) -> bool {
    living(root, who).is_some()
}

/// What is known of exactly this process while it lives, without the users; see [`stat`].
pub fn living(root: &Path, who: Identity) -> Option<Stat> {
    stat(root, who.pid).filter(|stat| stat.identity == who && stat.is_alive())
}

/// As [`read`] without the users, which cost a second file: they are given as `u32::MAX`.
pub fn stat(root: &Path, pid: u32) -> Option<Stat> {
    parse(&record(CWD, root.join(pid.to_string()).join("stat"))?)
}

/// Bytes of a process that are in memory.
pub fn resident(root: &Path, pid: u32) -> Option<u64> {
    let text = record(CWD, root.join(pid.to_string()).join("statm"))?;
    let page = rustix::param::page_size() as u64;
    Some(text.split(' ').nth(1)?.parse::<u64>().ok()?.saturating_mul(page))
}

/// The threads of a process, the first one first, [`THREADS_MAX`] at most.
pub fn threads(root: &Path, pid: u32) -> Vec<u32> {
    let task = open_folder(CWD, &root.join(format!("{pid}/task")));
    task.map(|task| sorted_threads(task, pid)).unwrap_or_default()
}

fn sorted_threads(task: OwnedFd, pid: u32) -> Vec<u32> {
    let mut threads = numbers(task, THREADS_MAX);
    threads.sort_by_key(|&tid| (tid != pid, tid));
    threads
}

/// All processes by number, [`PROCESSES_MAX`] at most.
pub fn all(root: &Path) -> Vec<u32> {
    open_folder(CWD, root).map(|folder| numbers(folder, PROCESSES_MAX)).unwrap_or_default()
}

/// The processes below `pid`, nearest first, without itself; `DESCENDANTS_MAX` at most.
pub fn descendants(root: &Path, pid: u32) -> Vec<Identity> {
    let top = stat(root, pid);
    top.iter().flat_map(|top| below(root, top, |_| false)).map(|stat| stat.identity).collect()
}

/// The same with what is known of each, but for the users. Those that `leads` knows, and what is below them,
/// are left out.
///
/// Uses the kernel's lists of children. While processes end, such a list can lack one of their
/// neighbours; who needs all of them looks again. A kernel without the lists has all of /proc searched.
pub fn below(root: &Path, top: &Stat, leads: impl Fn(Identity) -> bool) -> Vec<Stat> {
    below_with(root, top, leads, |pid| stat(root, pid))
}

/// The same with what is known of each process from elsewhere.
pub(crate) fn below_with(
    root: &Path,
    top: &Stat,
    leads: impl Fn(Identity) -> bool,
    look: impl Fn(u32) -> Option<Stat>,
) -> Vec<Stat> {
    let known = |pids: Vec<u32>| pids.into_iter().filter_map(&look).collect();
    match children(root, top) {
        Some(first) => gather(top, leads, |parent| {
            let is_top = parent.identity == top.identity;
            known(if is_top { first.clone() } else { children(root, parent).unwrap_or_default() })
        }),
        None => {
            let all: Vec<Stat> = known(all(root));
            let below = |parent: u32| all.iter().filter(move |stat| stat.parent == parent).cloned();
            gather(top, leads, |parent| below(parent.identity.pid).collect())
        }
    }
}

/// The foreground process group of the terminal that this process leads a session on; `None` where it has
/// ended. It is asked five times a second while somebody types.
pub fn foreground(root: &Path, leader: Identity) -> Option<i32> {
    stat(root, leader.pid).filter(|stat| stat.identity == leader).map(|stat| stat.tpgid)
}

/// The parents of a process, the nearest first; [`ANCESTORS_MAX`] at most. Empty where it is gone.
pub fn ancestors(root: &Path, who: Identity) -> Vec<Identity> {
    lineage(root, who).skip(1).map(|stat| stat.identity).collect()
}

/// True where `who` is `top` or lies below it, and both are the processes that are meant.
pub fn is_below(root: &Path, who: Identity, top: Identity) -> bool {
    lineage(root, who).any(|stat| stat.identity == top)
}

/// The process itself and its parents, each looked at when it is asked for; [`ANCESTORS_MAX`] of these at most.
pub fn lineage(root: &Path, who: Identity) -> impl Iterator<Item = Stat> + '_ {
    let mut last: Option<Stat> = None;
    // Each is read when it is asked for, and not before.
    let next = move || {
        last = match &last {
            None => stat(root, who.pid).filter(|stat| stat.identity == who),
            Some(child) => parent(root, child),
        };
        last.clone()
    };
    std::iter::from_fn(next).fuse().take(ANCESTORS_MAX + 1)
}

fn parent(root: &Path, child: &Stat) -> Option<Stat> {
    stat(root, Some(child.parent).filter(|&pid| pid != 0)?)
}

fn gather(top: &Stat, leads: impl Fn(Identity) -> bool, children: impl Fn(&Stat) -> Vec<Stat>) -> Vec<Stat> {
    let (mut found, mut seen): (Vec<Stat>, _) = (Vec::new(), BTreeSet::from([top.identity.pid]));
    let mut open = VecDeque::from([top.clone()]);
    while let Some(parent) = open.pop_front() {
        for child in children(&parent).into_iter().filter(|child| seen.insert(child.identity.pid)) {
            if leads(child.identity) {
                continue;
            }
            if found.len() == DESCENDANTS_MAX {
                return found;
            }
            found.push(child.clone());
            open.push_back(child);
        }
    }
    found
}

/// The children of a process by number; `None` where the kernel has no lists of them, or the process is gone.
fn children(root: &Path, parent: &Stat) -> Option<Vec<u32>> {
    let pid = parent.identity.pid;
    let tids = if parent.threads > 1 { threads(root, pid) } else { vec![pid] };
    let lists: Vec<String> =
        tids.iter().filter_map(|tid| text(&root.join(format!("{pid}/task/{tid}/children")))).collect();
    let pids = lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|pid| pid.parse().ok());
    (!lists.is_empty()).then(|| pids.collect())
}

fn open_folder(at: BorrowedFd<'_>, path: &Path) -> Option<OwnedFd> {
    rustix::fs::openat(at, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()
}

fn numbers(folder: OwnedFd, most: usize) -> Vec<u32> {
    let Ok(entries) = rustix::fs::Dir::new(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok()).take(most).collect()
}

/// The bytes of a file, so many of them at most.
///
/// # Errors
/// Where it cannot be opened or read.
pub fn read_up_to(path: &Path, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    // Room for a whole small one: a buffer that grows would take several reads, each of which the kernel writes again.
    let mut bytes = Vec::with_capacity(TEXT_BYTES);
    File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A small file's text, [`FILE_BYTES_MAX`] at most; bytes that are not UTF-8 text are replaced.
pub(crate) fn text(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&read_up_to(path, FILE_BYTES_MAX).ok()?).into_owned())
}

/// The same of a file that the kernel writes in one piece and that fits: one read, which is all of it.
pub(crate) fn record(at: BorrowedFd<'_>, path: impl rustix::path::Arg) -> Option<String> {
    let file = rustix::fs::openat(at, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut bytes = [0; TEXT_BYTES];
    let length = rustix::io::read(&file, &mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// Reads any text as each of the kernel's files.
pub(crate) fn parse_any(text: &str) -> bool {
    let (line, status) = (parse(text), users(text));
    line.is_some() || status.is_some()
}

/// Reads a line of `/proc/PID/stat`.
fn parse(line: &str) -> Option<Stat> {
    let stat = StatLine::read(line)?;
    let field = |number: usize| stat.field(number);
    let sum = |first: usize| Some(field(first)?.parse::<u64>().ok()?.saturating_add(field(first + 1)?.parse().ok()?));
    Some(Stat {
        identity: Identity { pid: stat.pid, start: field(22)?.parse().ok()? },
        command: stat.command.to_owned(),
        state: field(3)?.chars().next()?,
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        session: field(6)?.parse().ok()?,
        terminal: field(7)?.parse().ok()?,
        tpgid: field(8)?.parse().ok()?,
        ticks: sum(14)?,
        ended_ticks: sum(16)?,
        nice: field(19)?.parse().ok()?,
        threads: field(20)?.parse().ok()?,
        policy: field(41)?.parse().ok()?,
        uid: u32::MAX,
        effective_uid: u32::MAX,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    const TAIL: &str = "0 -1 4194304 1 0 0 0 7 5 0 0 20 -3 2 0 4711 1 1 1 1 1 1 1 1 1 0 0 0 0 0 0 17 1 0 3 0 0 0";

    fn line(pid: u32, name: &str, parent: u32, group: u32, session: u32) -> String {
        format!("{pid} ({name}) S {parent} {group} {session} {TAIL}")
    }

    fn add(root: &Path, pid: u32, name: &str, parent: u32, lists: Option<&str>) {
        let task = root.join(format!("{pid}/task/{pid}"));
        fs::create_dir_all(&task).unwrap();
        fs::write(root.join(format!("{pid}/stat")), line(pid, name, parent, pid, pid)).unwrap();
        fs::write(root.join(format!("{pid}/status")), "Name:\tx\nUid:\t1000\t0\t0\t0\n").unwrap();
        if let Some(list) = lists {
            fs::write(task.join("children"), list).unwrap();
        }
    }

    #[test]
    fn a_name_may_hold_brackets_and_spaces() {
        let stat = parse(&line(12, "a) R 1 (b", 3, 4, 5)).unwrap();
        assert_eq!((stat.command.as_str(), stat.state, stat.parent), ("a) R 1 (b", 'S', 3));
        assert_eq!((stat.identity, stat.group, stat.session), (Identity { pid: 12, start: 4711 }, 4, 5));
        assert_eq!((stat.tpgid, stat.ticks, stat.nice, stat.threads, stat.policy), (-1, 12, -3, 2, 3));
    }

    #[test]
    fn a_cut_line_is_no_process_and_no_panic() {
        let whole = line(12, "x", 3, 4, 5);
        let policy = whole.len() - " 0 0 0".len();
        for end in 0..policy - 1 {
            assert_eq!(parse(&whole[..end]), None, "{}", &whole[..end]);
        }
        assert!(parse("99999999999 (x) S 1 1 1 0 0").is_none());
    }

    #[test]
    fn users_come_from_status_and_a_missing_process_is_none() {
        let root = tempfile::tempdir().unwrap();
        add(root.path(), 7, "x", 1, None);
        let stat = read(root.path(), 7).unwrap();
        assert_eq!((stat.uid, stat.effective_uid), (1000, 0));
        assert_eq!(read(root.path(), 8), None);
    }

    #[test]
    fn descendants_are_found_with_and_without_the_kernels_lists() {
        for lists in [true, false] {
            let root = tempfile::tempdir().unwrap();
            let list = |text: &'static str| lists.then_some(text);
            add(root.path(), 1, "init", 0, list("2 9 "));
            add(root.path(), 2, "a", 1, list("3 "));
            add(root.path(), 3, "b", 2, list(" junk 2 "));
            let found: Vec<u32> = descendants(root.path(), 1).iter().map(|who| who.pid).collect();
            assert_eq!(found, [2, 3], "lists: {lists}");
            let low = identity(root.path(), 3).unwrap();
            let top = identity(root.path(), 1).unwrap();
            assert!(is_below(root.path(), low, top));
            assert!(!is_below(root.path(), low, Identity { start: 1, ..top }), "another process of that number");
            assert!(!is_below(root.path(), top, low));
        }
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let root = tempfile::tempdir().unwrap();
        add(root.path(), 5, "a", 6, Some("6"));
        add(root.path(), 6, "b", 5, Some("5"));
        let who = identity(root.path(), 5).unwrap();
        assert_eq!(ancestors(root.path(), who).len(), ANCESTORS_MAX);
        assert_eq!(descendants(root.path(), 5).len(), 1);
    }

    #[test]
    fn who_lost_its_first_thread_only_lives_on() {
        let of = |state: &str, threads: &str| {
            let text = line(7, "x", 1, 7, 7).replace(" S ", state).replace("20 -3 2 0", &format!("20 -3 {threads} 0"));
            parse(&text).expect("a line of the kernel")
        };
        assert!(of(" S ", "1").is_alive() && of(" Z ", "2").is_alive());
        assert!(!of(" Z ", "1").is_alive() && !of(" X ", "2").is_alive());
        assert!(of(" Z ", "2").has_ended() && !of(" D ", "1").has_ended());
    }

    #[test]
    fn the_real_proc_knows_this_process() {
        let root = PathBuf::from("/proc");
        let own = read(&root, std::process::id()).unwrap();
        assert!(lives(&root, own.identity));
        assert!(!lives(&root, Identity { start: own.identity.start + 1, ..own.identity }));
        assert!(threads(&root, own.identity.pid).contains(&own.identity.pid));
        assert_eq!(ancestors(&root, own.identity)[0].pid, own.parent);
    }
}
