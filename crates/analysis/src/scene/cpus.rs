// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracks of the CPUs with their running threads.

use crate::explain::describe::thread_text;
use crate::scene::lanes::Stretch;
use crate::scene::look::Look;
use crate::scene::picture::{Track, TrackGroup};
use crate::scene::stage::SceneStage;
use crate::timeline::cpu_intervals::{CpuOccupancy, on_cpu};
use crate::timeline::recording::Recording;
use crate::timeline::threads::ThreadState;
use std::collections::BTreeSet;
use tipme_record::{Cpu, Nanos};

/// Maximum number of CPUs shown.
const CPUS_MAX: usize = 16;
/// Maximum number of CPUs considered.
const LOOKED_MAX: u32 = 1_024;

/// Returns the tracks of the CPUs in order of number. If there are too many, those used by threads
/// of the chain are kept first.
pub(super) fn tracks(stage: &mut SceneStage<'_>) -> Vec<Track> {
    let used = used(stage);
    let count = stage.recording.meta.machine.cpus.min(LOOKED_MAX);
    let mut all: Vec<Cpu> = (0..count).map(Cpu).collect();
    all.sort_by_key(|cpu| (!used.contains(cpu), *cpu));
    if all.len() > CPUS_MAX {
        stage.left_out.push(format!("{} more CPUs.", all.len() - CPUS_MAX));
        all.truncate(CPUS_MAX);
    }
    all.sort_unstable();
    all.into_iter().map(|cpu| track(stage, cpu)).collect()
}

/// Returns the CPUs on which threads of the chain ran or were runnable.
fn used(stage: &SceneStage<'_>) -> BTreeSet<Cpu> {
    let pieces = stage.budget.chain.pieces.iter();
    let spans = pieces.filter_map(|piece| stage.recording.timeline.at(piece.tid, piece.lo));
    let on_cpu = spans
        .filter(|span| matches!(span.segment.state, ThreadState::Running | ThreadState::Runnable));
    on_cpu.map(|span| Cpu(span.segment.place.into())).collect()
}

fn track(stage: &mut SceneStage<'_>, cpu: Cpu) -> Track {
    let recording = stage.recording;
    let tiles = on_cpu(recording, cpu, stage.from, stage.to);
    let mut stretches = Vec::new();
    for (of, (on, lo, hi)) in tiles.iter().copied().enumerate() {
        let look = match on {
            CpuOccupancy::Thread(None) => Look::Unknown,
            CpuOccupancy::Thread(Some(tid)) => stage.actors.look(tid, lo),
            CpuOccupancy::Interrupt(_) => Look::Interrupt,
        };
        stretches.push(Stretch { lo, hi, look, of });
    }
    let mut bars = stage.bars(&stretches, |of| {
        tiles.get(of).map(|(on, lo, _)| text(recording, *on, *lo)).unwrap_or_default()
    });
    bars.retain(|bar| bar.look != Look::Idle);
    Track { group: TrackGroup::Cpus, name: format!("CPU {cpu}"), look: None, bars }
}

fn text(recording: &Recording, on: CpuOccupancy, at: Nanos) -> String {
    match on {
        CpuOccupancy::Thread(None) => "not recorded".to_owned(),
        CpuOccupancy::Thread(Some(tid)) => thread_text(recording, tid, at),
        CpuOccupancy::Interrupt(source) => source.name(&recording.meta.irq_names),
    }
}
