// SPDX-License-Identifier: MIT OR Apache-2.0
//! Index of descendants, built once: checking each pair of clients would take quadratic time.

use crate::decode::messages::Messages;
use crate::timeline::tasks::Tasks;
use std::collections::HashMap;
use tipme_record::{Nanos, Pid, Tid};

/// Threads and connections of each process including its descendants.
#[derive(Debug, Default)]
pub struct Descendants {
    threads: HashMap<Pid, Vec<Tid>>,
    streams: HashMap<(Pid, Pid), Vec<usize>>,
}

impl Descendants {
    pub fn find(tasks: &Tasks, messages: &Messages, mark: Nanos) -> Descendants {
        let mut descendants = Descendants::default();
        for life in tasks.lives().iter().filter(|life| !life.is_kernel()) {
            let at = life.until.min(mark);
            for ancestor in tasks.line(life.pid, at) {
                descendants.threads.entry(ancestor).or_default().push(life.tid);
            }
        }
        for (index, stream) in messages.streams().iter().enumerate() {
            for ancestor in tasks.line(stream.client, mark) {
                descendants.streams.entry((stream.server, ancestor)).or_default().push(index);
            }
        }
        descendants
    }

    /// Returns the threads of a process and its descendants.
    pub fn threads(&self, pid: Pid) -> &[Tid] {
        self.threads.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// Returns the connections of a process and its descendants to one server.
    pub fn streams(&self, server: Pid, pid: Pid) -> &[usize] {
        self.streams.get(&(server, pid)).map_or(&[], Vec::as_slice)
    }
}
