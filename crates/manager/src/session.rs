// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user of a session, and its core processes that every response needs.

use crate::display::DisplayAddress;
use crate::installed;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use tipme_desktop::{DisplayTarget, server};
use tipme_policy::Identity;
use tipme_record::session_programs::WINDOW_MANAGERS;
use tipme_sched::processes;

/// Per-session programs that carry sound or text input: sound servers and input methods.
const PROGRAMS: [&str; 9] = [
    "pipewire",
    "pipewire-pulse",
    "wireplumber",
    "pulseaudio",
    "ibus-daemon",
    "ibus-engine-simple",
    "fcitx",
    "fcitx5",
    "xdg-desktop-portal",
];
/// Maximum length of a program's name in the kernel, in bytes.
const NAME_BYTES: usize = 15;
/// Maximum number of processes of these programs in the core.
const PROGRAMS_MAX: usize = 16;

/// Returns the named display, else that of the session, else the only one of the machine; a
/// compositor precedes the X servers that it may have. `recorder` reports the focus on compositors.
///
/// # Errors
/// Fails if none is named and there is none, or more than one.
pub(crate) fn display_address(named: Option<&str>, recorder: &Path) -> Result<DisplayAddress> {
    let session = ["WAYLAND_DISPLAY", "DISPLAY"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|display| !display.is_empty()));
    if let Some(name) = named.map(str::to_owned).or(session) {
        return named_address(&name, recorder);
    }
    match (&server::find_compositors()[..], &server::find()[..]) {
        ([socket], _) => Ok(DisplayAddress::Wayland(socket.into(), recorder.to_owned())),
        ([], [display]) => Ok(DisplayAddress::X11(DisplayTarget::new(*display))),
        ([], []) => {
            bail!("no display found; name one with --display, or start it where DISPLAY is set")
        }
        _ => bail!("there are several displays; name one with --display :N or --display wayland-N"),
    }
}

/// Parses `:0`, `wayland-0`, or the path of a compositor's socket.
fn named_address(name: &str, recorder: &Path) -> Result<DisplayAddress> {
    if !name.starts_with("wayland-") && !name.starts_with('/') {
        return Ok(DisplayAddress::X11(DisplayTarget::parse(name)?));
    }
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).unwrap_or_default();
    let socket = folder.join(name);
    if !socket.is_absolute() {
        bail!(
            "XDG_RUNTIME_DIR is not set; \
             name the compositor's socket by its path: --display /run/user/UID/{name}"
        );
    }
    Ok(DisplayAddress::Wayland(socket, recorder.to_owned()))
}

/// Returns the owner of the display: the server's user unless that is root, else the user that
/// called sudo, else the window manager's, else root.
///
/// # Errors
/// Fails if the display server is gone.
pub(crate) fn user(proc: &Path, server_pid: u32, manager: Option<u32>) -> Result<u32> {
    let own = rustix::process::getuid().as_raw();
    if own != 0 {
        return Ok(own);
    }
    let server = processes::read(proc, server_pid).context("the display server is gone")?.uid;
    if server != 0 {
        return Ok(server);
    }
    let caller = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    Ok(caller.or_else(|| Some(processes::read(proc, manager?)?.uid)).unwrap_or(0))
}

/// Returns the process that claims to be the window manager, if it belongs to the user and runs a
/// window manager that root has installed.
pub(crate) fn window_manager(proc: &Path, user: u32, pid: u32) -> Option<Identity> {
    process_of_user(proc, user, pid).filter(|_| installed::runs_one_of(proc, pid, &WINDOW_MANAGERS))
}

/// Returns display server, window manager, this process, sound and input method. All but the server
/// belong to the user or are this process; a process known only by its own claim must run a program
/// that root has installed.
pub(crate) fn core(
    proc: &Path,
    user: u32,
    server_pid: u32,
    manager: Option<Identity>,
) -> Vec<Identity> {
    let own = std::process::id();
    let mut core: Vec<Identity> =
        [server_pid, own].iter().filter_map(|pid| processes::identity(proc, *pid)).collect();
    core.extend(manager);
    core.extend(programs(proc, user));
    core.sort_unstable();
    core.dedup();
    core
}

