// SPDX-License-Identifier: MIT OR Apache-2.0
//! Printed figures from the counts of a day.

use super::{LIVED, LivedApplication, LivedClass, LivedDay, LivedHour, LongAnswer, row};
use crate::excess::{rate, top};
use crate::histogram::Histogram;
use crate::percentile::Share;
use crate::threshold::{InputClass, ThresholdProfile};
use crate::units::ms;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of applications listed individually; the rest is merged.
const LISTED_MAX: usize = 24;

/// Latencies of a user between two times.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DayFigures {
    /// Seconds since 1970.
    pub from_s: u64,
    pub to_s: u64,
    /// All applications together.
    pub all: LivedFigures,
    /// Longest used application first.
    pub applications: Vec<LivedFigures>,
    /// Hours with answers.
    pub hours: Vec<HourShare>,
    /// Longest answers above their threshold.
    pub longest: Vec<LongWait>,
    /// Distribution of all latencies: the longest latency of each bucket in milliseconds, and its
    /// count. There are eight buckets per doubling.
    pub distribution: Vec<(f64, u64)>,
    /// Number of answers that could not be counted.
    pub lost: u64,
}

/// Figures of an application, or of all. Percentiles are at most an eighth too large and never
/// too small; `null` with too few latencies above.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LivedFigures {
    /// Name; empty for all applications.
    pub application: String,
    /// Time from press to drawing with the program busy or the press queued, and its noticed part.
    pub wait_ms: f64,
    pub noticed_wait_ms: f64,
    /// Rest of the time of interaction, which excludes gaps over 30 s.
    pub think_ms: f64,
    /// Number of answered presses, and of unanswered ones before an answered one.
    pub n: u64,
    pub silent: u64,
    /// Sum of all latencies.
    pub total_ms: f64,
    pub p50_ms: Option<f64>,
    pub p98_ms: Option<f64>,
    pub max_ms: Option<f64>,
    pub interaction_p98_ms: Option<f64>,
    /// Excess latency rate; `null` without interaction.
    pub elr: Option<LivedRate>,
    pub classes: Vec<ClassShare>,
}

/// Excess latency rate at nine tenths of the threshold, at it, and at eleven tenths.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LivedRate {
    pub below_ms_per_minute: f64,
    pub at_ms_per_minute: f64,
    pub above_ms_per_minute: f64,
    /// Class with the largest part, and that part from 0 to 1; `null` without excess.
    pub top_class: Option<String>,
    pub top_share: Option<f64>,
}

/// One class of an application.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClassShare {
    pub class: String,
    pub n: u64,
    pub silent: u64,
    pub p50_ms: Option<f64>,
    pub p98_ms: Option<f64>,
    pub max_ms: f64,
    pub threshold_ms: f64,
}

/// One hour of all applications.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HourShare {
    /// Begin, in seconds since 1970.
    pub start_s: u64,
    pub n: u64,
    pub wait_ms: f64,
    pub noticed_wait_ms: f64,
    pub think_ms: f64,
}

/// One long answer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LongWait {
    /// Time of the drawing, in seconds since 1970.
    pub at_s: f64,
    pub latency_ms: f64,
    pub application: String,
    pub class: String,
    /// Number of presses that it answered.
    pub presses: u32,
    /// Incident marked at that time; `null` without one, or if it was not looked for.
    pub incident: Option<String>,
}

impl DayFigures {
    /// Computes the figures of the counts between two times, in seconds since 1970.
    pub fn of(day: LivedDay, from_s: u64, to_s: u64) -> DayFigures {
        let day = day.within(from_s, to_s);
        let (mut rows, mut all) = (Vec::new(), Vec::new());
        for application in day.hours.iter().flat_map(|hour| &hour.applications) {
            row(&mut rows, &application.application, usize::MAX).join(application);
            row(&mut all, "", usize::MAX).join(application);
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.interactive_ns));
        let mut listed = Vec::new();
        rows.iter().for_each(|one| row(&mut listed, &one.application, LISTED_MAX).join(one));
        let all = all.pop().unwrap_or_default();
        let distribution = all
            .latencies()
            .filled()
            .map(|(bucket, count)| (ms(Histogram::upper(bucket)), count))
            .collect();
        DayFigures {
            from_s,
            to_s,
            all: figures(&all),
            applications: listed.iter().map(figures).collect(),
            hours: day.hours.iter().map(hour).collect(),
            longest: day.longest.iter().map(long).collect(),
            distribution,
            lost: day.lost,
        }
    }
}

