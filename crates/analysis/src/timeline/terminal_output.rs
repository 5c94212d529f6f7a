// SPDX-License-Identifier: MIT OR Apache-2.0
//! Terminal output that nobody takes: stopped by its user, or left unread by its reader.

use crate::timeline::recording::Recording;
use crate::timeline::threads::Span;
use crate::timeline::waits::{Waited, is_terminal_file, writes_to_terminal};
use tipme_record::Tid;
use tipme_record::records::Wait;

/// Minimum share of a wait for which a reader must be idle, or a display of it stopped.
const SHARE_MIN: f64 = 0.9;

impl Recording {
    /// Returns `true` if a terminal accepted no output although the readers at its other end waited
    /// for some, as after Ctrl-S. Typing Ctrl-Q ends such a wait. If a reader ended it, or waited
    /// for other files only, the terminal was full and its reader did not read.
    pub(crate) fn is_output_stopped(&self, span: &Span, wait: &Wait) -> bool {
        if !writes_to_terminal(wait) {
            return false;
        }
        let ends = self.terminals.other_ends(span.tid);
        let read = span.task_waker().is_some_and(|by| ends.contains(&by));
        !ends.is_empty()
            && !read
            && ends.iter().all(|tid| {
                self.idle_share(*tid, span.start, span.end) >= SHARE_MIN
                    && !self.leaves_terminals(*tid, span)
            })
    }

    /// Returns `true` if a thread waited for most of a span for known files, none of which is a
    /// terminal.
    fn leaves_terminals(&self, tid: Tid, span: &Span) -> bool {
        self.is_for_most(tid, span, |other| {
            let files = self.waits.find(other).map_or(&[][..], |wait| self.polls.files(wait));
            !files.is_empty() && !files.iter().any(|file| is_terminal_file(file.mode, file.magic))
        })
    }

    /// Returns the stopped thread at the other end of a terminal that a thread writes to. Programs
    /// that the thread runs in terminals of its own do not count.
    pub(crate) fn stopped_display(&self, span: &Span) -> Option<Tid> {
        let own = self.tasks.pid(span.tid, span.start);
        self.terminals.other_ends(span.tid).into_iter().find(|tid| {
            let pid = self.tasks.pid(*tid, span.start);
            !self.tasks.descends(pid, own, span.start)
                && self.is_for_most(*tid, span, |other| self.waits.kind(other) == Waited::Stopped)
        })
    }

    /// Returns `true` if a single wait that fits covers most of a span.
    fn is_for_most(&self, tid: Tid, span: &Span, fits: impl Fn(&Span) -> bool) -> bool {
        self.timeline.overlapping(tid, span.start, span.end).any(|other| {
            let overlap = other.end.min(span.end).since(other.start.max(span.start));
            overlap.0 as f64 >= SHARE_MIN * span.length().0 as f64 && fits(&other)
        })
    }
}
