// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explanation of an interval of a thread, for scenes with the mark at 4 s.

use tipme_analysis::{IntervalExplanation, Recording, explain};
use tipme_record::{Nanos, Tid};

/// Explains an interval in milliseconds since the start of the machine.
pub fn explained(
    recording: &Recording,
    tid: u32,
    (from_ms, to_ms): (u64, u64),
    usual: Nanos,
) -> Option<IntervalExplanation> {
    let begin = recording.mark.before(Nanos::from_secs(4));
    let [from, to] = [from_ms, to_ms].map(|ms| begin.after(Nanos::from_millis(ms)));
    explain(recording, Tid(tid), from, to, usual)
}
