// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of a benchmark of periodic work.

use crate::experiment::MeasuredRepeats;
use schemars::JsonSchema;
use serde::Serialize;
use tipme_analysis::IntervalExplanation;
use tipme_measure::{InputClass, IntervalFigures, Intervals, ThresholdProfile, ms};

/// Width of a histogram bucket, as in the papers.
pub(super) const BUCKET_NS: u64 = 10_000_000;

/// All loads, one after the other.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct LoadIntervals<C> {
    /// Description of the measurement.
    pub title: &'static str,
    /// Bounds, a line each.
    pub bounds: Vec<String>,
    /// Length of an undisturbed interval.
    pub expected_ms: Option<f64>,
    pub conditions: C,
    pub loads: Vec<MeasuredLoad>,
    /// `null` if the longest intervals are explained.
    pub not_explained_because: Option<String>,
}

/// The intervals under one load.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct MeasuredLoad {
    #[serde(flatten)]
    pub intervals: Intervals,
    pub figures: IntervalFigures,
    /// Start of each bucket in milliseconds, and its intervals; empty ones are omitted.
    pub histogram_10ms: Vec<(f64, u64)>,
    /// Processes of the load that ended early, for instance for lack of memory.
    pub casualties: usize,
    /// CPU time of the measuring process.
    pub cpu_ns: Option<u64>,
    /// The longest intervals, with their explanations.
    pub longest: Vec<Longest>,
    /// The measuring thread.
    #[serde(skip)]
    pub tid: u32,
}

/// An interval that was late.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Longest {
    /// From the start of the load.
    pub start_s: f64,
    pub explanation: IntervalExplanation,
}

impl MeasuredLoad {
    pub(super) fn new(intervals: Intervals, tid: u32, cpu_ns: Option<u64>) -> MeasuredLoad {
        let buckets = intervals.histogram(BUCKET_NS).into_iter();
        MeasuredLoad {
            figures: intervals.figures(),
            histogram_10ms: buckets.map(|(from, count)| (ms(from), count)).collect(),
            intervals,
            casualties: 0,
            cpu_ns,
            longest: Vec::new(),
            tid,
        }
    }
}

impl<C> LoadIntervals<C> {
    pub(crate) fn new(
        title: &'static str,
        bounds: Vec<String>,
        conditions: C,
        loads: Vec<MeasuredLoad>,
        not_explained_because: Option<String>,
    ) -> LoadIntervals<C> {
        LoadIntervals {
            title,
            bounds,
            expected_ms: loads.first().map(|load| ms(load.intervals.expected_ns)),
            conditions,
            loads,
            not_explained_because,
        }
    }

    /// Adds the runs of the document: the latency is the excess over the expected interval, with
    /// the thresholds of an input class.
    pub(crate) fn measured(self, class: InputClass) -> MeasuredRepeats<LoadIntervals<C>> {
        let limits = class.limits(ThresholdProfile::Default);
        MeasuredRepeats {
            runs: self.loads.iter().map(|load| load.intervals.run(limits)).collect(),
            figures: self,
        }
    }
}
