// SPDX-License-Identifier: MIT OR Apache-2.0
//! Talks with systemd: reads and sets properties of units, starts scopes.
//!
//! The system's manager is on the system's message bus, a user's manager on the bus of that user. Such a bus
//! serves its own user only, not even root. So root connects to it as that user would: in a thread that
//! has the user's number for just this one call. The kernel is asked whether the one at the other
//! end is the user that is meant. (The sockets of the managers themselves, `systemd/private`, are no way: zbus does
//! not accept the name that systemd signs with there.)
//!
//! Nothing here can hold up the caller for long. Opening a connection and each call are bounded by
//! [`TIMEOUT`]; calls that follow one another have [`CREDIT`] in all, which time without calls gives
//! back; who wants more is told to try later. A manager that did not answer is not asked for [`REST`], but once more
//! when everything is taken back, which has [`RESTORE_TIME_MAX`] in all.
//!
//! `ETIMEDOUT` says that a manager was asked and may still do it; whoever was not asked at all, is `ENOTCONN`.

use crate::units_names::{Property, ServiceManager, Unit};
use crate::world::{KnobFault, fault};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use zbus::blocking::Connection;
use zbus::blocking::connection::Builder;
use zbus::zvariant::{DynamicType, OwnedValue, Value};

/// How long one call, or opening a connection, may take.
const TIMEOUT: Duration = Duration::from_millis(1_500);
/// How long calls may take together that follow one another.
const CREDIT: Duration = Duration::from_millis(500);
/// How long a manager is not asked after it did not answer.
const REST: Duration = Duration::from_secs(60);
/// How long calls may be made while everything is taken back.
const RESTORE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a scope may come late: above the 90 s that systemd gives a job by itself.
const LATE: Duration = Duration::from_secs(120);
/// Connections that may hang while they are opened; each keeps a thread.
const HANGING_MAX: usize = 4;
/// The oldest systemd that has all that is needed.
const VERSION_MIN: u32 = 238;

const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const OBJECT: &str = "/org/freedesktop/systemd1";
const DESTINATION: &str = "org.freedesktop.systemd1";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// The connections to the managers that were asked.
pub(crate) struct Bus {
    /// Where the sockets are: /run.
    run: PathBuf,
    state: RefCell<BusState>,
    /// Scopes that were asked for and had not come when nobody waited any longer, with the time of that.
    late: RefCell<BTreeMap<String, Instant>>,
}

struct BusState {
    lines: BTreeMap<ServiceManager, Connection>,
    /// How long the last calls took, less the time that has gone by between them.
    spent: Duration,
    last: Instant,
    /// Who is not asked before.
    closed: BTreeMap<ServiceManager, Instant>,
    /// Nobody is asked after that, while everything is taken back.
    until: Option<Instant>,
    /// Connections that are being opened, also those that nobody waits for any more.
    opening: Arc<AtomicUsize>,
}

