// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time of threads on a CPU, or in its queue, in which that CPU was away: nobody in this machine is to blame for it.

use crate::explain::blame::{Blame, Who};
use crate::explain::chain::ChainPiece;
use crate::explain::outsider::{SHARE_MIN, may_be_taken};
use crate::model::CauseKind;
use crate::timeline::recording::Recording;
use tipme_record::Cpu;

/// The blame for a piece, unless its CPU was away for most of it.
pub(crate) fn unless_stolen(recording: &Recording, piece: &ChainPiece, blame: Blame) -> Blame {
    let taken = || cpu(recording, piece).is_some_and(|cpu| may_be_taken(recording, cpu, piece.lo, piece.hi));
    let stolen = match blame.kind {
        CauseKind::OwnComputation | CauseKind::CpuCompetition => share(recording, piece) >= SHARE_MIN || taken(),
        CauseKind::Interrupt => taken(),
        _ => false,
    };
    match stolen {
        true => Blame { kind: CauseKind::Stall, who: Who::Thread(piece.tid) },
        false => blame,
    }
}

/// For how much of a piece its CPU was away: by the coarse counter of what was stolen, by what the kernel saw of that
/// at ticks, or since no interrupt came.
pub(crate) fn share(recording: &Recording, piece: &ChainPiece) -> f64 {
    let share = |cpu| {
        let taken = recording.withdrawals.taken(cpu, piece.lo, piece.hi);
        let gone = taken.max(recording.overdue.away(cpu, piece.lo, piece.hi)).0 as f64;
        recording.steal.share_of(cpu, piece.lo, piece.hi).max(gone / piece.hi.since(piece.lo).0.max(1) as f64)
    };
    cpu(recording, piece).map_or(0.0, share)
}

/// The CPU that a piece's thread was on, or last had been on.
pub(crate) fn cpu(recording: &Recording, piece: &ChainPiece) -> Option<Cpu> {
    recording.timeline.before(piece.tid, piece.hi).map(|span| Cpu(u32::from(span.segment.place)))
}
