// SPDX-License-Identifier: MIT OR Apache-2.0
//! Roles of threads in the interval: application, cause, display server, kernel, or other.

use crate::explain::jobs::Job;
use crate::explain::partition::Budget;
use crate::model::{Culprit, Finding};
use crate::scene::look::Look;
use std::cell::RefCell;
use std::collections::HashMap;
use tipme_record::{Nanos, Tid};

/// Finds the roles of threads and caches them.
pub(super) struct Actors<'a> {
    budget: &'a Budget<'a>,
    /// Job of the process that the first finding names.
    culprit: Option<Job>,
    known: RefCell<HashMap<Tid, Look>>,
}

impl<'a> Actors<'a> {
    pub(super) fn new(budget: &'a Budget<'a>, first: Option<&Finding>) -> Actors<'a> {
        let at = budget.end();
        let culprit = first.and_then(|finding| match &finding.culprit {
            Culprit::Process { pid, .. } if *pid != 0 => Some(budget.jobs.of(Tid(*pid), at)),
            Culprit::Process { .. } | Culprit::Device { .. } | Culprit::Address { .. } => None,
        });
        Actors { budget, culprit, known: RefCell::default() }
    }

    /// Returns the role of a thread; tid 0 is idle.
    pub(super) fn look(&self, tid: Tid, at: Nanos) -> Look {
        if tid == Tid(0) {
            return Look::Idle;
        }
        *self.known.borrow_mut().entry(tid).or_insert_with(|| self.find(tid, at))
    }

    fn find(&self, tid: Tid, at: Nanos) -> Look {
        let recording = self.budget.recording;
        let pid = recording.tasks.pid(tid, at);
        if self.budget.judge.is_family(pid) {
            return Look::App;
        }
        match self.budget.jobs.of(tid, at) {
            job if self.culprit.as_ref() == Some(&job) => Look::Culprit,
            _ if recording.messages.is_server(pid) => Look::Server,
            Job::Kernel(_) => Look::Kernel,
            Job::Process(_) => Look::Other,
        }
    }
}
