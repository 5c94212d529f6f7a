// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real machine: /proc below a root, the scheduler's system calls, and control group files.
//!
//! A process is looked at once in a call and held fast (`held`). Directly before a change it is asked whether
//! it is still there and whose rights it has. Advice about memory goes through a process file descriptor
//! that is checked after it was opened.

use crate::advice;
use crate::cgroup;
use crate::held::Held;
use crate::journal::hash;
use crate::last_pid::LastPid;
use crate::processes::{self, Stat};
use crate::slice::{self, Attributes, Slices};
use crate::units_bus::Bus;
use crate::units_real;
use crate::why::Why;
use crate::world::{Advice, Autogroup, Fault, Place, Stock, Thread, ThreadKnob, Value, World};
use rustix::fs::CWD;
use rustix::process::{Pid, getpriority_process};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tipme_policy::Identity;

/// The kernel's thread daemon, the parent of all its threads.
const KTHREADD: u32 = 2;
/// `who` of the I/O priority calls is a thread number.
const IOPRIO_WHO_PROCESS: libc::c_int = 1;
/// Where the sockets of systemd are.
pub(crate) const RUN: &str = "/run";
/// Processes that are held fast at a time, a file descriptor each. Beyond it all are let go, and looked at again.
const HELD_MAX: usize = 128;

/// The machine.
pub(crate) struct Linux {
    proc: PathBuf,
    /// Only processes of this user.
    owner: Option<u32>,
    /// Only this process and those below it.
    under: Option<Identity>,
    /// This process may set any nice value.
    may_nice: bool,
    slices: Slices,
    last_pid: LastPid,
    cursors: advice::Cursors,
    held: RefCell<BTreeMap<Identity, Rc<Held>>>,
    /// The managers of units.
    pub(crate) bus: Bus,
}

impl Linux {
    pub(crate) fn new(proc: &Path, owner: Option<u32>, under: Option<Identity>) -> Linux {
        Linux {
            proc: proc.to_owned(),
            owner,
            under,
            may_nice: may_nice(),
            slices: Slices::open(),
            last_pid: LastPid::open(proc),
            cursors: advice::Cursors::default(),
            held: RefCell::default(),
            bus: Bus::new(Path::new(RUN)),
        }
    }

    /// The process, kept open until [`World::end_call`].
    pub(crate) fn held(&self, who: Identity) -> Result<Rc<Held>, Fault> {
        if let Some(held) = self.held.borrow().get(&who) {
            return Ok(Rc::clone(held));
        }
        let held = Rc::new(Held::open(&self.proc, who)?);
        let mut all = self.held.borrow_mut();
        if all.len() >= HELD_MAX {
            all.clear();
        }
        all.insert(who, Rc::clone(&held));
        Ok(held)
    }

    /// What is known of a process that is held and still has this number.
    fn known(&self, pid: u32) -> Option<Stat> {
        let [first, last] = [0, u64::MAX].map(|start| Identity { pid, start });
        let all = self.held.borrow();
        let (_, held) = all.range(first..=last).find(|(_, held)| held.check().is_ok())?;
        Some(held.latest().clone())
    }

    /// A thread with what is set for it; `None` where it has ended.
    fn thread(&self, tid: u32, start: u64, session: u32) -> Option<Thread> {
        let found = Attributes::get(tid).ok()?;
        let (nice, slice, scheduling) = (nice_of(tid, &found).ok()?, self.slices.of(&found), found.scheduling());
        Some(Thread { tid, start, session, nice, slice, scheduling, io: io_of(tid).ok()? })
    }

    fn get_thread(&self, tid: u32, knob: ThreadKnob) -> Result<i64, Fault> {
        let attributes = || Attributes::get(tid).map_err(fault);
        match knob {
            ThreadKnob::Nice => nice_of(tid, &attributes()?),
            ThreadKnob::Slice => attributes().map(|found| self.slices.of(&found)),
            ThreadKnob::Scheduling => attributes().map(|found| found.scheduling()),
            ThreadKnob::Io => io_of(tid),
        }
    }

