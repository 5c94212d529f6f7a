// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes as /proc tells of them, read below a root that is an argument.
//!
//! Everything here can vanish between two reads, so "not there" is the normal answer `None` or a
//! shorter list, never an error. Nothing that stands in a file can make a reader fail in another
//! way: names hold spaces, brackets and bytes that are no text; numbers are checked; every list
//! and every file has a bound.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tipme_policy::Identity;

/// Processes that [`all`] lists at most.
pub const PROCESSES_MAX: usize = 32_768;
/// Processes that [`descendants`] lists at most.
pub const DESCENDANTS_MAX: usize = 4_096;
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
    /// The terminal's foreground process group; -1 without a terminal.
    pub tpgid: i32,
    /// User and system time since the start, in clock ticks.
    pub ticks: u64,
    pub nice: i8,
    pub threads: u32,
    /// The scheduling policy's number, 0 for SCHED_OTHER.
    pub policy: u32,
    /// The real user.
    pub uid: u32,
    /// The user whose rights count, another one in a set-user-id program.
    pub effective_uid: u32,
}

/// Reads what is known of process `pid`; `None` where it is gone.
///
/// The two files are read one after the other: a process that ends in between is gone, and one that
/// takes its number over in between is noticed by a second look at the start.
pub fn read(root: &Path, pid: u32) -> Option<Stat> {
    let mut stat = stat(root, pid)?;
    let status = text(&root.join(pid.to_string()).join("status"))?;
    (stat.uid, stat.effective_uid) = users(&status)?;
    (self::identity(root, pid)? == stat.identity).then_some(stat)
}

/// The identity of the process that has the number `pid` now.
pub fn identity(root: &Path, pid: u32) -> Option<Identity> {
    Some(stat(root, pid)?.identity)
}

/// True while exactly this process lives; a zombie is gone.
pub fn lives(root: &Path, who: Identity) -> bool {
    stat(root, who.pid).is_some_and(|stat| stat.identity == who && !matches!(stat.state, 'Z' | 'X'))
}

/// As [`read`] without the users, which cost a second file: they are given as `u32::MAX`.
pub(crate) fn stat(root: &Path, pid: u32) -> Option<Stat> {
    parse(&text(&root.join(pid.to_string()).join("stat"))?)
}

/// The same of one thread of process `pid`: state, nice, policy and start are the thread's own.
pub(crate) fn thread(root: &Path, pid: u32, tid: u32) -> Option<Stat> {
    parse(&text(&root.join(format!("{pid}/task/{tid}/stat")))?)
}

/// The threads of a process, the first one first, [`THREADS_MAX`] at most.
pub fn threads(root: &Path, pid: u32) -> Vec<u32> {
    let mut threads = numbers(&root.join(format!("{pid}/task")), THREADS_MAX);
    threads.sort_by_key(|&tid| (tid != pid, tid));
    threads
}

/// All processes by number, [`PROCESSES_MAX`] at most.
pub fn all(root: &Path) -> Vec<u32> {
    numbers(root, PROCESSES_MAX)
}

/// The processes below `pid`, nearest first, without itself; [`DESCENDANTS_MAX`] at most.
///
/// Uses the kernel's lists of children. While processes end, such a list can lack one of their
/// neighbours; who needs all of them looks again. A kernel without the lists has all of /proc searched.
pub fn descendants(root: &Path, pid: u32) -> Vec<Identity> {
    if root.join(format!("{pid}/task/{pid}/children")).exists() {
        gather(pid, |parent| children(root, parent))
    } else {
        let pairs: Vec<Stat> = all(root).into_iter().filter_map(|pid| stat(root, pid)).collect();
        gather(pid, |parent| pairs.iter().filter(|stat| stat.parent == parent).map(|stat| stat.identity).collect())
    }
}

