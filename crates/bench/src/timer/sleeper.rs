// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ways to sleep until a deadline.

use anyhow::{Context, Result, bail};
use rustix::io::Errno;
use rustix::thread::{
    ClockId, NanosleepRelativeResult, Timespec, clock_nanosleep_absolute, nanosleep,
};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::ptr::null_mut;
use tipme_desktop::clock;
use tipme_measure::timer::TimerMechanism;

/// Mechanism of a thread's sleep, set up for its deadlines.
pub(super) enum Sleeper {
    Absolute,
    Nanosleep,
    /// With its period.
    Relative(u64),
    Timerfd(OwnedFd),
    Itimer(Itimer),
    Poll,
}

impl Sleeper {
    /// Makes a sleeper for deadlines each `period` after `begin`.
    pub(super) fn new(mechanism: TimerMechanism, begin: u64, period: u64) -> Result<Sleeper> {
        Ok(match mechanism {
            TimerMechanism::Absolute => Sleeper::Absolute,
            TimerMechanism::Nanosleep => Sleeper::Nanosleep,
            TimerMechanism::Relative => Sleeper::Relative(period),
            TimerMechanism::Timerfd => Sleeper::Timerfd(timerfd(begin, period)?),
            TimerMechanism::Itimer => Sleeper::Itimer(Itimer::start(begin, period)?),
            TimerMechanism::Poll => Sleeper::Poll,
        })
    }

    /// Sleeps until the deadline.
    ///
    /// Returns the number of deadlines that have passed, if the mechanism counts them better than
    /// the clock.
    pub(super) fn wait(&mut self, deadline: u64) -> Result<Option<u64>> {
        match self {
            Sleeper::Absolute => sleep_until(deadline),
            Sleeper::Nanosleep => sleep_for_rest(deadline),
            Sleeper::Relative(period) => {
                sleep_for(*period);
                return Ok(Some(1));
            }
            Sleeper::Timerfd(timer) => return read_timer(timer).map(Some),
            Sleeper::Itimer(timer) => return timer.wait().map(Some),
            Sleeper::Poll => poll_for_rest(deadline),
        }
        Ok(None)
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// Sleeps until a time of CLOCK_MONOTONIC, also through signals.
pub(crate) fn sleep_until(at: u64) {
    while clock_nanosleep_absolute(ClockId::Monotonic, &timespec(at)) == Err(Errno::INTR) {}
}

fn sleep_for(ns: u64) {
    let mut left = timespec(ns);
    while let NanosleepRelativeResult::Interrupted(rest) = nanosleep(&left) {
        left = rest;
    }
}

fn sleep_for_rest(deadline: u64) {
    let left = deadline.saturating_sub(clock::now().0);
    if left > 0 {
        sleep_for(left);
    }
}

/// Sleeps in poll(2), like an event loop before its next timer: in whole milliseconds, rounded up.
fn poll_for_rest(deadline: u64) {
    loop {
        let left = deadline.saturating_sub(clock::now().0).div_ceil(1_000_000);
        // SAFETY: no descriptors are handed over, so the null pointer is not read.
        let woken = unsafe { libc::poll(null_mut(), 0, left.min(i32::MAX as u64) as i32) };
        // A signal ends it early.
        if woken == 0 {
            break;
        }
    }
}

fn timerfd(begin: u64, period: u64) -> Result<OwnedFd> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)
        .context("cannot make a timerfd")?;
    let times = Itimerspec { it_interval: timespec(period), it_value: timespec(begin + period) };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &times)
        .context("cannot start a timerfd")?;
    Ok(timer)
}

fn read_timer(timer: &OwnedFd) -> Result<u64> {
    let mut count = [0; 8];
    loop {
        match rustix::io::read(timer, &mut count) {
            Ok(_) => return Ok(u64::from_ne_bytes(count)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot read a timerfd"),
        }
    }
}

/// Sent only to the measuring thread, which blocks it and waits for it.
const SIGNAL: i32 = libc::SIGALRM;

/// A POSIX timer that signals the calling thread. The signal stays blocked there until the thread
/// ends with the measurement, so that none kills the process.
pub(super) struct Itimer {
    timer: libc::timer_t,
    signals: libc::sigset_t,
}

impl Itimer {
    fn start(begin: u64, period: u64) -> Result<Itimer> {
        let signals = block_signal()?;
        // SAFETY: all bytes zero are a valid structure of integers.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        let mut timer = null_mut();
        // SAFETY: both structures live until the call returns; it fills the second.
        if unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) } != 0 {
            bail!("cannot make a POSIX timer: {}", std::io::Error::last_os_error());
        }
        let itimer = Itimer { timer, signals };
        let [it_interval, it_value] = [period, begin + period].map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        });
        let times = libc::itimerspec { it_interval, it_value };
        // SAFETY: the timer exists, and the structure lives until the call returns.
        if unsafe { libc::timer_settime(timer, libc::TIMER_ABSTIME, &times, null_mut()) } != 0 {
            bail!("cannot start a POSIX timer: {}", std::io::Error::last_os_error());
        }
        Ok(itimer)
    }

    /// Waits for a signal; returns 1 plus the number of overruns.
    fn wait(&self) -> Result<u64> {
        // SAFETY: the set is initialised; no details of the signal are asked for.
        while unsafe { libc::sigwaitinfo(&self.signals, null_mut()) } < 0 {
            let error = std::io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EINTR) {
                return Err(error).context("cannot wait for the signal of a POSIX timer");
            }
        }
        // SAFETY: the timer exists.
        let merged = unsafe { libc::timer_getoverrun(self.timer) };
        Ok(1 + u64::try_from(merged).unwrap_or(0))
    }
}

impl Drop for Itimer {
    fn drop(&mut self) {
        // SAFETY: the timer exists, and is used no more.
        unsafe { libc::timer_delete(self.timer) };
    }
}

/// Blocks the signal in the calling thread; returns the set with it.
fn block_signal() -> Result<libc::sigset_t> {
    let mut signals = MaybeUninit::uninit();
    // SAFETY: the first call initialises the set, the second adds a signal that exists to it.
    let signals = unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        libc::sigaddset(signals.as_mut_ptr(), SIGNAL);
        signals.assume_init()
    };
    // SAFETY: the set is initialised, and the mask of this thread only is changed.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &signals, null_mut()) } {
        0 => Ok(signals),
        error => Err(std::io::Error::from_raw_os_error(error)).context("cannot block a signal"),
    }
}
