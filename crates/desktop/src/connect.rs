// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections to X servers with a time limit on every wait.

use crate::auth::{self, DisplayListener};
use crate::clock;
use crate::error::{DisplayError, Failure};
use crate::framing::Framing;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt,
};
use rustix::process::{Uid, geteuid, getuid};
use rustix::thread::set_thread_res_uid;
use std::io::{self, ErrorKind, IoSlice};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tipme_record::Nanos;
use x11rb::connection::Connection as _;
use x11rb::cookie::{Cookie, VoidCookie};
use x11rb::errors::{ConnectError, ConnectionError};
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{Atom, ConnectionExt as _, Window};
use x11rb::rust_connection::{DefaultStream, PollMode, RustConnection, Stream};
use x11rb::utils::RawFdContainer;
use x11rb::x11_utils::TryParse;

/// Time between two attempts to connect to a server with a full queue.
const REDIAL: Duration = Duration::from_millis(10);

/// Display number, authority file and timeout of a connection.
#[derive(Clone, Debug)]
pub struct DisplayTarget {
    /// Number of the display: 99 in `:99`.
    pub display: u32,
    /// Authority file to try before the server's and the user's own.
    pub authority: Option<PathBuf>,
    /// Maximum duration of one exchange with the server.
    pub timeout: Duration,
}

impl DisplayTarget {
    /// A display with the usual authority files and a timeout of one second.
    pub fn new(display: u32) -> DisplayTarget {
        DisplayTarget { display, authority: None, timeout: Duration::from_secs(1) }
    }

    /// Parses `:99`, `99` or `:99.0`; displays of other hosts are not supported.
    pub fn parse(name: &str) -> Result<DisplayTarget, DisplayError> {
        let number = name.strip_prefix(':').unwrap_or(name);
        let number = number.split('.').next().unwrap_or_default();
        let display =
            number.parse().map_err(|_| DisplayError::BadDisplay { text: name.to_owned() })?;
        Ok(DisplayTarget::new(display))
    }
}

/// A stream with waits that fail at a deadline.
pub(crate) struct BoundedStream {
    inner: DefaultStream,
    /// CLOCK_MONOTONIC nanoseconds.
    deadline: AtomicU64,
    framing: Mutex<Framing>,
}

impl Stream for BoundedStream {
    fn poll(&self, mode: PollMode) -> io::Result<()> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, mode.readable());
        flags.set(PollFlags::OUT, mode.writable());
        let deadline = Nanos(self.deadline.load(Ordering::Relaxed));
        if wait(self.inner.as_fd(), flags, deadline)? {
            Ok(())
        } else {
            Err(ErrorKind::TimedOut.into())
        }
    }

    fn read(&self, buf: &mut [u8], fds: &mut Vec<RawFdContainer>) -> io::Result<usize> {
        let read = self.inner.read(buf, fds)?;
        let fits =
            self.framing.lock().unwrap_or_else(PoisonError::into_inner).mend(&mut buf[..read]);
        if fits {
            Ok(read)
        } else {
            Err(io::Error::new(
                ErrorKind::InvalidData,
                "the server announces a packet that is too long",
            ))
        }
    }

    fn write(&self, buf: &[u8], fds: &mut Vec<RawFdContainer>) -> io::Result<usize> {
        self.inner.write(buf, fds)
    }

    fn write_vectored(
        &self,
        bufs: &[IoSlice<'_>],
        fds: &mut Vec<RawFdContainer>,
    ) -> io::Result<usize> {
        self.inner.write_vectored(bufs, fds)
    }
}

/// Waits until the descriptor is ready (true) or the deadline has passed (false).
pub(crate) fn wait(fd: BorrowedFd<'_>, flags: PollFlags, deadline: Nanos) -> io::Result<bool> {
    wait_any(&[fd], flags, deadline)
}

