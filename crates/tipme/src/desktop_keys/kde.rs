// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of KDE: a desktop entry with shortcuts, which its global shortcut daemon reads at the start
//! of the session or on request. The user may change them in the system settings; the daemon's
//! state takes precedence.

use super::keys::{KeyBinding, KeyBindings};
use super::names::{self, spelled};
use super::settings::{HEADER, remove, user_folder, write_file};
use super::state::KeyState;
use anyhow::Result;
use std::path::PathBuf;
use tipme_desktop::hotkeys::HotKeyAction;
use tipme_desktop::kglobalaccel::{self, KdeShortcut};

const SHORTCUT: &str = "X-KDE-Shortcuts=";
/// Our entry, and the name of its component in the daemon.
const ENTRY: &str = "tipme.desktop";
/// The daemon's name of the entry's own command.
const OF_ENTRY: &str = "_launch";
/// Names of non-letter keys by their Qt codes.
const NAMED: [(i32, &str); 22] = [
    (0x20, "Space"),
    (0x0100_0000, "Esc"),
    (0x0100_0001, "Tab"),
    (0x0100_0003, "Backspace"),
    (0x0100_0004, "Return"),
    (0x0100_0006, "Ins"),
    (0x0100_0007, "Del"),
    (0x0100_0008, "Pause"),
    (0x0100_0009, "Print"),
    (0x0100_0010, "Home"),
    (0x0100_0011, "End"),
    (0x0100_0012, "Left"),
    (0x0100_0013, "Up"),
    (0x0100_0014, "Right"),
    (0x0100_0015, "Down"),
    (0x0100_0016, "PgUp"),
    (0x0100_0017, "PgDown"),
    (0x0100_0024, "CapsLock"),
    (0x0100_0025, "NumLock"),
    (0x0100_0026, "ScrollLock"),
    (0x0100_0005, "Enter"),
    (0x0100_0055, "Menu"),
];

pub fn mark_key() -> Option<String> {
    let text = std::fs::read_to_string(file().ok()?).ok()?;
    text.lines().find_map(|line| line.strip_prefix(SHORTCUT)).map(str::to_owned)
}

/// Returns the state of the mark key in the daemon; `None` if neither the daemon nor a file has
/// one.
pub fn state() -> Option<KeyState> {
    let put = mark_key().map(|key| spelled(&key));
    let Ok(Some(known)) = kglobalaccel::shortcuts("tipme") else {
        return put.map(KeyState::AtNextLogin);
    };
    let marks: Vec<&KdeShortcut> = known
        .iter()
        .filter(|one| one.action == OF_ENTRY || one.action == HotKeyAction::Mark.name())
        .collect();
    let key = marks.iter().find_map(|one| one.keys.first().copied());
    if let Some(key) = key {
        return Some(KeyState::Works(spelled(&key_name(key))));
    }
    if !marks.is_empty() {
        let why = "KDE gave the key of tipme to another shortcut, or the user removed it";
        return Some(KeyState::Idle(format!(
            "{why}; choose one in System Settings, Shortcuts, \"tipme: mark\""
        )));
    }
    put.map(KeyState::AtNextLogin)
}

/// Formats a Qt key code as Qt does.
fn key_name(code: i32) -> String {
    const HELD: [(i32, &str); 4] = [
        (0x0400_0000, "Ctrl+"),
        (0x0800_0000, "Alt+"),
        (0x0200_0000, "Shift+"),
        (0x1000_0000, "Meta+"),
    ];
    const F1: i32 = 0x0100_0030;
    let held: String =
        HELD.iter().filter(|(bit, _)| code & bit != 0).map(|(_, name)| *name).collect();
    let key = code & 0x01ff_ffff;
    let named = NAMED.iter().find(|(known, _)| *known == key).map(|(_, name)| (*name).to_owned());
    let letter = char::from_u32(key as u32).filter(|letter| !letter.is_control());
    held + &match (named, letter) {
        (Some(name), _) => name,
        _ if (F1..F1 + 35).contains(&key) => format!("F{}", key - F1 + 1),
        (None, Some(letter)) => letter.to_string(),
        (None, None) => format!("key {key:#x}"),
    }
}

pub fn has(keys: &KeyBindings) -> bool {
    file().is_ok_and(|file| std::fs::read_to_string(file).is_ok_and(|known| known == text(keys)))
}

pub fn bind(keys: &KeyBindings) -> Result<()> {
    let (file, text) = (file()?, text(keys));
    if std::fs::read_to_string(&file).is_ok_and(|known| known != text) {
        kglobalaccel::unload(ENTRY)?;
    }
    write_file(&file, &text)?;
    Ok(kglobalaccel::load(ENTRY)?)
}

pub fn unbind() -> Result<()> {
    remove(&file()?)?;
    Ok(kglobalaccel::unload(ENTRY)?)
}

fn file() -> Result<PathBuf> {
    Ok(user_folder("XDG_DATA_HOME", ".local/share")?.join("kglobalaccel").join(ENTRY))
}

/// Formats the desktop entry. Its own command marks; the others are its actions. An entry with
/// `NoDisplay` would have no shortcuts.
fn text(keys: &KeyBindings) -> String {
    let (mark, others): (Vec<&KeyBinding>, Vec<&KeyBinding>) =
        keys.all.iter().partition(|key| key.action == HotKeyAction::Mark);
    let actions: Vec<&str> = others.iter().map(|key| key.action.name()).collect();
    let mut text = format!("{HEADER}\n[Desktop Entry]\nType=Application\n");
    text.extend(mark.iter().map(|key| lines(key)));
    text += &format!("Actions={};\n", actions.join(";"));
    text.extend(
        others
            .iter()
            .map(|key| format!("\n[Desktop Action {}]\n{}", key.action.name(), lines(key))),
    );
    text
}

fn lines(key: &KeyBinding) -> String {
    let (purpose, chord) = (key.action.purpose(), names::kde(&key.chord));
    format!("Name=tipme: {purpose}\nExec={}\n{SHORTCUT}{chord}\n", key.command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_desktop::hotkeys::Chord;

    #[test]
    fn codes_are_read_as_the_keys_that_were_bound() {
        let read = [0x0c00_002d, 0x0c00_002b, 0x1100_003b, 0x0200_004d, 0x0500_0016, 0x0100_0008]
            .map(key_name);
        assert_eq!(read, ["Ctrl+Alt+-", "Ctrl+Alt++", "Meta+F12", "Shift+M", "Ctrl+PgUp", "Pause"]);
        let chord: Chord = "ctrl+alt+minus".parse().expect("a chord");
        assert_eq!(key_name(0x0c00_002d), names::kde(&chord));
        assert_eq!(
            [key_name(0), key_name(-1), key_name(i32::MIN)].map(|text| text.is_empty()),
            [false; 3]
        );
    }
}
