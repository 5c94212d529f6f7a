// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes in `/proc`, read below a configurable root.
//!
//! Every process can vanish between two reads, so absence is normal: `None` or a shorter list,
//! never an error. No file contents can make a reader fail otherwise: names may contain spaces,
//! brackets and invalid UTF-8; numbers are checked; every list and every file has a bound.

use rustix::fs::{CWD, Mode, OFlags};
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use tipme_policy::Identity;
use tipme_record::proc_text::{StatLine, users};

/// Maximum number of processes listed by [`all`].
pub const PROCESSES_MAX: usize = 32_768;
/// Maximum number of processes listed by [`descendants`].
pub(crate) const DESCENDANTS_MAX: usize = 4_096;
/// Maximum number of threads listed by [`threads`].
pub const THREADS_MAX: usize = 4_096;
/// Maximum number of parents followed by [`ancestors`].
pub const ANCESTORS_MAX: usize = 128;
/// Buffer size that fits most small files.
const TEXT_BYTES: usize = 4_096;
/// Maximum number of bytes read from a small file.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Data of a process from `/proc/PID/stat` and `/proc/PID/status`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stat {
    pub identity: Identity,
    /// Name of the program: at most 15 bytes, chosen by the program itself.
    pub command: String,
    pub state: char,
    pub parent: u32,
    /// Process group.
    pub group: u32,
    pub session: u32,
    /// Device number of the controlling terminal; 0 without one.
    pub terminal: i32,
    /// Foreground process group of the terminal; -1 without a terminal.
    pub tpgid: i32,
    /// User and system time since the start, in clock ticks.
    pub ticks: u64,
    /// Same for reaped children and their reaped descendants.
    pub ended_ticks: u64,
    pub nice: i8,
    pub threads: u32,
    /// Number of the scheduling policy; 0 for SCHED_OTHER.
    pub policy: u32,
    /// Real user.
    pub uid: u32,
    /// Effective user, which differs in a set-user-ID program.
    pub effective_uid: u32,
}

impl Stat {
    /// Returns `false` for a zombie, of which only the PID is left. A process with living threads
    /// is alive even if its first thread has ended.
    pub fn is_alive(&self) -> bool {
        !self.has_ended() || (self.state == 'Z' && self.threads > 1)
    }

    /// Returns `true` if this thread has ended.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// The folder of a process below the root, held open. It refers to one process: once that process
/// is gone, all reads fail, even if its PID is reused.
#[derive(Debug)]
pub(crate) struct ProcFolder(OwnedFd);

impl ProcFolder {
    pub(crate) fn open(root: &Path, pid: u32) -> Option<ProcFolder> {
        open_folder(CWD, &root.join(pid.to_string())).map(ProcFolder)
    }

    /// Same as [`read`] without the users, which need a second file: they are `u32::MAX`.
    pub(crate) fn stat(&self) -> Option<Stat> {
        parse(&record(self.0.as_fd(), "stat")?)
    }

    /// Returns the real and the effective user.
    pub(crate) fn users(&self) -> Option<(u32, u32)> {
        users(&record(self.0.as_fd(), "status")?)
    }

    /// Same for a single thread: state, nice value, policy and start time are those of the thread.
    pub(crate) fn thread(&self, tid: u32) -> Option<Stat> {
        parse(&record(self.0.as_fd(), format!("task/{tid}/stat"))?)
    }

