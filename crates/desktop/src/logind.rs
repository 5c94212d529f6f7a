// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logged-in users and the sessions in front of this machine, according to the login manager.
//!
//! logind keeps a small file for each user, seat and session below `/run/systemd`, which only root
//! can write; its own library reads them in the same way. Privileges depend on them, so there is
//! one reader: a session is in front of a seat if the seat's file names both the session and its
//! user. Without a login manager nobody is logged in or sits anywhere.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum number of seats.
const SEATS_MAX: usize = 64;
/// Maximum number of bytes read from a file.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Prefix of the names of all seats; the login manager has other files beside them while it
/// replaces one.
const SEAT: &str = "seat";

/// Folder with the login manager's files.
#[derive(Clone, Debug)]
pub struct Logind(PathBuf);

impl Default for Logind {
    fn default() -> Logind {
        Logind::at("/run/systemd")
    }
}

/// A session in front of a seat.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrontSession {
    pub id: String,
    /// User of the session.
    pub uid: u32,
}

/// Contents of a session's file.
#[derive(Clone, Debug)]
pub struct SessionDetails(String);

impl Logind {
    /// Reads the files of another folder.
    pub fn at(folder: impl Into<PathBuf>) -> Logind {
        Logind(folder.into())
    }

    /// Returns `true` if a user is logged in.
    pub fn has(&self, uid: u32) -> bool {
        self.0.join("users").join(uid.to_string()).exists()
    }

    /// Returns the session in front of each seat, if there is one.
    pub fn seats(&self) -> Vec<Option<FrontSession>> {
        let files = std::fs::read_dir(self.0.join("seats")).into_iter().flatten().flatten();
        let seats =
            files.filter(|file| file.file_name().as_encoded_bytes().starts_with(SEAT.as_bytes()));
        seats.take(SEATS_MAX).map(|seat| front(&text(&seat.path())?)).collect()
    }

    /// Returns the sessions of a user that are in front.
    pub fn in_front(&self, uid: u32) -> impl Iterator<Item = FrontSession> {
        self.seats().into_iter().flatten().filter(move |session| session.uid == uid)
    }

    /// Returns the details of a session in front, unless its file names another user.
    pub fn details(&self, session: &FrontSession) -> Option<SessionDetails> {
        let text = text(&self.0.join("sessions").join(&session.id))?;
        (number(&text, "UID") == Some(session.uid)).then_some(SessionDetails(text))
    }
}

impl SessionDetails {
    /// Number of its console.
    pub fn console(&self) -> Option<u32> {
        number(&self.0, "VTNR")
    }

    /// Returns `true` if it began as an X11 session at this machine.
    pub fn is_x11_here(&self) -> bool {
        // A session's own programs can change its type, but not the original one.
        let kind = value(&self.0, "ORIGINAL_TYPE").or_else(|| value(&self.0, "TYPE"));
        kind == Some("x11") && value(&self.0, "REMOTE") == Some("0")
    }
}

/// Returns the session in a seat's file: its name becomes part of a path and of a control group's.
fn front(seat: &str) -> Option<FrontSession> {
    let id = value(seat, "ACTIVE")
        .filter(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric()))?;
    Some(FrontSession { id: id.to_owned(), uid: number(seat, "ACTIVE_UID")? })
}

/// Returns the value in a line such as `UID=1000`.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
}

fn number(text: &str, key: &str) -> Option<u32> {
    value(text, key)?.parse().ok()
}

fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A machine with these files of a login manager.
    fn machine(files: &[(&str, &str)]) -> (TempDir, Logind) {
        let dir = TempDir::new().expect("a folder can be made");
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it lies in a folder"))
                .expect("files can be made");
            std::fs::write(path, text).expect("files can be made");
        }
        let logind = Logind::at(dir.path());
        (dir, logind)
    }

    fn front_session(id: &str, uid: u32) -> FrontSession {
        FrontSession { id: id.to_owned(), uid }
    }

    #[test]
    fn each_seat_has_the_session_in_front_of_it() {
        let (_dir, logind) = machine(&[
            ("seats/seat0", "IS_SEAT0=1\nACTIVE=c2\nACTIVE_UID=1000\nSESSIONS=c2 4\n"),
            ("seats/seat-usb", "ACTIVE=7\nACTIVE_UID=1001\n"),
            ("seats/seat1", "SESSIONS=9\n"),
            ("seats/.#seat0Xy", "ACTIVE=4\nACTIVE_UID=1001\n"),
        ]);
        let seats = logind.seats();
        assert_eq!((seats.len(), seats.iter().flatten().count()), (3, 2));
        assert_eq!(logind.in_front(1000).collect::<Vec<_>>(), [front_session("c2", 1000)]);
        assert_eq!(logind.in_front(1001).collect::<Vec<_>>(), [front_session("7", 1001)]);
        assert_eq!(logind.in_front(0).count(), 0);
    }

    #[test]
    fn half_of_it_is_nobody_in_front() {
        let seats = [
            "ACTIVE=c2\n",
            "ACTIVE_UID=1000\n",
            "ACTIVE=\nACTIVE_UID=1000\n",
            "ACTIVE=../users/1000\nACTIVE_UID=1000\n",
            "ACTIVE=c2\nACTIVE_UID=-1\n",
            "ACTIVE=c2\nACTIVE_UID=1000 \n",
            "XACTIVE=c2\nACTIVE_UID=1000\n",
            "",
        ];
        for seat in seats {
            let (_dir, logind) = machine(&[("seats/seat0", seat)]);
            assert_eq!(logind.seats(), [None], "{seat:?}");
        }
    }

    #[test]
    fn no_more_seats_and_bytes_are_read_than_it_has_bounds() {
        let names: Vec<String> =
            (0..SEATS_MAX + 9).map(|number| format!("seats/seat{number}")).collect();
        let files: Vec<(&str, &str)> =
            names.iter().map(|name| (&**name, "ACTIVE=1\nACTIVE_UID=5\n")).collect();
        assert_eq!(machine(&files).1.seats().len(), SEATS_MAX);
        let long = format!("ACTIVE=1\n{}\nACTIVE_UID=5\n", "x".repeat(FILE_BYTES_MAX as usize));
        let (_dir, logind) = machine(&[("seats/seat0", &long)]);
        assert_eq!(logind.seats(), [None]);
    }

    #[test]
    fn details_are_those_of_the_users_session() {
        let session = "UID=1000\nREMOTE=0\nTYPE=wayland\nORIGINAL_TYPE=x11\nVTNR=7\n";
        let (_dir, logind) =
            machine(&[("sessions/c2", session), ("sessions/c3", "UID=1000\nTYPE=x11\nREMOTE=1\n")]);
        let details = logind.details(&front_session("c2", 1000)).expect("it is there");
        assert_eq!((details.console(), details.is_x11_here()), (Some(7), true));
        let remote = logind.details(&front_session("c3", 1000)).expect("it is there");
        assert_eq!((remote.console(), remote.is_x11_here()), (None, false));
        assert!(logind.details(&front_session("c2", 1001)).is_none(), "another user's");
        assert!(logind.details(&front_session("c9", 1000)).is_none());
    }

    #[test]
    fn without_a_login_manager_nobody_is_there() {
        let nowhere = Logind::at("/nonexistent");
        assert!(nowhere.seats().is_empty() && !nowhere.has(0));
        let (_dir, logind) = machine(&[("users/1000", "")]);
        assert!(logind.has(1000) && !logind.has(100));
    }
}
