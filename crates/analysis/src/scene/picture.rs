// SPDX-License-Identifier: MIT OR Apache-2.0
//! The document that a page is made of. Times are microseconds from its start unless stated
//! otherwise.

use crate::model::Verdict;
use crate::scene::look::Look;
use serde::{Serialize, Serializer};

/// Verdict with the activity around its interval.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Scene {
    pub verdict: Verdict,
    /// Start and end, CLOCK_MONOTONIC nanoseconds.
    pub from_ns: u64,
    pub to_ns: u64,
    /// Texts of bars, by number.
    pub texts: Vec<String>,
    pub tracks: Vec<Track>,
    pub curves: Vec<Curve>,
    /// Latencies of the baseline.
    pub usual: Option<UsualLatencies>,
    /// Jobs that used CPUs and disks in the interval, the largest user first.
    pub jobs: Vec<JobUse>,
    /// Cost of recording on this machine.
    pub programs: Vec<ProgramUse>,
    /// Omissions, in full sentences.
    pub left_out: Vec<String>,
}

/// Group of a track; the page shows them in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrackGroup {
    Input,
    Messages,
    Chain,
    Threads,
    Cpus,
    Started,
    Disks,
    Pressure,
    Others,
}

impl TrackGroup {
    /// Returns the heading of the group.
    pub fn title(self) -> &'static str {
        match self {
            TrackGroup::Input => "Your keys and clicks",
            TrackGroup::Messages => "Messages on the display",
            TrackGroup::Chain => "Causes of the wait",
            TrackGroup::Threads => "Threads involved in the wait",
            TrackGroup::Cpus => "Threads on the CPUs",
            TrackGroup::Started => "Started processes",
            TrackGroup::Disks => "Disks",
            TrackGroup::Pressure => "Pressure (share of time in which tasks waited)",
            TrackGroup::Others => "Other threads",
        }
    }

    /// All groups, in order.
    pub const ALL: [TrackGroup; 9] = [
        TrackGroup::Input,
        TrackGroup::Messages,
        TrackGroup::Chain,
        TrackGroup::Threads,
        TrackGroup::Cpus,
        TrackGroup::Started,
        TrackGroup::Disks,
        TrackGroup::Pressure,
        TrackGroup::Others,
    ];
}

/// Line of bars in order of time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Track {
    pub group: TrackGroup,
    pub name: String,
    /// Role of the thread.
    pub look: Option<Look>,
    pub bars: Vec<Bar>,
}

/// Stretch of time. Serialised as a list in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bar {
    pub from_us: u64,
    pub length_us: u64,
    pub look: Look,
    /// Number of its text.
    pub text: usize,
    /// Number of merged stretches.
    pub count: usize,
    /// Percent of its time to which look and text apply.
    pub percent: u8,
}

/// Values over time, one per step.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Curve {
    pub group: TrackGroup,
    pub name: String,
    /// Unit of the values: `requests` or `%`.
    pub unit: &'static str,
    /// Start and end of each step.
    pub steps: Vec<(u64, u64)>,
    /// Stacked series.
    pub series: Vec<ValueSeries>,
}

/// One value per step.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ValueSeries {
    pub look: Look,
    pub name: String,
    pub values: Vec<f32>,
}

/// Latencies of the same kind at other times, in milliseconds and ascending order, thinned out
/// evenly.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct UsualLatencies {
    pub latencies_ms: Vec<f64>,
    /// Number before thinning.
    pub n: usize,
}

/// Resources used by a job in the interval.
#[derive(Clone, PartialEq, Debug)]
pub struct JobUse {
    pub name: String,
    pub look: Look,
    pub cpu_ms: f64,
    /// Share of the time of all CPUs, 0 to 1.
    pub cpu_share: f64,
    /// Bytes of its requests that were outstanding during the interval.
    pub disk_bytes: u64,
}

/// Mean cost of one BPF program of the recorder.
#[derive(Clone, PartialEq, Debug)]
pub struct ProgramUse {
    pub name: String,
    pub runs_per_second: f64,
    pub ns_per_run: f64,
}

impl Serialize for Look {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

impl Serialize for Bar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let head = (self.from_us, self.length_us, self.look, self.text);
        match self.count {
            1 => head.serialize(serializer),
            _ => (head.0, head.1, head.2, head.3, self.count, self.percent).serialize(serializer),
        }
    }
}
