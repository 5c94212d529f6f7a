// SPDX-License-Identifier: MIT OR Apache-2.0
//! Desktop notifications over the session's message bus, and their events: buttons, closing,
//! another server.
//!
//! The capabilities of a server are queried once, and again when another server takes its name.
//! They determine buttons, escaping of markup and replacement (`notify/server.rs`).
//!
//! Nothing here blocks its caller for long: opening the connection and each call have [`TIMEOUT`],
//! and a daemon that did not answer is not called again for [`REST`].

mod server;

use crate::error::DisplayError;
use crate::plain::{notified, plain};
use server::{NAME, NotificationServer, OBJECT};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zbus::blocking::{Connection, MessageIterator, connection::Builder};
use zbus::zvariant::Value;
use zbus::{MatchRule, Message, message::Type};

/// Maximum time for the daemon to answer: a stopped daemon never does.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time without calls after a daemon did not answer.
const REST: Duration = Duration::from_secs(30);
/// Time for which a notification stays, if the daemon honours it: the user reads some sentences.
const SHOWN_MS: i32 = 20_000;
/// Maximum lengths of a summary and of a body, in characters.
const SUMMARY_MAX: usize = 120;
const BODY_MAX: usize = 600;
/// Maximum number of unread signals of the daemon.
const SIGNALS_MAX: usize = 32;

const BUS: &str = "org.freedesktop.DBus";

/// Key of the action that a click on the notification itself invokes.
pub const DEFAULT_ACTION: &str = "default";

/// A notification to show. Its text may contain anything: markup characters are shown literally.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Note<'a> {
    /// Notification to replace; zero for none.
    pub replaces: u32,
    pub summary: &'a str,
    pub body: &'a str,
    /// Buttons: their keys and labels. See [`DEFAULT_ACTION`].
    pub actions: &'a [(&'a str, &'a str)],
    /// Text that is added to the body if the server has no actions.
    pub without_actions: &'a str,
    /// The server need not keep it once it has left the screen.
    pub transient: bool,
}

/// News from the notification server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotificationEvent {
    /// A button of a notification was pressed.
    Pressed { id: u32, key: String },
    /// A notification has left the screen and is not kept.
    Closed { id: u32 },
    /// A server appeared, ended or was replaced: notification numbers are no longer valid.
    ServerChanged,
}

/// The server, as far as it is known.
#[derive(Default)]
struct KnownServer {
    server: Option<NotificationServer>,
    /// Time before which it is not called.
    rests_until: Option<Instant>,
}

type SharedServer = Arc<Mutex<KnownServer>>;

fn lock(known: &SharedServer) -> MutexGuard<'_, KnownServer> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows notifications.
pub struct Notifier {
    bus: Option<Connection>,
    events: SyncSender<NotificationEvent>,
    known: SharedServer,
    /// A thread still tries to connect, though nobody waits for it any more: there is at most one.
    connecting: Arc<AtomicBool>,
}

impl Notifier {
    /// Sends events to `events`; an overflow is lost and reported on stderr.
    pub fn new(events: SyncSender<NotificationEvent>) -> Notifier {
        Notifier { bus: None, events, known: SharedServer::default(), connecting: Arc::default() }
    }

    /// Shows a notification; returns its number once the server has accepted it.
    ///
    /// # Errors
    /// Fails if there is no session bus, no server, or no answer.
    pub fn show(&mut self, note: &Note<'_>) -> Result<u32, DisplayError> {
        self.ask(&|bus, server| call(bus, server, note))
    }

    /// Removes a notification from the screen.
    ///
    /// # Errors
    /// Fails if there is no session bus, no server, or no answer.
    pub fn close(&mut self, id: u32) -> Result<(), DisplayError> {
        self.ask(&|bus, _| close(bus, id))
    }

    fn ask<T>(&mut self, request: &Request<'_, T>) -> Result<T, DisplayError> {
        if lock(&self.known).rests_until.is_some_and(|until| Instant::now() < until) {
            return Err(Trouble::Silent.into_error());
        }
        let answer = self.try_to_ask(request);
        if let Err(Trouble::Silent) = answer {
            lock(&self.known).rests_until = Some(Instant::now() + REST);
        }
        answer.map_err(Trouble::into_error)
    }

    /// Retries once if the bus has ended since the last call.
    fn try_to_ask<T>(&mut self, request: &Request<'_, T>) -> Result<T, Trouble> {
        let had = self.bus.is_some();
        let line = self.line()?;
        match self.ask_server(&line, request) {
            Err(zbus::Error::InputOutput(error))
                if had && error.kind() != std::io::ErrorKind::TimedOut =>
            {
                self.bus = None;
                *lock(&self.known) = KnownServer::default();
                let line = self.line()?;
                self.ask_server(&line, request).map_err(trouble)
            }
            answer => answer.map_err(trouble),
        }
    }