/// Waits for any one of several descriptors.
fn wait_any(fds: &[BorrowedFd<'_>], flags: PollFlags, deadline: Nanos) -> io::Result<bool> {
    loop {
        let left = Duration::from_nanos(deadline.since(clock::now()).0);
        let timeout =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut fds: Vec<PollFd<'_>> =
            fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, flags)).collect();
        match poll(&mut fds, Some(&timeout)) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The x11rb connection behind a [`DisplayConnection`].
pub(crate) type Wire = RustConnection<BoundedStream>;

/// An open connection to a display.
pub struct DisplayConnection {
    wire: Wire,
    target: DisplayTarget,
    /// Process that listens at the display's socket, as of its `listen` call.
    pub server_pid: u32,
}

impl DisplayConnection {
    /// Connects with the first cookie that the server accepts. If it accepts none, root connects as
    /// the user of the listener.
    ///
    /// Takes at most the target's timeout for all cookies together.
    pub fn open(target: &DisplayTarget) -> Result<DisplayConnection, DisplayError> {
        let display = target.display;
        let deadline = clock::now().after(Nanos(target.timeout.as_nanos() as u64));
        let listener =
            peer(&dial(target, deadline)?).map_err(|error| DisplayError::lost(display, error))?;
        let files = auth::files(target.authority.as_deref(), display, listener);
        let mut cookies: Vec<_> = files
            .iter()
            .flat_map(|(file, named)| auth::read(file, *named, display, listener))
            .collect();
        cookies.push(Vec::new());
        let mut refusal = None;
        for cookie in cookies {
            match greet(target, dial(target, deadline)?, cookie, deadline) {
                Ok(wire) => {
                    return Ok(DisplayConnection {
                        wire,
                        target: target.clone(),
                        server_pid: listener.pid,
                    });
                }
                Err(error @ DisplayError::Refused { .. }) => refusal = refusal.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        let is_other = geteuid().is_root() && listener.uid != 0;
        match is_other.then(|| greet_as_listener(target, listener, deadline)) {
            Some(Ok(wire)) => {
                Ok(DisplayConnection { wire, target: target.clone(), server_pid: listener.pid })
            }
            Some(Err(error @ DisplayError::Hung { .. })) => Err(error),
            _ => Err(refusal
                .unwrap_or_else(|| DisplayError::lost(display, "there is no way to connect"))),
        }
    }

    /// The number of the display.
    pub fn display(&self) -> u32 {
        self.target.display
    }

    /// The protocol connection, valid for one exchange within the target's timeout from now.
    pub(crate) fn wire(&self) -> &Wire {
        allow(&self.wire, self.target.timeout);
        &self.wire
    }

    /// The root window of the first screen.
    pub(crate) fn root(&self) -> Window {
        self.wire.setup().roots.first().map_or(0, |screen| screen.root)
    }

    /// The socket, to poll it together with others.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.wire.stream().inner.as_fd()
    }

    /// Waits for the next event; returns `None` at the deadline.
    pub(crate) fn event(&self, deadline: Nanos) -> Result<Option<Event>, DisplayError> {
        self.event_unless(deadline, None)
    }

    /// Waits for the next event; returns `None` at the deadline, or once `wakeup` is readable.
    pub(crate) fn event_unless(
        &self,
        deadline: Nanos,
        wakeup: Option<BorrowedFd<'_>>,
    ) -> Result<Option<Event>, DisplayError> {
        loop {
            if let Some(event) = self.wire().poll_for_event().map_err(|error| self.failed(error))? {
                return Ok(Some(event));
            }
            let fds: Vec<BorrowedFd<'_>> = [self.fd()].into_iter().chain(wakeup).collect();
            let waited = wait_any(&fds, PollFlags::IN, deadline);
            let is_ready = waited.map_err(|error| DisplayError::lost(self.display(), error))?;
            if !is_ready
                || wakeup.is_some_and(|fd| wait(fd, PollFlags::IN, Nanos(0)).unwrap_or(true))
            {
                return Ok(None);
            }
        }
    }

    /// Returns `true` if the server has closed its end.
    pub(crate) fn has_ended(&self) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.fd(), PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok()
            && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }

    /// Sends the buffered requests.
    pub(crate) fn flush(&self) -> Result<(), DisplayError> {
        self.wire().flush().map_err(|error| self.failed(error))
    }

    /// Returns an unused identifier for a new object of the server.
    pub(crate) fn new_id(&self) -> Result<u32, DisplayError> {
        self.wire().generate_id().map_err(|error| self.failed(error))
    }

    pub(crate) fn atom(&self, name: &[u8]) -> Result<Atom, DisplayError> {
        Ok(self.reply(self.wire().intern_atom(false, name))?.atom)
    }

    /// Does not wait for a request to be processed, and ignores its error.
    pub(crate) fn send(
        &self,
        sent: Result<VoidCookie<'_, Wire>, ConnectionError>,
    ) -> Result<(), DisplayError> {
        sent.map(VoidCookie::ignore_error).map_err(|error| self.failed(error))
    }

    /// Waits until the server has processed a request.
    pub(crate) fn done(
        &self,
        sent: Result<VoidCookie<'_, Wire>, ConnectionError>,
    ) -> Result<(), DisplayError> {
        sent.map_err(|error| self.failed(error))?.check().map_err(|error| self.failed(error))
    }

    /// Waits for the reply to a query.
    pub(crate) fn reply<R: TryParse>(
        &self,
        sent: Result<Cookie<'_, Wire, R>, ConnectionError>,
    ) -> Result<R, DisplayError> {
        sent.map_err(|error| self.failed(error))?.reply().map_err(|error| self.failed(error))
    }

    /// Converts a failed request's error by its cause.
    pub(crate) fn failed(&self, error: impl Failure) -> DisplayError {
        failure(&self.target, &error)
    }
}

fn failure(target: &DisplayTarget, error: &impl Failure) -> DisplayError {
    let display = target.display;
    if error.timed_out() {
        DisplayError::Hung { display, limit_ms: target.timeout.as_millis() }
    } else {
        DisplayError::lost(display, error.to_string())
    }
}

fn allow(wire: &Wire, timeout: Duration) {
    let deadline = clock::now().after(Nanos(timeout.as_nanos() as u64));
    wire.stream().deadline.store(deadline.0, Ordering::Relaxed);
}

/// Connects to the display's socket. Retries until the deadline if the backlog is full, as
/// Xwayland's is for a moment whenever two programs connect at once.
fn dial(target: &DisplayTarget, deadline: Nanos) -> Result<OwnedFd, DisplayError> {
    loop {
        match dial_now(target) {
            Err(DisplayError::Hung { .. }) if clock::now() < deadline => std::thread::sleep(REDIAL),
            other => return other,
        }
    }
}

/// Opens the display's socket: the one in the file system, else the abstract one.
fn dial_now(target: &DisplayTarget) -> Result<OwnedFd, DisplayError> {
    let path = format!("/tmp/.X11-unix/X{}", target.display);
    let mut dialled = SocketAddrUnix::new(path.as_str()).and_then(|address| dial_address(&address));
    if let Err(error) = dialled
        && error != Errno::AGAIN
    {
        let address = SocketAddrUnix::new_abstract_name(path.as_bytes());
        dialled = address
            .and_then(|address| dial_address(&address))
            .map_err(|second| if second == Errno::AGAIN { second } else { error });
    }
    match dialled {
        Ok(fd) => Ok(fd),
        Err(Errno::AGAIN) => Err(DisplayError::Hung {
            display: target.display,
            limit_ms: target.timeout.as_millis(),
        }),
        Err(error) => Err(DisplayError::NoServer {
            display: target.display,
            reason: io::Error::from(error).to_string(),
        }),
    }
}

/// Connects to a socket, unless its backlog is full, so that the call would block.
pub(crate) fn dial_address(address: &SocketAddrUnix) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&fd, address)?;
    Ok(fd)
}

