// SPDX-License-Identifier: MIT OR Apache-2.0
//! Outcomes of requests: refusals, and journal entries for marks and their causes.
//!
//! Each mark has one entry, whatever its trigger and wherever else it is reported.

use crate::capture::Mark;
use crate::judge::JudgedCause;
use std::path::Path;
use tipme_control::RecorderResponse;
use tipme_control::journal::{self, Field, JournalEntry, JournalEvent};

/// Logs the outcome of a mark.
pub(crate) fn log_mark(mark: &Mark, response: &RecorderResponse) {
    let user = format!("for user {} ({})", mark.uid, mark.trigger);
    let entry = match response {
        RecorderResponse::Marked { incident, .. } => {
            let entry = journal::info(format!("marked {} {user}", incident.display()));
            with_incident(incident, entry.event(JournalEvent::Marked))
        }
        RecorderResponse::Error(why) => {
            journal::error(format!("no mark {user}: {why}")).event(JournalEvent::MarkFailed)
        }
        _ => return,
    };
    entry.field(Field::Trigger, &mark.trigger).field(Field::User, mark.uid).keep();
}

/// Adds the incident's id to an entry.
pub(crate) fn with_incident(incident: &Path, entry: JournalEntry) -> JournalEntry {
    entry.field(Field::Incident, incident.file_stem().unwrap_or_default().display())
}

/// Adds a cause to an entry.
pub(crate) fn with_cause(cause: &JudgedCause, entry: JournalEntry) -> JournalEntry {
    let entry = entry.field(Field::Kind, &cause.kind).field(Field::Culprit, &cause.culprit);
    entry.field(Field::Application, &cause.application)
}

pub(crate) fn refuse(error: impl std::fmt::Display) -> RecorderResponse {
    RecorderResponse::Error(error.to_string())
}
