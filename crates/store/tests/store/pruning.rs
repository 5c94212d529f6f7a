// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pruning of a full folder: a user's changes to their own incidents never cost another user any.
//! Needs root.

use crate::support::incident;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use tipme_store::{FolderBounds, IncidentFolder, PINNED_MAX, Room};

/// Uids without an account; the first plays an attacker.
const ILL: u32 = 4242;
const OTHER: u32 = 4343;

const ALL_FIT: Room = Room { bytes: u64::MAX, count: usize::MAX };

/// Returns bounds for all users together, without a limit per user.
fn in_all(all: Room) -> FolderBounds {
    FolderBounds { all, user: ALL_FIT }
}

/// Returns bounds per user, without a limit for all together.
fn of_each(user: Room) -> FolderBounds {
    FolderBounds { all: ALL_FIT, user }
}

/// An incident folder inside a temporary folder.
struct Incidents {
    folder: IncidentFolder,
    _temporary: TempDir,
}

impl Incidents {
    fn new() -> Incidents {
        let temporary = TempDir::new().unwrap();
        fs::set_permissions(temporary.path(), Permissions::from_mode(0o755)).unwrap();
        Incidents {
            folder: IncidentFolder::open(&temporary.path().join("incidents")).unwrap(),
            _temporary: temporary,
        }
    }

    /// Creates a folder with incidents of these ids and owners.
    fn with(incidents: &[(&str, u32)]) -> Incidents {
        let all = Incidents::new();
        incidents.iter().for_each(|(id, owner)| drop(all.write(id, *owner)));
        all
    }

    fn write(&self, id: &str, owner: u32) -> PathBuf {
        self.folder.write(&incident(id), owner).unwrap()
    }

    /// Writes an incident and prunes, like the recorder on a mark.
    fn mark(&self, id: &str, owner: u32, bounds: FolderBounds) {
        let written = self.write(id, owner);
        self.folder.clone().with_bounds(bounds).prune(&written).unwrap();
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.path().join(format!("{id}.tipme"))
    }

    fn ids(&self) -> Vec<String> {
        self.folder.list().unwrap().into_iter().map(|incident| incident.id).collect()
    }

    /// Returns the bytes that one incident occupies on the disk.
    fn bytes_of_one(&self) -> u64 {
        self.folder.list().unwrap()[0].bytes
    }
}

/// Runs a program as the attacking user.
fn as_ill(program: &str, arguments: &[&str], path: &Path) {
    let status = Command::new(program).args(arguments).arg(path).uid(ILL).gid(ILL).status();
    assert!(status.is_ok_and(|status| status.success()), "{program} failed; run the tests as root");
}

#[test]
fn the_oldest_unpinned_go_first() {
    let incidents = Incidents::with(&[("a", 0), ("b", 0), ("c", 0), ("d", 0)]);
    fs::write(incidents.folder.path().join("a.pin"), b"").unwrap();
    assert!(incidents.folder.list().unwrap()[0].pinned);
    incidents.mark("e", 0, in_all(Room { count: 3, ..ALL_FIT }));
    assert_eq!(incidents.ids(), ["a", "c", "d", "e"], "what is pinned does not count");
    incidents.mark("f", 0, in_all(Room { bytes: 0, ..ALL_FIT }));
    assert_eq!(incidents.ids(), ["a", "f"]);
}

#[test]
fn a_new_incident_stays_whatever_its_id() {
    let incidents = Incidents::with(&[("20991231T235959.000Z", 0), ("20200102T000000.000Z", 0)]);
    incidents.mark("20200101T000000.000Z", 0, in_all(Room { count: 2, ..ALL_FIT }));
    assert_eq!(
        incidents.ids(),
        ["20200101T000000.000Z", "20200102T000000.000Z"],
        "a clock that was wrong goes first"
    );
    incidents.mark("20190101T000000.000Z", 0, in_all(Room { count: 1, ..ALL_FIT }));
    assert_eq!(incidents.ids(), ["20190101T000000.000Z"]);
}

#[test]
fn a_length_without_content_costs_nothing() {
    let incidents = Incidents::with(&[("a", 0), ("b", OTHER), ("c", ILL)]);
    as_ill("truncate", &["-s", "3G"], &incidents.path("c"));
    incidents.mark("d", OTHER, FolderBounds::default());
    assert_eq!(incidents.ids(), ["a", "b", "c", "d"]);
}

#[test]
fn a_time_of_a_file_decides_nothing() {
    let incidents = Incidents::with(&[("a", ILL), ("b", ILL), ("c", ILL)]);
    as_ill("touch", &["-d", "2099-01-01"], &incidents.path("a"));
    assert_eq!(incidents.ids(), ["a", "b", "c"]);
    incidents.mark("d", OTHER, in_all(Room { bytes: 3 * incidents.bytes_of_one() - 1, ..ALL_FIT }));
    assert_eq!(incidents.ids(), ["b", "c", "d"]);
}

#[test]
fn the_user_with_most_bytes_loses_first() {
    let incidents =
        Incidents::with(&[("a", OTHER), ("b", 0), ("c", ILL), ("d", ILL), ("e", OTHER)]);
    as_ill("fallocate", &["-l", "32M"], &incidents.path("d"));
    incidents.mark("f", OTHER, in_all(Room { bytes: 16 << 20, ..ALL_FIT }));
    assert_eq!(incidents.ids(), ["a", "b", "e", "f"]);
}

