// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies of a day: counts by application and hour, updated answer by answer.
//!
//! Only the contribution to the counts of its hour is kept of an answer, and the time of the
//! longest ones. An application's *wait* is the time from press to drawing, minus the sleep of the
//! thread that took the press, except sleep on its own process or a disk: C and E, Q or S of
//! [`crate::think`]. *Interaction* is that time including the sleep, plus the gaps before the
//! presses while the user was present; *think* is the rest of it. All times are nanoseconds.

mod figures;

use crate::excess::tenth;
use crate::histogram::Histogram;
use crate::think::AWAY_NS;
use crate::threshold::{InputClass, ThresholdProfile};
pub use figures::{ClassShare, DayFigures, HourShare, LivedFigures, LivedRate, LongWait};
use serde::{Deserialize, Serialize};

/// Classes that are distinguished, in the order of the counts.
const LIVED: [InputClass; 2] = [InputClass::Key, InputClass::Click];

/// Maximum number of applications per hour; the counts of others go to [`OTHERS`].
const APPLICATIONS_MAX: usize = 32;
/// Name for applications without a row of their own; no program can have it.
const OTHERS: &str = "(others)";
/// Maximum number of longest answers of a day kept with their time.
const LONG_MAX: usize = 20;
/// Number of seconds per hour.
const HOUR_S: u64 = 3_600;

/// Presses answered by one drawing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AnsweredPresses {
    /// Time of the drawing, since 1970.
    pub at: u64,
    /// Time from the first and from the last of the presses to the drawing.
    pub first: u64,
    pub last: u64,
    /// Time for which the thread that took the first press slept on no other thread of its process
    /// and no disk.
    pub slept: u64,
    pub presses: u32,
    /// Number of earlier presses without an answer: the program was done with them when the next
    /// one came.
    pub silent: u32,
}

impl AnsweredPresses {
    /// Returns the part of the time since the first press in which the program was busy, or the
    /// press was queued.
    pub fn wait(&self) -> u64 {
        self.first.saturating_sub(self.slept)
    }

    /// Returns the latency of each press. Those between the first and the last are assumed to be
    /// evenly spaced.
    pub fn latencies(&self) -> impl Iterator<Item = u64> {
        let (n, from) = (u64::from(self.presses), self.first);
        let step = from.saturating_sub(self.last) / n.saturating_sub(1).max(1);
        (0..n).map(
            move |index| {
                if index + 1 == n && n > 1 { self.last.min(from) } else { from - step * index }
            },
        )
    }
}

/// Latencies of one class.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LivedClass {
    pub silent: u64,
    pub sum_ns: u64,
    pub max_ns: u64,
    /// Excess above nine tenths of the threshold, above it, and above eleven tenths.
    pub excess_ns: [u64; 3],
    pub counts: Histogram,
}

/// Counts of one application in an hour.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LivedApplication {
    pub application: String,
    pub wait_ns: u64,
    /// Part of the wait in waits at least as long as the threshold of their class.
    pub noticed_ns: u64,
    pub interactive_ns: u64,
    pub classes: [LivedClass; LIVED.len()],
}

/// One hour, in UTC.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LivedHour {
    /// Start, in seconds since 1970.
    pub start_s: u64,
    pub applications: Vec<LivedApplication>,
}

/// Answer above its threshold, with its time.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LongAnswer {
    /// Time of the drawing, since 1970.
    pub at_ns: u64,
    pub latency_ns: u64,
    pub application: String,
    pub class: String,
    pub presses: u32,
}

/// Hours of a day, or of a part of it, of one user.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LivedDay {
    pub hours: Vec<LivedHour>,
    /// Longest answers, in descending order.
    pub longest: Vec<LongAnswer>,
    /// Number of answers that could not be counted, since too many came at once.
    pub lost: u64,
}

/// Time of the user's last answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LastAnswer(pub u64);

impl LastAnswer {
    /// Returns the time of interaction that an answer adds, including the gap before its first
    /// press unless the user was away. No time counts twice.
    pub fn extend(&mut self, answer: &AnsweredPresses) -> u64 {
        let (end, begin) = (answer.at, answer.at.saturating_sub(answer.first));
        let gap = begin.saturating_sub(self.0);
        let from = if gap > AWAY_NS { begin } else { self.0 };
        self.0 = self.0.max(end);
        end.saturating_sub(from)
    }
}

impl LivedClass {
    fn add(&mut self, answer: &AnsweredPresses, threshold: u64) {
        self.silent = self.silent.saturating_add(answer.silent.into());
        for latency in answer.latencies() {
            self.counts.add(Histogram::bucket(latency), 1);
            self.sum_ns = self.sum_ns.saturating_add(latency);
            self.max_ns = self.max_ns.max(latency);
            for (excess, tenths) in self.excess_ns.iter_mut().zip([9, 10, 11]) {
                *excess = excess.saturating_add(latency.saturating_sub(tenth(threshold, tenths)));
            }
        }
    }

