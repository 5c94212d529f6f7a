// SPDX-License-Identifier: MIT OR Apache-2.0
//! The chain as a track: the blame of each piece of the interval.

use crate::explain::describe::{doing_text, thread_text, wait_text};
use crate::explain::partition::Budget;
use crate::scene::lanes::Stretch;
use crate::scene::look::Look;
use crate::scene::picture::{Track, TrackGroup};
use crate::scene::stage::SceneStage;

/// Returns a track with one bar per piece.
pub(super) fn track(stage: &mut SceneStage<'_>) -> Track {
    let budget = stage.budget;
    let pieces = budget.chain.pieces.iter().zip(&budget.blames).enumerate();
    let stretches: Vec<Stretch> = pieces
        .map(|(of, (piece, blame))| Stretch {
            lo: piece.lo,
            hi: piece.hi,
            look: Look::of_kind(blame.kind),
            of,
        })
        .collect();
    let bars = stage.bars(&stretches, |of| text(budget, of));
    Track { group: TrackGroup::Chain, name: "Causes of the wait".to_owned(), look: None, bars }
}

/// Formats `disk-queue: grep (pid 7) waited for the disk in read, while xterm (pid 5) waited for
/// another process in poll`.
fn text(budget: &Budget<'_>, piece: usize) -> String {
    let (Some(piece), Some(blame)) = (budget.chain.pieces.get(piece), budget.blames.get(piece))
    else {
        return String::new();
    };
    let recording = budget.recording;
    let thread = thread_text(recording, piece.tid, piece.lo);
    let mut text = format!("{}: {thread} {}", blame.kind, doing_text(recording, piece));
    for via in budget.chain.vias_of(piece) {
        let waiter = thread_text(recording, via.waiter, piece.lo);
        text += &format!(", while {waiter} {}", wait_text(via.waited, via.wait.as_ref()));
    }
    text
}
