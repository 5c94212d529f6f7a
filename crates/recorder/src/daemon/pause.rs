// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pausing and resuming all recording.

use super::Recorder;
use crate::outcome::refuse;
use tipme_control::{RecorderResponse, accounts, journal};
use tipme_desktop::clock;
use tipme_record::Nanos;

impl Recorder<'_> {
    /// Stops recording. Earlier records stay in memory until they would have been overwritten
    /// anyway.
    pub(super) fn pause(&mut self, uid: u32) -> RecorderResponse {
        if let Some((other, _)) = self.paused.filter(|(by, _)| *by != uid) {
            let user = accounts::in_words(other);
            return refuse(format!("recording is paused already, by {user}"));
        }
        if self.paused.is_none() {
            self.kernel.pause(true);
            self.inputs.discard();
            self.paused = Some((uid, clock::now()));
            journal::info(format!("paused by user {uid}")).keep();
        }
        RecorderResponse::Done
    }

    /// Resumes recording, unless another user paused it; root may always resume. The window begins
    /// again now.
    pub(super) fn start_again(&mut self, uid: u32) -> RecorderResponse {
        match self.paused {
            Some((by, since)) if uid != 0 && by != uid => return refuse(why_paused(by, since)),
            Some(_) => {
                self.inputs.discard();
                self.armed = clock::now();
                self.kernel.pause(false);
                self.paused = None;
                journal::info(format!("resumed by user {uid}")).keep();
            }
            None => {}
        }
        self.record_keys(uid, true)
    }

    /// Returns the reason why marks are refused while recording is paused.
    pub(super) fn without_recording(&self) -> Option<String> {
        self.paused.map(|(by, since)| why_paused(by, since))
    }
}

fn why_paused(by: u32, since: Nanos) -> String {
    let ago = clock::now().since(since).0 / 1_000_000_000;
    let user = accounts::in_words(by);
    let command = if by == 0 { "sudo tipme resume" } else { "tipme resume" };
    format!("recording was paused {ago} s ago by {user}, who can start it again: {command}")
}
