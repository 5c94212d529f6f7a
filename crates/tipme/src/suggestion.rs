// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hint about incidents that the recorder marked by itself: a line, never a popup.

use crate::incidents::when;
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
    let morning = when::morning()?;
    let today = status
        .suggested
        .iter()
        .filter_map(|id| when::seconds(id))
        .filter(|at| *at >= morning)
        .count();
    let hitches = if today == 1 { "1 hitch".to_owned() } else { format!("{today} hitches") };
    (today > 0).then(|| format!("{hitches} since this morning: tipme incidents"))
}

/// Formats `key in xterm: 71 % of the usual limits (marked: 2, "it was this": 1)`.
pub fn tolerance(told: &ToldTolerance) -> String {
    let counts = [
        ("marked", told.bad),
        ("\"it was this\"", told.right),
        ("\"something else\" or removed", told.wrong),
        ("five without an answer", told.ignored),
    ];
    let said = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{what}: {count}"));
    let said: Vec<String> = said.collect();
    clean(&format!(
        "{} in {}: {} % of the usual limits ({})",
        told.class,
        told.application,
        told.percent,
        said.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_marked_before_midnight_is_not_of_this_morning() {
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
        let told = ToldTolerance {
            class: "key".into(),
            application: "xterm".into(),
            percent: 71,
            bad: 2,
            ..ToldTolerance::default()
        };
        assert_eq!(tolerance(&told), "key in xterm: 71 % of the usual limits (marked: 2)");
        let told = ToldTolerance { percent: 84, wrong: 1, ..told };
        let words =
            "key in xterm: 84 % of the usual limits (marked: 2, \"something else\" or removed: 1)";
        assert_eq!(tolerance(&told), words);
    }
}
