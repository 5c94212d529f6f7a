// SPDX-License-Identifier: MIT OR Apache-2.0
//! Overhead of recording in an interval.

use crate::decode::bytes::chunks;
use std::collections::BTreeMap;
use tipme_record::incident::{Cost, Incident, ProgramCost, Section};
use tipme_record::{CHUNK_BYTES, Nanos, RecordKind, TABLES, entries, unpacked};

/// Words in the names of BPF programs, and the kind of record that each stands for.
const PROGRAMS: &[(&str, RecordKind)] = &[
    ("switch", RecordKind::Switch),
    ("waking", RecordKind::Waking),
    ("wakeup", RecordKind::Waking),
    ("migrate", RecordKind::Migrate),
    ("fork", RecordKind::Fork),
    ("exec", RecordKind::Exec),
    ("exit", RecordKind::Exit),
    ("rename", RecordKind::Rename),
    ("block", RecordKind::Block),
    ("reclaim", RecordKind::Reclaim),
    ("contention", RecordKind::Lock),
    ("signal", RecordKind::Signal),
    ("sample", RecordKind::Sample),
    ("sock", RecordKind::Message),
    ("message", RecordKind::Message),
];

/// Returns the CPU time of the BPF programs in an interval, in nanoseconds per CPU.
///
/// Programs that write one record per run are counted by their records, the others by their mean
/// rate. A message is recorded by one of two programs, when it is sent or when it is dequeued. A
/// wakeup is expensive if it captures a stack, which leaves a wait record; otherwise it costs about
/// as much as a switch.
pub(crate) fn overhead(incident: &Incident, cost: &Cost, cpus: u32, lo: Nanos, hi: Nanos) -> Nanos {
    let counts = count_records(incident, lo, hi);
    let count = |kind: RecordKind| counts.get(&(kind as u8)).map_or(0.0, |count| *count as f64);
    let seconds = hi.since(lo).0 as f64 / 1e9;
    let switch = cost.programs.iter().find(|program| program.name.contains("switch"));
    let cheap = switch.map_or(f64::MAX, |switch| switch.ns_per_run);
    let spent = |program: &ProgramCost| match kind_of(program) {
        Some(RecordKind::Waking) => {
            let dear = count(RecordKind::Wait).min(count(RecordKind::Waking));
            dear * program.ns_per_run
                + (count(RecordKind::Waking) - dear) * program.ns_per_run.min(cheap)
        }
        Some(RecordKind::Message) => {
            (count(RecordKind::Message) + count(RecordKind::WlMessage)) / 2.0 * program.ns_per_run
        }
        Some(kind) if count(kind) > 0.0 => count(kind) * program.ns_per_run,
        _ => program.runs_per_second * seconds * program.ns_per_run,
    };
    let spent: f64 = cost.programs.iter().map(spent).filter(|ns| ns.is_finite() && *ns > 0.0).sum();
    Nanos((spent / f64::from(cpus.max(1))).clamp(0.0, hi.since(lo).0 as f64) as u64)
}

fn kind_of(program: &ProgramCost) -> Option<RecordKind> {
    PROGRAMS.iter().find(|(word, _)| program.name.contains(word)).map(|(_, kind)| *kind)
}

fn count_records(incident: &Incident, lo: Nanos, hi: Nanos) -> BTreeMap<u8, u64> {
    let mut counts = [0_u64; 256];
    for section in [Section::Sched, Section::Rare] {
        for (_, chunk) in
            chunks(incident.bytes(section)).into_iter().filter(|(head, _)| head.reaches(lo, hi))
        {
            for entry in unpacked(chunk).chunks(CHUNK_BYTES).flat_map(entries) {
                counts[usize::from(entry.head.kind)] +=
                    u64::from(lo <= entry.head.ts && entry.head.ts < hi);
            }
        }
    }
    TABLES.iter().map(|table| (table.kind, counts[usize::from(table.kind)])).collect()
}
