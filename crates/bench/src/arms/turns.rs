// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs all turns of all blocks in sequence.

use super::{ArmComparison, ArmTurn, SETTLING};
use crate::driver::{BackgroundJob, BenchStage, TurnSetup};
use crate::load::Achieved;
use anyhow::{Context, Result};
use std::time::Duration;
use tipme_measure::Events;

/// Measurement of one turn: its events, and the results specific to the benchmark.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Block<T> {
    pub events: Events,
    /// Run-queue delay of the answering threads during the turn; `None` if not measured.
    pub waited: Option<Duration>,
    pub more: T,
}

/// Results of all blocks of one turn, in order.
pub(crate) struct TurnResults<T> {
    pub turn: ArmTurn,
    pub blocks: Vec<Block<T>>,
    /// Work of the load in all blocks; `None` without a load.
    pub load: Option<Achieved>,
    /// Rounds of the load per second in each block; empty without a load.
    pub rates: Vec<f64>,
}

impl<T> TurnResults<T> {
    fn new(turn: ArmTurn) -> TurnResults<T> {
        TurnResults { turn, blocks: Vec::new(), load: None, rates: Vec::new() }
    }

    fn take(&mut self, block: Block<T>, load: Option<Achieved>) {
        self.blocks.push(block);
        self.rates.extend(load.map(|load| load.rounds_per_s));
        self.load = together(self.load, load);
    }
}

/// Adds up the work of a job in two turns.
pub(crate) fn together(before: Option<Achieved>, more: Option<Achieved>) -> Option<Achieved> {
    match (before, more) {
        (Some(before), Some(more)) => Some(before.and(more)),
        (before, more) => before.or(more),
    }
}

/// Runs every turn of every block; each measures for `time` at most.
pub(crate) fn all_turns<T>(
    comparison: &ArmComparison,
    stage: &mut dyn BenchStage,
    time: Duration,
    measure: &mut dyn FnMut(&mut dyn BenchStage) -> Result<Block<T>>,
) -> Result<Vec<TurnResults<T>>> {
    let mut cells: Vec<TurnResults<T>> = Vec::new();
    // Runs beside every arm, so that arms differ by the manager alone.
    if comparison.managed {
        stage.record_focus()?;
    }
    for block in 0..comparison.blocks {
        for turn in comparison.turns(block) {
            stage.line(&format!("block {} of {}: {}", block + 1, comparison.blocks, turn.name()));
            let load = comparison.load(turn, time + SETTLING, stage.speed());
            let job = (turn.level > 0).then_some(BackgroundJob::Load(load));
            let setup = TurnSetup { arm: turn.arm, manager: &comparison.manager, job };
            let (measured, load) = one_turn(stage, &setup, measure)?;
            let at = cells.iter().position(|cell| cell.turn == turn).unwrap_or_else(|| {
                cells.push(TurnResults::new(turn));
                cells.len() - 1
            });
            cells[at].take(measured, load);
        }
    }
    cells.sort_by_key(|cell| cell.turn);
    Ok(cells)
}

/// Runs one turn; returns its results and the work of its job.
pub(crate) fn one_turn<T>(
    stage: &mut dyn BenchStage,
    setup: &TurnSetup<'_>,
    measure: &mut dyn FnMut(&mut dyn BenchStage) -> Result<T>,
) -> Result<(T, Option<Achieved>)> {
    let mut measured = None;
    let load = stage.turn(setup, &mut |stage| {
        measured = Some(measure(stage)?);
        Ok(())
    })?;
    Ok((measured.context("a turn ended before it was measured")?, load))
}
