// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot keys under Wayland: the desktop binds them, by the portal
//! `org.freedesktop.portal.GlobalShortcuts`.
//!
//! No program may grab a key there. The desktop may ask the user first, and may choose other keys
//! than requested.

use crate::error::DisplayError;
use crate::hotkeys::{Bindings, HotKeyAction};
use crate::notify::connect;
use crate::plain::plain;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use zbus::blocking::{Connection, MessageIterator};
use zbus::message::{Message, Type};
use zbus::zvariant::{OwnedObjectPath, OwnedValue, Value};
use zbus::{MatchRule, zvariant};

const NAME: &str = "org.freedesktop.portal.Desktop";
const OBJECT: &str = "/org/freedesktop/portal/desktop";
const SHORTCUTS: &str = "org.freedesktop.portal.GlobalShortcuts";
/// Maximum time for the desktop to ask the user for the keys.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum time for a portal to answer anything.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval between calls of `go_on` meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of unread signals of the portal; a press beyond that is lost and reported on
/// stderr.
const SIGNALS_MAX: usize = 32;
/// Maximum length of a key's name, and of a refusal, in characters.
const WORDS_MAX: usize = 200;

/// Results of a portal request.
type Results = HashMap<String, OwnedValue>;

/// A signal of the portal; `None` only ends a wait.
type Heard = Option<Message>;

/// Shortcuts bound at the desktop, as long as the value lives.
pub struct Shortcuts {
    _bus: Connection,
    heard: Receiver<Heard>,
    waker: SyncSender<Heard>,
    session: OwnedObjectPath,
    /// The desktop's name of the key for a mark.
    mark: Option<String>,
}

impl Shortcuts {
    /// Binds the actions with their preferred keys; the desktop may ask the user meanwhile, as long
    /// as `go_on` returns `true`.
    ///
    /// # Errors
    /// Fails if there is no such portal, or the user or the desktop refuses.
    pub fn bind(bindings: &Bindings, go_on: &dyn Fn() -> bool) -> Result<Shortcuts, DisplayError> {
        let bus = connect(&Arc::default()).map_err(|trouble| refused(trouble.to_string()))?;
        wait_for_portal(&bus, go_on)?;
        let (waker, heard) = listen(&bus).map_err(|error| refused(error.to_string()))?;
        let asking = Asking { bus: &bus, heard: &heard, go_on };
        let tokens = [("session_handle_token", Value::from("tipme_session"))];
        let mut created = asking.ask(
            "CreateSession",
            "tipme_create",
            |options| (options,),
            HashMap::from(tokens),
        )?;
        let session =
            created.remove("session_handle").and_then(|handle| String::try_from(handle).ok());
        let session = session.and_then(|path| OwnedObjectPath::try_from(path).ok());
        let session = session.ok_or_else(|| refused("the portal opened no session".to_owned()))?;
        let wanted: Vec<_> =
            bindings.0.iter().map(|(action, chord)| wanted(*action, &chord.to_string())).collect();
        let mut bound = asking.ask(
            "BindShortcuts",
            "tipme_bind",
            |options| (session.as_ref(), wanted, "", options),
            HashMap::new(),
        )?;
        let mark =
            bound.remove("shortcuts").and_then(|shortcuts| key_of(shortcuts, HotKeyAction::Mark));
        Ok(Shortcuts { heard, waker, session, mark, _bus: bus })
    }

    /// The desktop's name of the key for a mark, if it reports one.
    pub fn mark_key(&self) -> Option<&str> {
        self.mark.as_deref()
    }

    /// Ends a wait in [`Shortcuts::next`].
    pub fn waker(&self) -> impl Fn() + Send + 'static {
        let waker = self.waker.clone();
        // A full queue of signals ends the wait as well.
        move || drop(waker.try_send(None))
    }

    /// Waits for a shortcut or for the waker.
    ///
    /// # Errors
    /// Fails if the desktop revokes the shortcuts.
    pub fn next(&self) -> Result<Option<HotKeyAction>, DisplayError> {
        let Ok(Some(message)) = self.heard.recv() else { return Ok(None) };
        let header = message.header();
        match header.member().map(|member| member.as_str()) {
            Some("Activated") => Ok(self.action(&message)),
            Some("Closed") if header.path().is_some_and(|path| *path == self.session.as_ref()) => {
                Err(refused("the desktop revoked its shortcuts; restart the agent".to_owned()))
            }
            _ => Ok(None),
        }
    }

    fn action(&self, message: &Message) -> Option<HotKeyAction> {
        let (session, id, _, _): (OwnedObjectPath, String, u64, Results) =
            message.body().deserialize().ok()?;
        HotKeyAction::named(&id).filter(|_| session == self.session)
    }
}

/// A pending request.
struct Asking<'a> {
    bus: &'a Connection,
    heard: &'a Receiver<Heard>,
    go_on: &'a dyn Fn() -> bool,
}

