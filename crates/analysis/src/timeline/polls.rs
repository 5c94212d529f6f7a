// SPDX-License-Identifier: MIT OR Apache-2.0
//! Polls of small sets of files.

use crate::timeline::waits::HARD_INTERRUPT;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tipme_record::records::{FarEnd, Polled, Wait};
use tipme_record::{Nanos, Tid};

pub(crate) const INTERNET: [u16; 2] = [2, 10];
pub(crate) const DATAGRAM: u16 = 2;
const NAME_SERVICE: u16 = 53;

/// Polled files of small sets, by thread and time.
#[derive(Debug, Default)]
pub struct Polls(Vec<Polled>);

impl Polls {
    pub fn new(mut polled: Vec<Polled>) -> Polls {
        polled.sort_by_key(|file| (file.head.tid, file.head.ts));
        Polls(polled)
    }

    /// Returns the polled files of a wait; empty unless all are known.
    pub fn files(&self, wait: &Wait) -> &[Polled] {
        let key = (wait.head.tid, wait.head.ts);
        let first = self.0.partition_point(|file| (file.head.tid, file.head.ts) < key);
        let last = self.0.partition_point(|file| (file.head.tid, file.head.ts) <= key);
        let files = self.0.get(first..last).unwrap_or_default();
        if files.first().is_some_and(|file| usize::from(file.files) == files.len()) {
            files
        } else {
            &[]
        }
    }
}

/// Remote IPv6 addresses of waits, by thread, time and port.
#[derive(Debug, Default)]
pub struct FarEnds(HashMap<(Tid, Nanos, u16), Ipv6Addr>);

impl FarEnds {
    pub fn new(ends: &[FarEnd]) -> FarEnds {
        let ends = ends
            .iter()
            .map(|end| ((end.head.tid, end.head.ts, end.port as u16), address(end)))
            .filter(|(_, ip)| !ip.is_unspecified());
        FarEnds(ends.collect())
    }

    /// Returns the remote address of a wait, if it is known.
    pub(crate) fn address(&self, wait: &Wait) -> Option<IpAddr> {
        match wait.address {
            0 => self.0.get(&(wait.head.tid, wait.head.ts, wait.port)).copied().map(IpAddr::V6),
            address => Some(IpAddr::V4(Ipv4Addr::from(address.to_le_bytes()))),
        }
    }
}

fn address(end: &FarEnd) -> Ipv6Addr {
    let bytes = u128::from(end.host) << 64 | u128::from(end.network);
    Ipv6Addr::from(bytes.to_le_bytes())
}

/// Returns `true` if a wait is for a loopback address.
pub(crate) fn is_loopback(wait: &Wait) -> bool {
    INTERNET.contains(&wait.family) && Ipv4Addr::from(wait.address.to_le_bytes()).is_loopback()
}

/// Returns `true` if a wait is for an internet address, local or remote.
pub(crate) fn is_internet(wait: &Wait) -> bool {
    INTERNET.contains(&wait.family)
}

/// Returns `true` if a wait for the answer to a datagram timed out, or was unanswered at the mark.
pub(crate) fn is_unanswered(wait: &Wait, until: Nanos, mark: Nanos) -> bool {
    wait.socket == DATAGRAM && (wait.context == HARD_INTERRUPT || until >= mark)
}

/// Returns `true` if a wait is for the answer of a name server.
pub(crate) fn is_for_names(wait: &Wait) -> bool {
    is_internet(wait) && wait.socket == DATAGRAM && wait.port == NAME_SERVICE
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::{FromBytes, FromZeros};

    #[test]
    fn an_ipv6_address_belongs_to_the_wait_of_its_thread() {
        let ip = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
        let mut end = FarEnd::new_zeroed();
        (end.head.tid, end.head.ts, end.port) = (Tid(7), Nanos(9), 80);
        let halves = <[u64; 2]>::read_from_bytes(&ip.octets()).expect("it has two halves");
        (end.network, end.host) = (halves[0], halves[1]);
        let ends = FarEnds::new(&[end]);
        let mut wait = Wait::new_zeroed();
        (wait.head, wait.port) = (end.head, 80);
        assert_eq!(ends.address(&wait), Some(IpAddr::V6(ip)));
        assert_eq!(ends.address(&Wait { port: 81, ..wait }), None);
        let mapped = Wait { address: u32::from_le_bytes([192, 0, 2, 1]), ..wait };
        assert_eq!(ends.address(&mapped), Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))));
    }
}
