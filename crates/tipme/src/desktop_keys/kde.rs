// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of KDE: a desktop entry with shortcuts, which its daemon for global shortcuts reads when the session begins,
//! and shows in the system settings, where the person may change them.

use super::keys::{KeyBinding, KeyBindings};
use super::names;
use super::settings::{MADE, folder_of, put, remove};
use anyhow::Result;
use std::path::PathBuf;
use tipme_desktop::hotkeys::HotKeyAction;

const SHORTCUT: &str = "X-KDE-Shortcuts=";

pub fn mark_key() -> Option<String> {
    let text = std::fs::read_to_string(file().ok()?).ok()?;
    text.lines().find_map(|line| line.strip_prefix(SHORTCUT)).map(str::to_owned)
}

pub fn has(keys: &KeyBindings) -> bool {
    file().is_ok_and(|file| std::fs::read_to_string(file).is_ok_and(|known| known == text(keys)))
}

pub fn bind(keys: &KeyBindings) -> Result<()> {
    put(&file()?, &text(keys))
}

pub fn unbind() -> Result<()> {
    remove(&file()?)
}

fn file() -> Result<PathBuf> {
    Ok(folder_of("XDG_DATA_HOME", ".local/share")?.join("kglobalaccel/tipme.desktop"))
}

/// The entry's own command marks; the others are its actions. One that is not to be displayed has no shortcuts.
fn text(keys: &KeyBindings) -> String {
    let (mark, others): (Vec<&KeyBinding>, Vec<&KeyBinding>) =
        keys.all.iter().partition(|key| key.action == HotKeyAction::Mark);
    let actions: Vec<&str> = others.iter().map(|key| key.action.name()).collect();
    let mut text = format!("{MADE}\n[Desktop Entry]\nType=Application\n");
    text.extend(mark.iter().map(|key| lines(key)));
    text += &format!("Actions={};\n", actions.join(";"));
    text.extend(others.iter().map(|key| format!("\n[Desktop Action {}]\n{}", key.action.name(), lines(key))));
    text
}

fn lines(key: &KeyBinding) -> String {
    let (purpose, chord) = (key.action.purpose(), names::kde(&key.chord));
    format!("Name=tipme: {purpose}\nExec={}\n{SHORTCUT}{chord}\n", key.command)
}
