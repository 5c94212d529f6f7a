// SPDX-License-Identifier: MIT OR Apache-2.0
//! Priority of the thread that types and watches the screen, like a user outside the machine.

use anyhow::{Context, Result};
use rustix::process::{getpriority_process, setpriority_process};
use std::io;

/// Amount by which the nice value is lowered.
const NICENESS: i32 = 15;
/// Low among real-time priorities, so that no kernel thread waits for it.
const REALTIME: i32 = 5;
/// Arguments of ioprio_set(2) for the idle class of one process; children inherit it.
const IOPRIO_WHO_PROCESS: i32 = 1;
const IDLE_IO_CLASS: i32 = 3 << 13;

/// Raises the priority of this thread, and of the threads that it starts meanwhile; restored on
/// drop.
///
/// No process may be started meanwhile, since it would inherit the priority.
pub(crate) struct Priority {
    niceness_before: i32,
    realtime: bool,
}

impl Priority {
    /// Raises the priority above the default nice value, if allowed.
    pub(crate) fn raised() -> Priority {
        let niceness_before = getpriority_process(None).unwrap_or_default();
        let _ = setpriority_process(None, niceness_before - NICENESS);
        Priority { niceness_before, realtime: false }
    }

    /// Uses real-time priority, for typing beside a load: if the kernel divides CPU time by
    /// session, nice values have no effect between sessions. Falls back to [`Priority::raised`] if
    /// not allowed.
    pub(crate) fn realtime() -> Priority {
        let realtime = set_policy(libc::SCHED_FIFO, REALTIME).is_ok();
        let mut priority = Priority::raised();
        priority.realtime = realtime;
        priority
    }

    /// Returns `true` if this thread can have real-time priority.
    pub(crate) fn may_be_realtime() -> bool {
        Priority::realtime().realtime
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        if self.realtime {
            let _ = set_policy(libc::SCHED_OTHER, 0);
        }
        let _ = setpriority_process(None, self.niceness_before);
    }
}

/// Puts this process, and those that it starts, into the idle I/O class, like `ionice -c 3`.
pub(crate) fn take_idle_io_class() -> Result<()> {
    // SAFETY: the call takes numbers only.
    let result =
        unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IDLE_IO_CLASS) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error()).context("cannot take the idle I/O class")
    }
}

/// Sets the scheduling policy of this thread.
pub(crate) fn set_policy(policy: i32, priority: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: the call reads one structure that lives until it returns.
    match unsafe { libc::sched_setscheduler(0, policy, &parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns policy and nice value of this thread.
    fn now() -> (i32, i32) {
        // SAFETY: the call takes a number and returns one.
        (unsafe { libc::sched_getscheduler(0) }, getpriority_process(None).expect("it lives"))
    }

    fn io_class() -> i64 {
        // SAFETY: the call takes numbers and returns one.
        unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0) >> 13 }
    }

    #[test]
    fn the_idle_io_class_is_the_kernels() {
        let thread = std::thread::spawn(|| take_idle_io_class().map(|()| io_class()));
        let class = thread.join().expect("it ends").expect("anybody may have the idle class");
        assert_eq!((class, io_class() == 3), (3, false));
    }

    #[test]
    fn the_priority_is_given_back() {
        let before = now();
        let realtime = Priority::realtime();
        assert_eq!(now().0 == libc::SCHED_FIFO, realtime.realtime);
        drop(realtime);
        assert_eq!(now(), before);
        let raised = Priority::raised();
        assert!(now().0 == before.0 && now().1 <= before.1);
        drop(raised);
        assert_eq!(now(), before);
    }
}
