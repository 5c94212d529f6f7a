// SPDX-License-Identifier: MIT OR Apache-2.0
//! The document that a page is made of. Times are microseconds from its begin, where nothing else is said.

use crate::model::Verdict;
use crate::scene::look::Look;
use serde::{Serialize, Serializer};

/// A verdict, and what happened around it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Scene {
    pub verdict: Verdict,
    /// CLOCK_MONOTONIC nanoseconds of the begin and the end.
    pub from_ns: u64,
    pub to_ns: u64,
    /// What bars say, by number.
    pub texts: Vec<String>,
    pub tracks: Vec<Track>,
    pub curves: Vec<Curve>,
    /// What is usual.
    pub usual: Option<UsualLatencies>,
    /// Who used CPUs and disks in the interval, the most first.
    pub jobs: Vec<JobUse>,
    /// What recording costs on this machine.
    pub programs: Vec<ProgramUse>,
    /// What is not shown, in full sentences.
    pub left_out: Vec<String>,
}

/// What a track belongs to; they stand in this order.
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
    /// What its tracks show.
    pub fn title(self) -> &'static str {
        match self {
            TrackGroup::Input => "Your keys and clicks",
            TrackGroup::Messages => "Messages on the display",
            TrackGroup::Chain => "What the wait was for",
            TrackGroup::Threads => "What the programs on the way did",
            TrackGroup::Cpus => "Who ran on the CPUs",
            TrackGroup::Started => "Processes that were started",
            TrackGroup::Disks => "Disks",
            TrackGroup::Pressure => "How often somebody had to wait",
            TrackGroup::Others => "What all other programs did",
        }
    }

    /// All of them, in their order.
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

/// A line of bars, in the order of time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Track {
    pub group: TrackGroup,
    pub name: String,
    /// Who it is about.
    pub look: Option<Look>,
    pub bars: Vec<Bar>,
}

/// A stretch of time. In JSON a list, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bar {
    pub from_us: u64,
    pub length_us: u64,
    pub look: Look,
    /// Number of its text.
    pub text: usize,
    /// Stretches that are summed up in it.
    pub count: usize,
    /// Percent of its time that its look and text are true of.
    pub percent: u8,
}

/// Values over the time, each of them for one step.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Curve {
    pub group: TrackGroup,
    pub name: String,
    /// What one is of: `requests`, or `%`.
    pub unit: &'static str,
    /// Begin and end of each step.
    pub steps: Vec<(u64, u64)>,
    /// They are stacked.
    pub series: Vec<ValueSeries>,
}

/// One value for each step.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ValueSeries {
    pub look: Look,
    pub name: String,
    pub values: Vec<f32>,
}

/// Latencies of the same kind at other times, in milliseconds, the shortest first; thinned out evenly.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct UsualLatencies {
    pub latencies_ms: Vec<f64>,
    /// How many there were.
    pub n: usize,
}

/// What a job used in the interval.
#[derive(Clone, PartialEq, Debug)]
pub struct JobUse {
    pub name: String,
    pub look: Look,
    pub cpu_ms: f64,
    /// Of the time of all CPUs, 0 to 1.
    pub cpu_share: f64,
    /// Bytes of its requests that disks had at some time of it.
    pub disk_bytes: u64,
}

/// Mean cost of one kernel program of the recorder.
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
