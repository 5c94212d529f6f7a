// SPDX-License-Identifier: MIT OR Apache-2.0
//! The socket's file, and connections to it.

use crate::connection::Caller;
use crate::daemon::Daemon;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Time without accepting connections after an error, such as a lack of file descriptors, or after
/// too many.
const DEAF: Duration = Duration::from_millis(200);

/// Reason for a failure to create the socket.
#[derive(Debug, Error)]
pub enum BindError {
    #[error(
        "a {daemon} listens at {} already; stop it, or use another --state-dir", path.display()
    )]
    Taken { daemon: &'static str, path: PathBuf },
    #[error(
        "cannot listen at {}: {cause}; choose a writable --state-dir with a short path",
        path.display()
    )]
    Io { path: PathBuf, cause: io::Error },
}

/// A socket that any user may connect to. The file is removed on drop.
#[derive(Debug)]
pub struct SocketListener {
    listener: UnixListener,
    path: PathBuf,
    deaf_until: Option<Instant>,
}

impl SocketListener {
    /// Listens at `path`. Replaces a socket file left by a killed daemon.
    ///
    /// # Errors
    /// If another process listens there, or the socket cannot be created.
    pub fn bind<D: Daemon>(path: &Path) -> Result<SocketListener, BindError> {
        if UnixStream::connect(path).is_ok() {
            return Err(BindError::Taken { daemon: D::NAME, path: path.to_owned() });
        }
        let listener =
            listen(path).map_err(|cause| BindError::Io { path: path.to_owned(), cause })?;
        Ok(SocketListener { listener, path: path.to_owned(), deaf_until: None })
    }

    /// Returns a descriptor that becomes readable on a connection; `None` while none are accepted.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.deaf_until.is_none().then(|| self.listener.as_fd())
    }

    /// Returns the time at which [`SocketListener::accept`] is due even without a readable
    /// descriptor.
    pub fn deadline(&self) -> Option<Instant> {
        self.deaf_until
    }

    /// Stops accepting for a while; new connections wait.
    pub fn rest(&mut self, now: Instant) {
        self.rest_for(now, DEAF);
    }

    /// Stops accepting for this time.
    pub(crate) fn rest_for(&mut self, now: Instant, time: Duration) {
        self.deaf_until = Some(now + time);
    }

    /// Accepts the next connection as a non-blocking stream; never blocks.
    pub fn accept(&mut self, now: Instant) -> Option<(UnixStream, Caller)> {
        self.deaf_until.take_if(|until| *until <= now);
        while self.deaf_until.is_none() {
            match self.listener.accept() {
                // Without credentials or non-blocking mode, a connection cannot be served.
                Ok((stream, _)) => match (peer(&stream), stream.set_nonblocking(true)) {
                    (Ok(caller), Ok(())) => return Some((stream, caller)),
                    _ => continue,
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(_) => self.rest(now),
            }
        }
        None
    }
}

impl Drop for SocketListener {
    fn drop(&mut self) {
        // A file that stays is replaced by the next daemon.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns the peer's credentials from the time of the connection.
pub(crate) fn peer(stream: &UnixStream) -> io::Result<Caller> {
    let peer = socket_peercred(stream)?;
    Ok(Caller { pid: peer.pid.as_raw_nonzero().get().unsigned_abs(), uid: peer.uid.as_raw() })
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    open_to_all(path)?;
    Ok(listener)
}

/// Allows all users to connect. If another file has replaced the socket meanwhile, it is left
/// alone.
fn open_to_all(path: &Path) -> io::Result<()> {
    let socket = open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let found = fstat(&socket)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Socket
        || found.st_uid != geteuid().as_raw()
    {
        return Err(io::Error::other("another file has replaced it"));
    }
    let same = format!("/proc/self/fd/{}", socket.as_raw_fd());
    std::fs::set_permissions(same, std::fs::Permissions::from_mode(0o666))
}