    fn autogroup_file(&self, pid: u32) -> PathBuf {
        self.proc.join(format!("{pid}/autogroup"))
    }

    /// A process of the session, the leader if it lives, whose autogroup has that number.
    fn speaker(&self, number: u64, session: u32) -> Result<(u32, i64), Fault> {
        let nice = |pid: u32| {
            let (found, nice) = parse_autogroup(&processes::record(CWD, self.autogroup_file(pid))?)?;
            (found == number).then_some((pid, nice))
        };
        let of_session = |pid: &u32| processes::stat(&self.proc, *pid).is_some_and(|stat| stat.session == session);
        let others = || processes::all(&self.proc).into_iter().filter(of_session).find_map(nice);
        nice(session).or_else(others).ok_or(Fault::Vanished)
    }

    fn set_autogroup(&self, number: u64, session: u32, nice: i64) -> Result<(), Fault> {
        let (pid, _) = self.speaker(number, session)?;
        let mut file = OpenOptions::new().write(true).open(self.autogroup_file(pid)).map_err(fault)?;
        file.write_all(nice.to_string().as_bytes()).map_err(fault)
    }

    pub(crate) fn proc(&self) -> &Path {
        &self.proc
    }

    /// A process that is gone is told by the change itself.
    pub(crate) fn admit_process(&self, who: Identity) -> Result<(), Why> {
        let Ok(held) = self.held(who) else { return Ok(()) };
        if who.pid == 1 || who.pid == KTHREADD || held.latest().parent == KTHREADD {
            return Err(Why::System);
        }
        self.owner.map_or(Ok(()), |owner| admit_users(&held, owner))?;
        match self.under {
            Some(top) if !processes::is_below(&self.proc, who, top) => Err(Why::NotBelow(top)),
            _ => Ok(()),
        }
    }

    /// Who is in a session descends from its leader, so the leader answers for it. Where the leader
    /// is gone, each process that is in it has to be admitted.
    fn admit_session(&self, number: u64, session: u32) -> Result<(), Why> {
        if self.owner.is_none() && self.under.is_none() && session > 1 {
            return Ok(());
        }
        let inside = |pid: u32| processes::stat(&self.proc, pid).filter(|stat| stat.session == session);
        // A dead one is admitted as any that is gone, and answers for nobody.
        let lives = |stat: &Stat| stat.is_alive() && self.held(stat.identity).is_ok();
        let leader = inside(session).filter(lives);
        let leader = leader.filter(|_| self.speaker(number, session).is_ok_and(|(pid, _)| pid == session));
        if let Some(leader) = leader {
            return self.admit_process(leader.identity);
        }
        let mut living = processes::all(&self.proc).into_iter().filter_map(inside).filter(lives).peekable();
        living.peek().ok_or(Why::Unsupported("nobody in this session lives"))?;
        living.map(|stat| self.admit_process(stat.identity)).find(Result::is_err).unwrap_or(Ok(()))
    }
}

impl World for Linux {
    fn begin_call(&mut self) {
        self.end_call();
        self.slices.look();
    }

    fn end_call(&mut self) {
        self.held.get_mut().clear();
        self.bus.end_restore();
    }

    fn begin_restore(&mut self) {
        self.bus.begin_restore();
    }

    fn get(&self, place: &Place) -> Result<Value, Fault> {
        match place {
            Place::Thread { process, tid, start, knob } => {
                self.held(*process)?.check_thread(*tid, *start)?;
                self.get_thread(*tid, *knob).map(Value::Number)
            }
            Place::Autogroup { number, session } => {
                self.speaker(*number, *session).map(|(_, nice)| Value::Number(nice))
            }
            Place::Trace { value, .. } => Ok(Value::Number(*value)),
            Place::File { path } => cgroup::get(path).map(Value::Number),
            Place::Controller { group, name } => cgroup::has_controller(group, name).map(Value::Number),
            Place::Member { process, root } => {
                self.held(*process)?.check()?;
                cgroup::group_of(&self.proc, process.pid, root).map(Value::Text).ok_or(Fault::Vanished)
            }
            Place::Group { path, .. } => Ok(Value::Number(i64::from(Path::new(path).is_dir()))),
            Place::Scope { folder, .. } => units_real::exists(self, folder).map(Value::Number),
            Place::Unit { folder, property } => units_real::get(self, folder, *property).map(Value::Number),
        }
    }

