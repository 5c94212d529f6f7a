// SPDX-License-Identifier: MIT OR Apache-2.0
//! Automatic marks, and users' verdicts on them.

use super::{Recorder, done};
use crate::auto::Suspicion;
use crate::capture::Mark;
use crate::look::settle;
use std::path::Path;
use std::time::Instant;
use tipme_control::{Caller, Judged, RecorderResponse, ToldTolerance};
use tipme_record::Nanos;

impl Recorder<'_> {
    /// Examines what the coarse figures make suspicious, and decides on finished examinations.
    pub(super) fn notice(&mut self, now: Nanos) {
        self.settle_looks(now);
        let judged = self.suspicions.settled(Instant::now());
        if self.paused.is_some() {
            return;
        }
        judged.into_iter().for_each(|judged| self.look(judged));
        let Some((auto, looks)) = &mut self.auto else { return };
        if looks.running() || self.suspicions.waiting().next().is_some() {
            return;
        }
        if let Some(suspicion) = auto.tick(&self.kernel, &mut self.learning, now) {
            self.ask_whose(suspicion);
        }
    }

    /// Asks polkit whether the program's user may mark, as if the program asked: then that user
    /// owns the incident.
    fn ask_whose(&mut self, suspicion: Suspicion) {
        let program = Caller { pid: suspicion.client.0, uid: suspicion.uid };
        let judged = self.suspicions.judge(program.uid, program, suspicion, Instant::now());
        judged.into_iter().for_each(|judged| self.look(judged));
    }

    fn look(&mut self, (mut suspicion, may): Judged<Suspicion>) {
        if may.is_err() {
            suspicion.uid = self.owner();
        }
        let mark =
            Mark { text: String::new(), trigger: "auto".to_owned(), uid: suspicion.uid, at: None };
        let capture = self.capture(&mark);
        self.learning.save();
        if let Some((_, looks)) = &self.auto {
            looks.begin(suspicion, capture, &self.displays, &self.inquiries);
        }
    }

    pub(super) fn settle_looks(&mut self, now: Nanos) {
        let Some((auto, looks)) = &mut self.auto else { return };
        for looked in looks.ended() {
            settle(auto, looks, looked, now);
        }
    }

    /// Handles a user's verdict on an incident.
    pub(super) fn apply_verdict(&mut self, incident: &Path, uid: u32, right: Option<bool>) {
        let id = incident.file_stem().unwrap_or_default().to_string_lossy();
        if let (Some((auto, _)), Some(right)) = (&mut self.auto, right) {
            auto.tolerances.answer(&id, uid, right);
        }
    }

    pub(super) fn remove(&mut self, id: &str, uid: u32) -> RecorderResponse {
        let removed = self.folder.remove(id, uid);
        if let (Some((auto, _)), true) = (&mut self.auto, removed.is_ok()) {
            auto.tolerances.remove(id, uid);
        }
        done(removed)
    }

    /// Returns a user's automatic incidents and tolerances.
    pub(super) fn feedback_of(&self, uid: u32) -> (Vec<String>, Vec<ToldTolerance>) {
        let tolerances = self.auto.as_ref().map(|(auto, _)| &auto.tolerances);
        tolerances.map(|of| (of.suggested(uid), of.adjusted(uid))).unwrap_or_default()
    }
}
