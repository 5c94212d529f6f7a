// SPDX-License-Identifier: MIT OR Apache-2.0
//! I/O limits of control groups that held back the pieces of a blame group.
//!
//! A limit holds I/O back only if about the allowed amount was done. The I/O of a device as a whole
//! is at least that of the control group, so a device far below a limit rules the limit out.

use crate::explain::chain::Doing;
use crate::explain::describe::{bytes_text, count_text};
use crate::explain::partition::{BlameGroup, Budget};
use crate::model::CauseKind;
use crate::timeline::disk::DiskRequest;
use crate::timeline::io_limits::GroupIoLimit;
use crate::timeline::recording::Recording;
use std::collections::BTreeSet;
use tipme_record::{Device, Nanos, Tid};

/// Minimum share of the allowed I/O that must have been done while the pieces waited. The kernel
/// accounts in time slices, and the first one may have started earlier.
const REACHED: f64 = 0.5;

/// Requests of a device while pieces waited, and the total time of those waits.
struct DoneMeanwhile<'a> {
    requests: Vec<&'a DiskRequest>,
    waited: Nanos,
}

/// Returns the limits around a thread that may have held back its I/O, the most used up first.
pub(crate) fn reached<'a>(
    budget: &Budget<'a>,
    group: &BlameGroup,
    device: Option<Device>,
    (tid, at): (Tid, Nanos),
) -> Vec<&'a GroupIoLimit> {
    let recording = budget.recording;
    let Some((device, done)) =
        device.and_then(|device| Some((device, done(budget, group, device)?)))
    else {
        return Vec::new();
    };
    let devices = above(budget, group, device);
    let fits =
        |limit: &&GroupIoLimit| devices.contains(&limit.device) && may_be(group.kind, limit.write);
    let limits = recording.io_limits.limits(&recording.tasks, tid, at).into_iter().filter(fits);
    let mut limits: Vec<(f64, &GroupIoLimit)> =
        limits.map(|limit| (done.part_of(limit), limit)).collect();
    limits.retain(|(part, _)| *part >= REACHED);
    limits.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    limits.into_iter().map(|(_, limit)| limit).collect()
}

/// Formats a limit with its group: `/sys/fs/cgroup/user.slice: at most 1.0 MiB/s read from vda`.
pub(crate) fn text(recording: &Recording, limit: &GroupIoLimit) -> String {
    format!("{}: {}", limit.folder, amount(recording, limit))
}

/// Formats a limit: `at most 100 writes/s to vda`.
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

/// Returns the device and those of the awaited files, such as a device-mapper device on top of it.
fn above(budget: &Budget<'_>, group: &BlameGroup, device: Device) -> BTreeSet<Device> {
    let files = budget.pieces(group).filter_map(|piece| match piece.doing {
        Doing::Waited(_, wait) => wait.map(|wait| wait.device),
        _ => None,
    });
    files.filter(|device| *device != Device(0)).chain([device]).collect()
}

/// Returns `true` if a wait of this kind can be for an operation in the given direction.
fn may_be(kind: CauseKind, write: bool) -> bool {
    match kind {
        CauseKind::PageIn | CauseKind::SwapIn => !write,
        CauseKind::Fsync => write,
        _ => true,
    }
}

/// Collects the requests of a device during the pieces of a group.
fn done<'a>(budget: &Budget<'a>, group: &BlameGroup, device: Device) -> Option<DoneMeanwhile<'a>> {
    let mut waits: Vec<(Nanos, Nanos)> =
        budget.pieces(group).map(|piece| (piece.lo, piece.hi)).collect();
    waits.sort_unstable();
    let (lo, hi) = (waits.first()?.0, waits.last()?.1);
    let within = |at: Nanos| {
        let last = waits[..waits.partition_point(|(lo, _)| *lo <= at)].last();
        last.is_some_and(|(_, hi)| at < *hi)
    };
    let requests = budget
        .recording
        .disk
        .outstanding(lo, hi)
        .filter(|request| request.device == device && within(request.start))
        .collect();
    Some(DoneMeanwhile { requests, waited: Nanos(group.nanos) })
}

impl DoneMeanwhile<'_> {
    /// Returns the I/O done as a share of the amount allowed by a limit.
    fn part_of(&self, limit: &GroupIoLimit) -> f64 {
        let requests = self
            .requests
            .iter()
            .filter(|request| request.bytes > 0 && request.is_write() == limit.write);
        let done: u64 = requests
            .map(|request| if limit.operations { 1 } else { u64::from(request.bytes) })
            .sum();
        let allowed = limit.per_second as f64 * self.waited.millis() / 1e3;
        if allowed > 0.0 { done as f64 / allowed } else { 0.0 }
    }
}
