// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real machine: `/proc` below a root, the scheduler's system calls, and control group files.
//!
//! A process is read once per call and pinned (`held`). Directly before a change, its existence and
//! its effective user are checked again. Memory advice uses a pidfd that is verified after the
//! open.

mod world;

use crate::advice;
use crate::held::HeldProcess;
use crate::load_file::LoadFile;
use crate::processes::{self, Stat};
use crate::slice::{self, SchedAttributes, Slices};
use crate::units_bus::Bus;
use crate::why::SkipReason;
use crate::world::{KnobFault, ThreadKnob, ThreadSettings, fault};
use rustix::fs::CWD;
use rustix::process::{Pid, getpriority_process};
use rustix::thread::{CapabilitySet, capabilities};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tipme_policy::Identity;

/// PID of kthreadd, the parent of all kernel threads.
const KTHREADD: u32 = 2;
/// Target type of the I/O priority calls: a thread id.
const IOPRIO_WHO_PROCESS: libc::c_int = 1;
/// Folder of systemd's sockets.
pub(crate) const RUN: &str = "/run";
/// Maximum number of pinned processes, one file descriptor each. Beyond it all are released and
/// read again.
const HELD_MAX: usize = 128;

/// The machine.
pub(crate) struct Linux {
    proc: PathBuf,
    /// Restricts changes to processes of this user.
    owner: Option<u32>,
    /// Restricts changes to this process and its descendants.
    under: Option<Identity>,
    /// This process may set any nice value.
    may_nice: bool,
    slices: Slices,
    load: LoadFile,
    cursors: advice::Cursors,
    held: RefCell<BTreeMap<Identity, Rc<HeldProcess>>>,
    /// Connections to the service managers.
    pub(crate) bus: Bus,
}

impl Linux {
    pub(crate) fn new(proc: &Path, owner: Option<u32>, under: Option<Identity>) -> Linux {
        Linux {
            proc: proc.to_owned(),
            owner,
            under,
            may_nice: has_capability(CapabilitySet::SYS_NICE),
            slices: Slices::open(),
            load: LoadFile::open(proc),
            cursors: advice::Cursors::default(),
            held: RefCell::default(),
            bus: Bus::new(Path::new(RUN)),
        }
    }

    /// Returns the pinned process, which stays open until [`World::end_call`].
    pub(crate) fn held(&self, who: Identity) -> Result<Rc<HeldProcess>, KnobFault> {
        if let Some(held) = self.held.borrow().get(&who) {
            return Ok(Rc::clone(held));
        }
        let held = Rc::new(HeldProcess::open(&self.proc, who)?);
        let mut all = self.held.borrow_mut();
        if all.len() >= HELD_MAX {
            all.clear();
        }
        all.insert(who, Rc::clone(&held));
        Ok(held)
    }

    /// Returns the data of a pinned process that still has this PID.
    fn known(&self, pid: u32) -> Option<Stat> {
        let [first, last] = [0, u64::MAX].map(|start| Identity { pid, start });
        let all = self.held.borrow();
        let (_, held) = all.range(first..=last).find(|(_, held)| held.check().is_ok())?;
        Some(held.latest().clone())
    }

    /// Reads the settings of a thread; `None` if it has ended.
    fn thread(&self, tid: u32, start: u64, session: u32) -> Option<ThreadSettings> {
        let found = SchedAttributes::get(tid).ok()?;
        let (nice, slice, scheduling) =
            (nice_of(tid, &found).ok()?, self.slices.slice(&found), found.scheduling());
        Some(ThreadSettings { tid, start, session, nice, slice, scheduling, io: io_of(tid).ok()? })
    }

    fn get_thread(&self, tid: u32, knob: ThreadKnob) -> Result<i64, KnobFault> {
        if knob == ThreadKnob::Io {
            return io_of(tid);
        }
        let found = SchedAttributes::get(tid).map_err(fault)?;
        match knob {
            ThreadKnob::Nice => nice_of(tid, &found),
            ThreadKnob::Slice => Ok(self.slices.slice(&found)),
            ThreadKnob::Scheduling | ThreadKnob::Io => Ok(found.scheduling()),
        }
    }

    fn autogroup_file(&self, pid: u32) -> PathBuf {
        self.proc.join(format!("{pid}/autogroup"))
    }

