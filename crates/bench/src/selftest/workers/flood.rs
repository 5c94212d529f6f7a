// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flood of packets that never leave this machine.
//!
//! A packet to the loopback network's broadcast address is handed to every socket on its port. So
//! one small packet is much work for the CPU that receives it, and little for the one that sends it.

use super::work::{limit_life, millis, number};
use crate::worker::say_ready;
use anyhow::{Context, Result};
use rustix::net::sockopt::{set_socket_broadcast, set_socket_reuseaddr};
use rustix::net::{AddressFamily, SocketType, bind, socket};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Instant;

/// Sockets that get each packet, at most.
const SOCKETS_MAX: u64 = 512;
/// Where the sockets listen: free in a network name space of one's own.
const PORT: u16 = 9000;
/// Packets between two looks at the clock.
const PACKETS: usize = 64;

/// `flood SOCKETS MS`: sends packets to so many sockets of its own, none of which reads.
pub(super) fn flood(words: &[&str]) -> Result<()> {
    limit_life();
    let count = number(words, 0)?.clamp(1, SOCKETS_MAX);
    let end = Instant::now() + millis(words, 1)?;
    let _sockets = (0..count).map(|_| listen()).collect::<Result<Vec<OwnedFd>>>()?;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("the loopback interface is not up")?;
    set_socket_broadcast(&sender, true)?;
    say_ready("")?;
    let target = SocketAddrV4::new(Ipv4Addr::new(127, 255, 255, 255), PORT);
    while Instant::now() < end {
        for _ in 0..PACKETS {
            // A full queue loses packets, which is fine.
            let _ = sender.send_to(b"flood", target);
        }
    }
    Ok(())
}

fn listen() -> Result<OwnedFd> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None).context("cannot make a socket")?;
    set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT)).context("the port is not free")?;
    Ok(socket)
}
