// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to the figures of `tipme day`.

use super::Recorder;
use crate::day::Days;
use crate::outcome::refuse;
use anyhow::Result;
use tipme_control::RecorderResponse;
use tipme_desktop::clock;

impl Recorder<'_> {
    /// Returns a user's figures: to that user, or to root.
    pub(super) fn day_figures(
        &mut self,
        caller: u32,
        user: u32,
        from_s: u64,
        to_s: u64,
    ) -> RecorderResponse {
        if caller != 0 && caller != user {
            return refuse(format!("the latencies of user {user} are for that user and root only"));
        }
        let (kernel, learning) = (&self.kernel, &mut self.learning);
        if let Some(days) = &mut self.days {
            days.take(kernel, learning, clock::now());
        }
        self.days_of(|days| {
            days.figures(user, from_s, to_s).map(|figures| RecorderResponse::Day(Box::new(figures)))
        })
    }

    pub(super) fn days_of(
        &mut self,
        what: impl FnOnce(&mut Days) -> Result<RecorderResponse>,
    ) -> RecorderResponse {
        let Some(days) = &mut self.days else {
            return refuse(
                "latencies are not counted; enable it with: tipme setup --day (or tipme record --day)",
            );
        };
        what(days).unwrap_or_else(|error| refuse(format!("{error:#}")))
    }
}
