// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeated signals: all but the third Ctrl-C leave time to clean up.

use std::io::Read as _;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use tipme_control::interrupt::{InterruptFlag, PRESSES};

/// Exit code of a process that survived all its signals.
const SURVIVED: i32 = 7;

/// Returns the exit status of a fork of this process that sends itself a signal this number of
/// times.
fn end_after(signal: i32, times: u32) -> ExitStatus {
    // SAFETY: after the fork the child calls only raise and _exit, which are async-signal-safe.
    let child = unsafe { libc::fork() };
    if child == 0 {
        for _ in 0..times {
            // SAFETY: the signal's handler, if it returns, has done nothing that this thread could
            // notice.
            unsafe { libc::raise(signal) };
        }
        // SAFETY: it does not return.
        unsafe { libc::_exit(SURVIVED) };
    }
    assert!(child > 0, "{}", std::io::Error::last_os_error());
    let mut status = 0;
    // SAFETY: the child is this process's own and is waited for once; the status is written to a
    // local.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    ExitStatus::from_raw(status)
}

#[test]
fn only_the_third_press_ends_at_once() {
    let interrupt = InterruptFlag::install().unwrap();
    for times in 1..PRESSES {
        assert_eq!(end_after(libc::SIGINT, times).code(), Some(SURVIVED), "{times} presses");
    }
    assert_eq!(end_after(libc::SIGINT, PRESSES).signal(), Some(libc::SIGINT));
    assert_eq!(end_after(libc::SIGTERM, 20).code(), Some(SURVIVED));
    let (mut wakeup, _waker) = interrupt.wakeup().unwrap();
    wakeup.set_nonblocking(true).unwrap();
    assert!(wakeup.read(&mut [0]).is_err(), "there is nothing to read yet");
    assert!(interrupt.check().is_ok(), "only copies of this process had signals");
    // SAFETY: the handler only sets a flag.
    assert_eq!(unsafe { libc::raise(libc::SIGTERM) }, 0);
    assert!(interrupt.check().is_err());
    assert_eq!(wakeup.read(&mut [0]).unwrap(), 1, "the signal wakes it up");
}
