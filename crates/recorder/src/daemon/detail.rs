// SPDX-License-Identifier: MIT OR Apache-2.0
//! Temporary details of a running recorder.

use super::Recorder;
use crate::outcome::refuse;
use tipme_control::RecorderResponse;
use tipme_control::journal;
use tipme_desktop::clock;
use tipme_kernel::Detail;
use tipme_record::Nanos;

impl Recorder<'_> {
    /// Records details at the request of a user for a number of seconds.
    pub(super) fn record_closely(
        &mut self,
        uid: u32,
        names: &[String],
        seconds: u32,
    ) -> RecorderResponse {
        let details: Vec<Detail> =
            match names.iter().map(|name| name.parse()).collect::<anyhow::Result<_>>() {
                Ok(details) => details,
                Err(error) => return refuse(error),
            };
        if let Some(why) = self.without_recording().filter(|_| seconds > 0) {
            return refuse(why);
        }
        let lacking = details.iter().find_map(|detail| Some((detail.name(), self.lacks(*detail)?)));
        if let Some((name, why)) = lacking.filter(|_| seconds > 0) {
            return refuse(format!("{name} cannot be recorded more closely: {why}"));
        }
        let now = clock::now();
        if let Err(why) = self.details.wish(uid, &details, seconds, now) {
            return refuse(why);
        }
        journal::info(format!(
            "user {uid} wants {} recorded more closely for {seconds} s",
            names.join(", ")
        ))
        .keep();
        self.settle_details(now);
        RecorderResponse::Done
    }

    fn lacks(&self, detail: Detail) -> Option<String> {
        self.kernel.lacks(detail).or_else(|| self.watch.counter().lacks(detail)).map(str::to_owned)
    }

    /// Switches details on and off as their times begin and end.
    pub(super) fn settle_details(&mut self, now: Nanos) {
        if self.details.settle(now) {
            let on = self.details.on();
            self.kernel.set_details(&on);
            self.watch.counter_mut().attach(&on);
        }
    }
}
