// SPDX-License-Identifier: MIT OR Apache-2.0
//! Baselines per class and application, kept across restarts.
//!
//! A file of counts and application names, without times and keys. It is bounded: a maximum number
//! of applications with a fixed number of buckets each, and counts that are halved before they grow
//! large, so the last weeks outweigh the last year.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use std::path::Path;
use tipme_control::state_file;
use tipme_measure::{Histogram, InputClass, Share};
use tipme_record::incident::StoredBaseline;

/// Maximum number of summaries; the least recently updated one is evicted.
const SUMMARIES_MAX: usize = 256;

/// Number of latencies above which the counts of a summary are halved.
const FADE_N: u64 = 10_000;

/// Maximum bytes of the file: all summaries with every bucket filled take less than half of it.
const FILE_BYTES_MAX: u64 = 2 << 20;

/// Maximum bytes of an application name; the kernel keeps 15.
const NAME_BYTES_MAX: usize = 64;

const VERSION: u32 = 1;

/// Classes learned, in the order of the kernel's counts.
pub(crate) const LEARNED: [InputClass; tipme_kernel::CLASSES] =
    [InputClass::Key, InputClass::Click, InputClass::Scroll, InputClass::Motion];

/// Latencies of one class in one application.
#[derive(Clone, Debug)]
struct ClassLatencies {
    class: InputClass,
    application: String,
    /// Time of the last addition, in seconds since 1970.
    used_s: u64,
    histogram: Histogram,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Baselines {
    summaries: Vec<ClassLatencies>,
    changed: bool,
}

/// Contents of the file.
#[derive(Serialize, Deserialize)]
struct BaselineFile {
    version: u32,
    summaries: Vec<BaselineRow>,
}

#[derive(Serialize, Deserialize)]
struct BaselineRow {
    class: String,
    application: String,
    used_s: u64,
    /// Index and count of each non-empty bucket.
    counts: Vec<(usize, u64)>,
}

impl Baselines {
    /// Reads the file, or returns no baselines if there is none. Moves an unreadable one aside; the
    /// second value is the message about it.
    pub(crate) fn open(path: &Path) -> (Baselines, Option<String>) {
        state_file::load(path, FILE_BYTES_MAX, parse)
    }

    /// Adds counts of latencies by bucket.
    pub(crate) fn add(
        &mut self,
        class: InputClass,
        application: &str,
        counts: &[(usize, u64)],
        now_s: u64,
    ) {
        if counts.is_empty() {
            return;
        }
        let at = self.place(class, application);
        let summary = &mut self.summaries[at];
        summary.used_s = now_s;
        counts.iter().for_each(|(bucket, count)| summary.histogram.add(*bucket, *count));
        while summary.histogram.n() > FADE_N {
            summary.histogram.fade();
        }
        self.changed = true;
    }

    /// Returns the number of latencies of a class in an application, and their 98th percentile.
    pub(crate) fn habit(&self, class: InputClass, application: &str) -> (u64, Option<u64>) {
        let known = self.find(class, application).map(|at| &self.summaries[at].histogram);
        known.map_or((0, None), |histogram| (histogram.n(), histogram.value(Share::P98)))
    }

    /// Returns the summaries of these applications in their form in an incident.
    pub(crate) fn stored(&self, applications: &[String]) -> Vec<StoredBaseline> {
        let wanted =
            self.summaries.iter().filter(|summary| applications.contains(&summary.application));
        wanted.map(stored).collect()
    }

    /// Writes the file if anything has changed since the last call.
    pub(crate) fn save(&mut self, path: &Path) -> Result<()> {
        if !std::mem::take(&mut self.changed) {
            return Ok(());
        }
        let rows = self.summaries.iter().map(|summary| BaselineRow {
            class: summary.class.name().to_owned(),
            application: summary.application.clone(),
            used_s: summary.used_s,
            counts: summary.histogram.filled().collect(),
        });
        let document = BaselineFile { version: VERSION, summaries: rows.collect() };
        state_file::replace(path, &serde_json::to_vec(&document)?)
    }

    fn find(&self, class: InputClass, application: &str) -> Option<usize> {
        self.summaries
            .iter()
            .position(|known| known.class == class && known.application == application)
    }

