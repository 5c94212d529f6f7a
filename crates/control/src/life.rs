// SPDX-License-Identifier: MIT OR Apache-2.0
//! Common parts of the daemons besides their sockets: a lock per folder, signals, service
//! notifications, output, and their own CPU time.

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

/// Maximum number of signals returned at a time; the next call returns the rest.
const ARRIVED_MAX: usize = 64;
/// Maximum time to wait for the service manager to accept the readiness notification.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time to wait until a reader has consumed earlier output.
const READER_MAX: Duration = Duration::from_secs(1);
/// Maximum bytes read of a lock file, which holds only a pid.
const HOLDER_BYTES_MAX: u64 = 32;

/// Reason for a failure to lock.
#[derive(Debug, Error)]
pub enum LockError {
    /// Held by the process with this pid, if known.
    #[error("process {0} has the lock; end it, or use another --state-dir")]
    Held(String),
    #[error("cannot open the lock: {0}; use a --state-dir that this user can write to")]
    Open(io::Error),
    #[error("cannot write the lock: {0}; make room, or use another --state-dir")]
    Write(io::Error),
}

/// Takes a lock on a file, held until the value is dropped. Only the owner of the file can open it,
/// so no other user can hold it. A symbolic link is not followed.
///
/// # Errors
/// If another process holds the lock, or the file cannot be used.
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
    file.set_len(0)
        .and_then(|()| write!(file, "{}", std::process::id()))
        .map_err(LockError::Write)?;
    Ok(file)
}

/// Signals as bytes in a stream for `poll`: one byte with the number of each.
#[derive(Debug)]
pub struct SignalStream(UnixStream);

impl SignalStream {
    /// Catches these signals; from now on they only arrive here.
    ///
    /// # Errors
    /// If the kernel refuses one of them, or there are no file descriptors left.
    pub fn catch(signals: &[i32]) -> io::Result<SignalStream> {
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        signals.iter().try_for_each(|signal| catch_one(*signal, write.try_clone()?))?;
        Ok(SignalStream(read))
    }

    /// Returns a descriptor that becomes readable on a signal.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Returns the signals since the last call.
    pub fn arrived(&self) -> Vec<i32> {
        let mut bytes = [0; ARRIVED_MAX];
        let count = (&self.0).read(&mut bytes).unwrap_or(0);
        bytes[..count].iter().map(|byte| i32::from(*byte)).collect()
    }
}

fn catch_one(signal: i32, write: UnixStream) -> io::Result<()> {
    // A full stream already has enough pending signals.
    // SAFETY: the handler only writes one byte to a socket, which is async-signal-safe.
    let id = unsafe {
        signal_hook::low_level::register(signal, move || {
            rustix::io::write(&write, &[signal as u8]).ok();
        })
    };
    id.map(drop)
}

/// Notifications to the service manager about readiness and liveness (`sd_notify`); without a
/// manager, there are none.
#[derive(Debug)]
pub struct Watchdog {
    /// Period of liveness notifications; `None` if the manager expects none.
    every: Option<Duration>,
    notified: Instant,
}

impl Watchdog {
    /// Reports that the daemon is ready. Later reports come twice as often as the manager requires.
    pub fn ready() -> Watchdog {
        // A manager that misses it ends the daemon by its start timeout, and logs that.
        notify_manager("READY=1", Some(READY_TIMEOUT)).ok();
        Watchdog { every: limit().map(|limit| limit / 2), notified: Instant::now() }
    }

    /// Reports that the daemon is alive, if due. Call from its loop.
    pub fn go_on(&mut self) {
        if self.every.is_some_and(|every| self.notified.elapsed() >= every) {
            // A failed notification is repeated next time.
            notify_manager("WATCHDOG=1", None).ok();
            self.notified = Instant::now();
        }
    }
}

/// Returns the watchdog timeout of the manager for this process.
fn limit() -> Option<Duration> {
    let other = variable("WATCHDOG_PID").is_some_and(|pid| pid != u64::from(std::process::id()));
    variable("WATCHDOG_USEC").filter(|_| !other).map(Duration::from_micros)
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Sends a notification to the service manager, waiting at most `timeout` for buffer space, or not
/// at all.
fn notify_manager(word: &str, timeout: Option<Duration>) -> io::Result<()> {
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

/// Prints a line to standard output. Work goes on without a reader, and output that finds no buffer
/// space in time is lost.
pub fn say(text: &str) {
    print(io::stdout().lock(), text);
}

/// Prints a line to standard error, under the same conditions.
pub(crate) fn say_error(text: &str) {
    print(io::stderr().lock(), text);
}

fn print(mut out: impl Write + AsFd, text: &str) {
    let timeout = Timespec { tv_sec: READER_MAX.as_secs() as i64, tv_nsec: 0 };
    // A confined process that may not poll writes nevertheless.
    let is_full = poll(&mut [PollFd::new(&out, PollFlags::OUT)], Some(&timeout)) == Ok(0);
    if !is_full {
        out.write_all(format!("{text}\n").as_bytes()).and_then(|()| out.flush()).ok();
    }
}

/// Returns the CPU time consumed by this process.
pub fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn printing_does_not_wait_for_a_reader() {
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
        assert!(
            matches!(&held, LockError::Held(holder) if *holder == std::process::id().to_string()),
            "{held}"
        );
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(first);
        lock(&path).unwrap();
        assert!(matches!(lock(&folder.path().join("no/lock")), Err(LockError::Open(_))));
    }

    #[test]
    fn signals_arrive_with_their_numbers() {
        let signals = SignalStream::catch(&[usr2()]).unwrap();
        assert!(signals.arrived().is_empty());
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::USR2)
            .unwrap();
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
    fn own_cpu_time_grows() {
        let before = own_cpu();
        while own_cpu() == before {}
    }
}