#[test]
fn growth_while_written_or_pinned_costs_no_other_user() {
    let incidents = Incidents::with(&[("a", OTHER), ("b", ILL)]);
    fs::write(incidents.folder.path().join("b.pin"), b"").unwrap();
    let written = incidents.write("c", ILL);
    for own in [&incidents.path("b"), &written] {
        as_ill("fallocate", &["-l", "32M"], own);
    }
    let bounds = in_all(Room { bytes: 16 << 20, ..ALL_FIT });
    incidents.folder.clone().with_bounds(bounds).prune(&written).unwrap();
    assert_eq!(incidents.ids(), ["a", "b", "c"]);
}

#[test]
fn frequent_marks_cost_own_incidents() {
    let incidents = Incidents::with(&[("a", OTHER), ("b", 0)]);
    let bounds = in_all(Room { count: 5, ..ALL_FIT });
    for number in 0..9 {
        incidents.mark(&format!("c{number}"), ILL, bounds);
    }
    assert_eq!(incidents.ids(), ["a", "b", "c6", "c7", "c8"]);
    incidents.mark("d", OTHER, bounds);
    assert_eq!(incidents.ids(), ["a", "b", "c7", "c8", "d"]);
}

#[test]
fn a_user_with_too_many_loses_the_own_oldest() {
    let incidents =
        Incidents::with(&[("a", OTHER), ("b", ILL), ("c", ILL), ("d", OTHER), ("e", ILL)]);
    let bounds = of_each(Room { count: 3, ..ALL_FIT });
    incidents.mark("f", ILL, bounds);
    assert_eq!(incidents.ids(), ["a", "c", "d", "e", "f"]);
    as_ill("truncate", &["-s", "3G"], &incidents.path("c"));
    as_ill("touch", &["-d", "2099-01-01"], &incidents.path("c"));
    incidents.mark("g", ILL, bounds);
    incidents.mark("h", OTHER, bounds);
    assert_eq!(incidents.ids(), ["a", "d", "e", "f", "g", "h"]);
}

#[test]
fn large_incidents_cost_their_owner_only_and_never_the_newest() {
    let incidents = Incidents::with(&[("a", OTHER), ("b", ILL), ("c", ILL)]);
    let bounds = of_each(Room { bytes: 16 << 20, ..ALL_FIT });
    as_ill("fallocate", &["-l", "32M"], &incidents.path("c"));
    incidents.mark("d", OTHER, bounds);
    assert_eq!(incidents.ids(), ["a", "d"], "the oldest go first, up to the one that is large");
    let written = incidents.write("e", ILL);
    as_ill("fallocate", &["-l", "32M"], &written);
    incidents.folder.clone().with_bounds(bounds).prune(&written).unwrap();
    assert_eq!(incidents.ids(), ["a", "d", "e"]);
}

#[test]
fn owners_remove_and_pin_their_own_and_root_everybodys() {
    let incidents = Incidents::with(&[("a", OTHER), ("b", ILL), ("c", ILL)]);
    let folder = &incidents.folder;
    for (id, why) in
        [("a", "another user"), ("../a", "no such incident"), ("z", "no such incident")]
    {
        let refused =
            [folder.remove(id, ILL), folder.pin(id, ILL, true), folder.pin(id, ILL, false)];
        assert!(
            refused.into_iter().all(|done| done.expect_err(id).to_string().contains(why)),
            "{id}"
        );
    }
    folder.pin("b", ILL, true).unwrap();
    folder.pin("b", ILL, true).unwrap();
    incidents.mark("d", ILL, in_all(Room { count: 1, ..ALL_FIT }));
    assert_eq!(incidents.ids(), ["b", "d"]);
    folder.pin("b", ILL, false).unwrap();
    folder.remove("d", ILL).unwrap();
    folder.remove("b", 0).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn pins_over_the_limit_do_not_count() {
    let incidents = Incidents::new();
    let ids: Vec<String> = (10..10 + PINNED_MAX + 1).map(|number| format!("p{number}")).collect();
    ids.iter().for_each(|id| drop(incidents.write(id, ILL)));
    let (last, first) = ids.split_last().unwrap();
    first.iter().for_each(|id| incidents.folder.pin(id, ILL, true).unwrap());
    let refused = incidents.folder.pin(last, ILL, true).expect_err("too many").to_string();
    assert!(refused.contains("may pin 20 incidents"), "{refused}");
    fs::write(incidents.folder.path().join(format!("{last}.pin")), b"").unwrap();
    incidents.mark("z", OTHER, in_all(Room { count: 1, ..ALL_FIT }));
    assert_eq!(incidents.ids().len(), PINNED_MAX + 1);
    as_ill("fallocate", &["-l", "600M"], &incidents.path(&first[0]));
    incidents.mark("zz", OTHER, in_all(Room { count: 1, ..ALL_FIT }));
    assert!(
        !incidents.ids().contains(&first[0]),
        "a pinned file that was made larger than may be pinned"
    );
}

#[test]
fn marks_at_once_remove_neither_each_other_nor_fail() {
    let incidents = Incidents::new();
    let bounds = in_all(Room { count: 1, ..ALL_FIT });
    for round in 0..20 {
        let marks: Vec<_> = (0..4)
            .map(|number| {
                let (folder, id) =
                    (incidents.folder.clone().with_bounds(bounds), format!("r{round:02}{number}"));
                std::thread::spawn(move || folder.keep(&incident(&id), ILL + number).unwrap())
            })
            .collect();
        for mark in marks {
            let (path, untidy) = mark.join().unwrap();
            assert!(untidy.is_none() && path.file_name().is_some(), "{untidy:?}");
        }
    }
}