    fn ask_server<T>(&self, bus: &Connection, request: &Request<'_, T>) -> Result<T, zbus::Error> {
        let known = lock(&self.known).server.clone();
        let server = match known {
            Some(server) => server,
            None => {
                let server = NotificationServer::ask(bus)?;
                lock(&self.known).server.insert(server).clone()
            }
        };
        request(bus, &server)
    }

    fn line(&mut self) -> Result<Connection, Trouble> {
        if let Some(bus) = &self.bus {
            return Ok(bus.clone());
        }
        let bus = connect(&self.connecting)?;
        listen(&bus, &self.events, &self.known).map_err(trouble)?;
        Ok(self.bus.insert(bus).clone())
    }
}

/// A request to a server over the bus.
type Request<'a, T> = dyn Fn(&Connection, &NotificationServer) -> Result<T, zbus::Error> + 'a;

/// Returns name and version of the notification server of this session.
///
/// # Errors
/// Fails if there is none, or no answer.
pub fn daemon() -> Result<String, DisplayError> {
    described(connect(&Arc::default()))
}

/// Returns the same for the bus at an address.
///
/// # Errors
/// Fails if there is none, or no answer.
pub fn daemon_at(address: &str) -> Result<String, DisplayError> {
    let address = address.to_owned();
    described(connect_by(&Arc::default(), move || Builder::address(address.as_str())))
}

fn described(bus: Result<Connection, Trouble>) -> Result<String, DisplayError> {
    let asked = bus.and_then(|bus| NotificationServer::ask(&bus).map_err(trouble));
    asked.map(|server| server.described()).map_err(Trouble::into_error)
}

/// Reason of a failed notification.
pub(crate) enum Trouble {
    /// No answer in time.
    Silent,
    Other(String),
}

impl Trouble {
    fn into_error(self) -> DisplayError {
        let reason = match self {
            Trouble::Silent => format!(
                "the notification daemon did not answer within {TIMEOUT:?}; \
                 check whether it hangs"
            ),
            Trouble::Other(reason) => reason,
        };
        DisplayError::NoNotification { reason }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Silent => {
                f.write_str("the session bus did not answer; check whether it hangs")
            }
            Trouble::Other(why) => f.write_str(why),
        }
    }
}

fn trouble(error: zbus::Error) -> Trouble {
    match error {
        zbus::Error::InputOutput(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            Trouble::Silent
        }
        zbus::Error::MethodError(name, said, _) => {
            let said = plain(said.as_deref().unwrap_or_default(), BODY_MAX);
            Trouble::Other(format!(
                "{NAME}: {name}: {said}; check whether a notification daemon is running"
            ))
        }
        other => Trouble::Other(format!(
            "the session bus: {other}; restart the agent from within the session"
        )),
    }
}

/// Fails if no session bus is named: otherwise a new, empty one would be started.
pub(crate) fn connect(connecting: &Arc<AtomicBool>) -> Result<Connection, Trouble> {
    let named =
        std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some_and(|address| !address.is_empty());
    let usual = std::env::var_os("XDG_RUNTIME_DIR")
        .is_some_and(|folder| Path::new(&folder).join("bus").exists());
    if !named && !usual {
        let why = "there is no session bus: DBUS_SESSION_BUS_ADDRESS is not set; \
                   start the agent from within the session";
        return Err(Trouble::Other(why.to_owned()));
    }
    connect_by(connecting, Builder::session)
}

/// Connects within [`TIMEOUT`].
fn connect_by(
    connecting: &Arc<AtomicBool>,
    builder: impl FnOnce() -> zbus::Result<Builder<'static>> + Send + 'static,
) -> Result<Connection, Trouble> {
    if connecting.swap(true, Ordering::AcqRel) {
        return Err(Trouble::Silent);
    }
    let ((sender, opened), connecting) = (mpsc::sync_channel(1), Arc::clone(connecting));
    std::thread::spawn(move || {
        let bus = builder().and_then(|bus| bus.method_timeout(TIMEOUT).build());
        connecting.store(false, Ordering::Release);
        // If nobody waits any more, the connection ends here.
        drop(sender.send(bus));
    });
    opened.recv_timeout(TIMEOUT).map_err(|_| Trouble::Silent)?.map_err(trouble)
}

