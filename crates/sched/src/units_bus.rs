// SPDX-License-Identifier: MIT OR Apache-2.0
//! D-Bus connections to systemd: reads and sets properties of units, starts scopes.
//!
//! The system manager is on the system bus, a user's manager on the bus of that user. A user bus
//! serves only its own user, not even root. Root therefore connects as that user, in a thread that
//! has the user's id for this one call. Peer credentials show whether the other end belongs to the
//! right user. (The managers' own sockets, `systemd/private`, are unusable: zbus rejects the name
//! with which systemd signs its messages there.)
//!
//! No call here blocks the caller for long. Opening a connection and each call are bounded by
//! [`TIMEOUT`]; consecutive calls share a [`CREDIT`], which idle time replenishes, and a call
//! beyond it is deferred. A manager that did not answer is not called for [`REST`], except once
//! more for a restore, which is bounded by [`RESTORE_TIME_MAX`] in total.
//!
//! `ETIMEDOUT` means that a manager got the request and may still execute it; `ENOTCONN` means that
//! the request was never sent.

use crate::units_names::{Property, ServiceManager, Unit};
use crate::world::{KnobFault, fault};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use zbus::blocking::Connection;
use zbus::blocking::connection::Builder;
use zbus::zvariant::{DynamicType, OwnedValue, Value};

/// Timeout of one call, and of opening a connection.
const TIMEOUT: Duration = Duration::from_millis(1_500);
/// Total time for consecutive calls.
const CREDIT: Duration = Duration::from_millis(500);
/// Time without calls after a manager did not answer.
const REST: Duration = Duration::from_secs(60);
/// Total time for calls during a restore.
const RESTORE_TIME_MAX: Duration = Duration::from_secs(10);
/// Time within which a late scope may still appear: above systemd's default job timeout of 90 s.
const LATE: Duration = Duration::from_secs(120);
/// Maximum number of connections that hang while they are opened; each occupies a thread.
const HANGING_MAX: usize = 4;
/// Oldest systemd version with all required functions.
const VERSION_MIN: u32 = 238;

const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const OBJECT: &str = "/org/freedesktop/systemd1";
const DESTINATION: &str = "org.freedesktop.systemd1";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// Connections to the managers.
pub(crate) struct Bus {
    /// Folder of the sockets, `/run`.
    run: PathBuf,
    state: RefCell<BusState>,
    /// Requested scopes that did not appear within the timeout, each with the time at which we
    /// stopped waiting.
    late: RefCell<BTreeMap<String, Instant>>,
}

struct BusState {
    lines: BTreeMap<ServiceManager, Connection>,
    /// Duration of the last calls, minus the idle time between them.
    spent: Duration,
    last: Instant,
    /// Time before which each unresponsive manager is not called.
    closed: BTreeMap<ServiceManager, Instant>,
    /// Deadline for calls during a restore.
    until: Option<Instant>,
    /// Held once for each connection being opened, including abandoned ones.
    opening: Arc<()>,
}

impl Bus {
    pub(crate) fn new(run: &Path) -> Bus {
        let state = BusState {
            lines: BTreeMap::new(),
            spent: Duration::ZERO,
            last: Instant::now(),
            closed: BTreeMap::new(),
            until: None,
            opening: Arc::default(),
        };
        Bus { run: run.to_owned(), state: RefCell::new(state), late: RefCell::default() }
    }

    /// Reads a property of a unit; -1 is "not set" and "infinity".
    pub(crate) fn get(&self, unit: &Unit, property: Property) -> Result<i64, KnobFault> {
        let body = (unit.interface(), property.name());
        let number =
            self.call(unit.service_manager, &unit.object(), PROPERTIES, "Get", &body, number)?;
        Ok(number.try_into().unwrap_or(-1))
    }

    /// Sets a property until the next boot.
    pub(crate) fn set(
        &self,
        unit: &Unit,
        property: Property,
        number: i64,
    ) -> Result<(), KnobFault> {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        let body = (unit.name.as_str(), true, vec![(property.name(), Value::from(number))]);
        self.call(unit.service_manager, OBJECT, MANAGER, "SetUnitProperties", &body, |_| Some(()))
    }

