// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose session it is, and which of its processes every answer needs.

use anyhow::{Context, Result, bail};
use std::path::Path;
use tipme_desktop::{Target, server};
use tipme_policy::Identity;
use tipme_sched::processes;

/// Programs that a session has one of and that are heard or typed through: sound servers and input methods.
const PROGRAMS: [&str; 9] = [
    "pipewire",
    "pipewire-pulse",
    "wireplumber",
    "pulseaudio",
    "ibus-daemon",
    "ibus-engine-sim",
    "fcitx",
    "fcitx5",
    "xdg-desktop-por",
];
/// Of these programs, processes that are counted to the session's core at most.
const PROGRAMS_MAX: usize = 16;

/// The display that is named, else `$DISPLAY`, else the only one of the machine.
///
/// # Errors
/// Where none is named and there is none, or more than one.
pub(crate) fn target(named: Option<&str>) -> Result<Target> {
    let variable = std::env::var("DISPLAY").ok().filter(|name| !name.is_empty());
    if let Some(name) = named.map(str::to_owned).or(variable) {
        return Ok(Target::parse(&name)?);
    }
    match server::find()[..] {
        [display] => Ok(Target::new(display)),
        [] => bail!("no display is named and none is found; give --display, or start it where DISPLAY is set"),
        _ => bail!("no display is named and there are several; give --display :N"),
    }
}

/// The user whose display it is: the server's, where that is not root; else the one who called sudo; else the
/// window manager's; else root.
///
/// # Errors
/// Where the display server is gone.
pub(crate) fn user(proc: &Path, server_pid: u32, manager: Option<u32>) -> Result<u32> {
    let own = rustix::process::getuid().as_raw();
    if own != 0 {
        return Ok(own);
    }
    let user_of = |pid| processes::read(proc, pid).map(|process| process.uid);
    let server = user_of(server_pid).context("the display server is gone")?;
    if server != 0 {
        return Ok(server);
    }
    let caller = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    Ok(caller.or_else(|| user_of(manager?)).unwrap_or(0))
}

/// Display server, window manager, this process, sound and input method. All but the server belong to the user
/// or are this process.
pub(crate) fn core(proc: &Path, user: u32, server_pid: u32, manager: Option<u32>) -> Vec<Identity> {
    let own = std::process::id();
    let mut core: Vec<Identity> = [server_pid, own].iter().filter_map(|pid| processes::identity(proc, *pid)).collect();
    core.extend(manager.and_then(|pid| of_user(proc, user, pid)));
    core.extend(programs(proc, user));
    core.sort_unstable();
    core.dedup();
    core
}

fn of_user(proc: &Path, user: u32, pid: u32) -> Option<Identity> {
    processes::read(proc, pid).filter(|process| process.uid == user).map(|process| process.identity)
}

fn programs(proc: &Path, user: u32) -> impl Iterator<Item = Identity> + '_ {
    let wanted = move |pid: &u32| program(proc, *pid).is_some_and(|name| PROGRAMS.contains(&name.as_str()));
    let found = processes::all(proc).into_iter().filter(wanted).filter_map(move |pid| of_user(proc, user, pid));
    found.take(PROGRAMS_MAX)
}

/// A program's name, at most 15 bytes: chosen by the program itself.
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
        let core = core(proc, user, own, Some(own));
        assert_eq!(core.iter().filter(|process| process.pid == own).count(), 1);
    }

    #[test]
    fn a_window_manager_of_another_user_is_no_part_of_it() {
        let (proc, init) = (Path::new("/proc"), 1);
        let core = core(proc, 4711, std::process::id(), Some(init));
        assert!(core.iter().all(|process| process.pid != init), "{core:?}");
    }
}