/// Returns the process that listens at the other end.
pub(crate) fn peer(fd: &OwnedFd) -> io::Result<DisplayListener> {
    let credentials = sockopt::socket_peercred(fd)?;
    Ok(DisplayListener {
        pid: credentials.pid.as_raw_nonzero().get() as u32,
        uid: credentials.uid.as_raw(),
    })
}

/// Calls `run` with the privileges of another user, in a thread of its own. Only the effective user
/// id changes, so that this user can neither signal nor trace the thread.
pub(crate) fn as_user<T: Send + 'static>(
    user: Uid,
    run: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    std::thread::Builder::new()
        .spawn(move || {
            if user != geteuid() {
                set_thread_res_uid(getuid(), user, geteuid())?;
            }
            run()
        })?
        .join()
        .map_err(|_| io::Error::other("the thread that connects has failed"))?
}

/// Connects as the user of the listener: a server that a compositor starts may refuse all others,
/// even root.
fn greet_as_listener(
    target: &DisplayTarget,
    listener: DisplayListener,
    deadline: Nanos,
) -> Result<Wire, DisplayError> {
    let to = target.clone();
    let dialled = as_user(Uid::from_raw(listener.uid), move || Ok(dial(&to, deadline)));
    let socket = dialled.map_err(|error| DisplayError::lost(target.display, error))??;
    greet(target, socket, Vec::new(), deadline)
}

