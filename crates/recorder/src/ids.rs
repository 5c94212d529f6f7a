// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ids of future incidents. An id is the millisecond of the mark, and two marks may share one.

use std::collections::VecDeque;
use tipme_store::{IncidentFolder, id_at};

/// Maximum number of ids remembered until their files exist; it exceeds the number of incidents
/// sealed at once.
const GIVEN_MAX: usize = 16;

/// Source of unique incident ids.
pub(crate) struct IncidentIds {
    folder: IncidentFolder,
    given: VecDeque<String>,
}

impl IncidentIds {
    pub(crate) fn new(folder: IncidentFolder) -> IncidentIds {
        IncidentIds { folder, given: VecDeque::with_capacity(GIVEN_MAX) }
    }

    /// Returns the id of a mark at this time, in nanoseconds since 1970 UTC. If it is taken,
    /// returns that of the next free millisecond.
    pub(crate) fn next(&mut self, realtime_ns: u64) -> String {
        let mut from_then_on = (0..).map(|ms| id_at(realtime_ns.saturating_add(ms * 1_000_000)));
        let id = from_then_on
            .find(|id| !self.given.contains(id) && !self.folder.has(id))
            .expect("a folder holds fewer files than there are milliseconds");
        if self.given.len() == GIVEN_MAX {
            self.given.pop_front();
        }
        self.given.push_back(id.clone());
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_within_a_millisecond_have_ids_of_their_own() {
        let dir = tempfile::TempDir::new().unwrap();
        let folder = IncidentFolder::open(&dir.path().join("incidents")).unwrap();
        std::fs::write(folder.path().join("20000229T235959.043Z.tipme"), "").unwrap();
        let mut ids = IncidentIds::new(folder);
        let at = 951_868_799_042_000_000;
        assert_eq!(
            [ids.next(at), ids.next(at + 999_999)],
            ["20000229T235959.042Z", "20000229T235959.044Z"]
        );
        assert_eq!(ids.next(at - 1), "20000229T235959.041Z");
        for _ in 0..2 * GIVEN_MAX as u64 {
            ids.next(at);
        }
        assert_eq!(ids.given.len(), GIVEN_MAX);
    }
}
