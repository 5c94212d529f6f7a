// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hint about incidents that the recorder marked by itself: a line, never a popup.

use crate::incidents::times;
use std::path::Path;
use std::time::Duration;
use tipme_analysis::clean;
use tipme_control::{Client, RecorderRequest, RecorderResponse, RecorderStatus, ToldTolerance};

/// Timeout of the recorder.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Returns `3 hitches since this morning: tipme incidents` from the recorder in this folder; `None`
/// if there were none, or it does not answer.
pub fn ask(run_dir: &Path) -> Option<String> {
    match Client::new(run_dir).with_timeout(TIMEOUT).call(&RecorderRequest::Status).ok()? {
        RecorderResponse::Status(status) => words(&status),
        _ => None,
    }
}

/// Returns the same from a status of the recorder.
pub fn words(status: &RecorderStatus) -> Option<String> {
    let morning = times::morning()?;
    let today = status
        .suggested
        .iter()
        .filter_map(|id| times::seconds(id))
        .filter(|at| *at >= morning)
        .count();
    let hitches = if today == 1 { "1 hitch".to_owned() } else { format!("{today} hitches") };
    (today > 0).then(|| format!("{hitches} since this morning: tipme incidents"))
}

/// Formats `key in xterm: 71% of the usual limits (marked: 2, "it was this": 1)`.
pub fn tolerance(tolerance: &ToldTolerance) -> String {
    let counts = [
        ("marked", tolerance.bad),
        ("\"it was this\"", tolerance.right),
        ("\"something else\" or removed", tolerance.wrong),
        ("five without an answer", tolerance.ignored),
    ];
    let counted = counts.iter().filter(|(_, count)| *count > 0);
    let counted: Vec<String> = counted.map(|(what, count)| format!("{what}: {count}")).collect();
    clean(&format!(
        "{} in {}: {}% of the usual limits ({})",
        tolerance.class,
        tolerance.application,
        tolerance.percent,
        counted.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_incidents_since_midnight_are_counted() {
        let mut status = RecorderStatus {
            suggested: vec!["20200131T120000.000Z".to_owned()],
            ..RecorderStatus::default()
        };
        assert_eq!(words(&status), None);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        status.suggested.push(tipme_store::id_at(now.as_nanos() as u64));
        assert_eq!(words(&status).as_deref(), Some("1 hitch since this morning: tipme incidents"));
    }

    #[test]
    fn a_tolerance_says_what_moved_it() {
        let (class, application) = ("key".into(), "xterm".into());
        let mut moved =
            ToldTolerance { class, application, percent: 71, bad: 2, ..ToldTolerance::default() };
        assert_eq!(tolerance(&moved), "key in xterm: 71% of the usual limits (marked: 2)");
        (moved.percent, moved.wrong) = (84, 1);
        let words =
            "key in xterm: 84% of the usual limits (marked: 2, \"something else\" or removed: 1)";
        assert_eq!(tolerance(&moved), words);
    }
}
