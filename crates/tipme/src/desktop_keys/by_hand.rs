// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of compositors with a configuration that only the user edits: finds the line, or suggests
//! it.

use super::keys::KeyBinding;
use super::names;
use super::settings::{HEADER, remove, user_folder, write_file};
use anyhow::Result;
use std::path::PathBuf;
use tipme_desktop::hotkeys::{Bindings, HotKeyAction};

/// A compositor with a configuration file that binds keys to commands.
#[derive(Debug)]
pub struct CompositorFile {
    pub name: &'static str,
    /// Relative to the configuration folder.
    file: &'static str,
    line: fn(&KeyBinding) -> String,
}

const FILES: [CompositorFile; 5] = [
    CompositorFile { name: "Hyprland", file: "hypr/hyprland.conf", line: hyprland },
    CompositorFile { name: "labwc", file: "labwc/rc.xml", line: labwc },
    CompositorFile { name: "niri", file: "niri/config.kdl", line: niri },
    CompositorFile { name: "river", file: "river/init", line: river },
    CompositorFile { name: "Wayfire", file: "wayfire.ini", line: wayfire },
];

impl CompositorFile {
    /// Returns the file of a session with this desktop name.
    pub fn named(desktop: &str) -> Option<&'static CompositorFile> {
        let names = desktop.split(':');
        FILES.iter().find(|file| names.clone().any(|name| name.eq_ignore_ascii_case(file.name)))
    }

    /// Returns `true` if the configuration contains the mark command.
    pub fn has_key(&self) -> bool {
        let text =
            self.path().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        let words = ["tipme", "agent", "--press", HotKeyAction::Mark.name()];
        text.lines().any(|line| !is_comment(line) && has_in_order(line, &words))
    }

    /// Returns the line to add, and the file.
    pub fn advice(&self, key: &KeyBinding) -> String {
        let file =
            self.path().map_or_else(|| self.file.to_owned(), |path| path.display().to_string());
        format!("add to {file}: {}", (self.line)(key))
    }

    fn path(&self) -> Option<PathBuf> {
        Some(user_folder("XDG_CONFIG_HOME", ".config").ok()?.join(self.file))
    }
}

fn is_comment(line: &str) -> bool {
    ["#", "//", "<!--", ";"].iter().any(|begin| line.trim_start().starts_with(begin))
}

fn has_in_order(line: &str, words: &[&str]) -> bool {
    let mut rest = Some(line);
    words.iter().all(|word| {
        rest = rest.and_then(|rest| Some(rest.split_once(word)?.1));
        rest.is_some()
    })
}

fn hyprland(key: &KeyBinding) -> String {
    let sway = names::sway(&key.chord).replace("Mod4", "SUPER").to_uppercase();
    let (held, _) = sway.rsplit_once('+').unwrap_or(("", &sway));
    let name = names::sway(&key.chord);
    let name = name.rsplit('+').next().unwrap_or_default();
    format!("bind = {}, {name}, exec, {}", held.replace('+', " "), key.command)
}

