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
    /// First bytes of its standard output; empty if that was not read.
    pub output: Vec<u8>,
    /// First bytes of its standard error; empty if that was not read.
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
    #[error("cannot read its output: {0}")]
    Io(#[from] io::Error),
}

/// Starts a process and reads its standard output until it closes it and exits. The first `bytes`
/// are kept.
///
/// # Errors
/// If the process cannot be started, takes too long, or `stop` is set; it is then killed. Without
/// permission to kill it, because it now belongs to another user, this waits until its own alarm
/// ends it, unless `stop` is set.
pub fn read_output(
    command: &mut Command,
    bytes: usize,
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<ChildOutput, ChildFault> {
    collect(start(command.stdout(Stdio::piped()))?, (bytes, 0), timeout, stop)
}

/// Like [`read_output`], but reads standard error.
///
/// # Errors
/// As [`read_output`].
pub fn read_errors(
    command: &mut Command,
    bytes: usize,
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<ChildOutput, ChildFault> {
    collect(start(command.stderr(Stdio::piped()))?, (0, bytes), timeout, stop)
}

/// Like [`read_output`], but reads both outputs, each up to its own limit, until both are closed.
///
/// # Errors
/// As [`read_output`].
pub fn read_both(
    command: &mut Command,
    bytes: (usize, usize),
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<ChildOutput, ChildFault> {
    let child = start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    collect(child, bytes, timeout, stop)
}

/// Like [`read_output`], but passes all output to `take` as it arrives.
///
/// # Errors
/// As [`read_output`].
pub fn stream_output(
    command: &mut Command,
    timeout: Duration,
    stop: &AtomicBool,
    take: impl FnMut(&[u8]),
) -> Result<ExitStatus, ChildFault> {
    let mut child = start(command.stdout(Stdio::piped()))?;
    let stream = child.stdout.take().map(|from| OutputStream::new(from, take));
    attend(child, stream.into_iter().collect(), timeout, stop)
}

fn start(command: &mut Command) -> Result<Child, ChildFault> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.spawn().map_err(|cause| ChildFault::Start { program, cause })
}

/// Keeps the first bytes of the piped outputs of a process.
fn collect(
    mut child: Child,
    (bytes, error_bytes): (usize, usize),
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<ChildOutput, ChildFault> {
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let stdout = child
        .stdout
        .take()
        .map(|from| OutputStream::new(from, |step| append(&mut output, step, bytes)));
    let stderr = child
        .stderr
        .take()
        .map(|from| OutputStream::new(from, |step| append(&mut errors, step, error_bytes)));
    let status = attend(child, stdout.into_iter().chain(stderr).collect(), timeout, stop)?;
    Ok(ChildOutput { status, output, errors })
}

/// Appends data up to a total of `bytes_max`.
fn append(kept: &mut Vec<u8>, step: &[u8], bytes_max: usize) {
    let room = bytes_max - kept.len();
    kept.extend_from_slice(&step[..step.len().min(room)]);
}

type Consumer<'a> = Box<dyn FnMut(&[u8]) + 'a>;

/// Output stream with the consumer of its data.
struct OutputStream<'a> {
    from: File,
    take: Consumer<'a>,
}

impl<'a> OutputStream<'a> {
    fn new(from: impl Into<OwnedFd>, take: impl FnMut(&[u8]) + 'a) -> OutputStream<'a> {
        OutputStream { from: File::from(from.into()), take: Box::new(take) }
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
    let result = read_all(streams, timeout, stop);
    let killed = if result.is_err() { child.kill() } else { Ok(()) };
    if killed.is_err() && stop.load(Ordering::Acquire) {
        return Err(ChildFault::Stopped);
    }
    let status = child.wait()?;
    result.map(|()| status)
}

/// Reads all streams until they are closed.
fn read_all(
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

    fn run(script: &str, timeout: Duration, stop: bool) -> Result<ChildOutput, ChildFault> {
        read_output(Command::new("sh").args(["-c", script]), 10, timeout, &AtomicBool::new(stop))
    }

    #[test]
    fn output_is_read_up_to_a_bound() {
        let script = "head -c 1000000 /dev/zero | tr '\\0' a; exit 3";
        let child = run(script, LONG, false).expect("it writes");
        assert_eq!((child.output.as_slice(), child.status.code()), (&b"aaaaaaaaaa"[..], Some(3)));
    }

    #[test]
    fn both_outputs_are_read_concurrently_each_up_to_its_bound() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "head -c 1000000 /dev/zero >&2; echo said; exec >&-; echo why >&2; exit 4",
        ]);
        let child = read_both(&mut command, (2, 1_000_004), LONG, &AtomicBool::new(false))
            .expect("it writes");
        assert_eq!((child.output.as_slice(), child.status.code()), (&b"sa"[..], Some(4)));
        assert!(child.errors.len() == 1_000_004 && child.errors.ends_with(b"\0why\n"));
    }

    #[test]
    fn output_before_a_timeout_is_passed_on() {
        let mut read = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo first; exec sleep 60"]);
        let (timeout, go_on) = (Duration::from_secs(1), AtomicBool::new(false));
        let late =
            stream_output(&mut command, timeout, &go_on, |step| read.extend_from_slice(step));
        assert!(matches!(late, Err(ChildFault::Late(_))));
        assert_eq!(read, b"first\n");
    }

    #[test]
    fn a_late_or_stopped_process_is_killed() {
        let begun = Instant::now();
        let late = run("exec sleep 60", Duration::from_millis(100), false);
        assert!(matches!(late, Err(ChildFault::Late(_))));
        assert!(matches!(run("exec sleep 60", LONG, true), Err(ChildFault::Stopped)));
        let missing = read_output(&mut Command::new("/no/such"), 1, LONG, &AtomicBool::new(false));
        assert!(matches!(missing, Err(ChildFault::Start { .. })));
        assert!(begun.elapsed() < LONG);
    }
}
