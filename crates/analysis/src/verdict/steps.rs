// SPDX-License-Identifier: MIT OR Apache-2.0
//! The chain as a list of steps for display and JSON: long pieces individually, short ones
//! together.

use crate::explain::chain::{Chain, ChainPiece};
use crate::explain::describe::{doing_text, state_name, thread_text, wait_text};
use crate::explain::partition::length;
use crate::model::Step;
use crate::timeline::recording::Recording;

/// Maximum number of steps.
const STEPS_MAX: usize = 512;

/// Returns the steps of a chain in order of time. Adjacent short pieces are merged as far as
/// necessary to stay within the limit.
pub(crate) fn steps(recording: &Recording, chain: &Chain) -> Vec<Step> {
    let whole: u64 = chain.pieces.iter().map(length).fold(0, u64::saturating_add);
    let limits = [0].into_iter().chain((0..=12).rev().map(|shift| whole >> shift));
    let fitting = limits.map(|short| runs(chain, short)).find(|runs| runs.len() <= STEPS_MAX);
    fitting.unwrap_or_default().iter().filter_map(|run| step(recording, chain, run)).collect()
}

/// Groups pieces into steps; those shorter than `short` may be merged in any case.
fn runs(chain: &Chain, short: u64) -> Vec<Vec<&ChainPiece>> {
    let mut runs: Vec<Vec<&ChainPiece>> = Vec::new();
    // `true` if all pieces of the last run are short.
    let mut all_short = false;
    for piece in &chain.pieces {
        let is_short = length(piece) < short;
        match runs.last_mut() {
            Some(run) if all_short && is_short || continues(run, piece) => {
                run.push(piece);
                all_short &= is_short;
            }
            _ => {
                runs.push(vec![piece]);
                all_short = is_short;
            }
        }
    }
    runs
}

/// Returns `true` if a piece continues the thread and state of a run.
fn continues(run: &[&ChainPiece], piece: &ChainPiece) -> bool {
    run.last().is_some_and(|last| {
        last.tid == piece.tid && state_name(&last.doing) == state_name(&piece.doing)
    })
}

fn step(recording: &Recording, chain: &Chain, run: &[&ChainPiece]) -> Option<Step> {
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
