// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keyboard and pointer by Mutter's own interface for remote desktops,
//! `org.gnome.Mutter.RemoteDesktop`, over D-Bus.

use super::events::button_code;
use crate::clock;
use crate::compositor::CompositorLink;
use crate::connect::as_user;
use crate::error::DisplayError;
use crate::inject::device::InjectionDevice;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::Uid;
use serde::Serialize;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::mpsc;
use std::time::Duration;
use tipme_record::Nanos;
use zbus::Address;
use zbus::address::transport::{Transport, UnixSocket};
use zbus::blocking::{Proxy, connection::Builder};
use zbus::zvariant::{DynamicType, OwnedObjectPath};

const NAME: &str = "org.gnome.Mutter.RemoteDesktop";
const OBJECT: &str = "/org/gnome/Mutter/RemoteDesktop";
const SESSION: &str = "org.gnome.Mutter.RemoteDesktop.Session";
/// Maximum time for the bus or Mutter to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Environment variable with the session bus.
const VARIABLE: &[u8] = b"DBUS_SESSION_BUS_ADDRESS=";

/// The axis of a wheel.
const VERTICAL: u32 = 0;
/// Distance larger than any screen: it moves the pointer into the first corner.
const FAR: f64 = -100_000.0;

/// A session of Mutter that can press keys and buttons; it ends with the value.
pub(super) struct RemoteDesktop {
    session: Proxy<'static>,
    display: String,
}

impl RemoteDesktop {
    /// Opens a session at the compositor behind a link, on the bus of its user and with that user's
    /// privileges.
    ///
    /// The error is the reason.
    pub(super) fn open(link: &CompositorLink, socket: &Path) -> Result<RemoteDesktop, String> {
        let display = link.name().to_owned();
        let owner = Uid::from_raw(link.listener().uid);
        let address = bus_address(link.listener().pid, socket)?;
        let (sender, opened) = mpsc::sync_channel(1);
        // If nobody waits any more, the session ends here.
        std::thread::spawn(move || drop(sender.send(session(&address, owner))));
        let session = opened
            .recv_timeout(TIMEOUT)
            .map_err(|_| "its message bus does not answer".to_owned())??;
        Ok(RemoteDesktop { session, display })
    }

    /// Calls a method of the session without waiting; returns the time of the call.
    fn notify(
        &self,
        method: &'static str,
        arguments: &(impl Serialize + DynamicType),
    ) -> Result<Nanos, DisplayError> {
        let at = clock::now();
        let sent = self.session.call_noreply(method, arguments);
        sent.map_err(|error| self.failed(&error)).map(|()| at)
    }

    fn failed(&self, error: &zbus::Error) -> DisplayError {
        DisplayError::Compositor { display: self.display.clone(), reason: error.to_string() }
    }
}

impl InjectionDevice for RemoteDesktop {
    fn display(&self) -> String {
        self.display.clone()
    }

    fn key(&mut self, code: u8, pressed: bool) -> Result<Nanos, DisplayError> {
        self.notify("NotifyKeyboardKeycode", &(u32::from(code), pressed))
    }

    fn button(&mut self, button: u8, pressed: bool) -> Result<Nanos, DisplayError> {
        self.notify("NotifyPointerButton", &(button_code(button) as i32, pressed))
    }

    fn turn_wheel(&mut self, down: bool) -> Result<Nanos, DisplayError> {
        self.notify("NotifyPointerAxisDiscrete", &(VERTICAL, if down { 1i32 } else { -1 }))
    }

    /// Without a screen cast stream only relative motions are accepted: first one into the corner.
    fn move_to(&mut self, x: i16, y: i16) -> Result<Nanos, DisplayError> {
        self.notify("NotifyPointerMotionRelative", &(FAR, FAR))?;
        self.notify("NotifyPointerMotionRelative", &(f64::from(x), f64::from(y)))
    }

    fn settle(&mut self) -> Result<(), DisplayError> {
        let peer = self.session.connection().call_method(
            Some(NAME),
            OBJECT,
            Some("org.freedesktop.DBus.Peer"),
            "Ping",
            &(),
        );
        peer.map(|_| ()).map_err(|error| self.failed(&error))
    }
}

/// Starts a session.
fn session(address: &SocketAddrUnix, owner: Uid) -> Result<Proxy<'static>, String> {
    let stream =
        dial_as(owner, address.clone()).map_err(|error| format!("its message bus: {error}"))?;
    start_session(stream, owner).map_err(|error| format!("on its message bus: {error}"))
}

fn start_session(stream: UnixStream, owner: Uid) -> zbus::Result<Proxy<'static>> {
    let bus = Builder::async_io_unix_stream(stream)
        .user_id(owner.as_raw())
        .method_timeout(TIMEOUT)
        .build()?;
    let created = bus.call_method(Some(NAME), OBJECT, Some(NAME), "CreateSession", &())?;
    let path: OwnedObjectPath = created.body().deserialize()?;
    let session = Proxy::new(&bus, NAME, path, SESSION)?;
    session.call_method("Start", &())?;
    Ok(session)
}

/// Connects as the user of the session, the only one that its bus accepts.
fn dial_as(owner: Uid, address: SocketAddrUnix) -> io::Result<UnixStream> {
    as_user(owner, move || {
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        connect(&socket, &address)?;
        Ok(UnixStream::from(socket))
    })
}

/// Finds the bus of a compositor's session: from the compositor's environment, else in the folder
/// of its socket.
fn bus_address(pid: u32, socket: &Path) -> Result<SocketAddrUnix, String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let found = match named(&environment) {
        Some(text) => address(&text),
        None => SocketAddrUnix::new(beside(socket)).map_err(|error| error.to_string()),
    };
    found.map_err(|error| format!("its message bus has no usable address: {error}"))
}

fn beside(socket: &Path) -> PathBuf {
    socket.with_file_name("bus")
}

/// Returns the bus named in an environment, as in `/proc/PID/environ`.
fn named(environment: &[u8]) -> Option<String> {
    let found =
        environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(VARIABLE))?;
    String::from_utf8(found.to_vec()).ok().filter(|text| !text.is_empty())
}

/// Returns the socket of a bus address.
fn address(text: &str) -> Result<SocketAddrUnix, String> {
    let address = Address::from_str(text).map_err(|error| error.to_string())?;
    let Transport::Unix(unix) = address.transport() else {
        return Err(format!("{text} is not a local socket"));
    };
    let socket = match unix.path() {
        UnixSocket::File(path) => SocketAddrUnix::new(path),
        UnixSocket::Abstract(name) => SocketAddrUnix::new_abstract_name(name.as_encoded_bytes()),
        _ => return Err(format!("{text} is not a listening socket")),
    };
    socket.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bus_is_the_one_in_the_compositors_environment() {
        let environment = b"HOME=/root\0DBUS_SESSION_BUS_ADDRESS=unix:path=/tmp/dbus-a,\
                            guid=0123456789abcdef0123456789abcdef\0X=1\0";
        let text = named(environment).expect("it is named");
        assert_eq!(address(&text), Ok(SocketAddrUnix::new("/tmp/dbus-a").expect("a path")));
        assert_eq!(
            address("unix:abstract=bus"),
            Ok(SocketAddrUnix::new_abstract_name(b"bus").expect("a name"))
        );
        assert_eq!(named(b"HOME=/root\0"), None);
        assert!(address("tcp:host=localhost,port=1").is_err() && address("nonsense").is_err());
    }

    #[test]
    fn without_an_address_the_bus_is_beside_the_display() {
        assert_eq!(beside(Path::new("/run/user/7/wayland-0")), Path::new("/run/user/7/bus"));
    }
}