/// A server without room refuses a client like one without authority, but no cookie helps.
fn refused(display: u32, reason: &str) -> DisplayError {
    if reason.contains("Maximum number of clients") {
        return DisplayError::lost(display, format!("{reason}; close programs with windows there"));
    }
    DisplayError::Refused { display, reason: reason.to_owned() }
}

fn greet(
    target: &DisplayTarget,
    socket: OwnedFd,
    cookie: Vec<u8>,
    deadline: Nanos,
) -> Result<Wire, DisplayError> {
    let display = target.display;
    let stream = UnixStream::from(socket);
    let (inner, _) = DefaultStream::from_unix_stream(stream)
        .map_err(|error| DisplayError::lost(display, error))?;
    let stream =
        BoundedStream { inner, deadline: AtomicU64::new(deadline.0), framing: Mutex::default() };
    let name = if cookie.is_empty() { Vec::new() } else { b"MIT-MAGIC-COOKIE-1".to_vec() };
    RustConnection::connect_to_stream_with_auth_info(stream, 0, name, cookie).map_err(|error| {
        match &error {
            ConnectError::SetupFailed(failed) => {
                refused(display, String::from_utf8_lossy(&failed.reason).trim())
            }
            ConnectError::SetupAuthenticate(_) => DisplayError::Refused {
                display,
                reason: "the server requires another kind of authorization".to_string(),
            },
            other => failure(target, other),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{accept, bind, listen, socket};
    use rustix::thread::gettid;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::sync::mpsc::channel;

    /// A server with a backlog of one, which is already occupied.
    fn full(display: u32) -> (OwnedFd, OwnedFd) {
        let path = format!("/tmp/.X11-unix/X{display}");
        let address = SocketAddrUnix::new_abstract_name(path.as_bytes()).expect("a name");
        let server = socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
        bind(&server, &address).expect("nobody has this display");
        listen(&server, 0).expect("it listens");
        (server, dial_address(&address).expect("the first one may wait"))
    }

    #[test]
    fn a_server_with_a_full_queue_hangs_only_after_the_timeout() {
        let display = 50_000 + std::process::id() % 9_000;
        let (server, _first) = full(display);
        let target =
            DisplayTarget { timeout: Duration::from_millis(200), ..DisplayTarget::new(display) };
        let begun = clock::now();
        let error = DisplayConnection::open(&target).err().expect("nobody accepts");
        assert!(error.to_string().contains("did not answer within 200 ms"), "{error}");
        assert!(clock::now().since(begun) >= Nanos::from_millis(200));

        let drain = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            accept(&server).map(|_| server)
        });
        let deadline = clock::now().after(Nanos::from_secs(5));
        assert!(dial(&target, deadline).is_ok(), "there is room after a moment");
        drain.join().expect("it does not panic").expect("one waits");
    }

    #[test]
    fn a_user_cannot_signal_a_thread_that_dials_as_that_user() {
        let user = Uid::from_raw(4242);
        let ((begun, thread), (end, ended)) = (channel(), channel::<()>());
        let dialled = std::thread::spawn(move || {
            as_user(user, move || {
                begun.send(gettid()).expect("the test waits");
                ended.recv().expect("the test lets it go on");
                Ok((getuid(), geteuid()))
            })
        });
        let tid = thread.recv().expect("root may be anybody").as_raw_nonzero();
        let kill = ["-c".to_owned(), format!("kill -0 {tid}")];
        let signals =
            Command::new("sh").args(kill).uid(user.as_raw()).stderr(Stdio::null()).status();
        end.send(()).expect("it waits");
        let dialled = dialled.join().expect("it does not panic").expect("root may be anybody");
        assert_eq!((dialled, geteuid()), ((Uid::ROOT, user), Uid::ROOT));
        assert!(!signals.expect("there is a shell").success(), "the user may send it signals");
    }

    #[test]
    fn a_full_server_is_no_matter_of_authority() {
        let full = refused(7, "Maximum number of clients reached");
        assert!(matches!(full, DisplayError::Lost { display: 7, .. }), "{full}");
        let unknown = refused(7, "Authorization required, but no authorization protocol specified");
        assert!(matches!(unknown, DisplayError::Refused { display: 7, .. }), "{unknown}");
    }

    #[test]
    fn display_names_are_read() {
        let names = [":0", "12", ":99.0", "host:0", "", ":x"];
        let numbers =
            names.map(|name| DisplayTarget::parse(name).ok().map(|target| target.display));
        assert_eq!(numbers, [Some(0), Some(12), Some(99), None, None, None]);
    }
}
