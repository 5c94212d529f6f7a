// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulated login manager files and a simulated display server.

use super::*;
use std::fs;
use tempfile::TempDir;

const USER: u32 = 1000;
const SERVER: Identity = Identity { pid: 900, start: 77 };

/// A machine with the user's active session on console 7, and the display server there.
struct SeatFixture {
    dir: TempDir,
}

impl SeatFixture {
    fn new() -> SeatFixture {
        let machine = SeatFixture { dir: TempDir::new().expect("a folder can be made") };
        machine.write("run/seats/seat0", "IS_SEAT0=1\nACTIVE=c2\nACTIVE_UID=1000\nSESSIONS=c2 4\n");
        machine.session(
            "UID=1000\nACTIVE=1\nSTATE=active\nREMOTE=0\nTYPE=x11\nORIGINAL_TYPE=x11\nVTNR=7\n",
        );
        machine.stat(900, 7);
        machine.write("proc/900/status", "Uid:\t0\t0\t0\t0\n");
        let sockets = "Num RefCount Protocol Flags Type St Inode Path\n\
                       0000: 00000003 00000000 00000000 0001 03 4711 /tmp/.X11-unix/X0\n\
                       0000: 00000002 00000000 00010000 0001 01 4712 /tmp/.X11-unix/X0\n";
        machine.write("proc/900/net/unix", sockets);
        machine.hold(4712);
        machine
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("files can be made");
        fs::write(path, text).expect("files can be made");
    }

    fn session(&self, text: &str) {
        self.write("run/sessions/c2", text);
    }

    /// Writes the display server as leader of this session on this console.
    fn stat(&self, session: u32, console: u32) {
        let terminal = 1024 + console;
        let tail =
            "-1 4194560 1 0 0 0 7 5 0 0 20 0 2 0 77 1 1 1 1 1 1 1 1 1 0 0 0 0 0 0 17 1 0 0 0 0 0";
        self.write("proc/900/stat", &format!("900 (Xorg) S 1 900 {session} {terminal} {tail}\n"));
    }

    /// Makes the server hold exactly this socket.
    fn hold(&self, socket: u32) {
        let folder = self.dir.path().join("proc/900/fd");
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(&folder).expect("files can be made");
        std::os::unix::fs::symlink(format!("socket:[{socket}]"), folder.join("3"))
            .expect("files can be made");
    }

    fn seats(&self) -> Seats {
        Seats {
            logind: Logind::at(self.dir.path().join("run")),
            proc: self.dir.path().join("proc"),
        }
    }

    fn judged(&self) -> Result<(), &'static str> {
        self.seats().may_favour(USER, SERVER)
    }

    /// Returns `true` if a process in these groups belongs to the active session.
    fn is_in_front(&self, groups: &str) -> bool {
        self.write("proc/901/cgroup", groups);
        self.seats().is_in_front(USER, 901)
    }
}

#[test]
fn the_user_of_the_active_session_has_the_seat() {
    let machine = SeatFixture::new();
    assert!(machine.seats().has(USER));
    assert!(!machine.seats().has(1001));
    machine.write("run/seats/seat0", "IS_SEAT0=1\nSESSIONS=c2 4\n");
    assert!(!machine.seats().has(USER), "nobody is in front");
    machine.write("run/seats/seat0", "ACTIVE=../../proc/900/stat\nACTIVE_UID=1000\n");
    assert!(!machine.seats().has(USER));
    let nowhere = Seats { logind: Logind::at("/nonexistent"), proc: "/nonexistent".into() };
    assert!(!nowhere.has(0));
}

#[test]
fn the_display_server_of_the_session_in_front_may_be_favoured() {
    assert_eq!(SeatFixture::new().judged(), Ok(()));
}

#[test]
fn no_other_process_of_root_may() {
    let machine = SeatFixture::new();
    assert!(machine.seats().may_favour(1001, SERVER).is_err(), "another user's display");
    assert!(
        machine.seats().may_favour(USER, Identity { start: 78, ..SERVER }).is_err(),
        "its number was used again"
    );
    machine.hold(4711);
    assert_eq!(machine.judged(), Err("it belongs to root and is not a display server"));
    machine.hold(4712);
    for (session, console) in [(899, 7), (900, 8), (900, 0), (900, 64)] {
        machine.stat(session, console);
        assert!(machine.judged().is_err(), "session {session}, console {console}");
    }
    machine.stat(900, 7);
    for users in ["0\t1000", "1000\t0", "1000\t1000", "1001\t1001"] {
        machine.write("proc/900/status", &format!("Uid:\t{users}\t0\t0\n"));
        assert!(machine.judged().is_err(), "users {users}");
    }
}

#[test]
fn a_session_that_is_not_graphical_from_the_begin_is_not_enough() {
    let machine = SeatFixture::new();
    let rest = "UID=1000\nREMOTE=0\nVTNR=7";
    for (kind, may) in
        [("TYPE=x11", true), ("TYPE=tty", false), ("TYPE=x11\nORIGINAL_TYPE=tty", false)]
    {
        machine.session(&format!("{rest}\n{kind}\n"));
        assert_eq!(machine.judged().is_ok(), may, "{kind}");
    }
    for session in
        ["UID=1000\nREMOTE=1\nVTNR=7\nTYPE=x11\n", "UID=1001\nREMOTE=0\nVTNR=7\nTYPE=x11\n", ""]
    {
        machine.session(session);
        assert!(machine.judged().is_err(), "{session:?}");
    }
}

#[test]
fn the_active_session_and_the_users_manager_are_in_front() {
    let machine = SeatFixture::new();
    let slice = "/user.slice/user-1000.slice";
    for group in
        ["session-c2.scope", "session-c2.scope/a", "user@1000.service/app.slice/app-xterm.scope"]
    {
        assert!(machine.is_in_front(&format!("1:cpu:/\n0::{slice}/{group}\n")), "{group}");
        assert!(machine.is_in_front(&format!("1:name=systemd:{slice}/{group}\n0::/\n")), "{group}");
    }
    for group in
        ["session-4.scope", "session-c2.scopes", "user@1001.service", "x/session-c2.scope", ""]
    {
        assert!(!machine.is_in_front(&format!("0::{slice}/{group}\n")), "{group}");
    }
    let elsewhere = format!("1:cpu:{slice}/session-c2.scope\n0::/\n");
    assert!(!machine.is_in_front(&elsewhere), "another hierarchy");
    assert!(!machine.is_in_front("0::/user.slice/user-1001.slice/session-c2.scope\n"));
    machine.write("run/seats/seat0", "IS_SEAT0=1\nSESSIONS=c2 4\n");
    assert!(!machine.is_in_front(&format!("0::{slice}/session-c2.scope\n")), "nobody is in front");
}
