// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queue depth of each disk over time, by the owners of the requests.

use crate::scene::look::Look;
use crate::scene::picture::{Curve, TrackGroup, ValueSeries};
use crate::scene::stage::SceneStage;
use crate::timeline::disk::DiskRequest;
use std::collections::BTreeMap;
use tipme_record::{Device, Nanos};

/// Maximum number of disks shown.
const DISKS_MAX: usize = 4;
/// Number of steps of a curve.
const STEPS: usize = 600;
/// Owners distinguished in a curve, the first at the bottom. All others are counted with the last.
const OWNERS: [(Look, &str); 4] = [
    (Look::App, "the application's"),
    (Look::Culprit, "the cause's"),
    (Look::Kernel, "the kernel's"),
    (Look::Other, "others'"),
];

/// Returns the curves of the disks with requests in the time of the page, the most loaded first.
pub(super) fn curves(stage: &mut SceneStage<'_>) -> Vec<Curve> {
    let mut disks: BTreeMap<Device, Vec<&DiskRequest>> = BTreeMap::new();
    for request in stage.recording.disk.outstanding(stage.from, stage.to) {
        disks.entry(request.device).or_default().push(request);
    }
    let mut disks: Vec<_> = disks.into_iter().collect();
    disks.sort_by_key(|(_, requests)| std::cmp::Reverse(requests.len()));
    if disks.len() > DISKS_MAX {
        stage
            .left_out
            .push(format!("{} more disks, with fewer requests each.", disks.len() - DISKS_MAX));
    }
    disks
        .into_iter()
        .take(DISKS_MAX)
        .map(|(device, requests)| curve(stage, device, &requests))
        .collect()
}

fn curve(stage: &SceneStage<'_>, device: Device, requests: &[&DiskRequest]) -> Curve {
    let mut depths = OWNERS.map(|_| Depth::new(stage.from, stage.to));
    for request in requests {
        let look = stage.actors.look(request.tid, request.start);
        let owner = OWNERS.iter().position(|(owner, _)| *owner == look).unwrap_or(OWNERS.len() - 1);
        depths[owner].add(request.start, request.end);
    }
    let edges: Vec<u64> = (0..=STEPS).map(|step| stage.us(depths[0].edge(step))).collect();
    let steps = edges.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let series = OWNERS.iter().zip(&depths).map(|((look, name), depth)| ValueSeries {
        look: *look,
        name: (*name).to_owned(),
        values: depth.mean(),
    });
    let series = series.filter(|series| series.values.iter().any(|value| *value > 0.0)).collect();
    let name = format!("Outstanding requests of {}", stage.recording.device_name(device));
    Curve { group: TrackGroup::Disks, name, unit: "requests", steps, series }
}

/// Mean number of requests in each step. Requests that span whole steps are counted only where
/// these begin and end.
struct Depth {
    from: Nanos,
    step: f64,
    parts: Vec<f64>,
    whole: Vec<i64>,
}

impl Depth {
    fn new(from: Nanos, to: Nanos) -> Depth {
        let step = (to.since(from).0 as f64 / STEPS as f64).max(1.0);
        Depth { from, step, parts: vec![0.0; STEPS], whole: vec![0; STEPS + 1] }
    }

    fn edge(&self, step: usize) -> Nanos {
        self.from.after(Nanos((step as f64 * self.step) as u64))
    }

    fn add(&mut self, lo: Nanos, hi: Nanos) {
        let [lo, hi] =
            [lo, hi].map(|at| (at.since(self.from).0 as f64 / self.step).min(STEPS as f64));
        let (first, last) = (lo as usize, hi as usize);
        if first == last {
            return self.add_part(first, hi - lo);
        }
        self.add_part(first, first as f64 + 1.0 - lo);
        self.add_part(last, hi - last as f64);
        if first + 1 < last {
            self.whole[first + 1] += 1;
            self.whole[last] -= 1;
        }
    }

    fn add_part(&mut self, step: usize, share: f64) {
        if let Some(part) = self.parts.get_mut(step) {
            *part += share;
        }
    }

    fn mean(&self) -> Vec<f32> {
        let mut open = 0;
        let steps = self.parts.iter().zip(&self.whole).map(|(part, change)| {
            open += change;
            ((part + open as f64) * 100.0).round() as f32 / 100.0
        });
        steps.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(requests: &[(u64, u64)]) -> Vec<f32> {
        let mut depth = Depth::new(Nanos(1_000), Nanos(1_000 + STEPS as u64 * 10));
        requests.iter().for_each(|(lo, hi)| depth.add(Nanos(*lo), Nanos(*hi)));
        depth.mean()
    }

    #[test]
    fn a_request_counts_for_as_long_as_it_is_outstanding() {
        assert_eq!(mean(&[(1_015, 1_042)])[..6], [0.0, 0.5, 1.0, 1.0, 0.2, 0.0]);
        assert_eq!(mean(&[(1_011, 1_013), (1_010, 1_020)])[..3], [0.0, 1.2, 0.0]);
        assert_eq!(mean(&[(1_015, 1_030)])[..4], [0.0, 0.5, 1.0, 0.0]);
        assert_eq!(mean(&[(0, u64::MAX)]), [1.0; STEPS]);
        assert_eq!(mean(&[(5_000_000, u64::MAX)]), [0.0; STEPS]);
    }
}