    fn set(&mut self, place: &Place, value: &Value) -> Result<(), Fault> {
        match (place, value) {
            (Place::Thread { process, tid, start, knob }, Value::Number(number)) => {
                self.held(*process)?.check_thread(*tid, *start)?;
                set_thread(*tid, *knob, *number)
            }
            (Place::Autogroup { number, session }, Value::Number(nice)) => self.set_autogroup(*number, *session, *nice),
            (Place::File { path }, Value::Number(number)) => cgroup::set(path, *number),
            (Place::Controller { group, name }, Value::Number(on)) => cgroup::set_controller(group, name, *on != 0),
            (Place::Member { process, root }, Value::Text(group)) => {
                self.held(*process)?.check()?;
                cgroup::enter(process.pid, root, group)
            }
            (Place::Group { path, .. }, Value::Number(1)) => cgroup::make(path),
            (Place::Group { path, .. }, Value::Number(_)) => cgroup::remove(path),
            (Place::Unit { folder, property }, Value::Number(number)) => {
                units_real::set(self, folder, *property, *number)
            }
            (Place::Scope { folder, root, first }, Value::Number(1)) => units_real::begin(self, folder, root, *first),
            (Place::Scope { folder, .. }, Value::Number(_)) => units_real::end(self, folder),
            // A journal that says such a thing was not written here.
            _ => Err(Fault::Refused(libc::EINVAL)),
        }
    }

    fn admit(&self, place: &Place) -> Result<(), Why> {
        match place {
            Place::Thread { process, .. } | Place::Member { process, .. } => self.admit_process(*process),
            Place::Scope { first, .. } => self.admit_process(*first),
            Place::Unit { folder, .. } => units_real::admit(self, folder, self.owner, self.under),
            Place::Autogroup { number, session } => self.admit_session(*number, *session),
            Place::Trace { .. } | Place::File { .. } | Place::Controller { .. } | Place::Group { .. } => Ok(()),
        }
    }

    fn reversible(&self, place: &Place, baseline: &Value) -> bool {
        match (place, baseline) {
            (Place::Thread { tid, knob, .. }, Value::Number(baseline)) if !self.may_nice => match knob {
                ThreadKnob::Nice => nice_allowed(&self.proc, *tid, *baseline),
                ThreadKnob::Slice => true,
                ThreadKnob::Scheduling => nice_allowed(&self.proc, *tid, 0),
                ThreadKnob::Io => true,
            },
            _ => true,
        }
    }

    fn has_slices(&self) -> bool {
        self.slices.are_there()
    }

    fn threads(&self, process: Identity) -> Result<Vec<Thread>, Fault> {
        let held = self.held(process)?;
        let stat = held.stat()?;
        let threads = held.threads(stat.threads).into_iter();
        // A thread that ends between two of these calls is left out.
        let threads: Vec<Thread> = threads.filter_map(|(tid, start)| self.thread(tid, start, stat.session)).collect();
        if threads.is_empty() { Err(Fault::Vanished) } else { Ok(threads) }
    }

    fn session(&self, process: Identity) -> Option<u32> {
        let held = self.held.borrow().get(&process).map(|held| held.latest().session);
        held.or_else(|| processes::living(&self.proc, process).map(|stat| stat.session))
    }

    fn autogroup(&self, process: Identity) -> Option<Autogroup> {
        let (number, _) = parse_autogroup(&processes::record(CWD, self.autogroup_file(process.pid))?)?;
        Some(Autogroup { number, session: self.session(process)? })
    }

