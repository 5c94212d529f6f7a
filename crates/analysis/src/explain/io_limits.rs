// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which limit on I/O of a control group held a group's pieces back.
//!
//! That there is one is not enough: it holds nothing back unless so much was done as it allows. What a device did for all
//! is at least what it did for the control group, so a limit that the device stayed far below held nobody back.

use crate::explain::chain::Doing;
use crate::explain::describe::{bytes_text, count_text};
use crate::explain::partition::{BlameGroup, Budget};
use crate::model::CauseKind;
use crate::timeline::disk::DiskRequest;
use crate::timeline::io_limits::GroupIoLimit;
use crate::timeline::recording::Recording;
use std::collections::BTreeSet;
use tipme_record::{Device, Nanos, Tid};

/// A limit was reached where at least this part of it was done while the pieces waited: the kernel counts by slices of
/// time, and the first one of them may have begun before.
const REACHED: f64 = 0.5;

/// What a device did while pieces waited, and for how long they did.
struct DoneMeanwhile<'a> {
    requests: Vec<&'a DiskRequest>,
    waited: Nanos,
}

/// The limits around a thread that its I/O can have been held back by, the one that was used up most first.
pub(crate) fn reached<'a>(
    budget: &Budget<'a>,
    group: &BlameGroup,
    device: Option<Device>,
    (tid, at): (Tid, Nanos),
) -> Vec<&'a GroupIoLimit> {
    let recording = budget.recording;
    let Some((device, done)) = device.and_then(|device| Some((device, done(budget, group, device)?))) else {
        return Vec::new();
    };
    let devices = above(budget, group, device);
    let fits = |limit: &&GroupIoLimit| devices.contains(&limit.device) && may_be(group.kind, limit.write);
    let limits = recording.io_limits.of(&recording.tasks, tid, at).into_iter().filter(fits);
    let mut limits: Vec<(f64, &GroupIoLimit)> = limits.map(|limit| (done.part_of(limit), limit)).collect();
    limits.retain(|(part, _)| *part >= REACHED);
    limits.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    limits.into_iter().map(|(_, limit)| limit).collect()
}

/// `/sys/fs/cgroup/user.slice: at most 1.0 MiB/s read from vda`.
pub(crate) fn text(recording: &Recording, limit: &GroupIoLimit) -> String {
    format!("{}: {}", limit.folder, amount(recording, limit))
}

/// `at most 100 writes/s to vda`.
pub(crate) fn amount(recording: &Recording, limit: &GroupIoLimit) -> String {
    let device = recording.device_name(limit.device);
    let what = match (limit.operations, limit.write) {
        (true, true) => format!("{} writes/s to", count_text(limit.per_second)),
        (true, false) => format!("{} reads/s from", count_text(limit.per_second)),
        (false, true) => format!("{}/s written to", bytes_text(limit.per_second)),
        (false, false) => format!("{}/s read from", bytes_text(limit.per_second)),
    };
    format!("at most {what} {device}")
}

/// The device, and those that the files are on which were waited for: such as one of the device mapper above it.
fn above(budget: &Budget<'_>, group: &BlameGroup, device: Device) -> BTreeSet<Device> {
    let files = budget.pieces(group).filter_map(|piece| match piece.doing {
        Doing::Waited(_, wait) => wait.map(|wait| wait.device),
        _ => None,
    });
    files.filter(|device| *device != Device(0)).chain([device]).collect()
}

/// Whether a wait of this kind can be for a write, or for a read.
fn may_be(kind: CauseKind, write: bool) -> bool {
    match kind {
        CauseKind::PageIn | CauseKind::SwapIn => !write,
        CauseKind::Fsync => write,
        _ => true,
    }
}

/// What a device got while some of a group's pieces waited.
fn done<'a>(budget: &Budget<'a>, group: &BlameGroup, device: Device) -> Option<DoneMeanwhile<'a>> {
    let mut waits: Vec<(Nanos, Nanos)> = budget.pieces(group).map(|piece| (piece.lo, piece.hi)).collect();
    waits.sort_unstable();
    let (lo, hi) = (waits.first()?.0, waits.last()?.1);
    let within = |at: Nanos| {
        let last = waits[..waits.partition_point(|(lo, _)| *lo <= at)].last();
        last.is_some_and(|(_, hi)| at < *hi)
    };
    let got = |request: &&DiskRequest| request.device == device && within(request.start);
    let requests = budget.recording.disk.outstanding(lo, hi).filter(got).collect();
    Some(DoneMeanwhile { requests, waited: Nanos(group.nanos) })
}

impl DoneMeanwhile<'_> {
    /// How much of what a limit allowed meanwhile was done.
    fn part_of(&self, limit: &GroupIoLimit) -> f64 {
        let requests = self.requests.iter().filter(|request| request.bytes > 0 && request.is_write() == limit.write);
        let done: u64 = requests.map(|request| if limit.operations { 1 } else { u64::from(request.bytes) }).sum();
        let allowed = limit.per_second as f64 * self.waited.millis() / 1e3;
        if allowed > 0.0 { done as f64 / allowed } else { 0.0 }
    }
}
