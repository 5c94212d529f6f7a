// SPDX-License-Identifier: MIT OR Apache-2.0
//! Users present at this machine, according to the login manager.
//!
//! Without a login manager no user is present.

use std::path::{Path, PathBuf};
use tipme_desktop::logind::Logind;
use tipme_policy::Identity;
use tipme_sched::processes;

/// Maximum size read from a list of control groups or of sockets, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Maximum number of descriptors of a display server to inspect.
const DESCRIPTORS_MAX: usize = 16_384;
/// Major device number of the consoles, as `/proc` packs it with minor numbers below 256.
const CONSOLE: i32 = 4 << 8;
/// Sockets on which display servers listen, by file or by abstract name.
const DISPLAYS: [&str; 2] = ["/tmp/.X11-unix/X", "@/tmp/.X11-unix/X"];
/// Flags of a listening socket in a list of local sockets.
const LISTENING: &str = "00010000";

/// The login manager's state and the processes.
#[derive(Clone, Debug)]
pub(super) struct Seats {
    pub(super) logind: Logind,
    pub(super) proc: PathBuf,
}

impl Seats {
    /// Returns `true` if this user has the active session of some seat.
    pub(super) fn has(&self, user: u32) -> bool {
        self.logind.in_front(user).next().is_some()
    }

    /// Returns `true` if a process belongs to an active session of this user, or to the user's own
    /// service manager, which starts the programs of many desktops. Only root can move processes
    /// into either.
    pub(super) fn is_in_front(&self, user: u32, pid: u32) -> bool {
        let slice = format!("/user.slice/user-{user}.slice");
        let scopes = self
            .logind
            .in_front(user)
            .map(|session| format!("{slice}/session-{}.scope", session.id));
        let places: Vec<String> = scopes.chain([format!("{slice}/user@{user}.service")]).collect();
        let text = text(&self.proc.join(pid.to_string()).join("cgroup")).unwrap_or_default();
        let mut groups = text.lines().filter_map(|line| {
            let (_, group) = line.split_once(':')?;
            group.strip_prefix("name=systemd:").or_else(|| group.strip_prefix(':'))
        });
        groups.any(|group| places.iter().any(|place| Path::new(group).starts_with(place)))
    }

    /// Checks that `server`, which runs as root, is the display server of this user's active
    /// session.
    ///
    /// It must listen as a display server, and lead the session of the console that the login
    /// manager has assigned to the user's graphical session. A program that the user started
    /// through a privilege change was not root's from the start on such a console, or does not
    /// listen there.
    ///
    /// # Errors
    /// Returns the reason why it is not.
    pub(super) fn may_favour(&self, user: u32, server: Identity) -> Result<(), &'static str> {
        let process =
            processes::read(&self.proc, server.pid).filter(|process| process.identity == server);
        let process = process.ok_or("it is gone")?;
        if (process.uid, process.effective_uid) != (0, 0) {
            return Err("it belongs to another user than root");
        }
        let console = console(process.terminal).filter(|_| process.session == server.pid);
        let console = console.ok_or("it belongs to root and has no console of its own")?;
        let mut sessions =
            self.logind.in_front(user).filter_map(|session| self.logind.details(&session));
        if !sessions.any(|session| session.is_x11_here() && session.console() == Some(console)) {
            return Err("it belongs to root, and its console is not that of your active session");
        }
        if self.listens(server.pid) {
            Ok(())
        } else {
            Err("it belongs to root and is not a display server")
        }
    }

    /// Returns `true` if a process holds a socket that listens for display clients.
    fn listens(&self, pid: u32) -> bool {
        let folder = self.proc.join(pid.to_string());
        let list = text(&folder.join("net/unix")).unwrap_or_default();
        let sockets: Vec<&str> = list.lines().filter_map(display_socket).collect();
        let descriptors = std::fs::read_dir(folder.join("fd"))
            .into_iter()
            .flatten()
            .flatten()
            .take(DESCRIPTORS_MAX);
        let mut links = descriptors.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        links.any(|link| {
            let socket =
                link.to_str().and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']'));
            socket.is_some_and(|socket| sockets.contains(&socket))
        })
    }
}

/// Returns the number of the console, if the terminal is one.
fn console(terminal: i32) -> Option<u32> {
    let minor = u32::try_from(terminal.checked_sub(CONSOLE)?).ok()?;
    (1..64).contains(&minor).then_some(minor)
}

/// Returns the inode of a socket from its line, if a display server listens on it.
fn display_socket(line: &str) -> Option<&str> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (flags, number, path) = (words.get(3)?, words.get(6)?, words.get(7)?);
    let display = DISPLAYS.iter().any(|display| path.starts_with(display));
    (*flags == LISTENING && display).then_some(*number)
}

fn text(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&processes::read_up_to(path, FILE_BYTES_MAX).ok()?).into_owned())
}

#[cfg(test)]
mod tests;
