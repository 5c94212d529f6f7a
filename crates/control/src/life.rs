// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the daemons have in common besides their sockets: there is one of each in a folder, it ends by a signal,
//! speaks to whoever listens, and knows its own cost.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};
use thiserror::Error;

pub use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};

/// Signals that are told at a time; further ones are told at the next call.
const ARRIVED_MAX: usize = 64;
/// How long a service manager is waited for that is to hear that the daemon is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long is waited for somebody who reads what was printed before.
const READER_MAX: Duration = Duration::from_secs(1);
/// Bytes of a lock file that are read: a process number and no more.
const HOLDER_BYTES_MAX: u64 = 32;

/// Why there is no lock.
#[derive(Debug, Error)]
pub enum LockError {
    /// With the number of the process that has it, as far as it is told.
    #[error("process {0} has the lock; end it, or use another --state-dir")]
    Held(String),
    #[error("cannot open the lock: {0}; use a --state-dir that this user can write to")]
    Open(io::Error),
    #[error("cannot write the lock: {0}; make room, or use another --state-dir")]
    Write(io::Error),
}

/// Takes the lock of this file, which is held as long as the value lives. Only its owner can open it, so nobody else
/// can hold it. A symbolic link is not followed.
///
/// # Errors
/// Where another process has it, and where the file cannot be used.
pub fn lock(path: &Path) -> Result<File, LockError> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let mut file = options.open(path).map_err(LockError::Open)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let mut holder = String::new();
        file.take(HOLDER_BYTES_MAX).read_to_string(&mut holder).ok();
        return Err(LockError::Held(holder.trim().to_owned()));
    }
    file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())).map_err(LockError::Write)?;
    Ok(file)
}

/// Signals as bytes in a stream that `poll` can watch: the signal's number.
#[derive(Debug)]
pub struct SignalStream(UnixStream);

impl SignalStream {
    /// From now on these signals do nothing but arrive here.
    ///
    /// # Errors
    /// Where the kernel refuses one of them, or has no descriptors left.
    pub fn catch(signals: &[i32]) -> io::Result<SignalStream> {
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        signals.iter().try_for_each(|signal| catch_one(*signal, write.try_clone()?))?;
        Ok(SignalStream(read))
    }

    /// Becomes readable when a signal has come.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Signals that have come since the last call.
    pub fn arrived(&self) -> Vec<i32> {
        let mut bytes = [0; ARRIVED_MAX];
        let count = (&self.0).read(&mut bytes).unwrap_or(0);
        bytes[..count].iter().map(|byte| i32::from(*byte)).collect()
    }
}

fn catch_one(signal: i32, write: UnixStream) -> io::Result<()> {
    // Where the stream is full, signals enough are waiting.
    let handler = move || {
        rustix::io::write(&write, &[signal as u8]).ok();
    };
    // SAFETY: the handler only writes one byte to a socket, which is async-signal-safe.
    unsafe { signal_hook::low_level::register(signal, handler) }.map(drop)
}

/// The service manager, where one wants to know that the daemon is ready and goes on. Elsewhere nothing is told.
#[derive(Debug)]
pub struct Watchdog {
    /// How often it wants to be told; `None` for never.
    every: Option<Duration>,
    told: Instant,
}

impl Watchdog {
    /// Says that the daemon is ready. It will say that it goes on twice as often as it must.
    pub fn ready() -> Watchdog {
        // Who does not listen ends the daemon by its own time limit, and says why.
        tell_manager("READY=1", Some(READY_TIMEOUT)).ok();
        Watchdog { every: limit().map(|limit| limit / 2), told: Instant::now() }
    }

    /// Says that the daemon goes on, where that is due; to be called by its loop.
    pub fn go_on(&mut self) {
        if self.every.is_some_and(|every| self.told.elapsed() >= every) {
            // A manager that does not read now is told the next time.
            tell_manager("WATCHDOG=1", None).ok();
            self.told = Instant::now();
        }
    }
}

/// Within which time the manager wants to hear that this process goes on.
fn limit() -> Option<Duration> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let other = number("WATCHDOG_PID").is_some_and(|pid| pid != u64::from(std::process::id()));
    number("WATCHDOG_USEC").filter(|_| !other).map(Duration::from_micros)
}

/// Sends a word to the service manager, and waits so long for room, or not at all.
fn tell_manager(word: &str, timeout: Option<Duration>) -> io::Result<()> {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    let address = match path.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(&path)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(timeout.is_none())?;
    socket.set_write_timeout(timeout)?;
    socket.send_to_addr(word.as_bytes(), &address).map(drop)
}

/// Prints for whoever listens; the work goes on where nobody does any more, and what finds no room in time is lost.
pub fn say(text: &str) {
    print(io::stdout().lock(), text);
}

/// The same on the standard error.
pub(crate) fn say_error(text: &str) {
    print(io::stderr().lock(), text);
}

fn print(mut out: impl Write + AsFd, text: &str) {
    let timeout = Timespec { tv_sec: READER_MAX.as_secs() as i64, tv_nsec: 0 };
    // Who may not ask, as a confined process, writes all the same.
    let is_full = poll(&mut [PollFd::new(&out, PollFlags::OUT)], Some(&timeout)) == Ok(0);
    if !is_full {
        out.write_all(format!("{text}\n").as_bytes()).and_then(|()| out.flush()).ok();
    }
}

/// CPU time that this process has had.
pub fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn who_does_not_read_keeps_nobody_waiting() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        print(File::from(writer.try_clone().unwrap()), "read");
        let mut line = [0; 5];
        File::from(reader.try_clone().unwrap()).read_exact(&mut line).unwrap();
        assert_eq!(&line, b"read\n");
        let room = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
        File::from(writer.try_clone().unwrap()).write_all(&vec![0; room]).unwrap();
        print(File::from(writer.try_clone().unwrap()), "never read");
        drop(reader);
        print(File::from(writer), "read by nobody");
    }

    #[test]
    fn a_lock_has_one_holder_and_other_users_cannot_open_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = lock(&path).unwrap();
        let held = lock(&path).unwrap_err();
        assert!(matches!(&held, LockError::Held(holder) if *holder == std::process::id().to_string()), "{held}");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(first);
        lock(&path).unwrap();
        assert!(matches!(lock(&folder.path().join("no/lock")), Err(LockError::Open(_))));
    }

    #[test]
    fn signals_arrive_with_their_numbers() {
        let signals = SignalStream::catch(&[usr2()]).unwrap();
        assert!(signals.arrived().is_empty());
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::USR2).unwrap();
        let mut arrived = Vec::new();
        while arrived.is_empty() {
            arrived = signals.arrived();
        }
        assert_eq!(arrived, [usr2()]);
    }

    fn usr2() -> i32 {
        rustix::process::Signal::USR2.as_raw()
    }

    #[test]
    fn ones_own_time_grows() {
        let before = own_cpu();
        while own_cpu() == before {}
    }
}