    /// Finds a process of the session with this autogroup number, the leader if it is alive.
    fn autogroup_process(&self, number: u64, session: u32) -> Result<(u32, i64), KnobFault> {
        if let Some((found, nice)) = self.autogroup_of(session)
            && found == number
        {
            return Ok((session, nice));
        }
        for pid in processes::all(&self.proc) {
            if self.in_session(pid, session).is_some()
                && let Some((found, nice)) = self.autogroup_of(pid)
                && found == number
            {
                return Ok((pid, nice));
            }
        }
        Err(KnobFault::Vanished)
    }

    /// Returns number and nice value of a process's autogroup.
    fn autogroup_of(&self, pid: u32) -> Option<(u64, i64)> {
        parse_autogroup(&processes::record(CWD, self.autogroup_file(pid))?)
    }

    fn in_session(&self, pid: u32, session: u32) -> Option<Stat> {
        processes::stat(&self.proc, pid).filter(|stat| stat.session == session)
    }

    fn set_autogroup(&self, number: u64, session: u32, nice: i64) -> Result<(), KnobFault> {
        let (pid, _) = self.autogroup_process(number, session)?;
        let mut file =
            OpenOptions::new().write(true).open(self.autogroup_file(pid)).map_err(fault)?;
        file.write_all(nice.to_string().as_bytes()).map_err(fault)
    }

    pub(crate) fn proc(&self) -> &Path {
        &self.proc
    }

    /// A vanished process is admitted: the change itself reports it.
    pub(crate) fn admit_process(&self, who: Identity) -> Result<(), SkipReason> {
        let Ok(held) = self.held(who) else { return Ok(()) };
        if who.pid == 1 || who.pid == KTHREADD || held.latest().parent == KTHREADD {
            return Err(SkipReason::System);
        }
        self.owner.map_or(Ok(()), |owner| admit_users(&held, owner))?;
        match self.under {
            Some(top) if !processes::is_below(&self.proc, who, top) => {
                Err(SkipReason::NotBelow(top))
            }
            _ => Ok(()),
        }
    }

    /// Checks the leader of a session, since its members descend from it. If the leader is gone,
    /// every process in the session must be admitted.
    fn admit_session(&self, number: u64, session: u32) -> Result<(), SkipReason> {
        if self.owner.is_none() && self.under.is_none() && session > 1 {
            return Ok(());
        }
        let leader = self.living_in_session(session, session);
        let leader = leader.filter(|_| {
            self.autogroup_process(number, session).is_ok_and(|(pid, _)| pid == session)
        });
        if let Some(leader) = leader {
            return self.admit_process(leader);
        }
        let all = processes::all(&self.proc).into_iter();
        let mut living = all.filter_map(|pid| self.living_in_session(pid, session)).peekable();
        living.peek().ok_or(SkipReason::Unsupported("no process of this session is alive"))?;
        living.map(|who| self.admit_process(who)).find(Result::is_err).unwrap_or(Ok(()))
    }

    /// Returns a process of the session, unless it is dead: a dead leader counts as vanished and
    /// cannot represent the session.
    fn living_in_session(&self, pid: u32, session: u32) -> Option<Identity> {
        let stat = self.in_session(pid, session).filter(Stat::is_alive)?;
        self.held(stat.identity).is_ok().then_some(stat.identity)
    }

    /// Returns the processes that have these ids now.
    fn identities(&self, pids: Vec<u32>) -> Vec<Identity> {
        pids.into_iter().filter_map(|pid| processes::identity(&self.proc, pid)).collect()
    }
}

/// Checks that the real and the effective user are the owner, and that the effective one still is.
fn admit_users(held: &HeldProcess, owner: u32) -> Result<(), SkipReason> {
    let why = match (held.users(), held.effective_user()) {
        (Some((real, effective)), Some(now)) => {
            match [real, effective, now].into_iter().find(|uid| *uid != owner) {
                Some(uid) => SkipReason::NotOwner(uid),
                None => return Ok(()),
            }
        }
        _ => SkipReason::Refused(libc::EACCES),
    };
    // A vanished process has no owner.
    if held.check() == Err(KnobFault::Vanished) { Ok(()) } else { Err(why) }
}

/// The kernel returns the nice value with the other attributes only for policies that have one.
fn nice_of(tid: u32, found: &SchedAttributes) -> Result<i64, KnobFault> {
    if found.is_fair() {
        return Ok(found.nice.into());
    }
    let tid = i32::try_from(tid).ok().and_then(Pid::from_raw).ok_or(KnobFault::Vanished)?;
    getpriority_process(Some(tid)).map(i64::from).map_err(|error| fault(error.into()))
}

