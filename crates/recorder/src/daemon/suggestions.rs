// SPDX-License-Identifier: MIT OR Apache-2.0
//! Marks that nobody asked for, and what people say of them.

use super::{Recorder, done};
use crate::auto::Suspicion;
use crate::capture::Mark;
use crate::look::settle;
use std::path::Path;
use tipme_control::{GROUP, RecorderResponse, ToldTolerance, accounts};
use tipme_record::Nanos;

impl Recorder<'_> {
    /// Looks at what the coarse figures make suspicious, and decides on looks that have ended.
    pub(super) fn notice(&mut self, now: Nanos) {
        self.settle_looks(now);
        let Some((auto, looks)) = &mut self.auto else { return };
        if looks.running() || self.paused.is_some() {
            return;
        }
        if let Some(suspicion) = auto.tick(&self.kernel, &mut self.learning, now) {
            self.look(suspicion);
        }
    }

    fn look(&mut self, mut suspicion: Suspicion) {
        if !self.may_have(suspicion.uid) {
            suspicion.uid = self.owner();
        }
        let mark = Mark { text: String::new(), trigger: "auto".to_owned(), uid: suspicion.uid, at: None };
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

    /// Whether a user may have an incident without asking: who may mark whatever polkit says, which is not asked here.
    fn may_have(&self, uid: u32) -> bool {
        uid == 0 || self.options.allowed.contains(&uid) || accounts::is_member(GROUP, uid)
    }

    /// A user says of an incident whether it was this.
    pub(super) fn hear(&mut self, incident: &Path, uid: u32, right: Option<bool>) {
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

    /// The incidents of a user that nobody asked for, and what that user puts up with.
    pub(super) fn said_by(&self, uid: u32) -> (Vec<String>, Vec<ToldTolerance>) {
        let tolerances = self.auto.as_ref().map(|(auto, _)| &auto.tolerances);
        tolerances.map(|of| (of.suggested(uid), of.told(uid))).unwrap_or_default()
    }
}