    fn join(&mut self, other: &LivedClass) {
        self.silent = self.silent.saturating_add(other.silent);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        for (sum, more) in self.excess_ns.iter_mut().zip(other.excess_ns) {
            *sum = sum.saturating_add(more);
        }
        other.counts.filled().for_each(|(bucket, count)| self.counts.add(bucket, count));
    }
}

impl LivedApplication {
    fn join(&mut self, other: &LivedApplication) {
        self.wait_ns = self.wait_ns.saturating_add(other.wait_ns);
        self.noticed_ns = self.noticed_ns.saturating_add(other.noticed_ns);
        self.interactive_ns = self.interactive_ns.saturating_add(other.interactive_ns);
        self.classes.iter_mut().zip(&other.classes).for_each(|(sum, more)| sum.join(more));
    }
}

/// Returns the row of an application among at most `most`; the last place is for all others.
fn row<'a>(
    rows: &'a mut Vec<LivedApplication>,
    name: &str,
    most: usize,
) -> &'a mut LivedApplication {
    let mut found = rows.iter().position(|row| row.application == name);
    let mut application = name;
    if found.is_none() && rows.len() + 1 >= most {
        application = OTHERS;
        found = rows.iter().position(|row| row.application == OTHERS);
    }
    let at = found.unwrap_or_else(|| {
        let application = application.to_owned();
        rows.push(LivedApplication { application, ..LivedApplication::default() });
        rows.len() - 1
    });
    &mut rows[at]
}

impl LivedDay {
    /// Counts an answer; `interactive` is its contribution to the time of interaction.
    pub fn add(
        &mut self,
        class: InputClass,
        application: &str,
        answer: &AnsweredPresses,
        interactive: u64,
    ) {
        let Some(place) = LIVED.iter().position(|known| *known == class) else { return };
        let threshold = class.limits(ThresholdProfile::Default).threshold;
        let applications = &mut self.hour(answer.at / 1_000_000_000 / HOUR_S * HOUR_S).applications;
        let row = row(applications, application, APPLICATIONS_MAX);
        let wait = answer.wait();
        row.wait_ns = row.wait_ns.saturating_add(wait);
        row.noticed_ns = row.noticed_ns.saturating_add(if wait >= threshold { wait } else { 0 });
        row.interactive_ns = row.interactive_ns.saturating_add(interactive);
        row.classes[place].add(answer, threshold);
        if answer.first > threshold {
            self.remember(LongAnswer {
                at_ns: answer.at,
                latency_ns: answer.first,
                application: application.to_owned(),
                class: class.name().to_owned(),
                presses: answer.presses,
            });
        }
    }

    fn remember(&mut self, long: LongAnswer) {
        let at = self.longest.partition_point(|known| known.latency_ns >= long.latency_ns);
        self.longest.insert(at, long);
        self.longest.truncate(LONG_MAX);
    }

    fn hour(&mut self, start_s: u64) -> &mut LivedHour {
        let at = self.hours.partition_point(|hour| hour.start_s < start_s);
        if self.hours.get(at).is_none_or(|hour| hour.start_s != start_s) {
            self.hours.insert(at, LivedHour { start_s, ..LivedHour::default() });
        }
        &mut self.hours[at]
    }

    /// Adds the counts of another part of the same time.
    pub fn join(&mut self, other: &LivedDay) {
        for hour in &other.hours {
            let rows = &mut self.hour(hour.start_s).applications;
            for more in &hour.applications {
                row(rows, &more.application, APPLICATIONS_MAX).join(more);
            }
        }
        other.longest.iter().for_each(|long| self.remember(long.clone()));
        self.lost = self.lost.saturating_add(other.lost);
    }

    /// Keeps only the part between two times, in seconds since 1970; hours are selected by their
    /// start.
    pub fn within(mut self, from_s: u64, to_s: u64) -> LivedDay {
        self.hours.retain(|hour| (from_s..to_s).contains(&hour.start_s));
        self.longest.retain(|long| (from_s..to_s).contains(&(long.at_ns / 1_000_000_000)));
        self
    }

    /// Returns `true` if this can result from counting: the numbers of hours and rows and the
    /// lengths of names are within their limits.
    pub fn is_bounded(&self, hours: usize, name_bytes: usize) -> bool {
        let rows = self.hours.iter().flat_map(|hour| &hour.applications);
        let mut names = rows
            .map(|row| &row.application)
            .chain(self.longest.iter().map(|long| &long.application));
        self.hours.len() <= hours
            && self.hours.iter().all(|hour| hour.applications.len() <= APPLICATIONS_MAX)
            && self.longest.len() <= LONG_MAX
            && names.all(|name| (1..=name_bytes).contains(&name.len()))
    }
}

#[cfg(test)]
mod tests;
