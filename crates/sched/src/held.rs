// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that is held fast while it is changed.
//!
//! Its folder in /proc stays open, and such a descriptor is of one process for ever: signal 0, sent through
//! it, says whether that process is still there, and its owner is the process's effective user. So identity
//! and rights are read once, and what can change is asked again, by one cheap system call, directly before
//! each change.
//!
//! System calls that name a thread by its number cannot also name the process. What remains is the time
//! between two such calls, in which the thread would have to end and the kernel to go through all its numbers.

use crate::processes::{ProcFolder, Stat};
use crate::world::{KnobFault, fault};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use tipme_policy::Identity;

/// A process that lived when it was looked at.
#[derive(Debug)]
pub(crate) struct HeldProcess {
    folder: ProcFolder,
    who: Identity,
    /// What was read last.
    latest: RefCell<Stat>,
    /// Nobody has asked yet what is known of it now.
    fresh: Cell<bool>,
    users: OnceCell<Option<(u32, u32)>>,
    /// When the threads that were listed started; the first one's start is the process's.
    starts: RefCell<BTreeMap<u32, u64>>,
}

impl HeldProcess {
    pub(crate) fn open(proc: &Path, who: Identity) -> Result<HeldProcess, KnobFault> {
        let folder = ProcFolder::open(proc, who.pid).ok_or(KnobFault::Vanished)?;
        let stat = folder.stat().filter(|stat| stat.identity == who && stat.is_alive()).ok_or(KnobFault::Vanished)?;
        let starts = RefCell::new(BTreeMap::from([(who.pid, who.start)]));
        let (latest, fresh) = (RefCell::new(stat), Cell::new(true));
        Ok(HeldProcess { folder, who, latest, fresh, users: OnceCell::new(), starts })
    }

    pub(crate) fn who(&self) -> Identity {
        self.who
    }

    /// What was known of it when somebody looked last.
    pub(crate) fn latest(&self) -> Stat {
        self.latest.borrow().clone()
    }

    /// What is known of it now: the first call gets what was read when it was opened.
    pub(crate) fn stat(&self) -> Result<Stat, KnobFault> {
        if !self.fresh.take() {
            let stat = self.folder.stat().filter(Stat::is_alive).ok_or(KnobFault::Vanished)?;
            self.latest.replace(stat);
        }
        Ok(self.latest())
    }

    /// The real user and the effective one, as they were when they were first asked for.
    pub(crate) fn users(&self) -> Option<(u32, u32)> {
        *self.users.get_or_init(|| self.folder.users())
    }

    /// The effective user now: a program with another user's rights may have been started since.
    pub(crate) fn effective_user(&self) -> Option<u32> {
        rustix::fs::fstat(&self.folder).ok().map(|stat| stat.st_uid)
    }

    /// The threads with their starts, the first one first. One that ends meanwhile is left out.
    pub(crate) fn threads(&self, count: u32) -> Vec<(u32, u64)> {
        // A process of one thread has the one that is known.
        let tids = if count > 1 { self.folder.threads(self.who.pid) } else { vec![self.who.pid] };
        tids.into_iter().filter_map(|tid| Some((tid, self.start(tid)?))).collect()
    }

    fn start(&self, tid: u32) -> Option<u64> {
        let known = self.starts.borrow().get(&tid).copied();
        known.or_else(|| {
            let start = self.folder.thread(tid).filter(|thread| !thread.has_ended())?.identity.start;
            self.starts.borrow_mut().insert(tid, start);
            Some(start)
        })
    }

    /// Whether the process is still there. Asked directly before a change.
    pub(crate) fn check(&self) -> Result<(), KnobFault> {
        let fd = self.folder.as_fd().as_raw_fd();
        let none = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the call takes numbers and an empty pointer; signal 0 is sent to nobody.
        let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, 0, none, 0) };
        match answer(sent) {
            Err(KnobFault::Refused(_)) => self.folder.stat().map(drop).ok_or(KnobFault::Vanished),
            known => known,
        }
    }

    /// The same of one thread, which started then.
    pub(crate) fn check_thread(&self, tid: u32, start: u64) -> Result<(), KnobFault> {
        self.check()?;
        if self.start(tid) != Some(start) {
            return Err(KnobFault::Vanished);
        }
        if tid == self.who.pid {
            return Ok(());
        }
        // SAFETY: the call takes numbers; signal 0 is sent to nobody.
        answer(unsafe { libc::syscall(libc::SYS_tgkill, self.who.pid, tid, 0) })
    }
}

/// Who may not be sent a signal is there all the same.
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
    fn what_is_held_is_noticed_to_be_gone_by_one_call() {
        let (mut child, held) = held();
        let who = held.who;
        assert_eq!((held.check(), held.check_thread(who.pid, who.start)), (Ok(()), Ok(())));
        assert_eq!(held.check_thread(who.pid, who.start + 1), Err(KnobFault::Vanished), "another start");
        assert_eq!(held.check_thread(1, 1), Err(KnobFault::Vanished), "a thread of another process");
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        assert_eq!(held.check(), Err(KnobFault::Vanished));
        assert_eq!(held.stat().map(|stat| stat.identity), Ok(who), "the first look was taken before");
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