    /// Returns the threads, the first one (`pid`) first, at most [`THREADS_MAX`].
    pub(crate) fn threads(&self, pid: u32) -> Vec<u32> {
        open_folder(self.0.as_fd(), Path::new("task"))
            .map(|task| sorted_threads(task, pid))
            .unwrap_or_default()
    }
}

impl AsFd for ProcFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reads the data of process `pid`; `None` if it is gone.
pub fn read(root: &Path, pid: u32) -> Option<Stat> {
    let folder = ProcFolder::open(root, pid)?;
    let mut stat = folder.stat()?;
    (stat.uid, stat.effective_uid) = folder.users()?;
    Some(stat)
}

/// Returns the identity of the process that has the id `pid` now.
pub fn identity(root: &Path, pid: u32) -> Option<Identity> {
    Some(stat(root, pid)?.identity)
}

/// Returns `true` while exactly this process is alive; a zombie is not.
pub fn lives(root: &Path, who: Identity) -> bool {
    living(root, who).is_some()
}

/// Returns the data of exactly this process while it is alive, without the users; see [`stat`].
pub fn living(root: &Path, who: Identity) -> Option<Stat> {
    stat(root, who.pid).filter(|stat| stat.identity == who && stat.is_alive())
}

/// Same as [`read`] without the users, which need a second file: they are `u32::MAX`.
pub fn stat(root: &Path, pid: u32) -> Option<Stat> {
    parse(&record(CWD, root.join(pid.to_string()).join("stat"))?)
}

/// Returns the resident memory of a process in bytes.
pub fn resident(root: &Path, pid: u32) -> Option<u64> {
    let text = record(CWD, root.join(pid.to_string()).join("statm"))?;
    let page = rustix::param::page_size() as u64;
    Some(text.split(' ').nth(1)?.parse::<u64>().ok()?.saturating_mul(page))
}

/// Returns the threads of a process, the first one first, at most [`THREADS_MAX`].
pub fn threads(root: &Path, pid: u32) -> Vec<u32> {
    let task = open_folder(CWD, &root.join(format!("{pid}/task")));
    task.map(|task| sorted_threads(task, pid)).unwrap_or_default()
}

fn sorted_threads(task: OwnedFd, pid: u32) -> Vec<u32> {
    let mut threads = numbers(task, THREADS_MAX);
    threads.sort_by_key(|&tid| (tid != pid, tid));
    threads
}

/// Returns all processes by PID, at most [`PROCESSES_MAX`].
pub fn all(root: &Path) -> Vec<u32> {
    open_folder(CWD, root).map(|folder| numbers(folder, PROCESSES_MAX)).unwrap_or_default()
}

/// Returns the descendants of `pid`, nearest first, without itself; at most `DESCENDANTS_MAX`.
pub fn descendants(root: &Path, pid: u32) -> Vec<Identity> {
    let top = stat(root, pid);
    top.iter().flat_map(|top| below(root, top, |_| false)).map(|stat| stat.identity).collect()
}

/// Same with the data of each process except the users. Leaves out processes selected by `leads`,
/// and their descendants.
///
/// Uses the kernel's lists of children. While processes end, such a list can miss one of their
/// siblings; a caller that needs all of them must repeat the call. Without the lists in the kernel,
/// searches all of `/proc`.
pub fn below(root: &Path, top: &Stat, leads: impl Fn(Identity) -> bool) -> Vec<Stat> {
    below_with(root, top, leads, |pid| stat(root, pid))
}

/// Same with the data of each process supplied by the caller.
pub(crate) fn below_with(
    root: &Path,
    top: &Stat,
    leads: impl Fn(Identity) -> bool,
    look: impl Fn(u32) -> Option<Stat>,
) -> Vec<Stat> {
    match children(root, top) {
        Some(first) => gather(top, leads, |parent| {
            let is_top = parent.identity == top.identity;
            let pids =
                if is_top { first.clone() } else { children(root, parent).unwrap_or_default() };
            pids.into_iter().filter_map(&look).collect()
        }),
        None => {
            let all: Vec<Stat> = all(root).into_iter().filter_map(&look).collect();
            gather(top, leads, |parent| {
                all.iter().filter(|stat| stat.parent == parent.identity.pid).cloned().collect()
            })
        }
    }
}

/// Returns the foreground process group of the terminal on which this process leads a session;
/// `None` if it has ended. Called five times a second while the user types.
pub fn foreground(root: &Path, leader: Identity) -> Option<i32> {
    stat(root, leader.pid).filter(|stat| stat.identity == leader).map(|stat| stat.tpgid)
}

/// Returns the ancestors of a process, nearest first; at most [`ANCESTORS_MAX`]. Empty if it is
/// gone.
pub fn ancestors(root: &Path, who: Identity) -> Vec<Identity> {
    lineage(root, who).skip(1).map(|stat| stat.identity).collect()
}

/// Returns `true` if the first process is `top` or its descendant, and neither PID was reused.
pub fn is_below(root: &Path, who: Identity, top: Identity) -> bool {
    lineage(root, who).any(|stat| stat.identity == top)
}

/// Iterates over the process itself and at most [`ANCESTORS_MAX`] ancestors.
pub fn lineage(root: &Path, who: Identity) -> impl Iterator<Item = Stat> + '_ {
    // Each is read only when it is requested.
    let mut first = Some(who);
    let mut last: Option<Stat> = None;
    let line = std::iter::from_fn(move || {
        last = match (first.take(), &last) {
            (Some(who), _) => stat(root, who.pid).filter(|stat| stat.identity == who),
            (None, Some(child)) => parent(root, child),
            (None, None) => None,
        };
        last.clone()
    });
    line.take(ANCESTORS_MAX + 1)
}

fn parent(root: &Path, child: &Stat) -> Option<Stat> {
    stat(root, Some(child.parent).filter(|&pid| pid != 0)?)
}

