// SPDX-License-Identifier: MIT OR Apache-2.0
//! Display servers of this machine, and the extensions of the X servers among them.

use crate::connect::{DisplayConnection, DisplayTarget};
use crate::error::DisplayError;
use std::collections::BTreeSet;
use std::time::Duration;
use tipme_record::incident::{Display, Extension};
use x11rb::protocol::xproto::ConnectionExt as _;

/// Maximum number of displays.
const DISPLAYS_MAX: usize = 64;

/// Returns the numbers of the displays that have a socket, whether or not a server listens there.
pub fn find() -> Vec<u32> {
    let names = std::fs::read_dir("/tmp/.X11-unix").into_iter().flatten().flatten();
    let mut found: BTreeSet<u32> = names
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix('X')?.parse().ok())
        .collect();
    found.extend(abstract_displays(&sockets()));
    found.into_iter().take(DISPLAYS_MAX).collect()
}

/// Reads /proc/net/unix. Any user can choose the name of a socket: a name that is not UTF-8 must
/// not hide the others.
fn sockets() -> String {
    String::from_utf8_lossy(&std::fs::read("/proc/net/unix").unwrap_or_default()).into_owned()
}

/// Returns the display numbers in the text of /proc/net/unix.
fn abstract_displays(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.lines()
        .filter_map(|line| line.rsplit(' ').next()?.strip_prefix("@/tmp/.X11-unix/X")?.parse().ok())
}

/// Returns the paths of the sockets on which Wayland compositors listen.
pub fn find_compositors() -> Vec<String> {
    let found: BTreeSet<String> = compositors(&sockets()).map(str::to_owned).collect();
    found.into_iter().take(DISPLAYS_MAX).collect()
}

/// Returns paths of listening sockets with names of compositors, in the text of /proc/net/unix. A
/// path with control characters is omitted, since it is shown on terminals.
fn compositors(text: &str) -> impl Iterator<Item = &str> {
    /// Flags of a listening socket.
    const LISTENING: &str = "00010000";
    text.lines().filter_map(|line| {
        let (flags, path) = (line.split_ascii_whitespace().nth(3)?, line.rsplit(' ').next()?);
        let number = path.rsplit_once('/')?.1.strip_prefix("wayland-")?;
        let named = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        (flags == LISTENING && named && !path.contains(char::is_control)).then_some(path)
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

    #[test]
    fn abstract_sockets_are_found() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 20482 @/tmp/.X11-unix/X1\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 20483 /tmp/.X11-unix/X2\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03 20484\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 20485 @/tmp/.X11-unix/Xbad\n";
        assert_eq!(abstract_displays(text).collect::<Vec<_>>(), vec![1]);
    }

    #[test]
    fn a_socket_with_a_binary_name_hides_no_other() {
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
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
