// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes of a test that end with it.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use tipme_policy::{
    Action, Assignment, Backend, Identity, Member, Membership, Reason, Role, SetId, Strength,
};
use tipme_sched::processes::{self, Stat};
use tipme_sched::{Config, Mechanism, Restored};

/// A child that is killed and reaped on drop, together with the children of its process group.
pub struct Started {
    pub child: Child,
    pub who: Identity,
}

impl Started {
    pub fn new(command: &mut Command) -> Started {
        // SAFETY: the calls are safe between fork and exec.
        unsafe {
            command.pre_exec(|| {
                be_plain();
                libc::setpgid(0, 0);
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        // Repeats it for a child that has become another user before it could.
        // SAFETY: the call takes numbers only.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, child.id(), 0) };
        let who = identity(child.id());
        Started { child, who }
    }

    /// Starts a sleeping process in the session of the test.
    pub fn sleeper() -> Started {
        Started::new(&mut sleep())
    }

    /// Starts a sleeping process as the leader of a session of its own.
    pub fn leader() -> Started {
        Started::new(own_session(&mut sleep()))
    }

    pub fn stat(&self) -> Stat {
        processes::read(proc(), self.who.pid).unwrap()
    }

    /// Kills only this process: its children live on until [`kill_group`].
    pub fn end_alone(self) -> Identity {
        let mut process = std::mem::ManuallyDrop::new(self);
        process.child.kill().unwrap();
        process.child.wait().unwrap();
        process.who
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        kill_group(self.who);
        self.child.wait().ok();
    }
}

/// Kills the children of a started process, which are in the process group of its PID.
pub fn kill_group(who: Identity) {
    // SAFETY: the call takes numbers; the group was created by a test.
    unsafe { libc::kill(-libc::pid_t::try_from(who.pid).unwrap(), libc::SIGKILL) };
}

/// Resets nice value and I/O priority to the defaults, whatever the test itself inherited.
fn be_plain() {
    // SAFETY: the calls take numbers only.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, 0);
        libc::syscall(libc::SYS_ioprio_set, 1, 0, 0);
    }
}

pub fn sleep() -> Command {
    let mut command = Command::new("sleep");
    command.arg("600");
    command
}

pub fn own_session(command: &mut Command) -> &mut Command {
    // SAFETY: setsid is safe between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            Ok(())
        })
    }
}

pub fn proc() -> &'static Path {
    Path::new("/proc")
}

pub fn identity(pid: u32) -> Identity {
    processes::identity(proc(), pid).unwrap()
}

/// Serializes mechanisms: two of them would restore each other's values in processes of the same
/// session.
static TURN: Mutex<()> = Mutex::new(());

/// A folder with a journal, and the lock to use it.
pub struct Fixture {
    _turn: MutexGuard<'static, ()>,
    pub folder: TempDir,
    pub config: Config,
}

impl Fixture {
    pub fn new(backend: Backend) -> Fixture {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let config = Config {
            backend,
            strength: Strength::Strong,
            proc: proc().to_owned(),
            cgroup: None,
            journal: folder.path().join("journal"),
            owner: None,
            under: None,
        };
        Fixture { _turn: turn, folder, config }
    }

    pub fn open(&self) -> (Mechanism, Restored) {
        Mechanism::open(self.config.clone()).unwrap()
    }

    pub fn journal(&self) -> PathBuf {
        self.config.journal.clone()
    }
}

/// Assigns the role to a set named after the first process.
pub fn assign(role: Role, processes: &[Identity]) -> Action {
    let members =
        processes.iter().map(|who| Member { who: *who, because: Membership::Client }).collect();
    let set = SetId(processes[0]);
    Action::Assign(Assignment { set, role, reason: Reason::KeyboardFocus, faded: 0.0, members })
}

pub fn io_priority(tid: u32) -> i64 {
    // SAFETY: the call takes numbers only.
    unsafe { libc::syscall(libc::SYS_ioprio_get, 1, tid) }
}

/// Returns nice value, policy and I/O priority of the first thread.
pub fn values(who: Identity) -> (i8, u32, i64) {
    let stat = processes::read(proc(), who.pid).unwrap();
    assert_eq!(stat.identity, who);
    (stat.nice, stat.policy, io_priority(who.pid))
}

/// Returns a thread's time slice in nanoseconds; 0 before Linux 6.12.
pub fn slice(pid: u32) -> u64 {
    let mut attributes = [0u64; 6];
    let size = size_of_val(&attributes);
    // SAFETY: the kernel writes at most `size` bytes to the array, which outlives the call.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_getattr, pid, attributes.as_mut_ptr(), size, 0) };
    assert_eq!(result, 0, "process {pid}");
    attributes[3]
}

/// Number of slice knobs of a favoured process on this kernel: one, or none.
pub fn slices() -> usize {
    usize::from(slice(std::process::id()) > 0)
}

pub const UNTOUCHED: (i8, u32, i64) = (0, 0, 0);

pub fn autogroup(pid: u32) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/autogroup")).unwrap();
    text.split_once(" nice ").unwrap().1.trim().to_owned()
}

/// Waits for a condition that will come true.
pub fn wait_for<T>(mut find: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(found) = find() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A forked process that is killed on drop.
pub struct Forked(pub Identity);

impl Forked {
    /// Runs `work` in a new process, which then waits to be killed; returns when the work is done.
    pub fn new(work: impl FnOnce()) -> Forked {
        let (mut reader, writer) = std::io::pipe().unwrap();
        // SAFETY: the child works with memory of its own and never returns.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            drop(reader);
            be_plain();
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            drop(writer);
            while done.is_ok() {
                std::thread::sleep(Duration::from_secs(600));
            }
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(1) };
        }
        drop(writer);
        reader.read_to_end(&mut Vec::new()).unwrap();
        Forked(identity(pid.unsigned_abs()))
    }
}

impl Drop for Forked {
    /// Kills it as the OOM killer would, and waits for its end.
    fn drop(&mut self) {
        let pid = libc::pid_t::try_from(self.0.pid).unwrap();
        // SAFETY: both calls take numbers; no status is requested.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
    }
}

pub fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}