fn io_of(tid: u32) -> Result<i64, KnobFault> {
    // SAFETY: the call takes numbers and touches no memory of this process.
    let packed = unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, tid) };
    if packed < 0 { Err(fault(io::Error::last_os_error())) } else { Ok(packed) }
}

fn set_thread(tid: u32, knob: ThreadKnob, value: i64) -> Result<(), KnobFault> {
    let value = libc::c_int::try_from(value).map_err(|_| KnobFault::Refused(libc::EINVAL))?;
    let result = match knob {
        // SAFETY: the call takes numbers only.
        ThreadKnob::Nice => i64::from(unsafe { libc::setpriority(libc::PRIO_PROCESS, tid, value) }),
        ThreadKnob::Slice => return slice::set(tid, value).map_err(fault),
        ThreadKnob::Scheduling => return set_policy(tid, value),
        // SAFETY: the call takes numbers only.
        ThreadKnob::Io => unsafe {
            libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, tid, value)
        },
    };
    if result < 0 { Err(fault(io::Error::last_os_error())) } else { Ok(()) }
}

/// Sets the policy; the thread keeps its nice value. Accepts only policies without a real-time
/// priority.
fn set_policy(tid: u32, policy: libc::c_int) -> Result<(), KnobFault> {
    if !matches!(policy, libc::SCHED_OTHER | libc::SCHED_IDLE) {
        return Err(KnobFault::Refused(libc::EINVAL));
    }
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: `parameter` lives across the call, which only reads it.
    let result = unsafe { libc::sched_setscheduler(tid as libc::pid_t, policy, &parameter) };
    if result < 0 { Err(fault(io::Error::last_os_error())) } else { Ok(()) }
}

/// Parses `/autogroup-65 nice -5`.
fn parse_autogroup(text: &str) -> Option<(u64, i64)> {
    let (number, nice) = text.trim().strip_prefix("/autogroup-")?.split_once(" nice ")?;
    Some((number.parse().ok()?, nice.parse().ok()?))
}

pub(crate) fn has_capability(wanted: CapabilitySet) -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(wanted))
}

/// Returns `true` if the limits of a thread let its user set this nice value. They are read from
/// `/proc`: `prlimit` needs more privileges than the knobs do.
fn nice_allowed(proc: &Path, tid: u32, nice: i64) -> bool {
    let text = processes::text(&proc.join(format!("{tid}/limits"))).unwrap_or_default();
    nice_limit(&text).is_some_and(|limit| limit >= u64::try_from(20 - nice).unwrap_or(0))
}

/// Returns 20 minus the lowest allowed nice value, from the lines of `/proc/PID/limits`.
fn nice_limit(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max nice priority"))?;
    let word = line.split_whitespace().next()?;
    if word == "unlimited" { Some(u64::MAX) } else { word.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn autogroups_are_read_with_any_nice_value() {
        assert_eq!(parse_autogroup("/autogroup-65 nice 0\n"), Some((65, 0)));
        assert_eq!(parse_autogroup("/autogroup-7 nice -20"), Some((7, -20)));
        for bad in
            ["", "/autogroup-", "/autogroup-x nice 1", "/autogroup-1 nice", "autogroup-1 nice 1"]
        {
            assert_eq!(parse_autogroup(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_limit_of_nice_values_is_read() {
        for (text, limit) in [
            ("Max realtime priority   0   0\nMax nice priority         31       40\n", Some(31)),
            ("Max nice priority  unlimited unlimited", Some(u64::MAX)),
            ("", None),
            ("Max nice priority", None),
            ("Max nice priority x 1", None),
        ] {
            assert_eq!(nice_limit(text), limit, "{text}");
        }
        let own = processes::text(Path::new("/proc/self/limits"));
        assert!(own.is_some_and(|own| nice_limit(&own).is_some()), "the kernel writes it so");
    }

    #[test]
    fn no_policy_with_a_priority_is_ever_set() {
        let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        for policy in [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_BATCH] {
            assert_eq!(
                set_thread(own, ThreadKnob::Scheduling, policy.into()),
                Err(KnobFault::Refused(libc::EINVAL))
            );
        }
    }
}