/// One connection that is being opened.
struct Opening(Arc<AtomicUsize>);

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
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

    /// A property of a unit; -1 is "not set" and "infinity".
    pub(crate) fn get(&self, unit: &Unit, property: Property) -> Result<i64, KnobFault> {
        let body = (unit.interface(), property.name());
        let number = self.call(unit.service_manager, &unit.object(), PROPERTIES, "Get", &body, number)?;
        Ok(number.try_into().unwrap_or(-1))
    }

    /// Sets a property until the machine stops.
    pub(crate) fn set(&self, unit: &Unit, property: Property, number: i64) -> Result<(), KnobFault> {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        let body = (unit.name.as_str(), true, vec![(property.name(), Value::from(number))]);
        self.call(unit.service_manager, OBJECT, MANAGER, "SetUnitProperties", &body, |_| Some(()))
    }

    /// Has a scope begun that holds this process. It is there some moments later.
    pub(crate) fn start(&self, unit: &Unit, pid: u32) -> Result<(), KnobFault> {
        let properties = vec![
            ("Description", Value::from("processes that tipme weighs together")),
            ("Slice", Value::from(unit.slice.as_str())),
            // Processes are added by whoever has it begun.
            ("Delegate", Value::from(true)),
            ("CollectMode", Value::from("inactive-or-failed")),
            ("PIDs", Value::from(vec![pid])),
        ];
        let others: Vec<(&str, Vec<(&str, Value<'_>)>)> = Vec::new();
        let body = (unit.name.as_str(), "fail", properties, others);
        self.call(unit.service_manager, OBJECT, MANAGER, "StartTransientUnit", &body, |_| Some(()))
    }

    /// Opens the connection, so that the next call need not.
    pub(crate) fn open(&self, service_manager: ServiceManager) -> Result<(), KnobFault> {
        self.ask(service_manager, |_| Ok(()))
    }

    /// Nobody waits for this scope any longer; its manager is not asked for a while.
    pub(crate) fn give_up(&self, unit: &Unit, folder: &str) {
        let now = Instant::now();
        self.state.borrow_mut().closed.insert(unit.service_manager, now + REST);
        let mut late = self.late.borrow_mut();
        late.retain(|_, since| now < *since + LATE);
        late.insert(folder.to_owned(), now);
    }

    /// Whether a scope that is not there may still come.
    pub(crate) fn is_late(&self, folder: &str) -> bool {
        self.late.borrow().get(folder).is_some_and(|since| since.elapsed() < LATE)
    }

    /// Everything is going to be taken back: all managers get a new chance, for a time that is bounded.
    pub(crate) fn begin_restore(&self) {
        let mut state = self.state.borrow_mut();
        state.closed.clear();
        state.spent = Duration::ZERO;
        state.until = Some(Instant::now() + RESTORE_TIME_MAX);
    }

    /// Everything is taken back.
    pub(crate) fn end_restore(&self) {
        self.state.borrow_mut().until = None;
    }

    /// Why this manager cannot be used; `None` where it can.
    pub(crate) fn defect(&self, service_manager: ServiceManager) -> Option<String> {
        let whose = match service_manager {
            ServiceManager::System => "systemd".to_owned(),
            ServiceManager::User(uid) => format!("the systemd of user {uid}"),
        };
        let text = |reply: &zbus::Message| String::try_from(reply.body().deserialize::<OwnedValue>().ok()?).ok();
        match self.call(service_manager, OBJECT, PROPERTIES, "Get", &(MANAGER, "Version"), text) {
            Ok(text) => match version(&text) {
                Some(number) if number >= VERSION_MIN => None,
                Some(number) => Some(format!("{whose} has version {number}; it takes {VERSION_MIN} or newer")),
                None => Some(format!("{whose} says it has version {text:?}, which is not a number")),
            },
            Err(KnobFault::Vanished) => {
                Some(format!("{whose} has no message bus here; start one, or name another back end"))
            }
            Err(KnobFault::Later) => Some(format!("{whose} answers too slowly")),
            Err(KnobFault::Refused(code)) => {
                Some(format!("{whose} does not answer: {}", std::io::Error::from_raw_os_error(code)))
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
        let call = |line: &Connection| {
            line.call_method(Some(DESTINATION), path, Some(interface), method, body).map_err(translate)
        };
        self.ask(service_manager, call).and_then(|reply| read(&reply).ok_or(KnobFault::Refused(libc::EPROTO)))
    }

    /// Does something with a connection, which is opened where there is none. A manager that has replaced itself has
    /// closed its connections, so a broken one is opened again once.
    fn ask<T>(
        &self,
        service_manager: ServiceManager,
        work: impl Fn(&Connection) -> Result<T, KnobFault>,
    ) -> Result<T, KnobFault> {
        let mut state = self.state.borrow_mut();
        let begun = Instant::now();
        state.admit(service_manager, begun)?;
        let known = state.lines.contains_key(&service_manager);
        let once = |state: &mut BusState| work(state.line(&self.run, service_manager)?);
        let mut outcome = once(&mut state);
        if known && matches!(outcome, Err(KnobFault::Refused(libc::ENOTCONN))) {
            state.lines.remove(&service_manager);
            outcome = once(&mut state);
        }
        state.note(service_manager, begun, outcome.as_ref().err());
        outcome
    }
}

impl BusState {
    fn admit(&mut self, service_manager: ServiceManager, now: Instant) -> Result<(), KnobFault> {
        self.closed.retain(|_, until| now < *until);
        if self.closed.contains_key(&service_manager) || self.until.is_some_and(|until| now >= until) {
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

    fn line(&mut self, run: &Path, service_manager: ServiceManager) -> Result<&Connection, KnobFault> {
        if !self.lines.contains_key(&service_manager) {
            let line = self.open(run, service_manager)?;
            self.lines.insert(service_manager, line);
        }
        self.lines.get(&service_manager).ok_or(KnobFault::Refused(libc::ENOTCONN))
    }

    fn open(&mut self, run: &Path, service_manager: ServiceManager) -> Result<Connection, KnobFault> {
        match service_manager {
            ServiceManager::System => self.connect(run.join("dbus/system_bus_socket"), None),
            ServiceManager::User(uid) => self.connect(run.join(format!("user/{uid}/bus")), Some(uid)),
        }
    }

    /// Opens a connection in a thread of its own, which is left behind where it hangs.
    fn connect(&mut self, path: PathBuf, user: Option<u32>) -> Result<Connection, KnobFault> {
        let opening = Opening(Arc::clone(&self.opening));
        if self.opening.fetch_add(1, Ordering::Relaxed) >= HANGING_MAX {
            return Err(KnobFault::Refused(libc::ENOTCONN));
        }
        let (sender, receiver) = mpsc::channel();
        let work = move || {
            let line = connect(path, user);
            drop(opening);
            // Where nobody waits any more, the connection ends here.
            sender.send(line).ok();
        };
        std::thread::Builder::new().name("bus".to_owned()).spawn(work).map_err(fault)?;
        match receiver.recv_timeout(TIMEOUT) {
            Ok(Err(KnobFault::Refused(libc::ETIMEDOUT))) | Err(_) => Err(KnobFault::Refused(libc::ENOTCONN)),
            Ok(line) => line,
        }
    }
}

/// True for a refusal that says that nobody is there who could answer.
pub(crate) fn is_down(code: i32) -> bool {
    [libc::ETIMEDOUT, libc::ENOTCONN, libc::ECONNREFUSED].contains(&code)
}

/// Connects to a message bus, to one of a user as that user.
fn connect(path: PathBuf, user: Option<u32>) -> Result<Connection, KnobFault> {
    let stream = match user {
        Some(uid) if rustix::process::geteuid().as_raw() != uid => connect_as(path, uid)?,
        _ => UnixStream::connect(path).map_err(fault)?,
    };
    let peer = rustix::net::sockopt::socket_peercred(&stream).map_err(|error| fault(error.into()))?;
    if user.is_some_and(|uid| peer.uid.as_raw() != uid) {
        return Err(KnobFault::Refused(libc::EPERM));
    }
    let builder = Builder::async_io_unix_stream(stream).method_timeout(TIMEOUT);
    let builder = user.into_iter().fold(builder, Builder::user_id);
    builder.build().map_err(translate)
}

/// Connects in a thread that has the user's number meanwhile. The call of the kernel changes its own thread only, other
/// than that of the C library; the real user stays, so that nobody else may send the thread a signal.
fn connect_as(path: PathBuf, uid: u32) -> Result<UnixStream, KnobFault> {
    let work = move || {
        // SAFETY: the call takes numbers only.
        match unsafe { libc::syscall(libc::SYS_setresuid, -1, uid, -1) } {
            0 => UnixStream::connect(path),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    let thread = std::thread::Builder::new().name("bus of a user".to_owned()).spawn(work).map_err(fault)?;
    thread.join().map_err(|_| KnobFault::Refused(libc::EIO))?.map_err(fault)
}

/// What an error means for a place.
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
        "UnknownProperty" | "UnknownMethod" | "PropertyReadOnly" => KnobFault::Refused(libc::EOPNOTSUPP),
        _ => KnobFault::Refused(libc::EINVAL),
    }
}

fn number(reply: &zbus::Message) -> Option<u64> {
    u64::try_from(reply.body().deserialize::<OwnedValue>().ok()?).ok()
}

/// The number in `252.38-1~deb12u1`, `v255` or `systemd 239`.
fn version(text: &str) -> Option<u32> {
    let digits = text.trim_start_matches(|one: char| !one.is_ascii_digit());
    digits.split(|one: char| !one.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
pub(crate) mod tests;
