// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parent side: runs a process and reads its output.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Interval between checks of the stop flag, in nanoseconds.
const POLL_INTERVAL_NS: i64 = 50_000_000;
/// Number of bytes read at once.
const STEP_BYTES: usize = 64 << 10;

/// Output and exit status of a process.
#[derive(Debug)]
pub struct ChildOutput {
    pub status: ExitStatus,
    /// First bytes of its standard output.
    pub said: Vec<u8>,
}

/// Both outputs and exit status of a process.
#[derive(Debug)]
pub struct HeardBoth {
    pub status: ExitStatus,
    /// First bytes of its standard output.
    pub said: Vec<u8>,
    /// First bytes of its standard error.
    pub errors: Vec<u8>,
}

/// Reason for missing output.
#[derive(Debug, Error)]
pub enum ChildFault {
    #[error("cannot start {program}: {cause}")]
    Start { program: String, cause: io::Error },
    #[error("it took longer than {} s and was ended", .0.as_secs())]
    Late(Duration),
    #[error("it was ended")]
    Stopped,
    #[error("it cannot be heard: {0}")]
    Io(#[from] io::Error),
}

/// Starts a process and reads its standard output until it closes it and exits. The first `bytes`
/// are kept.
///
/// # Errors
/// If the process cannot be started, takes too long, or `stop` is set; it is then killed. Without
/// permission to kill it, because it now belongs to another user, this waits until its own alarm
/// ends it, unless `stop` is set.
pub fn hear(
    command: &mut Command,
    bytes: usize,
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<ChildOutput, ChildFault> {
    let mut said = OutputHead::of(bytes);
    let status = hear_each(command, timeout, stop, |step| said.take(step))?;
    Ok(ChildOutput { status, said: said.kept })
}

/// Like [`hear`], but passes all output to `take` as it arrives.
///
/// # Errors
/// As [`hear`].
pub fn hear_each(
    command: &mut Command,
    timeout: Duration,
    stop: &AtomicBool,
    mut take: impl FnMut(&[u8]),
) -> Result<ExitStatus, ChildFault> {
    let mut child = start(command.stdout(Stdio::piped()))?;
    let said = child.stdout.take().map(|from| OutputStream::new(from, &mut take));
    attend(child, said.into_iter().collect(), timeout, stop)
}

/// Like [`hear`], but reads standard error.
///
/// # Errors
/// As [`hear`].
pub fn hear_errors(
    command: &mut Command,
    bytes: usize,
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<ChildOutput, ChildFault> {
    let mut child = start(command.stderr(Stdio::piped()))?;
    let (mut said, from) = (OutputHead::of(bytes), child.stderr.take());
    let mut take = |step: &[u8]| said.take(step);
    let status = attend(
        child,
        from.map(|from| OutputStream::new(from, &mut take)).into_iter().collect(),
        timeout,
        stop,
    )?;
    Ok(ChildOutput { status, said: said.kept })
}

/// Like [`hear`], but reads both outputs, each up to its own limit, until both are closed.
///
/// # Errors
/// As [`hear`].
pub fn hear_both(
    command: &mut Command,
    (bytes, error_bytes): (usize, usize),
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<HeardBoth, ChildFault> {
    let mut child = start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let (mut said, mut errors) = (OutputHead::of(bytes), OutputHead::of(error_bytes));
    let (mut take, mut take_error) =
        (|step: &[u8]| said.take(step), |step: &[u8]| errors.take(step));
    let output = child.stdout.take().map(|from| OutputStream::new(from, &mut take));
    let error_output = child.stderr.take().map(|from| OutputStream::new(from, &mut take_error));
    let status = attend(child, output.into_iter().chain(error_output).collect(), timeout, stop)?;
    Ok(HeardBoth { status, said: said.kept, errors: errors.kept })
}

fn start(command: &mut Command) -> Result<Child, ChildFault> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.spawn().map_err(|cause| ChildFault::Start { program, cause })
}

/// First bytes of an output.
struct OutputHead {
    kept: Vec<u8>,
    bytes_max: usize,
}

impl OutputHead {
    fn of(bytes_max: usize) -> OutputHead {
        OutputHead { kept: Vec::new(), bytes_max }
    }

    fn take(&mut self, step: &[u8]) {
        let room = self.bytes_max - self.kept.len();
        self.kept.extend_from_slice(&step[..step.len().min(room)]);
    }
}

/// Output stream with the consumer of its data.
struct OutputStream<'a> {
    from: File,
    take: &'a mut dyn FnMut(&[u8]),
}

impl<'a> OutputStream<'a> {
    fn new(from: impl Into<OwnedFd>, take: &'a mut dyn FnMut(&[u8])) -> OutputStream<'a> {
        OutputStream { from: File::from(from.into()), take }
    }

    /// Reads the available data; returns `false` at the end.
    fn read(&mut self, step: &mut [u8]) -> io::Result<bool> {
        let count = self.from.read(step)?;
        (self.take)(&step[..count]);
        Ok(count > 0)
    }
}

fn attend(
    mut child: Child,
    streams: Vec<OutputStream<'_>>,
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<ExitStatus, ChildFault> {
    let heard = listen(streams, timeout, stop);
    let killed = if heard.is_err() { child.kill() } else { Ok(()) };
    if killed.is_err() && stop.load(Ordering::Acquire) {
        return Err(ChildFault::Stopped);
    }
    let status = child.wait()?;
    heard.map(|()| status)
}

/// Reads all streams until they are closed.
fn listen(
    mut streams: Vec<OutputStream<'_>>,
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<(), ChildFault> {
    let until = Instant::now() + timeout;
    let mut step = vec![0; STEP_BYTES];
    while !streams.is_empty() {
        if stop.load(Ordering::Acquire) {
            return Err(ChildFault::Stopped);
        }
        if Instant::now() >= until {
            return Err(ChildFault::Late(timeout));
        }
        let ready = ready(&streams)?;
        let mut open = Vec::new();
        for (mut stream, ready) in streams.into_iter().zip(ready) {
            if !ready || stream.read(&mut step)? {
                open.push(stream);
            }
        }
        streams = open;
    }
    Ok(())
}

/// Returns the readability of each stream, after one becomes readable or the poll interval ends.
fn ready(streams: &[OutputStream<'_>]) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> =
        streams.iter().map(|stream| PollFd::new(&stream.from, PollFlags::IN)).collect();
    let interval = Timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL_NS };
    match poll(&mut polled, Some(&interval)) {
        Err(Errno::INTR) => Ok(vec![false; streams.len()]),
        count => count
            .map(|_| polled.iter().map(|one| !one.revents().is_empty()).collect())
            .map_err(io::Error::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn say(script: &str, timeout: Duration, stop: bool) -> Result<ChildOutput, ChildFault> {
        hear(Command::new("sh").args(["-c", script]), 10, timeout, &AtomicBool::new(stop))
    }

    #[test]
    fn what_is_said_is_heard_up_to_a_bound() {
        let heard =
            say("head -c 1000000 /dev/zero | tr '\\0' a; exit 3", LONG, false).expect("it speaks");
        assert_eq!((heard.said.as_slice(), heard.status.code()), (&b"aaaaaaaaaa"[..], Some(3)));
    }

    #[test]
    fn both_outputs_are_heard_at_once_each_up_to_its_bound() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "head -c 1000000 /dev/zero >&2; echo said; exec >&-; echo why >&2; exit 4",
        ]);
        let heard = hear_both(&mut command, (2, 1_000_004), LONG, &AtomicBool::new(false))
            .expect("it speaks");
        assert_eq!((heard.said.as_slice(), heard.status.code()), (&b"sa"[..], Some(4)));
        assert!(heard.errors.len() == 1_000_004 && heard.errors.ends_with(b"\0why\n"));
    }

    #[test]
    fn what_was_said_before_somebody_is_late_is_heard() {
        let mut heard = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo first; exec sleep 60"]);
        let (timeout, go_on) = (Duration::from_secs(1), AtomicBool::new(false));
        let late = hear_each(&mut command, timeout, &go_on, |step| heard.extend_from_slice(step));
        assert!(matches!(late, Err(ChildFault::Late(_))));
        assert_eq!(heard, b"first\n");
    }

    #[test]
    fn who_takes_too_long_or_is_stopped_is_ended() {
        let begun = Instant::now();
        assert!(matches!(
            say("exec sleep 60", Duration::from_millis(100), false),
            Err(ChildFault::Late(_))
        ));
        assert!(matches!(say("exec sleep 60", LONG, true), Err(ChildFault::Stopped)));
        assert!(matches!(
            hear(&mut Command::new("/no/such"), 1, LONG, &AtomicBool::new(false)),
            Err(ChildFault::Start { .. })
        ));
        assert!(begun.elapsed() < LONG);
    }
}
