// SPDX-License-Identifier: MIT OR Apache-2.0
//! Display servers of this machine, and the extensions of the X servers among them.

use crate::connect::{DisplayConnection, DisplayTarget, dial_address};
use crate::error::DisplayError;
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;
use std::collections::BTreeSet;
use std::time::Duration;
use tipme_record::incident::{Display, Extension};
use x11rb::protocol::xproto::ConnectionExt as _;

/// Maximum number of displays.
const DISPLAYS_MAX: usize = 64;
/// Maximum number of names read from the folder of sockets, in which any user can create some.
const NAMES_MAX: usize = 4096;

/// Returns the numbers of the displays with a listening socket: one that a server has left behind
/// refuses connections.
pub fn find() -> Vec<u32> {
    let listening = x_displays(&sockets());
    let names = std::fs::read_dir("/tmp/.X11-unix").into_iter().flatten().flatten();
    let names = names
        .take(NAMES_MAX)
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix('X')?.parse().ok());
    let all: BTreeSet<u32> = names.chain(listening.iter().copied()).collect();
    // The kernel lists no sockets of other network namespaces, which accept connections by path.
    let is_display = |number: &u32| listening.contains(number) || !refuses(*number);
    all.into_iter().filter(is_display).take(DISPLAYS_MAX).collect()
}

/// Returns `true` if nobody listens on the socket of this display in the file system.
fn refuses(display: u32) -> bool {
    let address = SocketAddrUnix::new(format!("/tmp/.X11-unix/X{display}"));
    address
        .and_then(|address| dial_address(&address))
        .is_err_and(|error| error == Errno::CONNREFUSED)
}

/// Reads /proc/net/unix. Any user can choose the name of a socket: a name that is not UTF-8 must
/// not hide the others.
fn sockets() -> String {
    String::from_utf8_lossy(&std::fs::read("/proc/net/unix").unwrap_or_default()).into_owned()
}

/// Returns the paths of listening sockets in the text of /proc/net/unix.
fn listening(text: &str) -> impl Iterator<Item = &str> {
    /// Flags of a listening socket.
    const LISTENING: &str = "00010000";
    text.lines().filter_map(|line| {
        let (flags, path) = (line.split_ascii_whitespace().nth(3)?, line.rsplit(' ').next()?);
        (flags == LISTENING).then_some(path)
    })
}

/// Returns the numbers of displays with a listening socket, abstract or in the file system.
fn x_displays(text: &str) -> BTreeSet<u32> {
    let paths = listening(text).map(|path| path.strip_prefix('@').unwrap_or(path));
    paths.filter_map(|path| path.strip_prefix("/tmp/.X11-unix/X")?.parse().ok()).collect()
}

/// Returns the paths of the sockets on which Wayland compositors listen.
pub fn find_compositors() -> Vec<String> {
    let found: BTreeSet<String> = compositors(&sockets()).map(str::to_owned).collect();
    found.into_iter().take(DISPLAYS_MAX).collect()
}

/// Returns paths of listening sockets with names of compositors. A path with control characters is
/// omitted, since it is shown on terminals.
fn compositors(text: &str) -> impl Iterator<Item = &str> {
    listening(text).filter(|path| {
        let number = path.rsplit_once('/').and_then(|(_, name)| name.strip_prefix("wayland-"));
        number.is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        }) && !path.contains(char::is_control)
    })
}

/// Queries a display for its server's process and its extensions.
///
/// Takes at most a few times the target's timeout; see [`DisplayConnection::open`].
pub fn describe(target: &DisplayTarget) -> Result<Display, DisplayError> {
    let connection = DisplayConnection::open(target)?;
    let extensions = extensions(&connection)?;
    Ok(Display { display: target.display, server_pid: connection.server_pid, extensions })
}

/// Describes every display of the machine, or returns the reason if that is not possible.
pub fn list(timeout: Duration) -> Vec<(u32, Result<Display, DisplayError>)> {
    let displays = find().into_iter();
    displays
        .map(|number| (number, describe(&DisplayTarget { timeout, ..DisplayTarget::new(number) })))
        .collect()
}

