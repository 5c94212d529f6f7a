// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of GNOME: custom key bindings of its settings daemon, each in a settings path of its own.

use super::keys::{KeyBinding, KeyBindings};
use super::names::{self, spelled};
use super::settings::output_of;
use super::state::KeyState;
use anyhow::{Context, Result, ensure};
use tipme_desktop::hotkeys::HotKeyAction;
use tipme_desktop::session_bus;

const DAEMON: &str = "org.gnome.settings-daemon.plugins.media-keys";
/// Name of the daemon on the session bus.
const SERVER: &str = "org.gnome.SettingsDaemon.MediaKeys";
const LIST: &str = "custom-keybindings";
/// Parent of the settings paths, and prefix of ours.
const FOLDERS: &str = "/org/gnome/settings-daemon/plugins/media-keys/custom-keybindings";
const OURS: &str = "tipme-";
/// Schemas with shortcuts of the desktop itself.
const OWN: [&str; 4] = [
    "org.gnome.desktop.wm.keybindings",
    "org.gnome.mutter.keybindings",
    "org.gnome.shell.keybindings",
    DAEMON,
];

pub fn mark_key() -> Option<String> {
    let folder = folder(HotKeyAction::Mark);
    let listed = list().ok()?.contains(&folder);
    let key = setting(&folder, "binding").ok()?;
    Some(key.trim_matches('\'').to_owned()).filter(|key| listed && !key.is_empty())
}

/// Returns the state of the mark key in GNOME; `None` if its settings have none.
pub fn state() -> Option<KeyState> {
    let binding = mark_key()?;
    let key = spelled(&binding);
    Some(if let Some(other) = taken_by(&binding) {
        KeyState::Idle(format!(
            "GNOME gives {key} to {other}; choose another key: tipme setup --mark-key KEY"
        ))
    } else if session_bus::is_served(SERVER) {
        KeyState::Works(key)
    } else {
        KeyState::Idle(format!(
            "the settings of GNOME have {key}, but its settings daemon ({SERVER}), \
             which serves it, is not running; log out and in again"
        ))
    })
}

pub fn has(keys: &KeyBindings) -> bool {
    let Ok(list) = list() else { return false };
    keys.all.iter().all(|key| {
        let folder = folder(key.action);
        list.contains(&folder)
            && settings(key).into_iter().all(|(name, value)| {
                setting(&folder, name).is_ok_and(|known| known.trim_matches('\'') == value)
            })
    })
}

pub fn bind(keys: &KeyBindings) -> Result<()> {
    let mut list: Vec<String> = list()?.into_iter().filter(|folder| !is_ours(folder)).collect();
    for key in &keys.all {
        let folder = folder(key.action);
        for (name, value) in settings(key) {
            output_of("gsettings", &["set", &schema(&folder), name, &format!("'{value}'")])?;
        }
        list.push(folder);
    }
    set_list(&list)?;
    // gsettings succeeds even if dconf cannot write.
    ensure!(
        has(keys),
        "GNOME does not save its settings; make ~/.config/dconf writable, then run: tipme setup"
    );
    Ok(())
}

/// Returns the shortcut that GNOME serves before ours: its own, or a custom one earlier in the
/// list.
fn taken_by(binding: &str) -> Option<String> {
    let ours = folder(HotKeyAction::Mark);
    for folder in list().ok()?.into_iter().take_while(|folder| *folder != ours) {
        if !is_ours(&folder)
            && setting(&folder, "binding").is_ok_and(|other| has_accelerator(&other, binding))
            && let Ok(name) = setting(&folder, "name")
        {
            return Some(format!("the custom shortcut {name}"));
        }
    }
    OWN.iter().find_map(|schema| {
        let all = output_of("gsettings", &["list-recursively", schema]).ok()?;
        let line = all.lines().find(|line| has_accelerator(line, binding))?;
        Some(format!("its own shortcut {}", line.split(' ').nth(1)?))
    })
}

/// Returns `true` if a settings value such as `['<Primary><Alt>minus', 'F9']` has this accelerator.
fn has_accelerator(value: &str, binding: &str) -> bool {
    value.split('\'').skip(1).step_by(2).any(|one| parts(one) == parts(binding))
}

/// Splits an accelerator into its lower-case modifiers, in alphabetical order, and its key.
fn parts(accelerator: &str) -> (Vec<String>, String) {
    let lower =
        accelerator.to_lowercase().replace("<primary>", "<control>").replace("<ctrl>", "<control>");
    let (held, key) = lower.rsplit_once('>').unwrap_or(("", &lower));
    let mut held: Vec<String> =
        held.split(['<', '>']).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    held.sort();
    (held, key.to_owned())
}

pub fn unbind() -> Result<()> {
    let (ours, others): (Vec<String>, Vec<String>) =
        list()?.into_iter().partition(|folder| is_ours(folder));
    if ours.is_empty() {
        return Ok(());
    }
    set_list(&others)?;
    for folder in ours {
        output_of("gsettings", &["reset-recursively", &schema(&folder)])?;
    }
    Ok(())
}

/// Returns the settings of a key.
fn settings(key: &KeyBinding) -> [(&'static str, String); 3] {
    let name = format!("tipme: {}", key.action.purpose());
    [("name", name), ("command", key.command.clone()), ("binding", names::gnome(&key.chord))]
}

/// Returns a setting of a custom key binding.
fn setting(folder: &str, name: &str) -> Result<String> {
    output_of("gsettings", &["get", &schema(folder), name])
}

fn folder(action: HotKeyAction) -> String {
    format!("{FOLDERS}/{OURS}{}/", action.name())
}

fn is_ours(folder: &str) -> bool {
    folder.starts_with(&format!("{FOLDERS}/{OURS}"))
}

fn schema(folder: &str) -> String {
    format!("{DAEMON}.custom-keybinding:{folder}")
}

/// Returns the settings paths that GNOME reads.
fn list() -> Result<Vec<String>> {
    let said = output_of("gsettings", &["get", DAEMON, LIST])
        .context("cannot read the settings of GNOME")?;
    Ok(said.split('\'').skip(1).step_by(2).map(str::to_owned).collect())
}

fn set_list(folders: &[String]) -> Result<()> {
    let quoted: Vec<String> = folders.iter().map(|folder| format!("'{folder}'")).collect();
    output_of("gsettings", &["set", DAEMON, LIST, &format!("[{}]", quoted.join(", "))]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accelerator_is_found_however_its_modifiers_are_written() {
        let ours = "<Control><Alt>minus";
        let line = "org.gnome.desktop.wm.keybindings maximize ['<Super>Up', '<Alt><Primary>minus']";
        assert!(has_accelerator(line, ours) && has_accelerator("'<Ctrl><Alt>Minus'", ours));
        let others = [
            "''",
            "@as []",
            "['<Alt>minus']",
            "'<Control><Alt><Shift>minus'",
            "'<Control><Alt>plus'",
        ];
        assert_eq!(others.map(|other| has_accelerator(other, ours)), [false; 5]);
    }
}
