// SPDX-License-Identifier: MIT OR Apache-2.0
//! All turns of all blocks, one after the other.

use super::{ArmComparison, ArmTurn, SETTLING};
use crate::driver::{Around, BackgroundJob, BenchStage};
use crate::load::Achieved;
use anyhow::{Context, Result};
use std::time::Duration;
use tipme_measure::Events;

/// What was measured in one turn: the events, and what only this kind of measurement has.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Block<T> {
    pub events: Events,
    /// How long what answers waited for a CPU meanwhile; `None` where that was not watched.
    pub waited: Option<Duration>,
    pub more: T,
}

/// What the turns of one kind gave, in the order of the blocks.
pub(crate) struct TurnResults<T> {
    pub turn: ArmTurn,
    pub blocks: Vec<Block<T>>,
    /// What the load did in all of them; `None` without a load.
    pub load: Option<Achieved>,
    /// Rounds of the load a second in each block; empty without a load.
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

/// What a job did in two turns.
pub(crate) fn together(before: Option<Achieved>, more: Option<Achieved>) -> Option<Achieved> {
    match (before, more) {
        (Some(before), Some(more)) => Some(before.and(more)),
        (before, more) => before.or(more),
    }
}

/// Every turn of every block; each measures for `time` at most.
pub(crate) fn all_turns<T>(
    comparison: &ArmComparison,
    stage: &mut dyn BenchStage,
    time: Duration,
    measure: &mut dyn FnMut(&mut dyn BenchStage) -> Result<Block<T>>,
) -> Result<Vec<TurnResults<T>>> {
    let mut cells: Vec<TurnResults<T>> = Vec::new();
    // It runs beside every arm, so that arms differ by the manager alone.
    if comparison.managed {
        stage.record_focus()?;
    }
    for block in 0..comparison.blocks {
        for turn in comparison.turns(block) {
            stage.line(&format!("block {} of {}: {}", block + 1, comparison.blocks, turn.name()));
            let load = comparison.load(turn, time + SETTLING, stage.speed());
            let job = (turn.level > 0).then_some(BackgroundJob::Load(load));
            let around = Around { arm: turn.arm, manager: &comparison.manager, job };
            let (measured, load) = one_turn(stage, &around, measure)?;
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

/// What a turn gave, and what its job did meanwhile.
pub(crate) fn one_turn<T>(
    stage: &mut dyn BenchStage,
    around: &Around<'_>,
    measure: &mut dyn FnMut(&mut dyn BenchStage) -> Result<T>,
) -> Result<(T, Option<Achieved>)> {
    let mut measured = None;
    let load = stage.turn(around, &mut |stage| {
        measured = Some(measure(stage)?);
        Ok(())
    })?;
    Ok((measured.context("a turn ended before it was measured")?, load))
}
