// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of the idle-loop instrument: the CPU time that a lowest-priority loop missed.
//!
//! The loop reads a counter repeatedly. Between two readings it either ran, which takes
//! nanoseconds, or the CPU was taken from it: a *gap*. A record is written whenever the loop has
//! had as much CPU time as its resolution, usually a millisecond, so a record that took longer in
//! wall time contains stolen time.

mod exclusion;
mod figures;
mod naming;
mod observed;
mod tick;
mod validation;

pub use exclusion::Exclusion;
pub use figures::{
    CpuFigures, CpuProfile, GAP, GapFigures, IdleDetails, InterruptCount, NamedGap, NamedTime,
    StolenShares, run,
};
pub use naming::{
    Basis, GapPiece, GapPortion, Holder, HolderKind, Resident, Residents, Seen, attribute,
    charged_ns,
};
pub use observed::{BINS_MAX, Bin, ClassicLoop, Gap, Observed, bins, longest};
pub use tick::{Tick, tick};
pub use validation::{
    Check, Echo, Errors, Injection, Taken, Trial, Validation, errors, stolen_by_gaps,
    stolen_by_records,
};
