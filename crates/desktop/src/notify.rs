// SPDX-License-Identifier: MIT OR Apache-2.0
//! Desktop notifications, over the session's message bus, and which of their buttons are pressed.
//!
//! Nothing here holds up its caller for long: opening the connection and each call have [`TIMEOUT`], and a daemon that
//! did not answer is not asked for [`REST`].

use crate::error::DisplayError;
use crate::plain::plain;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::time::{Duration, Instant};
use zbus::blocking::{Connection, MessageIterator, connection::Builder};
use zbus::zvariant::Value;
use zbus::{MatchRule, message::Type};

/// How long the daemon may take: a daemon that is stopped answers never.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a daemon is not asked that did not answer.
const REST: Duration = Duration::from_secs(30);
/// How long a notification stays, where the daemon lets us choose: some sentences are to be read.
const SHOWN_MS: i32 = 20_000;
/// Letters of a summary and of a body, at most.
const SUMMARY_MAX: usize = 120;
const BODY_MAX: usize = 600;
/// Signals of the daemon that wait to be read, at most.
const SIGNALS_MAX: usize = 32;

const NAME: &str = "org.freedesktop.Notifications";
const OBJECT: &str = "/org/freedesktop/Notifications";

/// What is to be shown. The text may have anything in it but markup: that is shown as letters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Note<'a> {
    /// The notification that it takes the place of; zero for none.
    pub replaces: u32,
    pub summary: &'a str,
    pub body: &'a str,
    /// Buttons: their keys and what stands on them.
    pub actions: &'a [(&'a str, &'a str)],
}

/// A button that was pressed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PressedButton {
    /// Of the notification.
    pub id: u32,
    pub key: String,
}

/// Shows notifications.
pub struct Notifier {
    bus: Option<Connection>,
    pressed: SyncSender<PressedButton>,
    /// The daemon is not asked before.
    rests_until: Option<Instant>,
    /// A thread still tries to connect, though nobody waits for it any more: there is one of these at most.
    connecting: Arc<AtomicBool>,
}

impl Notifier {
    /// Tells `pressed` of buttons; what does not fit there is lost, and said on stderr.
    pub fn new(pressed: SyncSender<PressedButton>) -> Notifier {
        Notifier { bus: None, pressed, rests_until: None, connecting: Arc::default() }
    }

    /// Shows a notification; returns its number once the daemon has taken it.
    ///
    /// # Errors
    /// Where there is no session bus, no daemon, or no answer.
    pub fn show(&mut self, note: &Note<'_>) -> Result<u32, DisplayError> {
        let refused = |reason: String| DisplayError::NoNotification { reason };
        if self.rests_until.is_some_and(|until| Instant::now() < until) {
            return Err(refused(silence()));
        }
        match self.try_to_show(note) {
            Ok(id) => Ok(id),
            Err(Trouble::Silent) => {
                self.rests_until = Some(Instant::now() + REST);
                Err(refused(silence()))
            }
            Err(Trouble::Other(why)) => Err(refused(why)),
        }
    }

    /// A bus that has ended since the last call is looked for once more.
    fn try_to_show(&mut self, note: &Note<'_>) -> Result<u32, Trouble> {
        let had = self.bus.is_some();
        let line = self.line()?;
        match call(&line, note) {
            Err(zbus::Error::InputOutput(error)) if had && error.kind() != std::io::ErrorKind::TimedOut => {
                self.bus = None;
                let line = self.line()?;
                call(&line, note).map_err(trouble)
            }
            shown => shown.map_err(trouble),
        }
    }

    fn line(&mut self) -> Result<Connection, Trouble> {
        if let Some(bus) = &self.bus {
            return Ok(bus.clone());
        }
        let bus = connect(&self.connecting)?;
        listen(&bus, self.pressed.clone()).map_err(trouble)?;
        Ok(self.bus.insert(bus).clone())
    }
}

/// The daemon that shows notifications in this session, as it calls itself.
///
/// # Errors
/// Where there is none, or no answer.
pub fn daemon() -> Result<String, DisplayError> {
    let asked = connect(&Arc::default()).and_then(|bus| {
        let reply = bus.call_method(Some(NAME), OBJECT, Some(NAME), "GetServerInformation", &()).map_err(trouble)?;
        let (name, _, version, _): (String, String, String, String) = reply.body().deserialize().map_err(trouble)?;
        Ok(plain(&format!("{name} {version}"), SUMMARY_MAX))
    });
    asked.map_err(|why| match why {
        Trouble::Silent => DisplayError::NoNotification { reason: silence() },
        Trouble::Other(reason) => DisplayError::NoNotification { reason },
    })
}

