// SPDX-License-Identifier: MIT OR Apache-2.0
//! PSI pressure: share of the time in which a task waited for CPUs, disks or memory, as counted by
//! the kernel.

use crate::decode::samples::samples;
use crate::scene::look::Look;
use crate::scene::picture::{Curve, TrackGroup, ValueSeries};
use crate::scene::stage::SceneStage;
use tipme_record::Nanos;
use tipme_record::incident::{Incident, Section};
use tipme_record::proc_text::stalled_us;

/// Sources of samples, with the look and name of their curves.
const SOURCES: [(u32, Look, &str); 3] = [
    (0, Look::Ready, "Tasks waiting for a CPU"),
    (1, Look::Disk, "Tasks waiting for a disk"),
    (2, Look::Memory, "Tasks waiting for memory"),
];

/// Maximum number of samples read, and of steps shown.
const SAMPLES_MAX: usize = 100_000;
const STEPS_MAX: usize = 1_000;

/// Returns a curve for each source with samples in the time of the page.
pub(super) fn curves(stage: &mut SceneStage<'_>, incident: &Incident) -> Vec<Curve> {
    let mut totals: [Vec<(Nanos, u64)>; SOURCES.len()] = Default::default();
    for (at, source, text) in samples(incident.bytes(Section::Samples)).take(SAMPLES_MAX) {
        let place = SOURCES.iter().position(|(number, ..)| *number == source);
        if let (Some(place), Some(total)) = (place, stalled_us(text)) {
            totals[place].push((at, total));
        }
    }
    SOURCES
        .iter()
        .zip(totals)
        .filter_map(|((_, look, name), totals)| curve(stage, (*look, name), totals))
        .collect()
}

fn curve(
    stage: &SceneStage<'_>,
    what: (Look, &str),
    mut totals: Vec<(Nanos, u64)>,
) -> Option<Curve> {
    totals.sort_unstable();
    let pairs = totals
        .windows(2)
        .filter(|pair| pair[0].0 < pair[1].0 && pair[0].0 < stage.to && pair[1].0 > stage.from);
    let shares = pairs.take(STEPS_MAX).map(|pair| {
        let waited = pair[1].1.saturating_sub(pair[0].1) as f64;
        let percent = (waited * 1e5 / pair[1].0.since(pair[0].0).0 as f64).min(100.0);
        ((stage.us(pair[0].0), stage.us(pair[1].0)), (percent * 10.0).round() as f32 / 10.0)
    });
    let (steps, values): (Vec<_>, Vec<f32>) = shares.unzip();
    let (look, name) = what;
    let series = vec![ValueSeries { look, name: name.to_owned(), values }];
    (!steps.is_empty()).then(|| Curve {
        group: TrackGroup::Pressure,
        name: name.to_owned(),
        unit: "%",
        steps,
        series,
    })
}
