// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block requests: outstanding I/O by thread and device.

use tipme_record::records::Block;
use tipme_record::{Device, Nanos, Tid};

/// Block request from its insertion to its completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskRequest {
    /// Time of insertion into the queue; issue time if the request bypassed the queue.
    pub start: Nanos,
    /// Completion time; `u64::MAX` if the request is incomplete at the mark.
    pub end: Nanos,
    pub tid: Tid,
    pub device: Device,
    pub bytes: u32,
    pub op: u8,
}

/// All requests by start, and the order in which they ended.
#[derive(Debug, Default)]
pub struct Disk {
    requests: Vec<DiskRequest>,
    by_end: Vec<u32>,
}

/// Maximum time from the completion of a request to the end of the wait for it.
const COMPLETION_SLACK: Nanos = Nanos::from_millis(1);

/// Maximum duration of a request.
const REQUEST_MAX: Nanos = Nanos::from_secs(120);

impl Disk {
    /// Orders requests by their start and by their end.
    pub fn new(records: &[Block]) -> Disk {
        let mut requests: Vec<DiskRequest> = records.iter().map(request).collect();
        requests.sort_by_key(|request| request.start);
        let mut by_end: Vec<u32> = (0..requests.len() as u32).collect();
        by_end.sort_by_key(|index| requests[*index as usize].end);
        Disk { requests, by_end }
    }

    /// Returns the requests outstanding at some time in `lo..hi`.
    pub fn outstanding(&self, lo: Nanos, hi: Nanos) -> impl Iterator<Item = &DiskRequest> {
        let first = self.requests.partition_point(|request| request.start < lo.before(REQUEST_MAX));
        let last = self.requests.partition_point(|request| request.start < hi);
        self.requests
            .get(first..last)
            .unwrap_or_default()
            .iter()
            .filter(move |request| request.end > lo)
    }

    /// Returns the device of a request that completed just before `at`, preferably one of a thread
    /// for which `is_own` is `true`.
    pub fn completed(&self, at: Nanos, is_own: impl Fn(Tid) -> bool) -> Option<Device> {
        let mut ended = self.ended(at.before(COMPLETION_SLACK), at).peekable();
        let latest = ended.peek().copied();
        ended.find(|request| is_own(request.tid)).or(latest).map(|request| request.device)
    }

    /// Returns `true` if a request of a thread completed just before `at`.
    pub(crate) fn completed_of(&self, tid: Tid, at: Nanos) -> bool {
        self.ended(at.before(COMPLETION_SLACK), at).any(|request| request.tid == tid)
    }

    /// Returns `true` if a request to a device started at or after `lo` and completed just before
    /// `hi`.
    pub fn served(&self, device: Device, lo: Nanos, hi: Nanos) -> bool {
        self.ended(hi.before(COMPLETION_SLACK), hi)
            .any(|request| request.device == device && request.start >= lo)
    }

    /// Returns the stretches in which a device had outstanding requests in `lo..hi`, in
    /// chronological order.
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

    /// Returns the requests that ended in `lo..=hi`, latest first.
    fn ended(&self, lo: Nanos, hi: Nanos) -> impl Iterator<Item = &DiskRequest> {
        let requests = &self.requests;
        let first = self.by_end.partition_point(|index| requests[*index as usize].end < lo);
        let last = self.by_end.partition_point(|index| requests[*index as usize].end <= hi);
        let ended = self.by_end.get(first..last).unwrap_or_default().iter().rev();
        ended.map(|index| &requests[*index as usize])
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

    /// Returns the name of a device, or its number.
    pub(crate) fn device_name(device: Device, names: &[(u32, String)]) -> String {
        let (major, minor) = device.parts();
        let known = names.iter().find(|(number, _)| *number == device.0);
        known.map_or_else(|| format!("device {major}:{minor}"), |(_, name)| name.clone())
    }
}
