// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that were about to deliver a display server its next event.
//!
//! An idle server waits for no thread in particular, so its next waker is not a cause. A thread of
//! its own process that ends the wait, such as the reader of the input devices, is different: its
//! input had reached the server when that thread began its burst. A delay of the thread from then
//! on delayed the event.

use crate::timeline::recording::Recording;
use crate::timeline::threads::Span;
use tipme_record::{Nanos, Tid};

/// Thread that ended a wait of another thread in its process, and the start of that work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Feeder {
    pub tid: Tid,
    pub since: Nanos,
}

impl Recording {
    /// Returns the thread of the same process that ended a wait, with the start of its burst.
    pub(crate) fn feeder(&self, span: &Span) -> Option<Feeder> {
        let pid = |tid| self.tasks.pid(tid, span.end);
        let tid = span.task_waker().filter(|by| pid(*by) == pid(span.tid))?;
        let burst = self.burst(tid, span.end);
        Some(Feeder { tid, since: self.since_condition(tid, burst, span.end).start })
    }
}
