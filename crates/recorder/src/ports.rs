// SPDX-License-Identifier: MIT OR Apache-2.0
//! Owners of the local ports that threads wait for at the mark.
//!
//! The kernel lists the sockets of a network namespace with their inodes, and the open files of
//! processes refer to those. A connection not yet accepted belongs to the listening process.

use crate::owners::{loose, waits};
use crate::processes::{open_files, text};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use tipme_record::RecordKind;
use tipme_record::incident::PortOwner;
use tipme_record::records::Polled;

/// Maximum number of ports looked up.
const PORTS: usize = 64;
/// Maximum number of socket lists, each of the namespace of a waiting process, and of bytes of
/// each.
const LISTS: usize = 16;
const LIST_BYTES: u64 = 1 << 20;

const INTERNET: [u16; 2] = [2, 10];
const CONNECTED: u8 = 1;
const LISTENS: u8 = 10;

/// Returns the owners of local ports that the threads of a task walk wait for.
pub(crate) fn port_owners(tasks: &[u8]) -> Vec<PortOwner> {
    let wanted = wanted(tasks);
    let mut sockets: BTreeMap<u64, u16> = BTreeMap::new();
    for (pid, ports) in wanted.iter().take(LISTS) {
        for list in ["tcp", "tcp6"] {
            let list = text(&format!("/proc/{pid}/net/{list}"), LIST_BYTES);
            sockets.extend(ports.iter().filter_map(|port| Some((socket_of(&list, *port)?, *port))));
        }
    }
    if sockets.is_empty() { Vec::new() } else { owners(&sockets) }
}

/// Returns the ports that threads wait for, by process.
fn wanted(tasks: &[u8]) -> BTreeMap<u32, BTreeSet<u16>> {
    let pids: BTreeMap<u32, u32> = waits(tasks).map(|wait| (wait.head.tid.0, wait.pid.0)).collect();
    let waiting = waits(tasks).map(|wait| (wait.head.tid.0, wait.family, wait.address, wait.port));
    let polled = loose(tasks, RecordKind::Polled).filter_map(Polled::read);
    let polled = polled.map(|one| (one.head.tid.0, one.family, one.address, one.port));
    let near = waiting.chain(polled).filter(|(_, family, address, port)| {
        INTERNET.contains(family)
            && *port != 0
            && Ipv4Addr::from(address.to_le_bytes()).is_loopback()
    });
    let mut wanted: BTreeMap<u32, BTreeSet<u16>> = BTreeMap::new();
    for (tid, _, _, port) in near.take(PORTS) {
        wanted.entry(pids.get(&tid).copied().unwrap_or(tid)).or_default().insert(port);
    }
    wanted
}

/// Returns the inode of the socket for a port: a connected and accepted one, else the listening
/// one.
fn socket_of(list: &str, port: u16) -> Option<u64> {
    let sockets = list.lines().filter_map(Socket::parse);
    let sockets: Vec<Socket> =
        sockets.filter(|socket| socket.port == port && socket.inode != 0).collect();
    let found = [CONNECTED, LISTENS]
        .into_iter()
        .find_map(|state| sockets.iter().find(|socket| socket.state == state));
    found.map(|socket| socket.inode)
}

/// A line of `/proc/PID/net/tcp`: `0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000
/// 00000000 0 0 12345 …`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Socket {
    port: u16,
    state: u8,
    inode: u64,
}

impl Socket {
    fn parse(line: &str) -> Option<Socket> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (_, port) = words.get(1)?.rsplit_once(':')?;
        let (port, state) =
            (u16::from_str_radix(port, 16).ok()?, u8::from_str_radix(words.get(3)?, 16).ok()?);
        Some(Socket { port, state, inode: words.get(9)?.parse().ok()? })
    }
}

fn owners(sockets: &BTreeMap<u64, u16>) -> Vec<PortOwner> {
    let found = open_files().filter_map(|file| {
        let port = sockets.get(&number(file.name.to_str()?)?)?;
        Some((*port, file.pid))
    });
    let found: BTreeSet<(u16, u32)> = found.collect();
    found.into_iter().map(|(port, pid)| PortOwner { port, pid }).collect()
}

/// Returns the inode of `socket:[12345]`.
fn number(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use tipme_record::Tid;
    use tipme_record::records::Wait;
    use zerocopy::{FromZeros, IntoBytes};

    #[test]
    fn a_port_leads_to_the_process_that_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("it has an address").port();
        let mut wait = Wait::new_zeroed();
        (wait.head.tid, wait.head.kind, wait.head.size) =
            (Tid(std::process::id()), RecordKind::Wait as u8, Wait::SIZE as u16);
        wait.pid.0 = std::process::id();
        let mut polled = Polled::new_zeroed();
        polled.head = wait.head;
        (polled.head.kind, polled.head.size) = (RecordKind::Polled as u8, Polled::SIZE as u16);
        (polled.family, polled.port, polled.address) =
            (2, port, u32::from_le_bytes([127, 0, 0, 1]));
        let tasks = [wait.as_bytes(), polled.as_bytes()].concat();
        assert_eq!(port_owners(&tasks), [PortOwner { port, pid: std::process::id() }]);
        polled.address = u32::from_le_bytes([192, 0, 2, 1]);
        assert!(port_owners(&[wait.as_bytes(), polled.as_bytes()].concat()).is_empty());
    }

    #[test]
    fn an_accepted_connection_goes_before_the_socket_that_listens() {
        let [listening, unaccepted, accepted] =
            [("0A", 7), ("01", 0), ("01", 9)].map(|(state, inode)| {
                format!("0: 0100007F:0050 0100007F:9999 {state} 0:0 00:0 0 0 0 {inode} 1\n")
            });
        let list = format!("  sl local_address\n{listening}{unaccepted}{accepted}");
        assert_eq!((socket_of(&list, 80), socket_of(&list, 81)), (Some(9), None));
        assert_eq!(socket_of(&(listening + "rubbish"), 80), Some(7));
    }
}
