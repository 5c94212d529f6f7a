// SPDX-License-Identifier: MIT OR Apache-2.0
//! The side of who has something done by another process.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thiserror::Error;

/// How often it is asked whether somebody stops it, in nanoseconds.
const POLL_INTERVAL_NS: i64 = 50_000_000;
/// Bytes that are taken in at once.
const STEP_BYTES: usize = 64 << 10;

/// What a process said, and how it ended.
#[derive(Debug)]
pub struct Heard {
    pub status: ExitStatus,
    /// The first bytes of its standard output.
    pub said: Vec<u8>,
}

/// Why nothing was heard.
#[derive(Debug, Error)]
pub enum Fault {
    #[error("cannot start {program}: {cause}")]
    Start { program: String, cause: io::Error },
    #[error("it took longer than {} s and was ended", .0.as_secs())]
    Late(Duration),
    #[error("it was ended")]
    Stopped,
    #[error("it cannot be heard: {0}")]
    Io(#[from] io::Error),
}

/// Starts a process and hears what it says, of which `bytes` are kept, until it closes its standard output and ends.
///
/// # Errors
/// Where it cannot be started, takes too long, or `stop` is set; it is ended then. Without the right to end what has
/// become another user's, it is waited for until its own alarm ends it, unless all is to stop.
pub fn hear(command: &mut Command, bytes: usize, timeout: Duration, stop: &AtomicBool) -> Result<Heard, Fault> {
    let mut child = start(command.stdout(Stdio::piped()))?;
    let said = child.stdout.take().map(OwnedFd::from);
    attend_to(child, said, bytes, timeout, stop)
}

/// The same, where all that it says is given to `take` as it comes.
///
/// # Errors
/// As [`hear`].
pub fn hear_each(
    command: &mut Command,
    timeout: Duration,
    stop: &AtomicBool,
    take: impl FnMut(&[u8]),
) -> Result<ExitStatus, Fault> {
    let mut child = start(command.stdout(Stdio::piped()))?;
    let said = child.stdout.take().map(OwnedFd::from);
    attend(child, said, timeout, stop, take)
}

/// The same as [`hear`] with what it says on its standard error.
///
/// # Errors
/// As [`hear`].
pub fn hear_errors(command: &mut Command, bytes: usize, timeout: Duration, stop: &AtomicBool) -> Result<Heard, Fault> {
    let mut child = start(command.stderr(Stdio::piped()))?;
    let said = child.stderr.take().map(OwnedFd::from);
    attend_to(child, said, bytes, timeout, stop)
}

fn start(command: &mut Command) -> Result<Child, Fault> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.spawn().map_err(|cause| Fault::Start { program, cause })
}

/// Keeps the first bytes of what it says.
fn attend_to(
    child: Child,
    said: Option<OwnedFd>,
    bytes: usize,
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<Heard, Fault> {
    let mut kept = Vec::new();
    let keep = |step: &[u8]| kept.extend_from_slice(&step[..step.len().min(bytes - kept.len())]);
    let status = attend(child, said, timeout, stop, keep)?;
    Ok(Heard { status, said: kept })
}

fn attend(
    mut child: Child,
    said: Option<OwnedFd>,
    timeout: Duration,
    stop: &AtomicBool,
    take: impl FnMut(&[u8]),
) -> Result<ExitStatus, Fault> {
    let heard = said.map_or(Ok(()), |said| listen(File::from(said), timeout, stop, take));
    let killed = if heard.is_err() { child.kill() } else { Ok(()) };
    if killed.is_err() && stop.load(Ordering::Acquire) {
        return Err(Fault::Stopped);
    }
    let status = child.wait()?;
    heard.map(|()| status)
}

fn listen(mut from: File, timeout: Duration, stop: &AtomicBool, mut take: impl FnMut(&[u8])) -> Result<(), Fault> {
    let until = Instant::now() + timeout;
    let mut step = vec![0; STEP_BYTES];
    loop {
        if stop.load(Ordering::Acquire) {
            return Err(Fault::Stopped);
        }
        if Instant::now() >= until {
            return Err(Fault::Late(timeout));
        }
        let interval = Timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL_NS };
        match poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&interval)) {
            Ok(0) | Err(Errno::INTR) => continue,
            ready => ready.map_err(io::Error::from)?,
        };
        let count = from.read(&mut step)?;
        if count == 0 {
            return Ok(());
        }
        take(&step[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn say(script: &str, timeout: Duration, stop: bool) -> Result<Heard, Fault> {
        hear(Command::new("sh").args(["-c", script]), 10, timeout, &AtomicBool::new(stop))
    }

    #[test]
    fn what_is_said_is_heard_up_to_a_bound() {
        let heard = say("head -c 1000000 /dev/zero | tr '\\0' a; exit 3", LONG, false).expect("it speaks");
        assert_eq!((heard.said.as_slice(), heard.status.code()), (&b"aaaaaaaaaa"[..], Some(3)));
    }

    #[test]
    fn what_was_said_before_somebody_is_late_is_heard() {
        let mut heard = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo first; exec sleep 60"]);
        let (timeout, go_on) = (Duration::from_secs(1), AtomicBool::new(false));
        let late = hear_each(&mut command, timeout, &go_on, |step| heard.extend_from_slice(step));
        assert!(matches!(late, Err(Fault::Late(_))));
        assert_eq!(heard, b"first\n");
    }

    #[test]
    fn who_takes_too_long_or_is_stopped_is_ended() {
        let begun = Instant::now();
        assert!(matches!(say("exec sleep 60", Duration::from_millis(100), false), Err(Fault::Late(_))));
        assert!(matches!(say("exec sleep 60", LONG, true), Err(Fault::Stopped)));
        assert!(matches!(
            hear(&mut Command::new("/no/such"), 1, LONG, &AtomicBool::new(false)),
            Err(Fault::Start { .. })
        ));
        assert!(begun.elapsed() < LONG);
    }
}