    fn is_unprivileged(&self, process: Identity) -> bool {
        let users = self.held(process).ok().and_then(|held| held.users());
        users.is_some_and(|(real, effective)| real != 0 && effective != 0) && !nice_allowed(&self.proc, process.pid, -1)
    }

    fn lineage(&self, process: Identity) -> Vec<(Identity, u32)> {
        processes::lineage(&self.proc, process).map(|stat| (stat.identity, stat.session)).collect()
    }

    fn below(&self, process: Identity, leads: &dyn Fn(Identity) -> bool) -> Vec<Identity> {
        let Ok(held) = self.held(process) else { return Vec::new() };
        let look = |pid| self.known(pid).or_else(|| processes::stat(&self.proc, pid));
        let below = processes::below_with(&self.proc, &held.latest(), leads, look);
        below.into_iter().map(|stat| stat.identity).collect()
    }

    fn last_pid(&self) -> Option<u64> {
        self.last_pid.count()
    }

    fn all(&self) -> Vec<Identity> {
        let all = processes::all(&self.proc).into_iter();
        all.filter_map(|pid| processes::identity(&self.proc, pid)).collect()
    }

    fn members(&self, group: &str) -> Vec<Identity> {
        cgroup::members(group).into_iter().filter_map(|pid| processes::identity(&self.proc, pid)).collect()
    }

    fn tree(&self, group: &str) -> Vec<Identity> {
        cgroup::tree(group).into_iter().filter_map(|pid| processes::identity(&self.proc, pid)).collect()
    }

    fn reclaim(&mut self, group: &str, bytes: u64) -> Result<(), Fault> {
        cgroup::reclaim(group, bytes)
    }

    fn resident(&self, process: Identity) -> u64 {
        processes::resident(&self.proc, process.pid).unwrap_or(0)
    }

    fn memory(&self) -> Stock {
        let info = rustix::system::sysinfo();
        let bytes = |units: u64| units.saturating_mul(info.mem_unit.into());
        Stock { total: bytes(info.totalram), swap: bytes(info.freeswap) }
    }

    fn file_bytes(&self, group: &str) -> u64 {
        cgroup::file_bytes(group)
    }

    fn full_percent(&self, group: &str) -> f32 {
        cgroup::full_percent(group)
    }

    fn advise(&mut self, process: Identity, advice: Advice, most: u64) -> Result<u64, Fault> {
        advice::give(&self.proc, process, advice, most, &mut self.cursors)
    }

    fn ticks(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let per_second = rustix::param::clock_ticks_per_second();
        now.tv_sec.unsigned_abs() * per_second + now.tv_nsec.unsigned_abs() * per_second / 1_000_000_000
    }

    fn boot(&self) -> u64 {
        let text = processes::text(&self.proc.join("sys/kernel/random/boot_id"));
        hash(text.unwrap_or_default().trim().as_bytes())
    }
}

/// The fault that an error of the kernel stands for.
pub(crate) fn fault(error: io::Error) -> Fault {
    match error.raw_os_error() {
        Some(libc::ESRCH | libc::ENOENT | libc::ENODEV) => Fault::Vanished,
        Some(libc::EAGAIN) => Fault::Later,
        code => Fault::Refused(code.unwrap_or(libc::EIO)),
    }
}

/// The real user and the effective one must be the owner, and the effective one must be so still.
fn admit_users(held: &Held, owner: u32) -> Result<(), Why> {
    let why = match (held.users(), held.effective_user()) {
        (Some((real, effective)), Some(now)) => match [real, effective, now].into_iter().find(|uid| *uid != owner) {
            Some(uid) => Why::NotOwner(uid),
            None => return Ok(()),
        },
        _ => Why::Refused(libc::EACCES),
    };
    // What is gone belongs to nobody.
    if held.check() == Err(Fault::Vanished) { Ok(()) } else { Err(why) }
}

