// SPDX-License-Identifier: MIT OR Apache-2.0
//! The chain as a list of steps for people and for JSON: long stays by themselves, short ones together.

use crate::chain::{Chain, Piece};
use crate::describe::{doing_text, state_name, thread_text, wait_text};
use crate::model::Step;
use crate::partition::length;
use crate::recording::Recording;

/// A chain is told in at most this many steps.
const STEPS_MAX: usize = 512;

/// The steps of a chain in the order of time. Short pieces beside each other become one step, as far
/// as needed to keep to the limit.
pub fn steps(recording: &Recording, chain: &Chain) -> Vec<Step> {
    let whole: u64 = chain.pieces.iter().map(length).fold(0, u64::saturating_add);
    let limits = [0].into_iter().chain((0..=12).rev().map(|shift| whole >> shift));
    let told = limits.map(|short| runs(chain, short)).find(|runs| runs.len() <= STEPS_MAX);
    told.unwrap_or_default().iter().filter_map(|run| step(recording, chain, run)).collect()
}

/// Groups pieces into steps; those below a length may stand together whatever they are.
fn runs(chain: &Chain, short: u64) -> Vec<Vec<&Piece>> {
    let mut runs: Vec<Vec<&Piece>> = Vec::new();
    for piece in &chain.pieces {
        match runs.last_mut() {
            Some(run) if belongs(run, piece, short) => run.push(piece),
            _ => runs.push(vec![piece]),
        }
    }
    runs
}

/// Pieces of one thread in one state are one step, and so are short pieces beside each other.
fn belongs(run: &[&Piece], piece: &Piece, short: u64) -> bool {
    let Some(last) = run.last() else { return false };
    let same = last.tid == piece.tid && state_name(&last.doing) == state_name(&piece.doing);
    same || run.iter().all(|other| length(other) < short) && length(piece) < short
}

fn step(recording: &Recording, chain: &Chain, run: &[&Piece]) -> Option<Step> {
    let (first, last) = (run.first()?, run.last()?);
    let longest = run.iter().max_by_key(|piece| length(piece))?;
    let pid = recording.tasks.pid(longest.tid, longest.lo);
    let others = run.iter().filter(|piece| piece.tid != longest.tid).count();
    let mut detail = doing_text(recording, longest);
    if let Some(via) = chain.vias_of(longest).next() {
        let waiter = thread_text(recording, via.waiter, longest.lo);
        detail += &format!(", while {waiter} {}", wait_text(via.waited, via.wait.as_ref()));
    }
    if others > 0 {
        detail += &format!(", and {others} shorter pieces of other threads");
    }
    Some(Step {
        start_ns: first.lo.0,
        end_ns: last.hi.0,
        pid: pid.0,
        comm: recording.tasks.thread_comm(longest.tid, longest.lo),
        state: state_name(&longest.doing).to_owned(),
        detail,
        woken_by: longest.waker.map(|waker| thread_text(recording, waker, longest.hi)),
    })
}
