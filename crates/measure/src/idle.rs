// SPDX-License-Identifier: MIT OR Apache-2.0
//! The idle-loop instrument: what a loop of the lowest priority missed of its CPU, in figures.
//!
//! The loop reads a counter again and again. Between two readings it either ran, which takes nanoseconds, or
//! somebody else had the CPU: a *gap*. A record is written whenever the loop has had so much of the CPU as its
//! resolution says, usually a millisecond, so a record that took longer in wall time holds stolen time.

mod calibration;
mod exclusion;
mod figures;
mod naming;
mod observed;
mod tick;
mod validation;

pub use calibration::{Calibration, ClassicLoop, ClockFigures};
pub use exclusion::Exclusion;
pub use figures::{
    CpuFigures, CpuProfile, GAP, GapFigures, IdleDetails, InterruptCount, NamedGap, NamedTime, StolenShares, run,
};
pub use naming::{Basis, GapPiece, GapPortion, Holder, HolderKind, Resident, Residents, Seen, attribute, charged_ns};
pub use observed::{BINS_MAX, Bin, Gap, Observed, bins, longest};
pub use tick::{Tick, tick};
pub use validation::{
    Check, Echo, Errors, Injection, Taken, Trial, Validation, errors, stolen_by_gaps, stolen_by_records,
};
