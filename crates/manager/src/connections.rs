// SPDX-License-Identifier: MIT OR Apache-2.0
//! Local socket connections between processes, and the open files of a process.
//!
//! The display server knows a client by its PID at the time of the connection. A client can leave
//! its connection to a child and end, and its PID can then be reused by any process. A genuine
//! client holds a socket connected to the server.

use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Maximum number of descriptors inspected per process: a wide margin over those of any display
/// client.
const DESCRIPTORS_MAX: usize = 16_384;
/// Maximum number of peer queries for the sockets of a client.
const SOCKETS_MAX: usize = 1_024;

/// Directory of pseudo terminals, and the device that creates one.
pub(crate) const TERMINALS: &str = "/dev/pts/";
pub(crate) const TERMINAL_MASTER: &str = "/dev/ptmx";

/// Kernel constants of the `sock_diag` query for local sockets (`linux/sock_diag.h`,
/// `linux/unix_diag.h`).
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const UDIAG_SHOW_PEER: u32 = 4;
const UNIX_DIAG_PEER: u16 = 2;
/// Peer inode of a connection that no process has accepted yet.
const NOT_ACCEPTED: u32 = 0;
const HEADER_BYTES: usize = 16;
const MESSAGE_BYTES: usize = 16;
const QUESTION_BYTES: u32 = 40;

/// Returns `true` if `client` holds a socket connected to one of `server`. Returns `None` if that
/// is unknown, for lack of privileges or kernel support.
pub(crate) fn are_connected(proc: &Path, client: u32, server: u32) -> Option<bool> {
    let ends = OpenFiles::read(proc, server)?.sockets;
    let own = OpenFiles::read(proc, client)?.sockets;
    let diag = ask_kernel()?;
    if far_ends(&diag, &own).any(|end| ends.contains(&end)) {
        return Some(true);
    }
    // A kernel without support does not know the server's sockets either.
    let helps = ends.into_iter().take(SOCKETS_MAX).any(|socket| other_end(&diag, socket).is_some());
    helps.then_some(false)
}

/// Open files of a process, from a bounded number of descriptors.
#[derive(PartialEq, Eq, Debug, Default)]
pub(crate) struct OpenFiles {
    /// Socket inodes.
    pub(crate) sockets: BTreeSet<u32>,
    /// Paths of terminals and terminal masters.
    pub(crate) terminals: BTreeSet<String>,
}

impl OpenFiles {
    /// Returns `None` if the descriptors are not readable.
    pub(crate) fn read(proc: &Path, pid: u32) -> Option<OpenFiles> {
        let folder = std::fs::read_dir(proc.join(format!("{pid}/fd"))).ok()?;
        let links = folder
            .flatten()
            .take(DESCRIPTORS_MAX)
            .filter_map(|entry| std::fs::read_link(entry.path()).ok());
        let mut found = OpenFiles::default();
        for link in links {
            let Some(link) = link.to_str() else { continue };
            let socket = link
                .strip_prefix("socket:[")
                .and_then(|rest| rest.strip_suffix(']')?.parse::<u32>().ok());
            found.sockets.extend(socket);
            if link == TERMINAL_MASTER || link.starts_with(TERMINALS) {
                found.terminals.insert(link.to_owned());
            }
        }
        Some(found)
    }

    /// Returns the peers of its local sockets.
    pub(crate) fn far_ends(&self) -> BTreeSet<u32> {
        ask_kernel().iter().flat_map(|diag| far_ends(diag, &self.sockets)).collect()
    }
}

fn ask_kernel() -> Option<OwnedFd> {
    socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG)).ok()
}

fn far_ends<'a>(diag: &'a OwnedFd, sockets: &'a BTreeSet<u32>) -> impl Iterator<Item = u32> + 'a {
    sockets.iter().take(SOCKETS_MAX).filter_map(|socket| other_end(diag, *socket)?)
}

/// Returns the peer of a local socket. Returns `Some(None)` if it has none or is not accepted yet,
/// and `None` if the kernel does not answer.
fn other_end(diag: &OwnedFd, socket: u32) -> Option<Option<u32>> {
    send(diag, &question(socket), SendFlags::empty()).ok()?;
    let mut bytes = [0; 1024];
    let (length, _) = recv(diag, &mut bytes, RecvFlags::DONTWAIT).ok()?;
    answer(bytes.get(..length)?, socket)
}

/// Builds a request for one socket of any process.
fn question(socket: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(QUESTION_BYTES as usize);
    bytes.extend(QUESTION_BYTES.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    // Family AF_UNIX; any state; and no cookie, so that the inode alone selects the socket.
    bytes.extend([1, 0, 0, 0]);
    for word in [u32::MAX, socket, UDIAG_SHOW_PEER, u32::MAX, u32::MAX] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes
}

fn answer(bytes: &[u8], socket: u32) -> Option<Option<u32>> {
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let about = bytes.get(HEADER_BYTES + 4..HEADER_BYTES + 8)?;
    if kind != SOCK_DIAG_BY_FAMILY || about != socket.to_ne_bytes() {
        // A socket of another family is not found; such a reply does not concern a local socket.
        return None;
    }
    let mut attributes = bytes.get(HEADER_BYTES + MESSAGE_BYTES..)?;
    while let [a, b, c, d, ..] = *attributes {
        let (length, name) = (usize::from(u16::from_ne_bytes([a, b])), u16::from_ne_bytes([c, d]));
        if name == UNIX_DIAG_PEER {
            let end = u32::from_ne_bytes(attributes.get(4..8)?.try_into().ok()?);
            return Some((end != NOT_ACCEPTED).then_some(end));
        }
        attributes = attributes.get(length.next_multiple_of(4).max(4)..)?;
    }
    Some(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_other_end_of_a_pair_is_found() {
        let (one, other) = UnixStream::pair().unwrap();
        let [end, other_inode] =
            [&one, &other].map(|stream| rustix::fs::fstat(stream).unwrap().st_ino as u32);
        let diag = ask_kernel().unwrap();
        assert_eq!(other_end(&diag, end), Some(Some(other_inode)));
        assert_eq!(other_end(&diag, u32::MAX - 1), None);
        let own = std::process::id();
        assert_eq!(are_connected(Path::new("/proc"), own, own), Some(true));
    }

    #[test]
    fn an_unrelated_process_is_not_connected() {
        let _pair = UnixStream::pair().unwrap();
        let mut unrelated = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let found = are_connected(Path::new("/proc"), unrelated.id(), std::process::id());
        unrelated.kill().unwrap();
        unrelated.wait().unwrap();
        assert_eq!(found, Some(false));
        assert_eq!(are_connected(Path::new("/nonexistent"), 1, 2), None);
    }

    #[test]
    fn cut_answers_are_none() {
        let mut whole = question(7);
        whole[20..24].copy_from_slice(&7u32.to_ne_bytes());
        for length in 0..whole.len() {
            let _ = answer(&whole[..length], 7);
        }
        assert_eq!(answer(&[], 7), None);
    }
}
