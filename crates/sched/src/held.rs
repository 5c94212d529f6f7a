// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process pinned for the time of its changes.
//!
//! The descriptor of its `/proc` folder refers to one process forever: signal 0 sent through it
//! shows whether that process still exists, and its owner is the effective user of the process.
//! Identity and user are therefore read once, and directly before each change one cheap system call
//! checks the parts that can change.
//!
//! System calls that take a thread id cannot name the process as well. A race remains between two
//! such calls, in which the thread would have to end and the kernel to wrap around all ids.

use crate::processes::{ProcFolder, Stat};
use crate::world::{KnobFault, fault};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use tipme_policy::Identity;

/// A process that was alive when it was opened.
#[derive(Debug)]
pub(crate) struct HeldProcess {
    folder: ProcFolder,
    who: Identity,
    /// Last data read.
    latest: RefCell<Stat>,
    /// Set until the data of the open is used.
    fresh: Cell<bool>,
    users: OnceCell<Option<(u32, u32)>>,
    /// Start times of the listed threads; the first thread started with the process.
    starts: RefCell<BTreeMap<u32, u64>>,
}

impl HeldProcess {
    pub(crate) fn open(proc: &Path, who: Identity) -> Result<HeldProcess, KnobFault> {
        let folder = ProcFolder::open(proc, who.pid).ok_or(KnobFault::Vanished)?;
        let stat = folder
            .stat()
            .filter(|stat| stat.identity == who && stat.is_alive())
            .ok_or(KnobFault::Vanished)?;
        let starts = RefCell::new(BTreeMap::from([(who.pid, who.start)]));
        let (latest, fresh) = (RefCell::new(stat), Cell::new(true));
        Ok(HeldProcess { folder, who, latest, fresh, users: OnceCell::new(), starts })
    }

    pub(crate) fn identity(&self) -> Identity {
        self.who
    }

    /// Returns the last data read.
    pub(crate) fn latest(&self) -> Stat {
        self.latest.borrow().clone()
    }

    /// Returns current data; the first call returns the data of the open.
    pub(crate) fn stat(&self) -> Result<Stat, KnobFault> {
        if !self.fresh.take() {
            let stat = self.folder.stat().filter(Stat::is_alive).ok_or(KnobFault::Vanished)?;
            self.latest.replace(stat);
        }
        Ok(self.latest())
    }

    /// Returns the real and the effective user as of the first call.
    pub(crate) fn users(&self) -> Option<(u32, u32)> {
        *self.users.get_or_init(|| self.folder.users())
    }

    /// Returns the effective user now: the process may have started a set-user-ID program since.
    pub(crate) fn effective_user(&self) -> Option<u32> {
        rustix::fs::fstat(&self.folder).ok().map(|stat| stat.st_uid)
    }

    /// Returns the threads with their start times, the first thread first. Threads that end
    /// meanwhile are left out.
    pub(crate) fn threads(&self, count: u32) -> Vec<(u32, u64)> {
        // The only thread of a single-threaded process is known.
        let tids = if count > 1 { self.folder.threads(self.who.pid) } else { vec![self.who.pid] };
        tids.into_iter().filter_map(|tid| Some((tid, self.start(tid)?))).collect()
    }

    fn start(&self, tid: u32) -> Option<u64> {
        let known = self.starts.borrow().get(&tid).copied();
        known.or_else(|| {
            let start =
                self.folder.thread(tid).filter(|thread| !thread.has_ended())?.identity.start;
            self.starts.borrow_mut().insert(tid, start);
            Some(start)
        })
    }

    /// Checks directly before a change that the process still exists.
    pub(crate) fn check(&self) -> Result<(), KnobFault> {
        let fd = self.folder.as_fd().as_raw_fd();
        let none = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the call takes numbers and a null pointer; signal 0 is not delivered.
        let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, 0, none, 0) };
        match answer(sent) {
            Err(KnobFault::Refused(_)) => self.folder.stat().map(drop).ok_or(KnobFault::Vanished),
            known => known,
        }
    }

    /// Checks the same for one thread with this start time.
    pub(crate) fn check_thread(&self, tid: u32, start: u64) -> Result<(), KnobFault> {
        self.check()?;
        if self.start(tid) != Some(start) {
            return Err(KnobFault::Vanished);
        }
        if tid == self.who.pid {
            return Ok(());
        }
        // SAFETY: the call takes numbers; signal 0 is not delivered.
        answer(unsafe { libc::syscall(libc::SYS_tgkill, self.who.pid, tid, 0) })
    }
}

/// A process that may not be signalled exists nevertheless.
fn answer(sent: libc::c_long) -> Result<(), KnobFault> {
    let error = io::Error::last_os_error();
    if sent == 0 || error.raw_os_error() == Some(libc::EPERM) { Ok(()) } else { Err(fault(error)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn held() -> (Child, HeldProcess) {
        let child = Command::new("sleep").arg("600").spawn().expect("sleep can be run");
        let proc = Path::new("/proc");
        let who = crate::processes::identity(proc, child.id()).expect("it sleeps");
        (child, HeldProcess::open(proc, who).expect("it sleeps"))
    }

    #[test]
    fn one_call_notices_that_a_held_process_is_gone() {
        let (mut child, held) = held();
        let who = held.who;
        assert_eq!((held.check(), held.check_thread(who.pid, who.start)), (Ok(()), Ok(())));
        assert_eq!(
            held.check_thread(who.pid, who.start + 1),
            Err(KnobFault::Vanished),
            "another start"
        );
        assert_eq!(
            held.check_thread(1, 1),
            Err(KnobFault::Vanished),
            "a thread of another process"
        );
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        assert_eq!(held.check(), Err(KnobFault::Vanished));
        assert_eq!(
            held.stat().map(|stat| stat.identity),
            Ok(who),
            "the first look was taken before"
        );
        assert_eq!(held.stat(), Err(KnobFault::Vanished));
    }

    #[test]
    fn the_effective_user_is_that_of_the_moment() {
        let (mut child, held) = held();
        let own = rustix::process::geteuid().as_raw();
        assert_eq!((held.users(), held.effective_user()), (Some((own, own)), Some(own)));
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
    }

    #[test]
    fn only_the_process_that_is_meant_can_be_held() {
        let (mut child, held) = held();
        let other = Identity { start: held.who.start + 1, ..held.who };
        assert_eq!(HeldProcess::open(Path::new("/proc"), other).err(), Some(KnobFault::Vanished));
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
    }
}
