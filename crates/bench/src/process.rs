// SPDX-License-Identifier: MIT OR Apache-2.0
//! Child processes that cannot outlive their owner.

use crate::kernel_text::{schedstat, stat, stat_words};
use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, set_parent_process_death_signal,
};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Interval between attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(800);

/// A program in a process group of its own.
///
/// Dropping it ends the whole group and reaps the program.
pub struct ProcessGroup {
    name: String,
    child: Child,
}

impl ProcessGroup {
    /// Starts `command`, pinned to `cpu` if given.
    pub fn start(name: &str, mut command: Command, cpu: Option<usize>) -> Result<ProcessGroup> {
        let parent = rustix::process::getpid();
        command.process_group(0);
        // SAFETY: the closure only makes system calls; it uses no memory of the parent, no lock, no
        // allocator.
        unsafe { command.pre_exec(move || Ok(bind_to(parent, cpu)?)) };
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {name}: {program}; is it installed?"))?;
        Ok(ProcessGroup { name: name.to_string(), child })
    }

    /// Name for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Process id, which is also the number of its group.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The child, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Returns the exit status if the program has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("cannot wait for {}", self.name))
    }

    /// Fails with the name of the program if it has ended.
    pub fn expect_alive(&mut self) -> Result<()> {
        match self.ended()? {
            None => Ok(()),
            Some(status) => bail!("{} ended early: {status}", self.name),
        }
    }

    /// Waits for the end of the program, at most for `timeout`.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<ExitStatus>> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.ended()? {
                return Ok(Some(status));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.poll(left)?;
        }
    }

    fn poll(&self, timeout: Duration) -> Result<()> {
        let fd = pidfd_open(self.group(), PidfdFlags::empty())?;
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timespec(timeout))) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("cannot wait for {}", self.name)),
        }
    }

    /// Sends a signal to the whole group; ignores a group that has ended.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.group(), signal);
    }

    fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Processes of its group, itself included.
    pub fn members(&self) -> Vec<u32> {
        group_members(self.pid())
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let members = self.members().into_iter().filter_map(|pid| Pid::from_raw(pid as i32));
        let open =
            members.filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()).collect::<Vec<_>>();
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
        wait_for_all(&open, GRACE);
        self.signal(Signal::KILL);
        wait_for_all(&open, GRACE);
        let _ = self.child.wait();
    }
}

/// Makes this process end with its parent, and pins it to `cpu` if given.
fn bind_to(parent: Pid, cpu: Option<usize>) -> rustix::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != Some(parent) {
        return Err(Errno::CHILD);
    }
    if let Some(cpu) = cpu {
        let mut only = CpuSet::new();
        only.set(cpu);
        sched_setaffinity(None, &only)?;
    }
    Ok(())
}

/// Waits until all processes have ended, at most for `timeout`.
fn wait_for_all(processes: &[OwnedFd], timeout: Duration) {
    let deadline = Instant::now() + timeout;
    for process in processes {
        let left = timespec(deadline.saturating_duration_since(Instant::now()));
        // A signal ends the wait early; the processes are then killed without a grace period.
        let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&left));
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}

/// Fields of `/proc/PID/stat`, counted from the state, which is the first one behind the name.
const GROUP: usize = 2;
const SESSION: usize = 3;
const MAJOR_FAULTS: usize = 9;
/// User time, followed by system time; then both of the reaped children.
const CPU_TICKS: usize = 11;
const CHILDREN_CPU_TICKS: usize = 13;

/// Returns the live processes of a process group.
pub fn group_members(group: u32) -> Vec<u32> {
    members(GROUP, group)
}

/// Returns `true` if the process is one of [`group_members`], without a scan of all processes.
pub(crate) fn is_group_member(pid: u32, group: u32) -> bool {
    belongs(pid, GROUP, group)
}

/// Returns the live processes of a session.
pub(crate) fn session_members(session: u32) -> Vec<u32> {
    members(SESSION, session)
}

/// Returns the major page faults of some processes so far; ended ones count as 0.
pub(crate) fn major_faults(pids: &[u32]) -> u64 {
    pids.iter().filter_map(|pid| figure(&stat(*pid)?, MAJOR_FAULTS)).sum()
}

/// Returns the total run-queue delay of the threads of some live processes; `None` if it is
/// available for none.
pub(crate) fn run_queue_delay(pids: &[u32]) -> Option<Duration> {
    let folders = pids.iter().filter_map(|pid| std::fs::read_dir(format!("/proc/{pid}/task")).ok());
    let delays = folders.flatten().flatten().filter_map(|thread| {
        let thread = thread.path();
        Some(schedstat(thread.strip_prefix("/proc").ok()?.to_str()?)?.1)
    });
    delays.reduce(|one, other| one + other)
}

/// Returns the CPU times of a process and of its reaped children; `None` if it has ended.
pub fn cpu_times(pid: u32) -> Option<(Duration, Duration)> {
    let stat = stat(pid)?;
    Some((cpu_time(&stat, CPU_TICKS)?, cpu_time(&stat, CHILDREN_CPU_TICKS)?))
}

/// Returns the sum of two fields in ticks.
fn cpu_time(stat: &str, word: usize) -> Option<Duration> {
    let ticks = figure(stat, word)? + figure(stat, word + 1)?;
    let ticks_per_second = rustix::param::clock_ticks_per_second().max(1) as f64;
    Some(Duration::from_secs_f64(ticks as f64 / ticks_per_second))
}

