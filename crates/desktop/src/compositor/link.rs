// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connection to a compositor with a time limit on every wait.

use super::clipboard_news::ClipboardNews;
use super::frame::Frame;
use crate::auth::DisplayListener;
use crate::clock;
use crate::connect::{dial_address, peer, wait};
use crate::error::DisplayError;
use rustix::event::PollFlags;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::SocketAddrUnix;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use tipme_record::Nanos;
use wayland_client::backend::WaylandError;
use wayland_client::protocol::wl_callback::{self, WlCallback};
use wayland_client::protocol::wl_output::{self, Mode, WlOutput};
use wayland_client::protocol::wl_registry::{self, WlRegistry};
use wayland_client::{Connection, Dispatch, EventQueue, Proxy, QueueHandle, WEnum};

/// Maximum duration of one exchange.
pub(super) const TIMEOUT: Nanos = Nanos::from_secs(30);

/// Maximum number of stored globals of a compositor.
const GLOBALS_MAX: usize = 1_000;

/// Opens a connection to the socket of a compositor.
pub(super) fn dial(socket: &Path) -> io::Result<OwnedFd> {
    Ok(dial_address(&SocketAddrUnix::new(socket)?)?)
}

pub(super) fn failed(socket: &Path, reason: impl ToString) -> DisplayError {
    DisplayError::Compositor { display: socket.display().to_string(), reason: reason.to_string() }
}

/// State of the compositor from its events.
#[derive(Default)]
pub(crate) struct CompositorState {
    /// Its globals: name (number) and version of each interface.
    globals: BTreeMap<String, (u32, u32)>,
    /// It has processed everything that was sent before the sync request.
    settled: bool,
    pub(super) frame: Frame,
    pub(crate) clipboard: ClipboardNews,
    /// Size of the bound output, in pixels.
    screen: (u32, u32),
}

/// A connection to a compositor.
pub(crate) struct CompositorLink {
    name: String,
    listener: DisplayListener,
    connection: Connection,
    queue: EventQueue<CompositorState>,
    registry: WlRegistry,
    pub(crate) heard: CompositorState,
}

impl CompositorLink {
    /// Connects, and reads the compositor's globals.
    pub(crate) fn open(socket: &Path) -> Result<CompositorLink, DisplayError> {
        let stream = dial(socket).map_err(|error| failed(socket, error))?;
        let listener = peer(&stream).map_err(|error| failed(socket, error))?;
        let connection = Connection::from_socket(UnixStream::from(stream))
            .map_err(|error| failed(socket, error))?;
        let queue = connection.new_event_queue();
        let registry = connection.display().get_registry(&queue.handle(), ());
        let name = socket.display().to_string();
        let mut link = CompositorLink {
            name,
            listener,
            connection,
            queue,
            registry,
            heard: CompositorState::default(),
        };
        link.settle()?;
        Ok(link)
    }

    /// Name of the compositor for output.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Process that listens at its socket.
    pub(crate) fn listener(&self) -> DisplayListener {
        self.listener
    }

    pub(crate) fn handle(&self) -> QueueHandle<CompositorState> {
        self.queue.handle()
    }

    /// Binds an interface, in this version or the compositor's if that is lower; returns `None` if
    /// it has none.
    pub(crate) fn bind<I: Proxy + 'static>(&mut self, version: u32) -> Option<I>
    where
        CompositorState: Dispatch<I, ()>,
    {
        let (number, offered) = *self.heard.globals.get(I::interface().name)?;
        Some(self.registry.bind(number, version.min(offered), &self.handle(), ()))
    }

    /// Size of the bound output, in pixels; 1 by 1 until it is known.
    pub(crate) fn screen(&self) -> (u32, u32) {
        let (width, height) = self.heard.screen;
        (width.max(1), height.max(1))
    }