fn labwc(key: &KeyBinding) -> String {
    let text = names::sway(&key.chord);
    let short = [("Ctrl+", "C-"), ("Alt+", "A-"), ("Shift+", "S-"), ("Mod4+", "W-")];
    let text = short.iter().fold(text, |text, (long, short)| text.replace(long, short));
    format!(r#"<keybind key="{text}"><action name="Execute" command="{}"/></keybind>"#, key.command)
}

fn niri(key: &KeyBinding) -> String {
    let words: Vec<String> = key.command.split(' ').map(|word| format!("{word:?}")).collect();
    format!("{} {{ spawn {}; }}", names::sway(&key.chord).replace("Mod4", "Super"), words.join(" "))
}

fn river(key: &KeyBinding) -> String {
    let text = names::sway(&key.chord).replace("Ctrl", "Control").replace("Mod4", "Super");
    let (held, name) = text.rsplit_once('+').unwrap_or(("None", &text));
    format!("riverctl map normal {held} {name} spawn '{}'", key.command)
}

fn wayfire(key: &KeyBinding) -> String {
    let text = names::sway(&key.chord);
    let (held, name) = text.rsplit_once('+').unwrap_or(("", &text));
    let held: String =
        held.split('+').filter(|name| !name.is_empty()).map(|name| format!("<{name}> ")).collect();
    let held = held.to_lowercase().replace("mod4", "super");
    let name = name.to_uppercase();
    format!("[command] binding_tipme = {held}KEY_{name} and command_tipme = {}", key.command)
}

/// Returns the advice for an unknown desktop: its settings, a command, and the key.
pub fn any_desktop(key: &KeyBinding) -> String {
    format!("bind {} in the settings of the desktop to this command: {}", key.chord, key.command)
}

/// Returns the mark key, bound to this agent command.
pub fn mark(bindings: &Bindings, agent: &[String]) -> Option<KeyBinding> {
    let (action, chord) = bindings.0.iter().find(|(action, _)| *action == HotKeyAction::Mark)?;
    let command = format!("{} --press {}", agent.join(" "), action.name());
    Some(KeyBinding { action: *action, chord: chord.clone(), command })
}

/// Returns `true` if a key that the user bound by hand has marked on this desktop.
pub fn has_marked() -> bool {
    let desktop = desktop();
    text().lines().any(|line| line == desktop)
}

/// Remembers that such a key has marked: later logins need not ask for one.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn remember() -> Result<()> {
    let known =
        Some(text()).filter(|text| !text.is_empty()).unwrap_or_else(|| format!("{HEADER}\n"));
    write_file(&file()?, &format!("{known}{}\n", desktop()))
}

/// Forgets such keys of all desktops.
///
/// # Errors
/// Fails if the file cannot be removed.
pub fn forget() -> Result<()> {
    remove(&file()?)
}

fn desktop() -> String {
    std::env::var("XDG_CURRENT_DESKTOP").unwrap_or_default()
}

fn text() -> String {
    file().ok().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default()
}

fn file() -> Result<PathBuf> {
    Ok(user_folder("XDG_STATE_HOME", ".local/state")?.join("tipme/keys-by-hand"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chord: &str) -> Vec<String> {
        let mut bindings = Bindings::default();
        bindings.set(HotKeyAction::Mark, chord.parse().expect("a chord"));
        let key = mark(&bindings, &["/usr/bin/tipme".to_owned(), "agent".to_owned()])
            .expect("a key marks");
        FILES.iter().map(|file| (file.line)(&key)).collect()
    }

    #[test]
    fn each_compositor_has_a_line_in_its_own_words() {
        let command = "/usr/bin/tipme agent --press mark";
        assert_eq!(
            lines("ctrl+alt+minus"),
            [
                format!("bind = CTRL ALT, minus, exec, {command}"),
                format!(
                    r#"<keybind key="C-A-minus"><action name="Execute" command="{command}"/></keybind>"#
                ),
                r#"Ctrl+Alt+minus { spawn "/usr/bin/tipme" "agent" "--press" "mark"; }"#.to_owned(),
                format!("riverctl map normal Control+Alt minus spawn '{command}'"),
                format!(
                    "[command] binding_tipme = <ctrl> <alt> KEY_MINUS and command_tipme = {command}"
                ),
            ]
        );
        assert_eq!(lines("super+f12")[0], format!("bind = SUPER, F12, exec, {command}"));
        assert_eq!(lines("f9")[3], format!("riverctl map normal None F9 spawn '{command}'"));
    }

    #[test]
    fn a_line_of_each_is_recognized_and_a_comment_is_none() {
        let words = ["tipme", "agent", "--press", "mark"];
        assert!(lines("ctrl+alt+minus").iter().all(|line| has_in_order(line, &words)));
        assert!(!has_in_order("bind = CTRL, m, exec, tipme agent --press start", &words));
        assert!(is_comment("  # bind = CTRL, m, exec, tipme agent --press mark"));
        assert_eq!(CompositorFile::named("labwc:wlroots").map(|file| file.name), Some("labwc"));
        assert_eq!(CompositorFile::named("hyprland").map(|file| file.name), Some("Hyprland"));
        assert!(CompositorFile::named("GNOME").is_none());
    }
}