fn extensions(connection: &DisplayConnection) -> Result<Vec<Extension>, DisplayError> {
    let wire = connection.wire();
    let names = connection.reply(wire.list_extensions())?.names;
    let asked: Result<Vec<_>, _> =
        names.iter().map(|name| wire.query_extension(&name.name)).collect();
    let mut found = Vec::new();
    for (name, cookie) in names.iter().zip(asked.map_err(|error| connection.failed(error))?) {
        let reply = cookie.reply().map_err(|error| connection.failed(error))?;
        if reply.present {
            let name = String::from_utf8_lossy(&name.name).into_owned();
            found.push(Extension { name, major: reply.major_opcode });
        }
    }
    found.sort_by_key(|extension| extension.major);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::OwnedFd;
    use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
    use rustix::thread::{UnshareFlags, unshare_unsafe};

    #[test]
    fn only_listening_sockets_are_displays() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 20482 @/tmp/.X11-unix/X1\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 20483 /tmp/.X11-unix/X2\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03 20484\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03 20484 @/tmp/.X11-unix/X3\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 20485 @/tmp/.X11-unix/Xbad\n";
        assert_eq!(x_displays(text), BTreeSet::from([1, 2]));
    }

    /// Listens with a backlog of one, in another network namespace if `elsewhere` is set.
    fn listen_at(address: &SocketAddrUnix, elsewhere: bool) -> OwnedFd {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                if elsewhere {
                    // SAFETY: a new network namespace of this thread affects no memory.
                    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("root may do this");
                }
                let server = socket(AddressFamily::UNIX, SocketType::STREAM, None);
                let server = server.expect("a socket");
                bind(&server, address).expect("nobody has this display");
                listen(&server, 0).expect("it listens");
                server
            });
            thread.join().expect("it does not panic")
        })
    }

    #[test]
    fn a_display_is_there_while_its_server_listens() {
        std::fs::create_dir_all("/tmp/.X11-unix").expect("root may do this");
        let target = DisplayTarget {
            timeout: Duration::from_millis(50),
            ..DisplayTarget::new(60_000 + std::process::id() % 4_000)
        };
        let path = format!("/tmp/.X11-unix/X{}", target.display);
        let by_path = SocketAddrUnix::new(path.as_str()).expect("a path");
        let by_name = SocketAddrUnix::new_abstract_name(path.as_bytes()).expect("a name");
        for (address, elsewhere, is_display) in [
            (&by_path, false, true),
            (&by_path, true, true),
            (&by_name, false, true),
            (&by_name, true, false),
        ] {
            let server = listen_at(address, elsewhere);
            assert_eq!(find().contains(&target.display), is_display, "{address:?} {elsewhere}");
            // Nobody accepts, as in a server that hangs.
            let error = describe(&target).expect_err("nobody answers").to_string();
            let words = if is_display { "did not answer within 50 ms" } else { "cannot connect" };
            assert!(error.contains(words), "{error}");
            drop(server);
            assert!(!find().contains(&target.display), "{address:?} is left behind");
            std::fs::remove_file(&path).ok();
        }
    }

    #[test]
    fn a_socket_with_a_binary_name_hides_no_other() {
        let [odd, listening] = [SocketType::STREAM; 2]
            .map(|kind| socket(AddressFamily::UNIX, kind, None).expect("a socket"));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("wayland-7");
        let name = [std::process::id().to_string().as_bytes(), b"\xff\x1b"].concat();

        bind(&odd, &SocketAddrUnix::new_abstract_name(&name).expect("a name"))
            .expect("nobody has this name");
        bind(&listening, &SocketAddrUnix::new(&path).expect("a path")).expect("a socket");
        listen(&listening, 1).expect("it listens");
        assert!(find_compositors().contains(&path.display().to_string()));
    }

    #[test]
    fn compositors_are_found_where_they_listen() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 20482 /run/user/1000/wayland-0\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03 20483 /run/user/1000/wayland-0\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 20484 /run/user/1000/wayland-helper\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 20485 /tmp/\u{1b}[2J/wayland-0\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 20486 /tmp/\u{9b}2J/wayland-0\n";
        assert_eq!(compositors(text).collect::<Vec<_>>(), vec!["/run/user/1000/wayland-0"]);
    }
}
