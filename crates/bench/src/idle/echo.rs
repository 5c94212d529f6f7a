// SPDX-License-Identifier: MIT OR Apache-2.0
//! User's side of a terminal: types a character and waits for its echo.

use crate::interrupt::InterruptFlag;
use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};
use tipme_desktop::clock;

/// Maximum wait for an echo before the program counts as gone.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Pause between characters.
const PAUSE: Duration = Duration::from_millis(16);
/// Interval between checks for a signal.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Opens a raw terminal; returns the user's end and the program's end.
pub(super) fn terminal() -> Result<(File, OwnedFd)> {
    let (mut outer, mut inner) = (-1, -1);
    let nothing = std::ptr::null_mut();
    // SAFETY: the call fills the two numbers that it is given; the null pointers stand for
    // defaults.
    let made = unsafe {
        libc::openpty(&mut outer, &mut inner, nothing, std::ptr::null(), std::ptr::null())
    };
    if made != 0 {
        bail!("cannot open a terminal: {}", std::io::Error::last_os_error());
    }
    // SAFETY: both were opened just now, and nothing else uses them.
    let (outer, inner) = unsafe { (OwnedFd::from_raw_fd(outer), OwnedFd::from_raw_fd(inner)) };
    rustix::io::fcntl_setfd(&outer, rustix::io::FdFlags::CLOEXEC)
        .context("cannot set close-on-exec on the terminal")?;
    let mut mode = tcgetattr(&inner).context("cannot read the terminal's mode")?;
    mode.make_raw();
    tcsetattr(&inner, OptionalActions::Now, &mode).context("cannot set the terminal's mode")?;
    Ok((File::from(outer), inner))
}

/// Types `count` characters, each after the previous echo; returns the time of each.
pub(super) fn type_characters(
    terminal: &mut File,
    count: u64,
    interrupt: &InterruptFlag,
) -> Result<Vec<u64>> {
    let mut sent = Vec::with_capacity(count as usize);
    for _ in 0..count {
        interrupt.sleep(PAUSE)?;
        sent.push(clock::now().0);
        terminal.write_all(b"x").context("cannot type")?;
        wait_for_echo(terminal, interrupt)?;
    }
    Ok(sent)
}

fn wait_for_echo(terminal: &mut File, interrupt: &InterruptFlag) -> Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        interrupt.check()?;
        match poll(&mut [PollFd::new(&*terminal, PollFlags::IN)], Some(&POLL_INTERVAL)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => {
                let mut echo = [0];
                return terminal.read_exact(&mut echo).context("the program that echoes has ended");
            }
            Err(error) => return Err(error).context("cannot wait for the echo"),
        }
    }
    bail!("the program that echoes did not answer within {TIMEOUT:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_comes_out_at_the_other_end_unchanged() {
        let (mut outer, inner) = terminal().expect("there is a terminal");
        outer.write_all(b"\x03x").expect("it takes characters");
        let mut read = [0; 2];
        File::from(inner).read_exact(&mut read).expect("they come out");
        assert_eq!(&read, b"\x03x");
    }

    #[test]
    fn a_program_that_is_gone_is_an_error() {
        let (mut outer, inner) = terminal().expect("there is a terminal");
        drop(inner);
        let error =
            type_characters(&mut outer, 1, &InterruptFlag::default()).expect_err("nobody echoes");
        assert!(
            error.to_string().contains("has ended") || error.to_string().contains("cannot type"),
            "{error:#}"
        );
    }
}