/// The kernel tells it with the other attributes only of a thread whose policy has one.
fn nice_of(tid: u32, found: &Attributes) -> Result<i64, Fault> {
    if found.is_fair() {
        return Ok(found.nice.into());
    }
    let tid = i32::try_from(tid).ok().and_then(Pid::from_raw).ok_or(Fault::Vanished)?;
    getpriority_process(Some(tid)).map(i64::from).map_err(|error| fault(error.into()))
}

fn io_of(tid: u32) -> Result<i64, Fault> {
    // SAFETY: the call takes numbers and has no memory of ours in hand.
    let packed = unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, tid) };
    if packed < 0 { Err(fault(io::Error::last_os_error())) } else { Ok(packed) }
}

fn set_thread(tid: u32, knob: ThreadKnob, value: i64) -> Result<(), Fault> {
    let value = libc::c_int::try_from(value).map_err(|_| Fault::Refused(libc::EINVAL))?;
    let result = match knob {
        // SAFETY: the call takes numbers only.
        ThreadKnob::Nice => i64::from(unsafe { libc::setpriority(libc::PRIO_PROCESS, tid, value) }),
        ThreadKnob::Slice => return slice::set(tid, value).map_err(fault),
        ThreadKnob::Scheduling => return set_policy(tid, value),
        // SAFETY: the call takes numbers only.
        ThreadKnob::Io => unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, tid, value) },
    };
    if result < 0 { Err(fault(io::Error::last_os_error())) } else { Ok(()) }
}

/// Sets the policy; the thread keeps its nice value. Only policies without a real-time priority.
fn set_policy(tid: u32, policy: libc::c_int) -> Result<(), Fault> {
    if !matches!(policy, libc::SCHED_OTHER | libc::SCHED_IDLE) {
        return Err(Fault::Refused(libc::EINVAL));
    }
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: `parameter` lives across the call, which only reads it.
    let result = unsafe { libc::sched_setscheduler(tid as libc::pid_t, policy, &parameter) };
    if result < 0 { Err(fault(io::Error::last_os_error())) } else { Ok(()) }
}

/// Reads `/autogroup-65 nice -5`.
fn parse_autogroup(text: &str) -> Option<(u64, i64)> {
    let (number, nice) = text.trim().strip_prefix("/autogroup-")?.split_once(" nice ")?;
    Some((number.parse().ok()?, nice.parse().ok()?))
}

pub(crate) fn may_nice() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_NICE))
}

/// True where the limits of a thread let it, and its user, set this nice value. They are read from /proc: the call for
/// it wants more rights than knobs do.
fn nice_allowed(proc: &Path, tid: u32, nice: i64) -> bool {
    let text = processes::text(&proc.join(format!("{tid}/limits"))).unwrap_or_default();
    nice_limit(&text).is_some_and(|limit| limit >= u64::try_from(20 - nice).unwrap_or(0))
}

/// 20 less the lowest nice value that is allowed, from the lines of `/proc/PID/limits`.
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
        for bad in ["", "/autogroup-", "/autogroup-x nice 1", "/autogroup-1 nice", "autogroup-1 nice 1"] {
            assert_eq!(parse_autogroup(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_limit_of_nice_values_is_read() {
        let text =
            "Max realtime priority     0                    0\nMax nice priority         31                   40\n";
        assert_eq!(
            (nice_limit(text), nice_limit("Max nice priority  unlimited unlimited")),
            (Some(31), Some(u64::MAX))
        );
        assert_eq!(
            (nice_limit(""), nice_limit("Max nice priority"), nice_limit("Max nice priority x 1")),
            (None, None, None)
        );
        let own = std::process::id();
        let told = processes::text(Path::new(&format!("/proc/{own}/limits")));
        assert!(told.is_some_and(|told| nice_limit(&told).is_some()), "the kernel writes it so");
    }

    #[test]
    fn no_policy_with_a_priority_is_ever_set() {
        let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        for policy in [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_BATCH] {
            assert_eq!(set_thread(own, ThreadKnob::Scheduling, policy.into()), Err(Fault::Refused(libc::EINVAL)));
        }
    }
}