impl LivedApplication {
    /// Merges all classes.
    fn together(&self) -> LivedClass {
        let mut all = LivedClass::default();
        self.classes.iter().for_each(|class| all.join(class));
        all
    }

    fn latencies(&self) -> Histogram {
        self.together().counts
    }

    fn think_ns(&self) -> u64 {
        self.interactive_ns.saturating_sub(self.wait_ns)
    }

    fn elr(&self) -> Option<LivedRate> {
        let rate = rate(
            |tenths| {
                let place = usize::try_from(tenths - 9).unwrap_or(0);
                self.classes.iter().map(|class| u128::from(class.excess_ns[place])).sum()
            },
            self.interactive_ns,
        )?;
        let classes = LIVED.iter().zip(&self.classes);
        let parts = classes.map(|(class, lived)| (class.name(), u128::from(lived.excess_ns[1])));
        let (top_class, top_share) = top(parts).unzip();
        Some(LivedRate {
            below_ms_per_minute: rate.below_ms_per_minute,
            at_ms_per_minute: rate.at_ms_per_minute,
            above_ms_per_minute: rate.above_ms_per_minute,
            top_class,
            top_share,
        })
    }
}

impl LivedClass {
    /// Returns a percentile if it may be printed, limited to the longest latency, which the end of
    /// a bucket may exceed.
    fn shown(&self, share: Share) -> Option<f64> {
        let n = usize::try_from(self.counts.n()).ok().filter(|n| share.is_shown(*n))?;
        self.counts.value(share).filter(|_| n > 0).map(|value| ms(value.min(self.max_ns)))
    }
}

fn figures(row: &LivedApplication) -> LivedFigures {
    let all = row.together();
    let n = all.counts.n();
    LivedFigures {
        application: row.application.clone(),
        wait_ms: ms(row.wait_ns),
        noticed_wait_ms: ms(row.noticed_ns),
        think_ms: ms(row.think_ns()),
        n,
        silent: all.silent,
        total_ms: ms(all.sum_ns),
        p50_ms: all.shown(Share::P50),
        p98_ms: all.shown(Share::P98),
        max_ms: (n > 0).then_some(ms(all.max_ns)),
        interaction_p98_ms: all
            .counts
            .ranked_from_top(n / 50)
            .map(|value| ms(value.min(all.max_ns))),
        elr: row.elr(),
        classes: LIVED
            .iter()
            .zip(&row.classes)
            .filter(|(_, of)| of.counts.n() > 0)
            .map(share)
            .collect(),
    }
}

fn share((class, of): (&InputClass, &LivedClass)) -> ClassShare {
    ClassShare {
        class: class.name().to_owned(),
        n: of.counts.n(),
        silent: of.silent,
        p50_ms: of.shown(Share::P50),
        p98_ms: of.shown(Share::P98),
        max_ms: ms(of.max_ns),
        threshold_ms: ms(class.limits(ThresholdProfile::Default).threshold),
    }
}

fn hour(hour: &LivedHour) -> HourShare {
    let mut all = LivedApplication::default();
    hour.applications.iter().for_each(|row| all.join(row));
    HourShare {
        start_s: hour.start_s,
        n: all.latencies().n(),
        wait_ms: ms(all.wait_ns),
        noticed_wait_ms: ms(all.noticed_ns),
        think_ms: ms(all.think_ns()),
    }
}

fn long(long: &LongAnswer) -> LongWait {
    LongWait {
        at_s: long.at_ns as f64 / 1e9,
        latency_ms: ms(long.latency_ns),
        application: long.application.clone(),
        class: long.class.clone(),
        presses: long.presses,
        incident: None,
    }
}