/// Why nothing is shown.
pub(crate) enum Trouble {
    /// Nobody answered.
    Silent,
    Other(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Silent => f.write_str("the session bus did not answer; see whether it is stopped"),
            Trouble::Other(why) => f.write_str(why),
        }
    }
}

fn silence() -> String {
    format!("the notification daemon did not answer within {TIMEOUT:?}; see whether it is stopped")
}

fn trouble(error: zbus::Error) -> Trouble {
    match error {
        zbus::Error::InputOutput(error) if error.kind() == std::io::ErrorKind::TimedOut => Trouble::Silent,
        zbus::Error::MethodError(name, said, _) => {
            let said = plain(said.as_deref().unwrap_or_default(), BODY_MAX);
            Trouble::Other(format!("{NAME}: {name}: {said}; see whether a notification daemon runs"))
        }
        other => Trouble::Other(format!("the session bus: {other}; restart the agent from within the session")),
    }
}

/// Fails where no session bus is named: one would be started, with nobody on it.
pub(crate) fn connect(connecting: &Arc<AtomicBool>) -> Result<Connection, Trouble> {
    let named = std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some_and(|address| !address.is_empty());
    let usual = std::env::var_os("XDG_RUNTIME_DIR").is_some_and(|folder| Path::new(&folder).join("bus").exists());
    if !named && !usual {
        let why =
            "there is no session bus: DBUS_SESSION_BUS_ADDRESS is not set; start the agent from within the session";
        return Err(Trouble::Other(why.to_owned()));
    }
    if connecting.swap(true, Ordering::AcqRel) {
        return Err(Trouble::Silent);
    }
    let ((sender, opened), connecting) = (mpsc::sync_channel(1), Arc::clone(connecting));
    std::thread::spawn(move || {
        let bus = Builder::session().and_then(|bus| bus.method_timeout(TIMEOUT).build());
        connecting.store(false, Ordering::Release);
        // Where nobody waits any more, the connection ends here.
        drop(sender.send(bus));
    });
    opened.recv_timeout(TIMEOUT).map_err(|_| Trouble::Silent)?.map_err(trouble)
}

/// Hands on which buttons are pressed, until the connection ends.
fn listen(bus: &Connection, pressed: SyncSender<PressedButton>) -> Result<(), zbus::Error> {
    let rule = MatchRule::builder().msg_type(Type::Signal).sender(NAME)?.interface(NAME)?.path(OBJECT)?;
    let signals = MessageIterator::for_match_rule(rule.member("ActionInvoked")?.build(), bus, Some(SIGNALS_MAX))?;
    std::thread::spawn(move || {
        for signal in signals.flatten() {
            let Ok((id, key)) = signal.body().deserialize::<(u32, String)>() else { continue };
            if pressed.try_send(PressedButton { id, key }).is_err() {
                eprintln!("tipme: too many buttons were pressed at a time; press again");
            }
        }
    });
    Ok(())
}

fn call(bus: &Connection, note: &Note<'_>) -> Result<u32, zbus::Error> {
    let (summary, body) = (plain(note.summary, SUMMARY_MAX), plain(note.body, BODY_MAX));
    let actions: Vec<&str> = note.actions.iter().flat_map(|(key, label)| [*key, *label]).collect();
    // What was shown stays after one of its buttons was pressed, where the daemon knows how.
    let hints = HashMap::from([("resident", Value::from(true)), ("desktop-entry", Value::from("tipme-agent"))]);
    let words = ("tipme", note.replaces, "", summary.as_str(), body.as_str(), actions, hints, SHOWN_MS);
    bus.call_method(Some(NAME), OBJECT, Some(NAME), "Notify", &words)?.body().deserialize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_did_not_answer_is_left_alone_for_a_while() {
        let mut notifier = Notifier::new(mpsc::sync_channel(1).0);
        notifier.rests_until = Some(Instant::now() + REST);
        let error = notifier.show(&Note::default()).expect_err("it rests").to_string();
        assert!(error.contains("did not answer"), "{error}");
    }

    #[test]
    fn errors_name_the_remedy() {
        let why = |error| match trouble(error) {
            Trouble::Silent => "silent".to_owned(),
            Trouble::Other(why) => why,
        };
        assert!(why(zbus::Error::InvalidReply).contains("restart the agent"));
        let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
        assert_eq!(why(zbus::Error::InputOutput(late.into())), "silent");
    }
}