/// Lists processes of the core that are not favoured, with reasons: those of another user, such as
/// root's display server, and an untrusted window manager.
pub(crate) fn not_favoured(
    proc: &Path,
    user: u32,
    core: &[Identity],
    manager: Option<u32>,
) -> Vec<String> {
    let others = core.iter().filter(|who| who.pid != std::process::id());
    let stats = others
        .filter_map(|who| processes::read(proc, who.pid).filter(|stat| stat.identity == *who));
    let others = stats.filter(|stat| stat.uid != user || stat.effective_uid != user).map(|stat| {
        let (name, pid, uid) = (&stat.command, stat.identity.pid, stat.effective_uid);
        format!(
            "{name} ({pid}) belongs to user {uid}, not {user}, and is not favoured; \
             run it as user {user}"
        )
    });
    let unfit = manager.filter(|pid| core.iter().all(|who| who.pid != *pid)).map(|pid| {
        let file = installed::file(proc, pid);
        let file = file.map_or("its program".to_owned(), |file| file.display().to_string());
        format!(
            "process {pid} says that it is the window manager and is not favoured: \
             {file} is no window manager that root has installed; \
             install it as root under its usual name"
        )
    });
    others.chain(unfit).collect()
}

fn process_of_user(proc: &Path, user: u32, pid: u32) -> Option<Identity> {
    processes::read(proc, pid).filter(|process| process.uid == user).map(|process| process.identity)
}

fn programs(proc: &Path, user: u32) -> impl Iterator<Item = Identity> + '_ {
    let found = processes::all(proc).into_iter().filter_map(move |pid| {
        let name = program(proc, pid)?;
        let is_known =
            PROGRAMS.iter().any(|known| known.get(..NAME_BYTES).unwrap_or(known) == name);
        (is_known && installed::runs_one_of(proc, pid, &PROGRAMS))
            .then(|| process_of_user(proc, user, pid))?
    });
    found.take(PROGRAMS_MAX)
}

/// Returns a program's name, at most 15 bytes, chosen by the program itself.
pub(crate) fn program(proc: &Path, pid: u32) -> Option<String> {
    let name = std::fs::read(proc.join(pid.to_string()).join("comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_has_this_process_and_names_no_process_twice() {
        let (proc, own) = (Path::new("/proc"), std::process::id());
        let user = rustix::process::getuid().as_raw();
        let core = core(proc, user, own, processes::identity(proc, own));
        assert_eq!(core.iter().filter(|process| process.pid == own).count(), 1);
    }

    #[test]
    fn a_window_manager_of_another_user_is_no_part_of_it() {
        let (proc, init) = (Path::new("/proc"), 1);
        assert_eq!(window_manager(proc, 4711, init), None);
    }

    /// Adds a process of the user that runs this file under this name.
    fn add(proc: &Path, pid: u32, name: &str, uid: u32, file: &Path) {
        let folder = proc.join(pid.to_string());
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("comm"), format!("{name}\n")).unwrap();
        let stat = format!(
            "{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 \
             1 1 1 1 1 1 1 1 1 1 1 1 1 0 0 0 17 0 0 0"
        );
        std::fs::write(folder.join("stat"), stat).unwrap();
        std::fs::write(folder.join("status"), format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n"))
            .unwrap();
        std::os::unix::fs::symlink(file, folder.join("exe")).unwrap();
    }

    #[test]
    fn no_process_enters_the_core_by_its_name() {
        let root = tempfile::tempdir().unwrap();
        let copy = root.path().join("pipewire");
        std::fs::copy("/usr/bin/sleep", &copy).unwrap();
        add(root.path(), 7, "pipewire", 1000, &copy);
        add(root.path(), 8, "openbox", 1000, &std::fs::canonicalize("/usr/bin/sleep").unwrap());
        add(root.path(), 9, "Xorg", 0, Path::new("/usr/bin/Xorg"));
        let core = core(root.path(), 1000, 9, window_manager(root.path(), 1000, 8));
        assert_eq!(core.iter().map(|who| who.pid).collect::<Vec<_>>(), [9]);
        let left = not_favoured(root.path(), 1000, &core, Some(8));
        assert!(left[0].starts_with("Xorg (9) belongs to user 0, not 1000"), "{left:?}");
        assert!(left[1].starts_with("process 8 says that it is the window manager"), "{left:?}");
        assert_eq!(left.len(), 2);
    }
}
