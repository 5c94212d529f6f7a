// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time of threads on a CPU, or in its run queue, while that CPU was away: no thread of this
//! machine is to blame.

use crate::explain::blame::{Blame, Who};
use crate::explain::chain::ChainPiece;
use crate::explain::outsider::{SHARE_MIN, may_be_taken};
use crate::model::CauseKind;
use crate::timeline::recording::Recording;
use tipme_record::Cpu;

/// Returns the blame of a piece, replaced by a stall if its CPU was away for most of it.
pub(crate) fn unless_stolen(recording: &Recording, piece: &ChainPiece, blame: Blame) -> Blame {
    let taken = || {
        cpu(recording, piece).is_some_and(|cpu| may_be_taken(recording, cpu, piece.lo, piece.hi))
    };
    let stolen = match blame.kind {
        CauseKind::OwnComputation | CauseKind::CpuCompetition => {
            share(recording, piece) >= SHARE_MIN || taken()
        }
        CauseKind::Interrupt => taken(),
        _ => false,
    };
    match stolen {
        true => Blame { kind: CauseKind::Stall, who: Who::Thread(piece.tid) },
        false => blame,
    }
}

/// Returns the share of a piece for which its CPU was away, according to the coarse steal counter,
/// the steal time seen by the kernel at ticks, or missing interrupts.
pub(crate) fn share(recording: &Recording, piece: &ChainPiece) -> f64 {
    let share = |cpu| {
        let taken = recording.withdrawals.taken(cpu, piece.lo, piece.hi);
        let gone = taken.max(recording.overdue.away(cpu, piece.lo, piece.hi)).0 as f64;
        recording
            .steal
            .share_of(cpu, piece.lo, piece.hi)
            .max(gone / piece.hi.since(piece.lo).0.max(1) as f64)
    };
    cpu(recording, piece).map_or(0.0, share)
}

/// Returns the CPU on which a piece's thread ran last.
pub(crate) fn cpu(recording: &Recording, piece: &ChainPiece) -> Option<Cpu> {
    recording.timeline.before(piece.tid, piece.hi).map(|span| Cpu(u32::from(span.segment.place)))
}