fn gather(
    top: &Stat,
    leads: impl Fn(Identity) -> bool,
    children: impl Fn(&Stat) -> Vec<Stat>,
) -> Vec<Stat> {
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

/// Returns the PIDs of a process's children; `None` if the kernel has no lists of them, or the
/// process is gone.
fn children(root: &Path, parent: &Stat) -> Option<Vec<u32>> {
    let pid = parent.identity.pid;
    let tids = if parent.threads > 1 { threads(root, pid) } else { vec![pid] };
    let lists: Vec<String> = tids
        .iter()
        .filter_map(|tid| text(&root.join(format!("{pid}/task/{tid}/children"))))
        .collect();
    let pids = lists
        .iter()
        .flat_map(|list| list.split_ascii_whitespace())
        .filter_map(|pid| pid.parse().ok());
    (!lists.is_empty()).then(|| pids.collect())
}

fn open_folder(at: BorrowedFd<'_>, path: &Path) -> Option<OwnedFd> {
    rustix::fs::openat(
        at,
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()
}

fn numbers(folder: OwnedFd, most: usize) -> Vec<u32> {
    let Ok(entries) = rustix::fs::Dir::new(folder) else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok())
        .take(most)
        .collect()
}

/// Reads at most `bytes_max` bytes of a file.
///
/// # Errors
/// Fails if the file cannot be opened or read.
pub fn read_up_to(path: &Path, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    // Room for a whole small file: a growing buffer takes several reads, for each of which the
    // kernel formats the file again.
    let mut bytes = Vec::with_capacity(TEXT_BYTES);
    File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the text of a small file, at most [`FILE_BYTES_MAX`]; invalid UTF-8 is replaced.
pub(crate) fn text(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&read_up_to(path, FILE_BYTES_MAX).ok()?).into_owned())
}

/// Same for a file that the kernel writes in one piece and that fits the buffer: a single read gets
/// all of it.
pub(crate) fn record(at: BorrowedFd<'_>, path: impl rustix::path::Arg) -> Option<String> {
    let file =
        rustix::fs::openat(at, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut bytes = [0; TEXT_BYTES];
    let length = rustix::io::read(&file, &mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// Parses any text as each of the kernel's files.
pub(crate) fn parse_any(text: &str) -> bool {
    let (line, status) = (parse(text), users(text));
    line.is_some() || status.is_some()
}

/// Parses a line of `/proc/PID/stat`.
fn parse(line: &str) -> Option<Stat> {
    let stat = StatLine::read(line)?;
    Some(Stat {
        identity: Identity { pid: stat.pid, start: number(&stat, 22)? },
        command: stat.command.to_owned(),
        state: stat.field(3)?.chars().next()?,
        parent: number(&stat, 4)?,
        group: number(&stat, 5)?,
        session: number(&stat, 6)?,
        terminal: number(&stat, 7)?,
        tpgid: number(&stat, 8)?,
        ticks: number::<u64>(&stat, 14)?.saturating_add(number(&stat, 15)?),
        ended_ticks: number::<u64>(&stat, 16)?.saturating_add(number(&stat, 17)?),
        nice: number(&stat, 19)?,
        threads: number(&stat, 20)?,
        policy: number(&stat, 41)?,
        uid: u32::MAX,
        effective_uid: u32::MAX,
    })
}

fn number<T: std::str::FromStr>(stat: &StatLine, field: usize) -> Option<T> {
    stat.field(field)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    const TAIL: &str =
        "0 -1 4194304 1 0 0 0 7 5 0 0 20 -3 2 0 4711 1 1 1 1 1 1 1 1 1 0 0 0 0 0 0 17 1 0 3 0 0 0";

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
        assert_eq!(
            (stat.identity, stat.group, stat.session),
            (Identity { pid: 12, start: 4711 }, 4, 5)
        );
        assert_eq!(
            (stat.tpgid, stat.ticks, stat.nice, stat.threads, stat.policy),
            (-1, 12, -3, 2, 3)
        );
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
            for (pid, name, parent, list) in
                [(1, "init", 0, "2 9 "), (2, "a", 1, "3 "), (3, "b", 2, " junk 2 ")]
            {
                add(root.path(), pid, name, parent, lists.then_some(list));
            }
            let found: Vec<u32> = descendants(root.path(), 1).iter().map(|who| who.pid).collect();
            assert_eq!(found, [2, 3], "lists: {lists}");
            let low = identity(root.path(), 3).unwrap();
            let top = identity(root.path(), 1).unwrap();
            assert!(is_below(root.path(), low, top));
            assert!(
                !is_below(root.path(), low, Identity { start: 1, ..top }),
                "another process of that number"
            );
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
    fn a_process_without_its_first_thread_is_alive() {
        for (state, threads, is_alive, has_ended) in [
            (" S ", 1, true, false),
            (" D ", 1, true, false),
            (" Z ", 2, true, true),
            (" Z ", 1, false, true),
            (" X ", 2, false, true),
        ] {
            let text = line(7, "x", 1, 7, 7)
                .replace(" S ", state)
                .replace("20 -3 2 0", &format!("20 -3 {threads} 0"));
            let stat = parse(&text).expect("a line of the kernel");
            assert_eq!((stat.is_alive(), stat.has_ended()), (is_alive, has_ended), "{text}");
        }
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
