// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who was about to bring a display server the event that it waits for.
//!
//! A server with nothing to do waits for nobody in particular: whoever wakes it next was not waited for. Another thread of
//! its own, as the one that reads the input devices, is different: what it brings had reached the server when that thread
//! began its burst. Whatever held the thread up from there on held up the event.

use crate::timeline::recording::Recording;
use crate::timeline::threads::Span;
use tipme_record::{Nanos, Tid};

/// A thread that ended a wait of another one of its process, and since when it had been at that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Feeder {
    pub tid: Tid,
    pub since: Nanos,
}

impl Recording {
    /// The thread of the same process that ended a wait, with the begin of its burst.
    pub(crate) fn feeder(&self, span: &Span) -> Option<Feeder> {
        let pid = |tid| self.tasks.pid(tid, span.end);
        let tid = span.task_waker().filter(|by| pid(*by) == pid(span.tid))?;
        let burst = self.burst(tid, span.end);
        Some(Feeder { tid, since: self.since_condition(tid, burst, span.end).start })
    }
}
