// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block requests: who had how much outstanding on which device.

use tipme_record::records::Block;
use tipme_record::{Device, Nanos, Tid};

/// A request from its begin to its completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskRequest {
    /// Put into the queue, or issued where it went past the queue.
    pub start: Nanos,
    /// The largest time where it is not complete at the mark.
    pub end: Nanos,
    pub tid: Tid,
    pub device: Device,
    pub bytes: u32,
    pub op: u8,
}

/// All requests by begin, and the order in which they ended.
#[derive(Debug, Default)]
pub struct Disk {
    requests: Vec<DiskRequest>,
    by_end: Vec<u32>,
}

/// A wait for I/O ends this soon after the request is complete.
const COMPLETION_SLACK: Nanos = Nanos::from_millis(1);

/// No request takes longer than this.
const REQUEST_MAX: Nanos = Nanos::from_secs(120);

impl Disk {
    /// Orders requests by their begin and by their end.
    pub fn new(records: &[Block]) -> Disk {
        let mut requests: Vec<DiskRequest> = records.iter().map(request).collect();
        requests.sort_by_key(|request| request.start);
        let mut by_end: Vec<u32> = (0..requests.len() as u32).collect();
        by_end.sort_by_key(|index| requests[*index as usize].end);
        Disk { requests, by_end }
    }

    /// Requests that were outstanding at some time of `lo..hi`.
    pub fn outstanding(&self, lo: Nanos, hi: Nanos) -> impl Iterator<Item = &DiskRequest> {
        let first = self.requests.partition_point(|request| request.start < lo.before(REQUEST_MAX));
        let last = self.requests.partition_point(|request| request.start < hi);
        self.requests.get(first..last).unwrap_or_default().iter().filter(move |request| request.end > lo)
    }

    /// The device whose request by one of `tids`, or by anyone, was complete when a wait ended.
    pub fn completed(&self, at: Nanos, is_own: impl Fn(Tid) -> bool) -> Option<Device> {
        let ended = || self.ended(at.before(COMPLETION_SLACK), at);
        let own = ended().find(|request| is_own(request.tid));
        own.or_else(|| ended().next()).map(|request| request.device)
    }

    /// Whether a request of a thread was complete at a time.
    pub(crate) fn completed_of(&self, tid: Tid, at: Nanos) -> bool {
        self.ended(at.before(COMPLETION_SLACK), at).any(|request| request.tid == tid)
    }

    /// Whether a wait ended with a request that a device got only within it.
    pub fn served(&self, device: Device, lo: Nanos, hi: Nanos) -> bool {
        self.ended(hi.before(COMPLETION_SLACK), hi).any(|request| request.device == device && request.start >= lo)
    }

    /// When a device had something to do in `lo..hi`, one after the other.
    pub fn busy(&self, device: Device, lo: Nanos, hi: Nanos) -> Vec<(Nanos, Nanos)> {
        let mut busy: Vec<(Nanos, Nanos)> = Vec::new();
        for request in self.outstanding(lo, hi).filter(|request| request.device == device) {
            match busy.last_mut() {
                Some((_, end)) if request.start <= *end => *end = request.end.max(*end),
                _ => busy.push((request.start, request.end)),
            }
        }
        busy
    }

    /// Requests that ended in `lo..=hi`, the last one first.
    fn ended(&self, lo: Nanos, hi: Nanos) -> impl Iterator<Item = &DiskRequest> {
        let request = |index: &u32| &self.requests[*index as usize];
        let first = self.by_end.partition_point(|index| request(index).end < lo);
        let last = self.by_end.partition_point(|index| request(index).end <= hi);
        self.by_end.get(first..last).unwrap_or_default().iter().rev().map(request)
    }
}

fn request(record: &Block) -> DiskRequest {
    DiskRequest {
        start: if record.inserted == Nanos(0) { record.issued } else { record.inserted },
        end: if record.done == 0 { Nanos(u64::MAX) } else { record.head.ts },
        tid: record.head.tid,
        device: record.device,
        bytes: record.bytes,
        op: record.op as u8,
    }
}

impl DiskRequest {
    pub fn is_write(&self) -> bool {
        self.op & 1 == 1
    }

    /// The name of a device, or its number.
    pub(crate) fn device_name(device: Device, names: &[(u32, String)]) -> String {
        let (major, minor) = device.parts();
        let known = names.iter().find(|(number, _)| *number == device.0);
        known.map_or_else(|| format!("device {major}:{minor}"), |(_, name)| name.clone())
    }
}