impl Asking<'_> {
    /// Calls a method that returns a request, and waits for its response signal.
    fn ask<'b, B>(
        &self,
        method: &'static str,
        token: &'static str,
        body: impl FnOnce(HashMap<&'static str, Value<'b>>) -> B,
        mut options: HashMap<&'static str, Value<'b>>,
    ) -> Result<Results, DisplayError>
    where
        B: serde::Serialize + zvariant::DynamicType,
    {
        options.insert("handle_token", Value::from(token));
        let reply =
            self.bus.call_method(Some(NAME), OBJECT, Some(SHORTCUTS), method, &body(options));
        let request = reply.and_then(|reply| reply.body().deserialize::<OwnedObjectPath>());
        self.answer(&request.map_err(|error| refused(plain(&error.to_string(), WORDS_MAX)))?)
    }

    fn answer(&self, request: &OwnedObjectPath) -> Result<Results, DisplayError> {
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        while Instant::now() < deadline && (self.go_on)() {
            let Ok(Some(message)) = self.heard.recv_timeout(POLL_INTERVAL) else { continue };
            let header = message.header();
            let fits = header.member().is_some_and(|member| member == "Response");
            if !fits || header.path().is_none_or(|path| *path != request.as_ref()) {
                continue;
            }
            let answer = message.body().deserialize::<(u32, Results)>();
            return match answer.map_err(|error| refused(error.to_string()))? {
                (0, results) => Ok(results),
                (1, _) => Err(refused("the user refused".to_owned())),
                _ => Err(refused("the desktop refused".to_owned())),
            };
        }
        Err(refused("no answer from the desktop".to_owned()))
    }
}

fn refused(reason: String) -> DisplayError {
    DisplayError::NoShortcuts { reason }
}

/// Receives all signals of the portal, including those that arrive before anybody waits for them.
fn listen(bus: &Connection) -> Result<(SyncSender<Heard>, Receiver<Heard>), zbus::Error> {
    let rule = MatchRule::builder().msg_type(Type::Signal).sender(NAME)?.build();
    let signals = MessageIterator::for_match_rule(rule, bus, Some(SIGNALS_MAX))?;
    let (sender, heard) = sync_channel(SIGNALS_MAX);
    let waker = sender.clone();
    std::thread::spawn(move || {
        for signal in signals.flatten() {
            if sender.try_send(Some(signal)).is_err() {
                eprintln!("tipme: too many shortcuts were pressed at once; press again");
            }
        }
    });
    Ok((waker, heard))
}

/// Returns a shortcut in the portal's form: its description and its key.
fn wanted(
    action: HotKeyAction,
    chord: &str,
) -> (&'static str, HashMap<&'static str, Value<'static>>) {
    let described = [
        ("description", Value::from(format!("tipme: {}", action.purpose()))),
        ("preferred_trigger", Value::from(trigger(chord))),
    ];
    (action.name(), HashMap::from(described))
}

/// Returns a chord in the form of the shortcuts specification: `CTRL+ALT+minus`, `LOGO+F12`.
fn trigger(chord: &str) -> String {
    let chord = chord.to_lowercase();
    let (held, key) = chord.rsplit_once('+').unwrap_or(("", &chord));
    let function = key.len() > 1
        && key.starts_with('f')
        && key[1..].chars().all(|digit| digit.is_ascii_digit());
    let key = if function { key.to_uppercase() } else { key.to_owned() };
    let modifiers = held.split('+').filter(|name| !name.is_empty()).map(|name| match name {
        "ctrl" | "control" => "CTRL",
        "alt" => "ALT",
        "shift" => "SHIFT",
        _ => "LOGO",
    });
    modifiers.chain([key.as_str()]).collect::<Vec<_>>().join("+")
}

/// Returns the desktop's name of the key of an action.
fn key_of(shortcuts: OwnedValue, action: HotKeyAction) -> Option<String> {
    let shortcuts: Vec<(String, Results)> = shortcuts.try_into().ok()?;
    let (_, mut described) = shortcuts.into_iter().find(|(id, _)| id == action.name())?;
    let key = String::try_from(described.remove("trigger_description")?).ok()?;
    Some(plain(&key, WORDS_MAX)).filter(|key| !key.is_empty())
}

/// Waits for a portal that does not answer yet: a backend that hangs at login delays it by 25 s.
///
/// # Errors
/// Fails if it has not answered after [`START_TIMEOUT`].
fn wait_for_portal(bus: &Connection, go_on: &dyn Fn() -> bool) -> Result<(), DisplayError> {
    let deadline = Instant::now() + START_TIMEOUT;
    while go_on() && is_silent(&version(bus)) {
        if Instant::now() >= deadline {
            return Err(refused(format!("the portal did not answer within {START_TIMEOUT:?}")));
        }
    }
    Ok(())
}

/// Returns `true` if the desktop binds shortcuts by the portal, even if the portal does not answer
/// yet; asks the user nothing.
pub fn is_offered() -> bool {
    let Ok(bus) = connect(&Arc::default()) else { return false };
    let version = version(&bus);
    version.is_ok() || is_silent(&version)
}

fn version(bus: &Connection) -> zbus::Result<Message> {
    let property = (SHORTCUTS, "version");
    bus.call_method(Some(NAME), OBJECT, Some("org.freedesktop.DBus.Properties"), "Get", &property)
}

fn is_silent(answer: &zbus::Result<Message>) -> bool {
    let Err(zbus::Error::InputOutput(error)) = answer else { return false };
    error.kind() == std::io::ErrorKind::TimedOut
}

/// Returns `true` in a Wayland session.
pub fn is_wayland() -> bool {
    std::env::var_os("WAYLAND_DISPLAY").is_some_and(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_named_as_the_specification_has_them() {
        let triggers = ["Ctrl+Alt+Minus", "super+f12", "F9", "Ctrl+Shift+F"].map(trigger);
        assert_eq!(triggers, ["CTRL+ALT+minus", "LOGO+F12", "F9", "CTRL+SHIFT+f"]);
    }
}