    /// Returns the index of a summary, created if missing.
    fn place(&mut self, class: InputClass, application: &str) -> usize {
        if let Some(known) = self.find(class, application) {
            return known;
        }
        if self.summaries.len() >= SUMMARIES_MAX {
            let oldest =
                self.summaries.iter().enumerate().min_by_key(|(_, summary)| summary.used_s);
            if let Some((at, _)) = oldest {
                self.summaries.swap_remove(at);
            }
        }
        let application = application.to_owned();
        self.summaries.push(ClassLatencies {
            class,
            application,
            used_s: 0,
            histogram: Histogram::default(),
        });
        self.summaries.len() - 1
    }
}

fn stored(summary: &ClassLatencies) -> StoredBaseline {
    let [p50_ns, p98_ns, max_ns] = [Share::P50, Share::P98, Share::ALL]
        .map(|share| summary.histogram.value(share).unwrap_or(0));
    StoredBaseline {
        class: summary.class.name().to_owned(),
        application: summary.application.clone(),
        milestone: StoredBaseline::RESPONSE.to_owned(),
        n: summary.histogram.n(),
        p50_ns,
        p98_ns,
        max_ns,
    }
}

fn parse(bytes: &[u8]) -> Result<Baselines> {
    let document: BaselineFile = serde_json::from_slice(bytes)?;
    if document.version != VERSION {
        bail!("it has version {}, not {VERSION}", document.version);
    }
    Ok(Baselines {
        summaries: document.summaries.into_iter().take(SUMMARIES_MAX).filter_map(summary).collect(),
        changed: false,
    })
}

/// Parses arbitrary bytes and exercises the result; returns `true` if they hold a habit.
pub(crate) fn parse_any(bytes: &[u8]) -> bool {
    let Ok(mut baselines) = parse(bytes) else { return false };
    baselines.add(InputClass::Key, "xterm", &[(7, 3), (usize::MAX, 1)], 9);
    drop(baselines.stored(&["xterm".to_owned()]));
    baselines.habit(InputClass::Key, "xterm").0 > 0
}

/// Converts a row of a known class with a plausible application name.
fn summary(row: BaselineRow) -> Option<ClassLatencies> {
    let class = InputClass::named(&row.class).filter(|class| LEARNED.contains(class))?;
    let mut histogram = Histogram::default();
    row.counts.iter().for_each(|(bucket, count)| histogram.add(*bucket, (*count).min(FADE_N)));
    let named = (1..=NAME_BYTES_MAX).contains(&row.application.len());
    named.then_some(ClassLatencies {
        class,
        application: row.application,
        used_s: row.used_s,
        histogram,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn one(ms: u64, count: u64) -> [(usize, u64); 1] {
        [(Histogram::bucket(ms * MS), count)]
    }

    fn folder() -> tempfile::TempDir {
        tempfile::TempDir::new().unwrap()
    }

    #[test]
    fn learned_baselines_are_read_back() {
        let dir = folder();
        let path = dir.path().join("baselines.json");
        let (mut baselines, none) = Baselines::open(&path);
        assert_eq!(none, None);
        baselines.add(InputClass::Key, "xterm", &one(14, 60), 7);
        baselines.add(InputClass::Click, "xterm", &one(40, 3), 7);
        baselines.save(&path).unwrap();
        let (again, none) = Baselines::open(&path);
        assert_eq!(
            (none, again.habit(InputClass::Key, "xterm")),
            (None, baselines.habit(InputClass::Key, "xterm"))
        );
        assert_eq!(again.habit(InputClass::Key, "xterm").0, 60);
        let stored = again.stored(&["xterm".to_owned()]);
        assert_eq!(
            stored.iter().map(|one| one.milestone.as_str()).collect::<Vec<_>>(),
            ["response"; 2]
        );
        assert!(again.stored(&["gedit".to_owned()]).is_empty());
    }

    #[test]
    fn rows_that_make_no_sense_are_left_out() {
        let dir = folder();
        let path = dir.path().join("baselines.json");
        let long = "x".repeat(65);
        let rows = [("key", "xterm"), ("menu", "xterm"), ("key", ""), ("key", &long)];
        let rows = rows.map(|(class, name)| {
            format!(
                r#"{{"class":"{class}","application":"{name}","used_s":1,
                    "counts":[[5,18446744073709551615],[999,1]]}}"#
            )
        });
        let rows = rows.join(",");
        std::fs::write(&path, format!(r#"{{"version":1,"summaries":[{rows}]}}"#)).unwrap();
        let (baselines, why) = Baselines::open(&path);
        assert_eq!((why, baselines.summaries.len()), (None, 1));
        assert!(parse(br#"{"version":9,"summaries":[]}"#).is_err());
        assert_eq!(baselines.habit(InputClass::Key, "xterm").0, FADE_N);
    }

    #[test]
    fn old_data_fades() {
        let mut baselines = Baselines::default();
        baselines.add(InputClass::Key, "xterm", &one(10, FADE_N), 1);
        baselines.add(InputClass::Key, "xterm", &one(100, 1), 1);
        assert_eq!(baselines.habit(InputClass::Key, "xterm").0, FADE_N / 2);
        baselines.add(InputClass::Key, "xterm", &one(100, FADE_N / 2), 1);
        let (_, p98) = baselines.habit(InputClass::Key, "xterm");
        assert!(p98.is_some_and(|p98| p98 >= 100 * MS), "{p98:?}");
    }

    #[test]
    fn the_application_that_was_not_used_for_longest_makes_room() {
        let mut baselines = Baselines::default();
        for index in 0..SUMMARIES_MAX as u64 + 3 {
            baselines.add(InputClass::Key, &format!("app{index}"), &one(10, 1), index);
        }
        assert_eq!(baselines.summaries.len(), SUMMARIES_MAX);
        assert_eq!(baselines.habit(InputClass::Key, "app2"), (0, None));
        assert_eq!(baselines.habit(InputClass::Key, "app3").0, 1);
    }

    #[test]
    fn the_largest_file_can_be_read() {
        let dir = folder();
        let path = dir.path().join("baselines.json");
        let mut baselines = Baselines::default();
        let full: Vec<(usize, u64)> =
            (0..tipme_measure::BUCKETS).map(|bucket| (bucket, 60)).collect();
        for index in 0..SUMMARIES_MAX {
            baselines.add(InputClass::Key, &format!("{index:064}"), &full, 4_000_000_000);
        }
        baselines.save(&path).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() < FILE_BYTES_MAX / 2);
        assert_eq!(Baselines::open(&path).1, None);
    }
}
