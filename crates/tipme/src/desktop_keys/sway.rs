// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of sway: a file of our own that the user's configuration includes. A running sway gets the
//! changes as well.

use super::keys::{KeyBinding, KeyBindings};
use super::names::{self, spelled};
use super::settings::{HEADER, output_of, remove, user_folder, write_file};
use super::state::KeyState;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use tipme_desktop::hotkeys::HotKeyAction;

/// Name of our file.
const FILE: &str = "tipme.conf";
/// Configuration that sway reads if the user has none.
const OF_ALL: &str = "/etc/sway/config";

/// Reply of `swaymsg -t get_version`.
#[derive(Deserialize)]
struct SwayVersion {
    loaded_config_file_name: Option<PathBuf>,
}

pub fn mark_key() -> Option<String> {
    let text = std::fs::read_to_string(own_file().ok()?).ok()?;
    let pressing = format!("--press {}", HotKeyAction::Mark.name());
    let line = text.lines().find(|line| line.ends_with(&pressing))?;
    line.strip_prefix("bindsym ")?.split(' ').next().map(str::to_owned)
}

/// Returns the state of the mark key in sway; `None` if our file has none.
pub fn state() -> Option<KeyState> {
    let (key, file) = (spelled(&mark_key()?), own_file().ok()?);
    let configuration = configuration().ok()?;
    let text = std::fs::read_to_string(&configuration).unwrap_or_default();
    Some(if !text.contains(&include(&file)) {
        let [own, all] = [&file, &configuration].map(|path| path.display().to_string());
        KeyState::Idle(format!(
            "{own} has {key}, but {all} does not include that file; run: tipme setup"
        ))
    } else if output_of("swaymsg", &["-t", "get_version"]).is_ok() {
        KeyState::Works(key)
    } else {
        KeyState::AtNextLogin(key)
    })
}

pub fn has(keys: &KeyBindings) -> bool {
    let Ok(file) = own_file() else { return false };
    let included =
        configuration().and_then(|path| Ok(std::fs::read_to_string(path)?)).unwrap_or_default();
    std::fs::read_to_string(&file).is_ok_and(|known| known == text(keys))
        && included.contains(&include(&file))
}

pub fn bind(keys: &KeyBindings) -> Result<()> {
    unbind()?;
    let (file, configuration) = (own_file()?, configuration()?);
    write_file(&file, &text(keys))?;
    let mut before = match std::fs::read_to_string(&configuration) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("{HEADER}\ninclude {OF_ALL}\n")
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", configuration.display()));
        }
    };
    if !before.ends_with('\n') && !before.is_empty() {
        before.push('\n');
    }
    write_file(&configuration, &(before + &include(&file)))?;
    apply(keys.all.iter().map(line))
}

pub fn unbind() -> Result<()> {
    let (file, configuration) = (own_file()?, configuration()?);
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let bound = text.lines().filter_map(|line| line.strip_prefix("bindsym ")?.split(' ').next());
    // A key that is no longer bound needs no removal.
    bound.for_each(|key| drop(apply([format!("unbindsym {key}")].into_iter())));
    remove(&file)?;
    let Ok(known) = std::fs::read_to_string(&configuration) else { return Ok(()) };
    let rest = known.replace(&include(&file), "");
    match rest {
        rest if rest == known => Ok(()),
        rest if rest == format!("{HEADER}\ninclude {OF_ALL}\n") => {
            Ok(std::fs::remove_file(&configuration)?)
        }
        rest => write_file(&configuration, &rest),
    }
}

/// Formats the lines of our file. Sway ignores autostart entries, so the file starts the agent as
/// well.
fn text(keys: &KeyBindings) -> String {
    let lines: Vec<String> = keys.all.iter().map(line).collect();
    format!("{HEADER}\nexec {}\n{}\n", keys.agent, lines.join("\n"))
}

fn line(key: &KeyBinding) -> String {
    format!("bindsym {} exec {}", names::sway(&key.chord), key.command)
}

fn include(file: &Path) -> String {
    format!("{HEADER}\ninclude {}\n", file.display())
}

/// Applies configuration lines to the running sway; otherwise they take effect at its next start.
fn apply(lines: impl Iterator<Item = String>) -> Result<()> {
    if std::env::var_os("SWAYSOCK").is_none_or(|socket| socket.is_empty()) {
        return Ok(());
    }
    for line in lines {
        output_of("swaymsg", &["--", &line])?;
    }
    Ok(())
}

fn own_file() -> Result<PathBuf> {
    Ok(configuration()?.with_file_name(FILE))
}

/// Returns the path of the user's configuration, which may not exist: the file that sway has read,
/// unless that is a system file.
fn configuration() -> Result<PathBuf> {
    let folder = user_folder("XDG_CONFIG_HOME", ".config")?;
    let said = output_of("swaymsg", &["-r", "-t", "get_version"]).ok();
    let read = said
        .and_then(|said| serde_json::from_str::<SwayVersion>(&said).ok()?.loaded_config_file_name);
    let own = read.filter(|path| !path.starts_with("/etc") && !path.starts_with("/usr"));
    Ok(own.unwrap_or_else(|| folder.join("sway/config")))
}