/// Reports buttons, closed notifications and changes of the server until the connection ends.
fn listen(
    bus: &Connection,
    events: &SyncSender<NotificationEvent>,
    known: &SharedServer,
) -> Result<(), zbus::Error> {
    let rule = MatchRule::builder()
        .msg_type(Type::Signal)
        .sender(NAME)?
        .interface(NAME)?
        .path(OBJECT)?
        .build();
    let signals = MessageIterator::for_match_rule(rule, bus, Some(SIGNALS_MAX))?;
    let sender = events.clone();
    std::thread::spawn(move || {
        signals.flatten().filter_map(|signal| event(&signal)).for_each(|one| send(&sender, one))
    });
    let rule = MatchRule::builder()
        .msg_type(Type::Signal)
        .sender(BUS)?
        .interface(BUS)?
        .member("NameOwnerChanged")?;
    let changes =
        MessageIterator::for_match_rule(rule.arg(0, NAME)?.build(), bus, Some(SIGNALS_MAX))?;
    let (sender, known) = (events.clone(), Arc::clone(known));
    std::thread::spawn(move || {
        for _ in changes.flatten() {
            *lock(&known) = KnownServer::default();
            send(&sender, NotificationEvent::ServerChanged);
        }
    });
    Ok(())
}

fn event(signal: &Message) -> Option<NotificationEvent> {
    match signal.header().member()?.as_str() {
        "ActionInvoked" => {
            let (id, key) = signal.body().deserialize().ok()?;
            Some(NotificationEvent::Pressed { id, key })
        }
        "NotificationClosed" => {
            let (id, _): (u32, u32) = signal.body().deserialize().ok()?;
            Some(NotificationEvent::Closed { id })
        }
        _ => None,
    }
}

fn send(events: &SyncSender<NotificationEvent>, event: NotificationEvent) {
    if events.try_send(event).is_err() {
        eprintln!("tipme: too many buttons were pressed at once; press again");
    }
}

fn call(
    bus: &Connection,
    server: &NotificationServer,
    note: &Note<'_>,
) -> Result<u32, zbus::Error> {
    let actions: &[(&str, &str)] = if server.has_actions { note.actions } else { &[] };
    let without_actions = if server.has_actions { "" } else { note.without_actions };
    let body = [note.body, without_actions]
        .map(|text| notified(text, BODY_MAX, server.has_body_markup))
        .concat();
    let summary = notified(note.summary, SUMMARY_MAX, false);
    let labels = labels(actions, server);
    let mut hints = HashMap::from([("desktop-entry", Value::from("tipme-agent"))]);
    if !actions.is_empty() {
        // Servers that honour it keep the notification after one of its actions.
        hints.insert("resident", Value::from(true));
    }
    if note.transient {
        hints.insert("transient", Value::from(true));
    }
    let mut replaces = note.replaces;
    if replaces != 0 && !server.updates_in_place() {
        close(bus, replaces)?;
        replaces = 0;
    }
    let words = ("tipme", replaces, "", summary.as_str(), body.as_str(), labels, hints, SHOWN_MS);
    bus.call_method(Some(NAME), OBJECT, Some(NAME), "Notify", &words)?.body().deserialize()
}

/// Returns keys and labels of the actions, in the form of the protocol.
fn labels<'a>(actions: &[(&'a str, &'a str)], server: &NotificationServer) -> Vec<&'a str> {
    let drawn =
        actions.iter().filter(|(key, _)| *key != DEFAULT_ACTION || server.has_default_action());
    drawn.flat_map(|(key, label)| [*key, *label]).collect()
}

/// Closes a notification; one that is gone already is no error.
fn close(bus: &Connection, id: u32) -> Result<(), zbus::Error> {
    match bus.call_method(Some(NAME), OBJECT, Some(NAME), "CloseNotification", &id) {
        Ok(_) | Err(zbus::Error::MethodError(..)) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_did_not_answer_is_not_called_for_a_while() {
        let mut notifier = Notifier::new(mpsc::sync_channel(1).0);
        lock(&notifier.known).rests_until = Some(Instant::now() + REST);
        let error = notifier.show(&Note::default()).expect_err("it rests").to_string();
        assert!(error.contains("did not answer"), "{error}");
    }

    #[test]
    fn a_server_that_would_draw_the_default_action_does_not_get_it() {
        let actions = [("details", "Details"), (DEFAULT_ACTION, "Open the page")];
        let all = ["details", "Details", DEFAULT_ACTION, "Open the page"];
        assert_eq!(labels(&actions, &NotificationServer::named("dunst")), all);
        assert_eq!(labels(&actions, &NotificationServer::named("Xfce Notify Daemon")), all[..2]);
    }

    #[test]
    fn errors_name_the_remedy() {
        let other = trouble(zbus::Error::InvalidReply).into_error().to_string();
        assert!(other.contains("restart the agent"), "{other}");
        let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
        assert!(matches!(trouble(zbus::Error::InputOutput(late.into())), Trouble::Silent));
    }
}