/// Returns a process with all its descendants.
pub fn family(root: u32) -> Vec<u32> {
    let mut members = vec![root];
    let mut at = 0;
    while let Some(pid) = members.get(at).copied() {
        let path = format!("/proc/{pid}/task/{pid}/children");
        let children = std::fs::read_to_string(path).unwrap_or_default();
        members.extend(children.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
        at += 1;
    }
    members
}

fn members(word: usize, of: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| belongs(*pid, word, of)).collect()
}

fn belongs(pid: u32, word: usize, of: u32) -> bool {
    stat(pid).is_some_and(|stat| lives(&stat) && figure(&stat, word) == Some(of.into()))
}

fn figure(stat: &str, word: usize) -> Option<u64> {
    stat_words(stat)?.nth(word)?.parse().ok()
}

fn lives(stat: &str) -> bool {
    stat_words(stat)
        .is_some_and(|mut words| !words.next().unwrap_or_default().starts_with(['Z', 'X']))
}

/// Polls a condition; returns `false` on a timeout.
pub(crate) fn poll_for(
    timeout: Duration,
    interval: Duration,
    mut is_so: impl FnMut() -> Result<bool>,
) -> Result<bool> {
    let deadline = Instant::now() + timeout;
    while !is_so()? {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        std::thread::sleep(interval);
    }
    Ok(true)
}

/// Tries until `done` returns `true`, at most `times` times, 20 ms apart.
pub(crate) fn retry(times: usize, mut done: impl FnMut() -> bool) {
    for _ in 0..times {
        if done() {
            return;
        }
        std::thread::sleep(RETRY_INTERVAL);
    }
}

/// Returns `true` if this process runs as root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns those of `programs` that are not installed.
pub fn missing(programs: &[&str]) -> Vec<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let absent = programs
        .iter()
        .filter(|name| !path.split(':').any(|folder| Path::new(folder).join(name).is_file()));
    absent.map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpus::{allowed_cpus, stay_on};
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_dropped_process_takes_its_group_along() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & sleep 60 & wait"]);
        let process = ProcessGroup::start("sleepers", command, None).expect("sh starts");
        let group = process.pid();
        while process.members().len() < 3 {
            std::thread::yield_now();
        }
        drop(process);
        let running = group_members(group);
        assert!(running.is_empty(), "{running:?}");
    }

    #[test]
    fn one_that_ignores_the_request_is_killed() {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM; while :; do sleep 0.05; done"]);
        let process = ProcessGroup::start("stubborn", command, None).expect("sh starts");
        let started = Instant::now();
        drop(process);
        assert!(started.elapsed() < Duration::from_secs(3));
    }

    #[test]
    fn an_early_end_is_reported_with_the_name() {
        let mut command = Command::new("sh");
        command.args(["-c", "exit 3"]);
        let mut process = ProcessGroup::start("helper", command, None).expect("sh starts");
        let ended = process.wait(Duration::from_secs(5)).expect("a status").expect("it ended");
        assert_eq!(ended.code(), Some(3));
        let error = process.expect_alive().expect_err("it ended");
        assert_eq!(error.to_string(), "helper ended early: exit status: 3");
    }

    #[test]
    fn figures_stand_behind_the_name() {
        let stat = "7 (a (b) c) S 1 8 9 0 -1 4194560 100 200 31 4 5 6 7 8";
        let found = [GROUP, SESSION, MAJOR_FAULTS].map(|word| figure(stat, word));
        assert_eq!(found, [Some(8), Some(9), Some(31)]);
        assert_eq!((figure("nonsense", GROUP), major_faults(&[0])), (None, 0));
        assert!(lives(stat) && !lives("7 (a) Z 1") && !lives("nonsense"));
    }

    #[test]
    fn this_process_is_in_its_session_and_family() {
        let own = std::process::id();
        let session = figure(&stat(own).expect("it lives"), SESSION).expect("a session") as u32;
        assert!(session_members(session).contains(&own) && family(own).contains(&own));
    }

    fn waited() -> Duration {
        run_queue_delay(&[std::process::id()]).expect("it lives")
    }

    #[test]
    fn threads_on_one_cpu_wait_for_it() {
        let cpu = allowed_cpus().expect("a CPU")[0];
        let (end, enough) =
            (Instant::now() + Duration::from_secs(60), waited() + Duration::from_millis(20));
        let seen = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    stay_on(cpu).expect("it may");
                    while !seen.load(Ordering::Relaxed) && Instant::now() < end {
                        seen.fetch_or(waited() >= enough, Ordering::Relaxed);
                    }
                });
            }
        });
        assert!(seen.into_inner());
        assert_eq!(run_queue_delay(&[0]), None);
    }

    #[test]
    fn cpu_time_grows() {
        let begun = cpu_times(std::process::id()).expect("it lives");
        let deadline = Instant::now() + Duration::from_secs(20);
        while cpu_times(std::process::id()).expect("it lives").0 == begun.0
            && Instant::now() < deadline
        {
            std::hint::black_box(group_members(0));
        }
        assert!(cpu_times(std::process::id()).expect("it lives") > begun && cpu_times(0).is_none());
    }

    #[test]
    fn programs_that_are_not_there_are_named() {
        assert_eq!(missing(&["sh", "no-such-program"]), vec!["no-such-program"]);
    }
}
