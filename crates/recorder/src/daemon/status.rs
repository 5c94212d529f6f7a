// SPDX-License-Identifier: MIT OR Apache-2.0
//! State and coverage of the recorder.

use super::Recorder;
use crate::capture::{exits_from, held};
use crate::hot_keys::HotKeyScope;
use tipme_control::{AutoCounts, RecorderStatus};
use tipme_desktop::clock;
use tipme_record::incident::Display;
use tipme_record::{Nanos, RingClass};

impl Recorder<'_> {
    /// Returns the status, without its parts specific to a caller.
    pub(super) fn status(&self) -> RecorderStatus {
        let kept = RingClass::ALL[..2].iter().map(|class| self.kernel.overwritten_until(*class));
        let from = kept.fold(self.armed, Nanos::max);
        let (devices, now) = (self.inputs.count(), clock::now());
        let exits = exits_from(now.before(self.options.window), now);
        let overwritten = self.kernel.overwritten_until(RingClass::Exits);
        let ended = held(RingClass::Exits, self.armed, overwritten, exits);
        let hot_keys = self.hot_keys.as_ref().map(|(keys, _)| *keys).filter(|_| devices > 0);
        RecorderStatus {
            pid: std::process::id(),
            armed_ns: self.armed.0,
            held_s: now.since(from).0 as f64 / 1e9,
            window_s: self.options.window.0 as f64 / 1e9,
            ended_s: now.since(Nanos(ended.held_from_ns)).0 as f64 / 1e9,
            ended_bound: ended.bound,
            lost: self.watch.lost(),
            paused_since_ns: self.paused.map(|(_, since)| since.0),
            paused_by_uid: self.paused.map(|(by, _)| by),
            allowed: self.options.allowed.clone(),
            because: String::new(),
            focus: Vec::new(),
            hot_keys: hot_keys.map(|keys| keys.announce(devices)),
            any_keyboard: hot_keys.is_some_and(|keys| keys.scope == HotKeyScope::Always),
            keys: !self.unrecorded.is_stopped(),
            input_stopped_by_uid: self.unrecorded.unwilling(),
            input_stopped_s: self.unrecorded.within(now.before(self.options.window), now).millis()
                / 1e3,
            details: self.details.statuses(self.armed),
            displays: self.recorded(&self.displays.known()),
            missing: self
                .kernel
                .missing()
                .iter()
                .map(|missing| format!("{}: {}", missing.what, missing.why))
                .collect(),
            day: self.days.is_some(),
            suggested: Vec::new(),
            tolerances: Vec::new(),
            auto: self
                .auto
                .as_ref()
                .map(|(auto, _)| AutoCounts { unwatched: self.kernel.unwatched(), ..auto.counts }),
        }
    }

    /// Returns the names of recorded displays, such as `:0`, and the sockets of recorded
    /// compositors.
    pub(super) fn recorded(&self, displays: &[Display]) -> Vec<String> {
        let wanted = displays.iter().filter(|display| self.options.tap.takes(display.display));
        let names = wanted.map(|display| format!(":{}", display.display));
        names.chain(self.options.tap.compositors()).collect()
    }
}
