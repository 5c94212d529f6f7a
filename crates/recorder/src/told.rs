// SPDX-License-Identifier: MIT OR Apache-2.0
//! Journal entries for marks and their causes.
//!
//! Each mark has one entry, whatever its trigger and wherever else it is reported. Also responses
//! that refuse a request.

use crate::capture::Mark;
use crate::judge::JudgedCause;
use std::path::Path;
use tipme_control::RecorderResponse;
use tipme_control::journal::{self, Field, JournalEntry, JournalEvent};

/// Logs the result of a mark.
pub(crate) fn marked(mark: &Mark, response: &RecorderResponse) {
    let whose = format!("for user {} ({})", mark.uid, mark.trigger);
    let entry = match response {
        RecorderResponse::Marked { incident, .. } => of(
            incident,
            journal::info(format!("marked {} {whose}", incident.display()))
                .event(JournalEvent::Marked),
        ),
        RecorderResponse::Error(why) => {
            journal::error(format!("no mark {whose}: {why}")).event(JournalEvent::MarkFailed)
        }
        _ => return,
    };
    entry.field(Field::Trigger, &mark.trigger).field(Field::User, mark.uid).keep();
}

/// Adds the incident's id to an entry.
pub(crate) fn of(incident: &Path, entry: JournalEntry) -> JournalEntry {
    entry.field(Field::Incident, incident.file_stem().unwrap_or_default().display())
}

/// Adds a cause to an entry.
pub(crate) fn due_to(cause: &JudgedCause, entry: JournalEntry) -> JournalEntry {
    let entry = entry.field(Field::Kind, &cause.kind).field(Field::Culprit, &cause.culprit);
    entry.field(Field::Application, &cause.application)
}

pub(crate) fn refuse(error: impl std::fmt::Display) -> RecorderResponse {
    RecorderResponse::Error(error.to_string())
}
