// SPDX-License-Identifier: MIT OR Apache-2.0
//! Active virtual terminal: detection of text mode, and output of a line on it.

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::ioctl::{Getter, Opcode, ioctl};
use std::io::{Error, Result};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Device of the active terminal.
pub const ACTIVE: &str = "/dev/tty0";

/// Kernel file with the name of the active terminal, such as `tty1`.
pub const ACTIVE_NAME: &str = "/sys/class/tty/tty0/active";

/// Maximum length of a line, in characters.
const LINE_MAX: usize = 400;

/// A virtual terminal, the active one at the time of opening; later output goes there too.
#[derive(Debug)]
pub struct Console(OwnedFd);

impl Console {
    /// Opens the active terminal.
    ///
    /// # Errors
    /// Fails if the machine has no virtual terminals, or this user has no access to them.
    pub fn open(path: &Path) -> Result<Console> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        open(path, flags, Mode::empty()).map(Console).map_err(Error::from)
    }

    /// Returns `true` if it shows text; `false` if a display server or the like draws on it.
    pub fn is_text(&self) -> bool {
        /// KDGETMODE: an int, zero for text.
        const GET_MODE: Opcode = 0x4b3b;
        // SAFETY: KDGETMODE writes one int to its argument, which is what the getter passes.
        let mode = unsafe { ioctl(&self.0, Getter::<GET_MODE, i32>::new()) };
        mode == Ok(0)
    }

    /// Writes a message on lines of its own, in printable ASCII: it contains names of programs,
    /// which anybody can choose.
    ///
    /// # Errors
    /// Fails if the terminal accepts nothing now; does not wait for it.
    pub fn write_line(&self, line: &str) -> Result<()> {
        let letters =
            line.chars().map(|letter| if matches!(letter, ' '..='~') { letter } else { '?' });
        let text = format!("\r\ntipme: {}\r\n", letters.take(LINE_MAX).collect::<String>());
        match write(&self.0, text.as_bytes()) {
            Ok(written) if written == text.len() => Ok(()),
            Ok(_) => Err(Errno::AGAIN.into()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the owner of the active terminal: the user that logged in there, or `None` for root, as
/// before a login. The file `active` has the terminal's name, the folder `devices` its device.
pub fn owner(active: &Path, devices: &Path) -> Option<u32> {
    let name = std::fs::read_to_string(active).ok()?;
    let device = std::fs::metadata(devices.join(name.trim_end())).ok()?;
    Some(device.uid()).filter(|uid| *uid != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};

    fn console() -> (OwnedFd, Console) {
        let (read, write) = pipe_with(PipeFlags::NONBLOCK).expect("a pipe");
        (read, Console(write))
    }

    #[test]
    fn a_line_has_plain_letters_and_an_end() {
        let (read, console) = console();
        console.write_line("Typing in \u{1b}[2Jx\u{9b}1mé\nterm").expect("there is room");
        let mut buffer = [0; 600];
        let count = rustix::io::read(&read, &mut buffer).expect("a line");
        assert_eq!(&buffer[..count], b"\r\ntipme: Typing in ?[2Jx?1m??term\r\n");
        console.write_line(&"x".repeat(10_000)).expect("there is room");
        assert_eq!(rustix::io::read(&read, &mut buffer), Ok(LINE_MAX + 11));
    }

    #[test]
    fn a_console_that_takes_nothing_is_not_waited_for() {
        let (_read, console) = console();
        let refused = (0..10_000).find_map(|_| console.write_line("a line").err());
        assert_eq!(refused.map(|error| error.kind()), Some(std::io::ErrorKind::WouldBlock));
    }

    #[test]
    fn the_active_terminal_has_an_owner_where_it_is_not_roots() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let devices = folder.path();
        let (active, device) = (devices.join("active"), devices.join("tty3"));
        assert_eq!(owner(&active, devices), None);
        std::fs::write(&active, "tty3\n").expect("a file");
        assert_eq!(owner(&active, devices), None);
        std::fs::write(&device, "").expect("a file");
        let own = rustix::process::geteuid();
        assert_eq!(owner(&active, devices), Some(own.as_raw()).filter(|uid| *uid != 0));
        if own.is_root() {
            std::os::unix::fs::chown(&device, Some(4712), None).expect("root may");
            assert_eq!(owner(&active, devices), Some(4712));
        }
    }

    #[test]
    fn what_is_no_terminal_shows_no_text() {
        assert!(!console().1.is_text());
        let missing = Console::open(Path::new("/nowhere/tty0"));
        assert_eq!(
            missing.map(drop).map_err(|error| error.kind()),
            Err(std::io::ErrorKind::NotFound)
        );
    }
}
