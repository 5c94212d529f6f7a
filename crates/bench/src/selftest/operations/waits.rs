// SPDX-License-Identifier: MIT OR Apache-2.0
//! Orders to wait: for a thread of one's own, for another process, for a child, for the time to pass.

mod threads;

use crate::selftest::workers::{PIPE_BYTES, Pair, TIMEOUT, ask, compute_until, look_up, millis, word};
use anyhow::{Context, Result, bail};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// What an application of ours does with the words of an order.
pub(super) type Operation = fn(&[&str]) -> Result<()>;

/// By name, with the words that each takes.
pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("mutex-asleep", threads::mutex_asleep),   // MS
    ("mutex-starved", threads::mutex_starved), // CPU MS
    ("write-lock", threads::write_lock),       // MS
    ("condition", threads::condition),         // MS
    ("pool", threads::pool),                   // MS
    ("semaphore", semaphore),                  // FILE
    ("file-lock", file_lock),                  // FILE
    ("record-lock", record_lock),              // FILE
    ("ask", |words| ask(word(words, 0)?)),     // SOCKET
    ("bus-call", look_up),                     // SOCKET
    ("request", request),                      // ADDRESS
    ("fill-pipe", fill_pipe),                  // PIPE
    ("read-pipe", read_pipe),                  // PIPE
    ("event-counter", event_counter),          // SOCKET
    ("child", child),                          // FILE PROGRAM WORDS
    ("sleep", sleep),                          // MS
    ("compute", compute),                      // MS
    ("poll", poll_nothing),                    // MS
];

fn semaphore(words: &[&str]) -> Result<()> {
    Pair::open(Path::new(word(words, 0)?))?.ask()
}

fn open(path: &str) -> Result<File> {
    File::options().read(true).write(true).open(path).with_context(|| format!("cannot open {path}"))
}

/// The lock goes with the file.
fn file_lock(words: &[&str]) -> Result<()> {
    flock(open(word(words, 0)?)?, FlockOperation::LockExclusive).context("cannot lock the file")
}

fn record_lock(words: &[&str]) -> Result<()> {
    fcntl_lock(open(word(words, 0)?)?, FlockOperation::LockExclusive).context("cannot lock the file")
}

/// Sends one byte over the network and waits for one.
fn request(words: &[&str]) -> Result<()> {
    let address = word(words, 0)?;
    let mut stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(b"?")?;
    stream.read_exact(&mut [0]).with_context(|| format!("no answer from {address}"))
}

fn fill_pipe(words: &[&str]) -> Result<()> {
    let path = word(words, 0)?;
    let mut pipe = File::options().write(true).open(path).with_context(|| format!("cannot open {path}"))?;
    pipe.write_all(&vec![0x5a; PIPE_BYTES]).with_context(|| format!("nobody reads {path}"))
}

fn read_pipe(words: &[&str]) -> Result<()> {
    let path = word(words, 0)?;
    let mut pipe = File::open(path).with_context(|| format!("cannot open {path}"))?;
    pipe.read_exact(&mut [0]).with_context(|| format!("nobody writes to {path}"))
}

/// Hands a counter to another process, and waits until that has added to it.
fn event_counter(words: &[&str]) -> Result<()> {
    let path = word(words, 0)?;
    let stream = UnixStream::connect(path).with_context(|| format!("cannot connect to {path}"))?;
    let counter = eventfd(0, EventfdFlags::CLOEXEC).context("cannot make a counter")?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [counter.as_fd()];
    if !control.push(SendAncillaryMessage::ScmRights(&files)) {
        bail!("the message has no room for a file");
    }
    sendmsg(&stream, &[IoSlice::new(b"?")], &mut control, SendFlags::empty())?;
    rustix::io::read(&counter, &mut [0u8; 8]).context("cannot read the counter")?;
    Ok(())
}

/// Starts a program and waits for its end; its number goes to a file.
fn child(words: &[&str]) -> Result<()> {
    let mut command = Command::new(word(words, 1)?);
    command.args(words.get(2..).unwrap_or_default()).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.spawn().context("cannot start a child")?;
    let noted = std::fs::write(word(words, 0)?, child.id().to_string());
    let status = child.wait().context("cannot wait for the child")?;
    noted.context("cannot note the child's number")?;
    if !status.success() {
        bail!("the child failed: {status}");
    }
    Ok(())
}

fn sleep(words: &[&str]) -> Result<()> {
    std::thread::sleep(millis(words, 0)?);
    Ok(())
}

fn compute(words: &[&str]) -> Result<()> {
    lay_out_paragraphs(Instant::now() + millis(words, 0)?);
    Ok(())
}

/// A function with a name of its own, for whoever looks what the application computes.
#[inline(never)]
fn lay_out_paragraphs(end: Instant) {
    compute_until(end);
}

/// Waits for a counter that nobody adds to.
fn poll_nothing(words: &[&str]) -> Result<()> {
    let (time, counter) = (millis(words, 0)?, eventfd(0, EventfdFlags::CLOEXEC).context("cannot make a counter")?);
    let limit = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    poll(&mut [PollFd::new(&counter, PollFlags::IN)], Some(&limit)).context("cannot wait")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::time::Duration;

    fn took(operation: Operation, words: &[&str]) -> Duration {
        let begun = Instant::now();
        operation(words).expect("it can be carried out");
        begun.elapsed()
    }

    #[test]
    fn waiting_by_oneself_takes_the_time_asked_for() {
        for operation in [sleep, compute, poll_nothing] {
            assert!(took(operation, &["30"]) >= Duration::from_millis(30));
        }
    }

    #[test]
    fn a_child_is_waited_for_and_noted() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("child");
        let file = file.to_str().expect("plain letters");
        assert!(took(child, &[file, "sleep", "0.05"]) >= Duration::from_millis(50));
        let pid = std::fs::read_to_string(file).expect("a number");
        assert!(pid.parse::<u32>().is_ok_and(|pid| pid > 1));
        assert!(child(&[file, "false"]).is_err());
    }

    #[test]
    fn a_lock_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let held = File::create(&path).expect("a file");
        flock(&held, FlockOperation::LockExclusive).expect("a lock");
        let releasing = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(held);
        });
        assert!(took(file_lock, &[path.to_str().expect("plain letters")]) >= Duration::from_millis(40));
        releasing.join().expect("no panic");
    }

    #[test]
    fn a_pipe_is_filled_only_as_fast_as_it_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).expect("a pipe");
        let name = path.to_str().expect("plain letters").to_string();
        let reading = std::thread::spawn(move || {
            let mut pipe = File::open(path).expect("a pipe");
            std::thread::sleep(Duration::from_millis(50));
            pipe.read_exact(&mut vec![0; PIPE_BYTES]).expect("bytes");
        });
        assert!(took(fill_pipe, &[&name]) >= Duration::from_millis(40));
        reading.join().expect("no panic");
    }
}
