// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that an application asks for something: over sockets, pipes, counters and semaphores.

use super::semaphore::Pair;
use super::work::{TIMEOUT, compute, limit_life, millis, use_cpu_time, word};
use crate::worker::say_ready;
use anyhow::{Context, Result, bail};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::fs::File;
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// Bytes that go through a pipe: four times what it holds.
pub(in crate::selftest) const PIPE_BYTES: usize = 256 << 10;

/// Sends one byte on a socket and waits for one.
pub(in crate::selftest) fn ask(path: &str) -> Result<()> {
    let mut stream = UnixStream::connect(path).with_context(|| format!("cannot connect to {path}"))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(b"?")?;
    stream.read_exact(&mut [0]).with_context(|| format!("no answer from {path}"))
}

/// `helper SOCKET compute|sleep|starve MS` or `helper SOCKET ask NEXT`: answers one request, after its work.
pub(super) fn helper(words: &[&str]) -> Result<()> {
    limit_life();
    let (path, how) = (word(words, 0)?, word(words, 1)?);
    let listener = UnixListener::bind(path).with_context(|| format!("cannot listen at {path}"))?;
    say_ready("")?;
    let (mut stream, _) = listener.accept()?;
    stream.read_exact(&mut [0])?;
    match how {
        "compute" => compute(millis(words, 2)?),
        "sleep" => sleep(millis(words, 2)?),
        "starve" => use_cpu_time(millis(words, 2)?),
        "ask" => ask(word(words, 2)?)?,
        other => bail!("a helper cannot \"{other}\""),
    }
    stream.write_all(b"!").context("nobody waits for the answer")
}

/// `service MS`: answers one request on a port of the loopback address, after a sleep; tells the port.
pub(super) fn service(words: &[&str]) -> Result<()> {
    limit_life();
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("cannot listen on 127.0.0.1")?;
    say_ready(&listener.local_addr()?.port().to_string())?;
    let (mut stream, _) = listener.accept()?;
    stream.read_exact(&mut [0])?;
    sleep(millis(words, 0)?);
    stream.write_all(b"!").context("nobody waits for the answer")
}

/// `pipe-reader PIPE MS`: sleeps before it reads what was written.
pub(super) fn pipe_reader(words: &[&str]) -> Result<()> {
    limit_life();
    let mut pipe = open_both_ends(word(words, 0)?)?;
    say_ready("")?;
    sleep(millis(words, 1)?);
    pipe.read_exact(&mut vec![0; PIPE_BYTES]).context("the pipe ended early")
}

/// `pipe-writer PIPE MS`: computes before it writes.
pub(super) fn pipe_writer(words: &[&str]) -> Result<()> {
    limit_life();
    let mut pipe = open_both_ends(word(words, 0)?)?;
    say_ready("")?;
    compute(millis(words, 1)?);
    pipe.write_all(b"!")?;
    // With the last end of it closed, what was written would be lost.
    sleep(Duration::from_secs(2));
    Ok(())
}

/// Opens a named pipe so that neither side waits for the other.
fn open_both_ends(path: &str) -> Result<File> {
    File::options().read(true).write(true).open(Path::new(path)).with_context(|| format!("cannot open {path}"))
}

/// `semaphore FILE MS`: makes a pair of semaphores, waits for one, computes, releases the other.
pub(super) fn semaphore(words: &[&str]) -> Result<()> {
    limit_life();
    let pair = Pair::make(Path::new(word(words, 0)?))?;
    say_ready("")?;
    pair.wait_for_request()?;
    compute(millis(words, 1)?);
    pair.answer()
}

/// `counter SOCKET MS`: is handed an event counter and adds to it, after a sleep.
pub(super) fn counter(words: &[&str]) -> Result<()> {
    limit_life();
    let path = word(words, 0)?;
    let listener = UnixListener::bind(path).with_context(|| format!("cannot listen at {path}"))?;
    say_ready("")?;
    let (stream, _) = listener.accept()?;
    let counter = receive_file(&stream)?;
    sleep(millis(words, 1)?);
    rustix::io::write(&counter, &1u64.to_ne_bytes()).context("cannot add to the counter")?;
    Ok(())
}

fn receive_file(stream: &UnixStream) -> Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::empty())?;
    let handed = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    handed.context("no file was handed over")
}
