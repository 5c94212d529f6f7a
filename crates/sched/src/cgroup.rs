// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of control groups, version 2.
//!
//! The same code also works on a folder of plain files: numbers replace the old ones, PIDs are
//! appended to a list.

use crate::processes::text;
use crate::units_names;
use crate::world::{KnobFault, fault};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use tipme_record::proc_text::control_group;

/// Maximum number of members read from a group.
const MEMBERS_MAX: usize = 8_192;

/// Reads the number in a file: `max` is -1; in a multi-line file the `default` line counts.
pub(crate) fn get(path: &str) -> Result<i64, KnobFault> {
    parse(&text(Path::new(path)).ok_or(KnobFault::Vanished)?)
        .ok_or(KnobFault::Refused(libc::EINVAL))
}

/// Writes a number; -1 is `max`.
pub(crate) fn set(path: &str, number: i64) -> Result<(), KnobFault> {
    let words = if number < 0 { "max".to_owned() } else { number.to_string() };
    write(path, &words, false)
}

/// Returns 1 if the controller is enabled for the children of `group`, 0 if it is available.
pub(crate) fn has_controller(group: &str, name: &str) -> Result<i64, KnobFault> {
    let [enabled, available] = ["cgroup.subtree_control", "cgroup.controllers"]
        .map(|file| Some(has_word(&text(&Path::new(group).join(file))?, name)));
    match (enabled, available) {
        (Some(true), Some(_)) => Ok(1),
        (Some(false), Some(true)) => Ok(0),
        _ => Err(KnobFault::Vanished),
    }
}

/// Returns `true` if a list of controllers contains this one.
pub(crate) fn has_word(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|word| word == name)
}

/// Returns the folder of a group named by its folder or by its path in the hierarchy at `root`.
pub(crate) fn folder(root: &str, path: &str) -> String {
    if path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/')) {
        path.to_owned()
    } else {
        format!("{root}/{}", path.trim_start_matches('/'))
    }
}

pub(crate) fn set_controller(group: &str, name: &str, on: bool) -> Result<(), KnobFault> {
    let sign = if on { '+' } else { '-' };
    write(&format!("{group}/cgroup.subtree_control"), &format!("{sign}{name}"), false)
}

/// Returns the folder of a process's group.
pub(crate) fn group_of(proc: &Path, pid: u32, root: &str) -> Option<String> {
    let groups = text(&proc.join(format!("{pid}/cgroup")))?;
    Some(format!("{root}{}", control_group(&groups)?.trim_end_matches('/')))
}

/// Moves a process into a group. If that group is gone, uses the nearest existing ancestor, but
/// stays within the systemd unit of the group: if the unit is gone, there is no way back.
pub(crate) fn enter(pid: u32, root: &str, group: &str) -> Result<(), KnobFault> {
    let unit = units_names::unit_folder(root, group).unwrap_or_else(|| root.to_owned());
    let mut above = Path::new(group).ancestors().take_while(|path| path.starts_with(&unit));
    let found = above.find(|path| path.is_dir()).ok_or(KnobFault::Vanished)?;
    write(&found.join("cgroup.procs").to_string_lossy(), &format!("{pid}\n"), true)
}

/// Returns the processes in a group, at most [`MEMBERS_MAX`].
pub(crate) fn members(group: &str) -> Vec<u32> {
    let list = text(&Path::new(group).join("cgroup.procs")).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).take(MEMBERS_MAX).collect()
}

/// Returns the processes in a group and its descendants, at most [`MEMBERS_MAX`].
pub(crate) fn tree(group: &str) -> Vec<u32> {
    let (mut found, mut open) = (Vec::new(), vec![PathBuf::from(group)]);
    while let Some(folder) = open.pop().filter(|_| found.len() < MEMBERS_MAX) {
        found.extend(members(&folder.to_string_lossy()));
        let below = fs::read_dir(&folder).into_iter().flatten().flatten();
        open.extend(
            below
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
    found
}

pub(crate) fn make(path: &str) -> Result<(), KnobFault> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        outcome => outcome.map_err(fault),
    }
}

/// Removes an empty group; succeeds if it is already gone.
pub(crate) fn remove(path: &str) -> Result<(), KnobFault> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        outcome => outcome.map_err(fault),
    }
}

/// Reclaims memory of a group. A partial reclaim is not a failure.
pub(crate) fn reclaim(group: &str, bytes: u64) -> Result<(), KnobFault> {
    match write(&format!("{group}/memory.reclaim"), &bytes.to_string(), false) {
        Err(KnobFault::Later) => Ok(()),
        outcome => outcome,
    }
}

/// Returns the size of a group's file pages, active and inactive, in bytes.
pub(crate) fn file_bytes(group: &str) -> u64 {
    let stat = text(&Path::new(group).join("memory.stat")).unwrap_or_default();
    let words = stat.lines().filter_map(|line| line.split_once(' '));
    let of_files = words.filter(|(name, _)| matches!(*name, "active_file" | "inactive_file"));
    of_files.filter_map(|(_, number)| number.parse::<u64>().ok()).fold(0, u64::saturating_add)
}

/// Returns the 10 s average of PSI `full` for a group's memory, in percent; 0 without PSI.
pub(crate) fn full_percent(group: &str) -> f32 {
    text(&Path::new(group).join("memory.pressure"))
        .and_then(|text| full_average(&text))
        .unwrap_or(0.0)
}

/// Parses the `full avg10` percentage of a pressure file.
pub fn full_average(text: &str) -> Option<f32> {
    let rest = text.lines().find_map(|line| line.strip_prefix("full avg10="))?;
    let percent: f32 = rest.split(' ').next()?.parse().ok()?;
    percent.is_finite().then_some(percent)
}

/// Returns the mount point of the hierarchy of `dir`: its topmost ancestor that is a group.
pub(crate) fn root_of(dir: &Path) -> Option<PathBuf> {
    let above = dir.ancestors().take_while(|path| path.join("cgroup.procs").exists());
    above.last().map(Path::to_owned)
}

fn write(path: &str, words: &str, append: bool) -> Result<(), KnobFault> {
    let mut file = OpenOptions::new()
        .write(true)
        .append(append)
        .truncate(!append)
        .open(path)
        .map_err(fault)?;
    file.write_all(words.as_bytes()).map_err(fault)
}

fn parse(text: &str) -> Option<i64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("default "))
        .or_else(|| text.lines().next())?;
    match line.trim() {
        "max" => Some(-1),
        number => number.parse().ok().filter(|number| *number >= 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_all_their_forms() {
        for (text, number) in [
            ("100\n", Some(100)),
            ("max\n", Some(-1)),
            ("default 50\n8:0 70\n", Some(50)),
            ("", None),
        ] {
            assert_eq!(parse(text), number, "{text}");
        }
        for bad in ["-5", "x", "99999999999999999999", "\0"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_root_is_the_highest_group_above() {
        let folder = tempfile::tempdir().unwrap();
        let low = folder.path().join("mount/a/b");
        fs::create_dir_all(&low).unwrap();
        for group in ["mount", "mount/a", "mount/a/b"] {
            fs::write(folder.path().join(group).join("cgroup.procs"), "").unwrap();
        }
        assert_eq!(root_of(&low), Some(folder.path().join("mount")));
        assert_eq!(root_of(folder.path()), None);
    }
}
