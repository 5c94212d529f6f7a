// SPDX-License-Identifier: MIT OR Apache-2.0
//! Favour for users present at the machine, for the duration of their presence, and only for the
//! active session.

use std::path::PathBuf;
use support::helper_daemon::{ANNA, BERT, HelperDaemon, Sleeper, assignment, favour};
use tempfile::TempDir;
use tipme_bench::until;
use tipme_policy::Strength;

/// Login manager files: one seat with two sessions.
struct Seat(TempDir);

impl Seat {
    /// Creates a seat with Anna's session `a1` active; Bert's is `b1`.
    fn new() -> Seat {
        let seat = Seat(TempDir::new().unwrap());
        for folder in ["seats", "sessions"] {
            std::fs::create_dir(seat.0.path().join(folder)).unwrap();
        }
        for (session, user) in [("a1", ANNA), ("b1", BERT)] {
            std::fs::write(
                seat.0.path().join("sessions").join(session),
                format!("UID={user}\nTYPE=x11\n"),
            )
            .unwrap();
        }
        seat.switch_to("a1");
        seat
    }

    fn switch_to(&self, session: &str) {
        let new = self.0.path().join("new");
        let user = if session == "a1" { ANNA } else { BERT };
        std::fs::write(&new, format!("IS_SEAT0=1\nACTIVE={session}\nACTIVE_UID={user}\n")).unwrap();
        std::fs::rename(new, self.0.path().join("seats/seat0")).unwrap();
    }
}

/// Control groups as systemd creates them for sessions of Anna; removed on drop.
struct Scopes(Vec<PathBuf>);

impl Scopes {
    fn new() -> Scopes {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let line = mounts
            .lines()
            .find(|line| line.contains(" - cgroup2 "))
            .expect("mount the unified control groups");
        let mut path = PathBuf::from(line.split(' ').nth(4).unwrap());
        let mut made = Vec::new();
        for part in ["user.slice".to_owned(), format!("user-{ANNA}.slice")] {
            path.push(part);
            if std::fs::create_dir(&path).is_ok() {
                made.push(path.clone());
            }
        }
        for scope in ["session-a1.scope", "session-ssh.scope"] {
            // May be left over from a killed test.
            std::fs::create_dir_all(path.join(scope)).unwrap();
            made.push(path.join(scope));
        }
        Scopes(made)
    }

    /// Moves a process into one of them.
    fn put(&self, who: &Sleeper, scope: &str) {
        let path = self.0.iter().find(|path| path.ends_with(scope)).unwrap();
        std::fs::write(path.join("cgroup.procs"), who.pid().to_string()).unwrap();
    }
}

impl Drop for Scopes {
    fn drop(&mut self) {
        for path in self.0.iter().rev() {
            until("that the group is empty", || {
                std::fs::read_to_string(path.join("cgroup.procs")).is_ok_and(|all| all.is_empty())
            });
            std::fs::remove_dir(path).ok();
        }
    }
}

#[test]
fn a_user_switched_away_loses_favour_and_session() {
    let seat = Seat::new();
    // The helper serializes the tests, and thereby the use of the groups.
    let (helper, scopes) = (HelperDaemon::start_for_seats(seat.0.path()), Scopes::new());
    let own = Sleeper::of(ANNA);
    scopes.put(&own, "session-a1.scope");
    let mut anna = helper.session(ANNA);
    anna.assign("focused", &[own.who()]);
    assert_eq!(own.nice(), favour(Strength::Normal));
    let refused = helper.connect(BERT).hear().unwrap();
    assert!(refused["error"].as_str().unwrap().contains("does not sit at a seat"), "{refused}");

    seat.switch_to("b1");
    until("the end of the favour, though nobody asks for anything", || own.nice() == 0);
    let ended = anna.hear().unwrap();
    assert!(ended["error"].as_str().unwrap().contains("does not sit at a seat"), "{ended}");
    assert_eq!(anna.hear(), None);

    seat.switch_to("a1");
    let mut anna = helper.session(ANNA);
    seat.switch_to("b1");
    let ended = anna.ask(&serde_json::json!({ "apply": [assignment("focused", &[own.who()])] }));
    assert!(ended["error"].as_str().unwrap().contains("does not sit at a seat"), "{ended}");
    assert_eq!(own.nice(), 0);
}

#[test]
fn processes_of_other_sessions_are_not_favoured() {
    let seat = Seat::new();
    // The helper serializes the tests, and thereby the use of the groups.
    let (helper, scopes) = (HelperDaemon::start_for_seats(seat.0.path()), Scopes::new());
    let (front, remote, loose) = (Sleeper::of(ANNA), Sleeper::of(ANNA), Sleeper::of(ANNA));
    scopes.put(&front, "session-a1.scope");
    scopes.put(&remote, "session-ssh.scope");
    let mut anna = helper.session(ANNA);
    for role in ["core", "focused", "visible", "recent"] {
        let applied = anna.assign(role, &[front.who(), remote.who(), loose.who()]);
        assert_eq!(applied["skipped"], 2, "{role}: {applied}");
        assert!(front.nice() < 0 && (remote.nice(), loose.nice()) == (0, 0), "{role}");
    }
    anna.assign("hog", &[remote.who(), loose.who()]);
    assert_eq!((remote.policy(), loose.policy()), (5, 5), "everything may be held back");
}