/// The processes that are in the foreground of the terminals held by `pid`, a terminal emulator.
///
/// A session below `pid` that has a terminal names the terminal's foreground process group; those of
/// the session's processes that are in the group are in the foreground.
pub fn foreground(root: &Path, pid: u32) -> Vec<Identity> {
    let Some(own) = stat(root, pid) else { return Vec::new() };
    let below = descendants(root, pid).into_iter();
    let below = below.filter_map(|who| stat(root, who.pid).filter(|stat| stat.identity == who));
    let front = |stat: &Stat| stat.session != own.session && stat.tpgid > 0 && stat.group == stat.tpgid.unsigned_abs();
    below.filter(front).map(|stat| stat.identity).collect()
}

/// The parents of a process, the nearest first; [`ANCESTORS_MAX`] at most. Empty where it is gone.
pub fn ancestors(root: &Path, who: Identity) -> Vec<Identity> {
    let mut found = Vec::new();
    let mut next = stat(root, who.pid).filter(|stat| stat.identity == who).map(|stat| stat.parent);
    while let Some(parent) = next.filter(|&pid| pid != 0 && found.len() < ANCESTORS_MAX) {
        let parent = stat(root, parent);
        found.extend(parent.iter().map(|stat| stat.identity));
        next = parent.map(|stat| stat.parent);
    }
    found
}

/// True where `who` is `top` or lies below it, and both are the processes that are meant.
pub fn is_below(root: &Path, who: Identity, top: Identity) -> bool {
    (who == top && identity(root, who.pid) == Some(who)) || ancestors(root, who).contains(&top)
}

fn gather(pid: u32, children: impl Fn(u32) -> Vec<Identity>) -> Vec<Identity> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::from([pid]));
    let mut open = VecDeque::from([pid]);
    while let Some(parent) = open.pop_front() {
        for child in children(parent).into_iter().filter(|child| seen.insert(child.pid)) {
            if found.len() == DESCENDANTS_MAX {
                return found;
            }
            found.push(child);
            open.push_back(child.pid);
        }
    }
    found
}

fn children(root: &Path, pid: u32) -> Vec<Identity> {
    let lists = threads(root, pid).into_iter();
    let lists = lists.filter_map(|tid| text(&root.join(format!("{pid}/task/{tid}/children"))));
    let pids = lists.flat_map(|list| list.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>());
    pids.filter_map(|pid| stat(root, pid.parse().ok()?)).map(|stat| stat.identity).collect()
}

fn numbers(folder: &Path, most: usize) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).take(most).collect()
}

/// A small file's text, [`FILE_BYTES_MAX`] at most; bytes that are no text are replaced.
pub(crate) fn text(path: &Path) -> Option<String> {
    // Room for a whole one: a buffer that grows would take several reads, each of which the kernel writes anew.
    let mut bytes = Vec::with_capacity(TEXT_BYTES);
    File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a line of the form `pid (name) state parent …`; the name ends at the *last* bracket.
fn parse(line: &str) -> Option<Stat> {
    let (pid, rest) = line.split_once(" (")?;
    let (command, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // The kernel's manual counts from 1, and the state is its field 3.
    let field = |number: usize| fields.get(number - 3).copied();
    Some(Stat {
        identity: Identity { pid: pid.trim().parse().ok()?, start: field(22)?.parse().ok()? },
        command: command.to_owned(),
        state: field(3)?.chars().next()?,
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        session: field(6)?.parse().ok()?,
        tpgid: field(8)?.parse().ok()?,
        ticks: field(14)?.parse::<u64>().ok()?.saturating_add(field(15)?.parse().ok()?),
        nice: field(19)?.parse().ok()?,
        threads: field(20)?.parse().ok()?,
        policy: field(41)?.parse().ok()?,
        uid: u32::MAX,
        effective_uid: u32::MAX,
    })
}

fn users(status: &str) -> Option<(u32, u32)> {
    let mut ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_ascii_whitespace();
    Some((ids.next()?.parse().ok()?, ids.next()?.parse().ok()?))
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
    fn the_real_proc_knows_this_process() {
        let root = PathBuf::from("/proc");
        let own = read(&root, std::process::id()).unwrap();
        assert!(lives(&root, own.identity));
        assert!(!lives(&root, Identity { start: own.identity.start + 1, ..own.identity }));
        assert!(threads(&root, own.identity.pid).contains(&own.identity.pid));
        assert_eq!(ancestors(&root, own.identity)[0].pid, own.parent);
    }
}
