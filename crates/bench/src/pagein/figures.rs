// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures specific to the page-in benchmark.

use super::block::TurnMeasurements;
use super::options::Pagein;
use super::room::MemoryRoom;
use crate::arms::{ArmComparison, ArmFigures, TurnResults};
use schemars::JsonSchema;
use serde::Serialize;
use tipme_record::Nanos;

/// Working set, hog and results of the page-in benchmark.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Walked {
    pub working_set_bytes: u64,
    /// Keys per lap through all of it.
    pub keys_per_lap: usize,
    pub keys_per_block: usize,
    /// Time between an answer and the next key.
    pub every_s: f64,
    pub hog_bytes: u64,
    /// `true` if the load was sized to exhaust the memory.
    pub shortage: bool,
    pub room: MemoryRoom,
    /// Keys that were not typed for lack of time.
    pub untyped: usize,
    pub turns: Vec<WalkedTurn>,
}

/// The keys of one turn, over all blocks.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct WalkedTurn {
    pub turn: String,
    /// Major page faults.
    pub page_ins: u64,
    /// Durations of the program's walks through its pages.
    pub walk: ArmFigures,
    pub key_to_drawing: ArmFigures,
}

impl Walked {
    pub(super) fn new(
        options: &Pagein,
        comparison: &ArmComparison,
        room: MemoryRoom,
        cells: &[TurnResults<TurnMeasurements>],
    ) -> Walked {
        Walked {
            working_set_bytes: options.working_set,
            keys_per_lap: options.keys_per_lap.into(),
            keys_per_block: options.keys_per_block(),
            every_s: options.every.as_secs_f64(),
            hog_bytes: comparison.load_bytes(),
            shortage: !options.without_shortage,
            room,
            untyped: cells
                .iter()
                .flat_map(|cell| &cell.blocks)
                .map(|block| block.more.untyped)
                .sum(),
            turns: cells.iter().map(turn).collect(),
        }
    }
}

fn turn(cell: &TurnResults<TurnMeasurements>) -> WalkedTurn {
    let blocks = cell.blocks.iter().map(|block| &block.more);
    WalkedTurn {
        turn: cell.turn.name(),
        page_ins: blocks.clone().map(|block| block.page_ins).sum(),
        walk: figures(blocks.clone().flat_map(|block| &block.walks)),
        key_to_drawing: figures(blocks.flat_map(|block| &block.latencies)),
    }
}

fn figures<'a>(times: impl Iterator<Item = &'a Nanos>) -> ArmFigures {
    ArmFigures::new(times.map(|time| time.0).collect(), 0)
}
