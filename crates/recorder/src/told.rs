// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the journal keeps of marks and of their causes.
//!
//! Each mark has one entry there, whoever asked for it and wherever else it is told. And what is answered where nothing
//! comes of a request.

use crate::capture::Mark;
use crate::judge::Blame;
use std::path::Path;
use tipme_control::Response;
use tipme_control::journal::{self, Entry, Event, Field};

/// What became of a mark.
pub(crate) fn marked(mark: &Mark, response: &Response) {
    let whose = format!("for user {} ({})", mark.uid, mark.trigger);
    let entry = match response {
        Response::Marked { incident, .. } => {
            of(incident, journal::info(format!("marked {} {whose}", incident.display())).event(Event::Marked))
        }
        Response::Error(why) => journal::error(format!("no mark {whose}: {why}")).event(Event::MarkFailed),
        _ => return,
    };
    entry.field(Field::Trigger, &mark.trigger).field(Field::User, mark.uid).keep();
}

/// An entry about an incident.
pub(crate) fn of(incident: &Path, entry: Entry) -> Entry {
    entry.field(Field::Incident, incident.file_stem().unwrap_or_default().display())
}

/// An entry about a cause.
pub(crate) fn due_to(cause: &Blame, entry: Entry) -> Entry {
    let entry = entry.field(Field::Kind, &cause.kind).field(Field::Culprit, &cause.culprit);
    entry.field(Field::Application, &cause.application)
}

pub(crate) fn refuse(error: impl std::fmt::Display) -> Response {
    Response::Error(error.to_string())
}
