// SPDX-License-Identifier: MIT OR Apache-2.0
//! The priority of whoever types and watches beside a load: the kernel may share out CPU time by session, and then
//! niceness does not count between sessions.

use crate::urgent::Urgent;

/// Low among real-time priorities, so that nothing of the kernel's own waits for it.
const PRIORITY: i32 = 5;

/// Keeps this thread, and those that it starts meanwhile, ahead of everything that is not real-time.
///
/// No process may be started meanwhile, since it would inherit the priority.
pub(crate) struct Steady {
    realtime: bool,
    _urgent: Urgent,
}

impl Steady {
    /// Does with a higher niceness where real-time priority is not allowed.
    pub(crate) fn new() -> Steady {
        Steady { realtime: set(libc::SCHED_FIFO, PRIORITY), _urgent: Urgent::new() }
    }

    /// Whether this thread may have real-time priority at all.
    pub(crate) fn is_allowed() -> bool {
        Steady::new().realtime
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        if self.realtime {
            set(libc::SCHED_OTHER, 0);
        }
    }
}

fn set(policy: i32, priority: i32) -> bool {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: the call reads one structure that lives until it returns.
    unsafe { libc::sched_setscheduler(0, policy, &parameter) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Policy of this thread.
    fn policy() -> i32 {
        // SAFETY: the call takes a number and returns one.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn the_priority_is_given_back() {
        let before = policy();
        let steady = Steady::new();
        assert_eq!(policy() == libc::SCHED_FIFO, steady.realtime);
        drop(steady);
        assert_eq!(policy(), before);
    }
}