    /// Starts a scope with this process. The scope appears some moments later.
    pub(crate) fn start(&self, unit: &Unit, pid: u32) -> Result<(), KnobFault> {
        let properties = vec![
            ("Description", Value::from("processes that tipme weighs together")),
            ("Slice", Value::from(unit.slice.as_str())),
            // Allows us to add processes ourselves.
            ("Delegate", Value::from(true)),
            ("CollectMode", Value::from("inactive-or-failed")),
            ("PIDs", Value::from(vec![pid])),
        ];
        let others: Vec<(&str, Vec<(&str, Value<'_>)>)> = Vec::new();
        let body = (unit.name.as_str(), "fail", properties, others);
        self.call(unit.service_manager, OBJECT, MANAGER, "StartTransientUnit", &body, |_| Some(()))
    }

    /// Opens the connection in advance of the next call.
    pub(crate) fn open(&self, service_manager: ServiceManager) -> Result<(), KnobFault> {
        self.ask(service_manager, |_| Ok(()))
    }

    /// Gives up on a scope that did not appear; its manager is not called for a while.
    pub(crate) fn give_up(&self, unit: &Unit, folder: &str) {
        let now = Instant::now();
        self.state.borrow_mut().closed.insert(unit.service_manager, now + REST);
        let mut late = self.late.borrow_mut();
        late.retain(|_, since| now < *since + LATE);
        late.insert(folder.to_owned(), now);
    }

    /// Returns `true` if a missing scope may still appear.
    pub(crate) fn is_late(&self, folder: &str) -> bool {
        self.late.borrow().get(folder).is_some_and(|since| since.elapsed() < LATE)
    }

    /// Starts a restore: all managers get a new chance, within a bounded time.
    pub(crate) fn begin_restore(&self) {
        let mut state = self.state.borrow_mut();
        state.closed.clear();
        state.spent = Duration::ZERO;
        state.until = Some(Instant::now() + RESTORE_TIME_MAX);
    }

    /// Ends a restore.
    pub(crate) fn end_restore(&self) {
        self.state.borrow_mut().until = None;
    }

    /// Returns the reason why this manager is unusable; `None` if it is usable.
    pub(crate) fn defect(&self, service_manager: ServiceManager) -> Option<String> {
        let name = match service_manager {
            ServiceManager::System => "systemd".to_owned(),
            ServiceManager::User(uid) => format!("the systemd of user {uid}"),
        };
        match self.call(service_manager, OBJECT, PROPERTIES, "Get", &(MANAGER, "Version"), string) {
            Ok(text) => match version(&text) {
                Some(number) if number >= VERSION_MIN => None,
                Some(number) => {
                    Some(format!("{name} has version {number}; it must be {VERSION_MIN} or newer"))
                }
                None => Some(format!("{name} reports version {text:?}, which is not a number")),
            },
            Err(KnobFault::Vanished) => {
                Some(format!("{name} has no message bus here; start one, or use another backend"))
            }
            Err(KnobFault::Later) => Some(format!("{name} answers too slowly")),
            Err(KnobFault::Refused(code)) => {
                let why = std::io::Error::from_raw_os_error(code);
                Some(format!("{name} does not answer: {why}"))
            }
        }
    }

    fn call<B, T>(
        &self,
        service_manager: ServiceManager,
        path: &str,
        interface: &str,
        method: &str,
        body: &B,
        read: impl Fn(&zbus::Message) -> Option<T>,
    ) -> Result<T, KnobFault>
    where
        B: Serialize + DynamicType,
    {
        let reply = self.ask(service_manager, |line| {
            line.call_method(Some(DESTINATION), path, Some(interface), method, body)
                .map_err(translate)
        })?;
        read(&reply).ok_or(KnobFault::Refused(libc::EPROTO))
    }

    /// Runs `work` with a connection, which is opened if necessary. A restarted manager closes its
    /// connections, so a broken one is reopened once.
    fn ask<T>(
        &self,
        service_manager: ServiceManager,
        work: impl Fn(&Connection) -> Result<T, KnobFault>,
    ) -> Result<T, KnobFault> {
        let mut state = self.state.borrow_mut();
        let begun = Instant::now();
        state.admit(service_manager, begun)?;
        let known = state.lines.contains_key(&service_manager);
        let mut outcome = state.line(&self.run, service_manager).and_then(&work);
        if known && matches!(outcome, Err(KnobFault::Refused(libc::ENOTCONN))) {
            state.lines.remove(&service_manager);
            outcome = state.line(&self.run, service_manager).and_then(&work);
        }
        state.note(service_manager, begun, outcome.as_ref().err());
        outcome
    }
}

impl BusState {
    fn admit(&mut self, service_manager: ServiceManager, now: Instant) -> Result<(), KnobFault> {
        self.closed.retain(|_, until| now < *until);
        if self.closed.contains_key(&service_manager)
            || self.until.is_some_and(|until| now >= until)
        {
            return Err(KnobFault::Refused(libc::ENOTCONN));
        }
        self.spent = self.spent.saturating_sub(now.saturating_duration_since(self.last));
        self.last = now;
        if self.spent >= CREDIT { Err(KnobFault::Later) } else { Ok(()) }
    }

    fn note(&mut self, service_manager: ServiceManager, begun: Instant, fault: Option<&KnobFault>) {
        self.last = Instant::now();
        self.spent += begun.elapsed();
        if matches!(fault, Some(KnobFault::Refused(code)) if is_down(*code)) {
            self.lines.remove(&service_manager);
            self.closed.insert(service_manager, self.last + REST);
        }
    }

    fn line(
        &mut self,
        run: &Path,
        service_manager: ServiceManager,
    ) -> Result<&Connection, KnobFault> {
        if !self.lines.contains_key(&service_manager) {
            let line = self.open(run, service_manager)?;
            self.lines.insert(service_manager, line);
        }
        self.lines.get(&service_manager).ok_or(KnobFault::Refused(libc::ENOTCONN))
    }

    fn open(
        &mut self,
        run: &Path,
        service_manager: ServiceManager,
    ) -> Result<Connection, KnobFault> {
        match service_manager {
            ServiceManager::System => self.connect(run.join("dbus/system_bus_socket"), None),
            ServiceManager::User(uid) => {
                self.connect(run.join(format!("user/{uid}/bus")), Some(uid))
            }
        }
    }

    fn opening_count(&self) -> usize {
        Arc::strong_count(&self.opening) - 1
    }

    /// Opens a connection in a thread of its own, which is abandoned if it hangs.
    fn connect(&mut self, path: PathBuf, user: Option<u32>) -> Result<Connection, KnobFault> {
        let opening = Arc::clone(&self.opening);
        if self.opening_count() > HANGING_MAX {
            return Err(KnobFault::Refused(libc::ENOTCONN));
        }
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name("bus".to_owned()).spawn(move || {
            let line = connect(path, user);
            drop(opening);
            // If the receiver is gone, the connection is dropped here.
            sender.send(line).ok();
        });
        thread.map_err(fault)?;
        match receiver.recv_timeout(TIMEOUT) {
            Ok(Err(KnobFault::Refused(libc::ETIMEDOUT))) | Err(_) => {
                Err(KnobFault::Refused(libc::ENOTCONN))
            }
            Ok(line) => line,
        }
    }
}

/// Returns `true` for an error that means an unreachable manager.
pub(crate) fn is_down(code: i32) -> bool {
    [libc::ETIMEDOUT, libc::ENOTCONN, libc::ECONNREFUSED].contains(&code)
}

/// Connects to a message bus; to that of a user as that user.
fn connect(path: PathBuf, user: Option<u32>) -> Result<Connection, KnobFault> {
    let stream = match user {
        Some(uid) if rustix::process::geteuid().as_raw() != uid => connect_as(path, uid)?,
        _ => UnixStream::connect(path).map_err(fault)?,
    };
    let peer =
        rustix::net::sockopt::socket_peercred(&stream).map_err(|error| fault(error.into()))?;
    if user.is_some_and(|uid| peer.uid.as_raw() != uid) {
        return Err(KnobFault::Refused(libc::EPERM));
    }
    let builder = Builder::async_io_unix_stream(stream).method_timeout(TIMEOUT);
    let builder = user.into_iter().fold(builder, Builder::user_id);
    builder.build().map_err(translate)
}

/// Connects in a thread that temporarily has the user's effective id. The raw system call changes
/// only its own thread, unlike that of the C library; the real user stays, so that no other user
/// may signal the thread.
fn connect_as(path: PathBuf, uid: u32) -> Result<UnixStream, KnobFault> {
    let thread = std::thread::Builder::new().name("bus of a user".to_owned()).spawn(move || {
        // SAFETY: the call takes numbers only.
        match unsafe { libc::syscall(libc::SYS_setresuid, -1, uid, -1) } {
            0 => UnixStream::connect(path),
            _ => Err(std::io::Error::last_os_error()),
        }
    });
    thread.map_err(fault)?.join().map_err(|_| KnobFault::Refused(libc::EIO))?.map_err(fault)
}

/// Translates a bus error into a fault.
fn translate(error: zbus::Error) -> KnobFault {
    match error {
        zbus::Error::InputOutput(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            KnobFault::Refused(libc::ETIMEDOUT)
        }
        zbus::Error::InputOutput(_) => KnobFault::Refused(libc::ENOTCONN),
        zbus::Error::Handshake(_) => KnobFault::Refused(libc::EACCES),
        zbus::Error::MethodError(name, ..) => by_name(name.as_str()),
        _ => KnobFault::Refused(libc::EPROTO),
    }
}

fn by_name(name: &str) -> KnobFault {
    match name.rsplit('.').next().unwrap_or_default() {
        "NoSuchUnit" | "UnknownObject" | "NoSuchProcess" => KnobFault::Vanished,
        "NoReply" | "Timeout" | "TimedOut" => KnobFault::Refused(libc::ETIMEDOUT),
        "Disconnected" | "ServiceUnknown" | "NameHasNoOwner" => KnobFault::Refused(libc::ENOTCONN),
        "AccessDenied" | "InteractiveAuthorizationRequired" => KnobFault::Refused(libc::EACCES),
        "UnitExists" => KnobFault::Refused(libc::EEXIST),
        "UnknownProperty" | "UnknownMethod" | "PropertyReadOnly" => {
            KnobFault::Refused(libc::EOPNOTSUPP)
        }
        _ => KnobFault::Refused(libc::EINVAL),
    }
}

fn number(reply: &zbus::Message) -> Option<u64> {
    u64::try_from(reply.body().deserialize::<OwnedValue>().ok()?).ok()
}

fn string(reply: &zbus::Message) -> Option<String> {
    String::try_from(reply.body().deserialize::<OwnedValue>().ok()?).ok()
}

/// Parses the version in `252.38-1~deb12u1`, `v255` or `systemd 239`.
fn version(text: &str) -> Option<u32> {
    let digits = text.trim_start_matches(|one: char| !one.is_ascii_digit());
    digits.split(|one: char| !one.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
pub(crate) mod tests;
