// SPDX-License-Identifier: MIT OR Apache-2.0
//! Polls of a few files that are known.

use crate::timeline::waits::HARD_INTERRUPT;
use std::net::Ipv4Addr;
use tipme_record::Nanos;
use tipme_record::records::{Polled, Wait};

pub(crate) const INTERNET: [u16; 2] = [2, 10];
pub(crate) const DATAGRAM: u32 = 2;
const NAME_SERVICE: u16 = 53;

/// The files of small sets that were polled, by thread and time.
#[derive(Debug, Default)]
pub struct Polls(Vec<Polled>);

impl Polls {
    pub fn new(mut polled: Vec<Polled>) -> Polls {
        polled.sort_by_key(|file| (file.head.tid, file.head.ts));
        Polls(polled)
    }

    /// The files of a wait; none where they are not all known.
    pub fn of(&self, wait: &Wait) -> &[Polled] {
        let key = (wait.head.tid, wait.head.ts);
        let first = self.0.partition_point(|file| (file.head.tid, file.head.ts) < key);
        let last = self.0.partition_point(|file| (file.head.tid, file.head.ts) <= key);
        let files = self.0.get(first..last).unwrap_or_default();
        if files.first().is_some_and(|file| usize::from(file.files) == files.len()) { files } else { &[] }
    }
}

/// Whether a wait is for an address on this machine.
pub(crate) fn is_loopback(wait: &Wait) -> bool {
    INTERNET.contains(&wait.family) && Ipv4Addr::from(wait.address.to_le_bytes()).is_loopback()
}

/// Whether a wait is for an internet address, of this machine or another.
pub(crate) fn is_internet(wait: &Wait) -> bool {
    INTERNET.contains(&wait.family)
}

/// Whether a wait was for the answer to a datagram, and none came before the time was up or the mark was set.
pub(crate) fn is_unanswered(wait: &Wait, until: Nanos, mark: Nanos) -> bool {
    wait.socket == DATAGRAM && (wait.context == HARD_INTERRUPT || until >= mark)
}

/// Whether a wait is for the answer of a name server.
pub(crate) fn is_for_names(wait: &Wait) -> bool {
    is_internet(wait) && wait.socket == DATAGRAM && wait.port == NAME_SERVICE
}
