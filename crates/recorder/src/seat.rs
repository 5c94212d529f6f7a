// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attribution of the machine's keyboards to a user.
//!
//! The login manager reports the user of the active session; without one, the owner of the active
//! console counts. With several seats, the keyboards cannot be assigned to seats, so they belong to
//! nobody.

use std::path::PathBuf;
use tipme_desktop::console::{ACTIVE_NAME, owner};
use tipme_desktop::logind::Logind;

/// Sources for the user of the seat.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub(crate) logind: Logind,
    /// File with the name of the active console.
    pub(crate) active: PathBuf,
    pub(crate) devices: PathBuf,
}

impl Default for Seat {
    fn default() -> Seat {
        Seat { logind: Logind::default(), active: ACTIVE_NAME.into(), devices: "/dev".into() }
    }
}

impl Seat {
    /// Returns the user in front of the machine, if known.
    pub(crate) fn user(&self) -> Option<u32> {
        match self.logind.seats().as_slice() {
            [] => owner(&self.active, &self.devices),
            [only] => only.as_ref().map(|session| session.uid),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_manager_says_it_and_else_the_console() {
        let dir = tempfile::TempDir::new().unwrap();
        let [console, active, seats] =
            ["tty2", "active", "seats"].map(|name| dir.path().join(name));
        std::fs::create_dir(&seats).unwrap();
        std::fs::write(&active, "tty2\n").unwrap();
        std::fs::write(&console, "").unwrap();
        std::os::unix::fs::chown(&console, Some(4242), None).expect("run the tests as root");
        let seat = Seat { logind: Logind::at(dir.path()), active, devices: dir.path().into() };
        assert_eq!(seat.user(), Some(4242));
        for (file, text, user) in [
            ("seat0", "IS_SEAT0=1\nACTIVE=3\nACTIVE_UID=4343\n", Some(4343)),
            ("seat0", "IS_SEAT0=1\nACTIVE=\n", None),
            ("seat1", "ACTIVE=4\nACTIVE_UID=4343\n", None),
        ] {
            std::fs::write(seats.join(file), text).unwrap();
            assert_eq!(seat.user(), user, "{file}: {text}");
        }
    }
}
