// SPDX-License-Identifier: MIT OR Apache-2.0
//! KDE's daemon for global shortcuts (kglobalaccel): the keys that it serves now, and loading or
//! dropping an entry.
//!
//! The daemon, not the portal in front of it, knows the action of each key: a portal may answer
//! that a shortcut is bound although the daemon does not have it. Nothing here starts the daemon.

use crate::error::DisplayError;
use crate::notify::connect;
use crate::plain::plain;
use std::sync::Arc;
use zbus::blocking::Connection;
use zbus::zvariant::OwnedObjectPath;

const NAME: &str = "org.kde.kglobalaccel";
const OBJECT: &str = "/kglobalaccel";
const DAEMON: &str = "org.kde.KGlobalAccel";
const COMPONENT: &str = "org.kde.kglobalaccel.Component";
/// Maximum length of a name, and of a refusal, in characters.
const WORDS_MAX: usize = 200;
/// Maximum number of attempts to load an entry.
const LOADS_MAX: usize = 2;
/// Maximum number of components that are queried: a desktop has some dozens.
const COMPONENTS_MAX: usize = 500;

/// An action of a component, with its keys as Qt key codes; empty if it has lost them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KdeShortcut {
    pub component: String,
    pub action: String,
    pub keys: Vec<i32>,
}

/// Name and text of an action, of its component and of its context; its keys, and the default ones.
type Info = (String, String, String, String, String, String, Vec<i32>, Vec<i32>);

/// Returns the actions of active components with this word in their name; `None` if the daemon does
/// not run.
///
/// # Errors
/// Fails if the session bus or the daemon is not usable.
pub fn shortcuts(word: &str) -> Result<Option<Vec<KdeShortcut>>, DisplayError> {
    let Some(bus) = daemon()? else { return Ok(None) };
    let components: Vec<OwnedObjectPath> = ask(&bus, OBJECT, DAEMON, "allComponents", &())?;
    let mut found = Vec::new();
    // Object paths have no other characters than these.
    let of_word = components.iter().filter(|path| path.contains(word)).take(COMPONENTS_MAX);
    for path in of_word {
        if !ask::<bool>(&bus, path, COMPONENT, "isActive", &())? {
            continue;
        }
        let infos: Vec<Info> = ask(&bus, path, COMPONENT, "allShortcutInfos", &())?;
        found.extend(infos.into_iter().map(|(action, _, component, _, _, _, keys, _)| {
            KdeShortcut {
                component: plain(&component, WORDS_MAX),
                action: plain(&action, WORDS_MAX),
                keys: keys.into_iter().filter(|key| *key != 0).collect(),
            }
        }));
    }
    Ok(Some(found))
}

/// Makes the daemon read a new entry of its folder, like KDE's settings: by an action that is
/// removed again. A component that has lost its actions is removed with it, and the next attempt
/// reads the entry.
///
/// # Errors
/// Fails if the session bus or the daemon is not usable.
pub fn load(entry: &str) -> Result<(), DisplayError> {
    let Some(bus) = daemon()? else { return Ok(()) };
    let action = [entry, "", entry, ""];
    for _ in 0..LOADS_MAX {
        ask::<()>(&bus, OBJECT, DAEMON, "doRegister", &(action.as_slice(),))?;
        ask::<()>(&bus, OBJECT, DAEMON, "unRegister", &(action.as_slice(),))?;
        if shortcuts(&object_name(entry))?.is_some_and(|known| !known.is_empty()) {
            break;
        }
    }
    Ok(())
}

/// Releases the keys of an entry's actions at once.
///
/// # Errors
/// Fails if the session bus or the daemon is not usable.
pub fn unload(entry: &str) -> Result<(), DisplayError> {
    let Some(bus) = daemon()? else { return Ok(()) };
    for shortcut in shortcuts(&object_name(entry))?.unwrap_or_default() {
        ask::<bool>(&bus, OBJECT, DAEMON, "unregister", &(shortcut.component, shortcut.action))?;
    }
    Ok(())
}

/// Returns a component's name as its object path has it.
fn object_name(component: &str) -> String {
    component
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
        .collect()
}

/// Returns the session bus if the daemon is on it.
fn daemon() -> Result<Option<Connection>, DisplayError> {
    let bus = connect(&Arc::default()).map_err(|trouble| failed(&trouble.to_string()))?;
    Ok(crate::session_bus::has_owner(&bus, NAME).then_some(bus))
}

fn ask<A>(
    bus: &Connection,
    object: &str,
    interface: &str,
    method: &str,
    body: &(impl serde::Serialize + zbus::zvariant::DynamicType),
) -> Result<A, DisplayError>
where
    A: for<'d> serde::Deserialize<'d> + zbus::zvariant::Type,
{
    let reply = bus.call_method(Some(NAME), object, Some(interface), method, body);
    let answer = reply.and_then(|reply| reply.body().deserialize());
    answer.map_err(|error| failed(&error.to_string()))
}

fn failed(reason: &str) -> DisplayError {
    DisplayError::NoShortcuts {
        reason: format!("KDE's daemon for shortcuts: {}", plain(reason, WORDS_MAX)),
    }
}