    /// Sends the buffered requests.
    pub(crate) fn flush(&self) -> Result<(), DisplayError> {
        match self.connection.flush() {
            // The rest goes with the next exchange.
            Err(WaylandError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            sent => sent.map_err(|error| self.lost(error)),
        }
    }

    /// Waits until the compositor has processed everything sent so far.
    pub(crate) fn settle(&mut self) -> Result<(), DisplayError> {
        self.heard.settled = false;
        self.connection.display().sync(&self.handle(), ());
        if self.wait(clock::now().after(TIMEOUT), |heard| heard.settled)? {
            return Ok(());
        }
        Err(self.lost(format!(
            "no answer within {} s: it hangs or is stopped",
            TIMEOUT.0 / 1_000_000_000
        )))
    }

    /// Handles events until the condition holds (`true`), or the deadline has passed (`false`).
    pub(crate) fn wait(
        &mut self,
        deadline: Nanos,
        enough: impl Fn(&CompositorState) -> bool,
    ) -> Result<bool, DisplayError> {
        loop {
            let handled = self.queue.dispatch_pending(&mut self.heard);
            handled.map_err(|error| self.lost(error))?;
            if enough(&self.heard) {
                return Ok(true);
            }
            self.flush()?;
            let Some(guard) = self.queue.prepare_read() else { continue };
            let ready = wait(guard.connection_fd().as_fd(), PollFlags::IN, deadline);
            if !ready.map_err(|error| self.lost(error))? || clock::now() >= deadline {
                return Ok(false);
            }
            match guard.read() {
                Err(WaylandError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => drop(read.map_err(|error| self.lost(error))?),
            }
        }
    }

    pub(crate) fn lost(&self, reason: impl ToString) -> DisplayError {
        DisplayError::Compositor { display: self.name.clone(), reason: reason.to_string() }
    }
}

impl Dispatch<WlRegistry, ()> for CompositorState {
    fn event(
        heard: &mut CompositorState,
        _: &WlRegistry,
        event: wl_registry::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<CompositorState>,
    ) {
        if let wl_registry::Event::Global { name, interface, version } = event
            && heard.globals.len() < GLOBALS_MAX
        {
            heard.globals.insert(interface, (name, version));
        }
    }
}

impl Dispatch<WlOutput, ()> for CompositorState {
    fn event(
        heard: &mut CompositorState,
        _: &WlOutput,
        event: wl_output::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<CompositorState>,
    ) {
        if let wl_output::Event::Mode { flags: WEnum::Value(flags), width, height, .. } = event
            && flags.contains(Mode::Current)
        {
            heard.screen = (width.max(0).unsigned_abs(), height.max(0).unsigned_abs());
        }
    }
}

impl Dispatch<WlCallback, ()> for CompositorState {
    fn event(
        heard: &mut CompositorState,
        _: &WlCallback,
        _: wl_callback::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<CompositorState>,
    ) {
        heard.settled = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::UnixListener;

    /// Length of a client's first requests: for the registry and for a sync, as objects 2 and 3.
    const ASKED_BYTES: usize = 24;

    /// Reply of a compositor that has a seat, and has processed everything.
    fn answer() -> Vec<u8> {
        let name = b"wl_seat\0".as_chunks().0;
        let seat = [2, 28 << 16, 7, 8, u32::from_le_bytes(name[0]), u32::from_le_bytes(name[1]), 5];
        let done = [3, 12 << 16, 1];
        seat.iter().chain(&done).flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Connects to a simulated compositor with this reply.
    fn open(answer: Vec<u8>, says_no_more: bool) -> Result<CompositorLink, DisplayError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("wayland-3");
        let listener = UnixListener::bind(&path).expect("a socket");
        let compositor = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().expect("a client");
            client.read_exact(&mut [0; ASKED_BYTES]).expect("it asks");
            client.write_all(&answer).expect("it listens");
            if says_no_more {
                client.shutdown(Shutdown::Write).expect("it listens");
            }
            client
        });
        let opened = CompositorLink::open(&path);
        drop(compositor.join().expect("the compositor answers"));
        opened
    }

    #[test]
    fn what_a_compositor_offers_is_known() {
        let link = open(answer(), false).expect("it answers");
        assert_eq!(link.heard.globals, BTreeMap::from([("wl_seat".to_owned(), (7, 5))]));
        assert_eq!(link.listener().pid, std::process::id());
    }

    #[test]
    fn no_answer_of_a_compositor_ends_the_program() {
        let (whole, mut numbers) = (answer(), fastrand::Rng::with_seed(1));
        let mut refused = 0;
        for _ in 0..400 {
            let mut bytes = whole.clone();
            for _ in 0..=numbers.usize(..3) {
                let at = numbers.usize(..bytes.len());
                bytes[at] = numbers.u8(..);
            }
            bytes.truncate(bytes.len() - numbers.usize(..2) * numbers.usize(..whole.len()));
            refused += usize::from(open(bytes, true).is_err());
        }
        assert!(refused > 200, "{refused}");
    }
}
