// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shell in a terminal on a private display, with a recorded command.

use crate::{Recording, session, typist};
use serde_json::Value;
use std::time::Duration;
use tipme_bench::PrivateSession;

/// Time for which the resource of a command is held back.
pub const HELD: Duration = Duration::from_millis(2_500);

/// Starts a shell in a terminal; its command is the script `c` in the session's folder.
pub fn shell(command: &str) -> PrivateSession {
    let mut session = session();
    // The file `d` reports the end of the command.
    std::fs::write(session.folder().join("c"), format!("{command}\n: > d\n")).unwrap();
    session.open_terminal(&[], &["bash", "--norc", "-i"].map(Into::into)).unwrap();
    session
}

/// Types the command while its resource is held back, and leaves it waiting for a while.
pub fn type_command(session: &PrivateSession) -> Recording {
    let recording = Recording::start(&["--display", &session.display_name()]);
    let mut typist = typist(session, 120.0);
    typist.text("true\ntrue\ntrue\n").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    typist.text("sh c\n").unwrap();
    std::thread::sleep(HELD);
    recording
}

pub fn marked(recording: &Recording) -> Value {
    crate::verdict(&recording.mark().0, &[])
}
