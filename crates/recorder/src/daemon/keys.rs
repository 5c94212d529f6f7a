// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot keys read from the keyboards, and the recording of input, which they stop and restart.

use super::Recorder;
use crate::authorization::AttributedPress;
use crate::capture::Mark;
use crate::hot_keys::HotKeyOptions;
use crate::outcome::refuse;
use std::time::Instant;
use tipme_control::{Daemon as _, RecorderResponse, RecorderSocket, Trigger};
use tipme_desktop::chords::HotKeyPress;
use tipme_desktop::clock;
use tipme_desktop::hotkeys::HotKeyAction;
use tipme_record::Nanos;

/// Time after a mark by hot key within which another press counts as the same one: two devices, or
/// a device and the session's agent, may report it.
pub(super) const SAME_PRESS: Nanos = Nanos::from_millis(500);

impl Recorder<'_> {
    /// Stops or restarts the recording of input. One user's refusal overrides all others, since a
    /// press cannot be attributed to its user before it is recorded.
    pub(super) fn record_keys(&mut self, uid: u32, record: bool) -> RecorderResponse {
        self.unrecorded.set(uid, record, clock::now());
        self.kernel.hide_input(self.unrecorded.is_stopped());
        self.inputs.discard();
        match self.unrecorded.unwilling().filter(|_| record) {
            None => RecorderResponse::Done,
            Some(other) => refuse(format!(
                "input is still not recorded, since user {other} does not want it; \
                 ask them, or restart the recorder"
            )),
        }
    }

    /// Executes pressed hot keys that count now, if their users are authorized.
    pub(super) fn answer_keys(&mut self) {
        let now = Instant::now();
        let mut judged = self.presses.settled(now);
        for press in self.inputs.pressed() {
            let Some((keys, _)) = &self.hot_keys else { return };
            let Some(listener) = keys.listener() else { continue };
            let uid = self.seated(keys);
            let press = AttributedPress { press, listener, uid };
            judged.extend(self.presses.judge(uid, uid, press, now));
        }
        for (asker, may) in judged {
            match may {
                Ok(_) => self.answer_key(asker),
                Err(why) => {
                    asker.listener.show(&RecorderSocket::not_allowed_because(asker.uid, &why))
                }
            }
        }
    }

    fn answer_key(&mut self, AttributedPress { press, listener, uid }: AttributedPress) {
        let Some((_, causes)) = &self.hot_keys else { return };
        match press.action {
            HotKeyAction::Mark if self.is_repeated(press) => {}
            HotKeyAction::Mark => {
                let trigger = Trigger::Hotkey.name().to_owned();
                let mark = Mark { text: String::new(), trigger, uid, at: Some(press.at) };
                let asker = causes.asker();
                self.mark(mark, move |response| listener.marked(&response, &asker));
            }
            HotKeyAction::Start => match self.start_again(uid) {
                RecorderResponse::Error(why) => listener.show(&why),
                _ => listener.show("recording, with input"),
            },
            HotKeyAction::StopKeys => {
                self.record_keys(uid, false);
                listener.show("input is no longer recorded");
            }
            HotKeyAction::StartKeys => match self.record_keys(uid, true) {
                RecorderResponse::Error(why) => listener.show(&why),
                _ => listener.show("input is recorded again"),
            },
        }
    }

    /// Returns the user that key presses on the console are attributed to.
    fn seated(&self, keys: &HotKeyOptions) -> u32 {
        keys.seated().unwrap_or_else(|| self.owner())
    }

    /// Returns `true` if a hot key marked just before this press, or after it: devices are read
    /// late.
    fn is_repeated(&self, press: HotKeyPress) -> bool {
        self.hot_marked.is_some_and(|last| press.at.since(last) < SAME_PRESS)
    }
}
