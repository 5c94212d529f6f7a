// SPDX-License-Identifier: MIT OR Apache-2.0
//! The session's agent on the message bus: one at a time, which performs the actions of its hot
//! keys on request.
//!
//! Under Wayland no program may grab a key. If the desktop offers no shortcuts to programs either,
//! its settings bind keys to commands, and such a command calls the agent by this interface.

use crate::error::DisplayError;
use crate::hotkeys::HotKeyAction;
use crate::notify::{Trouble, connect};
use crate::plain::plain;
use crate::presence::{RunningAgent, is_stopped};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use zbus::blocking::Connection;
use zbus::blocking::fdo::DBusProxy;
use zbus::fdo::{self, RequestNameFlags, RequestNameReply};
use zbus::names::BusName;

const NAME: &str = "org.tipme.Agent";
const OBJECT: &str = "/org/tipme/Agent";
/// Maximum number of pending presses; further ones are refused.
const PRESSES_MAX: usize = 16;
/// Maximum length of an agent's description of its keys, in characters.
const WORDS_MAX: usize = 400;

/// Object on the bus.
struct Served {
    pressed: SyncSender<HotKeyAction>,
    words: Arc<Mutex<String>>,
}

#[zbus::interface(name = "org.tipme.Agent")]
impl Served {
    /// Performs the action of a key.
    fn press(&self, action: &str) -> fdo::Result<()> {
        let action = HotKeyAction::named(action)
            .ok_or_else(|| fdo::Error::InvalidArgs("there is no such action".to_owned()))?;
        self.pressed.try_send(action).map_err(|_| {
            fdo::Error::LimitsExceeded("too many presses wait; press again".to_owned())
        })
    }

    /// Description of the keys for users.
    fn words(&self) -> String {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Makes this process the session's agent, as long as the value lives.
pub struct OnBus {
    words: Arc<Mutex<String>>,
    _bus: Connection,
}

impl OnBus {
    /// Takes the agent's name for this process, and returns the presses from then on; returns the
    /// other agent if there is one.
    ///
    /// # Errors
    /// Fails if there is no session bus, or it is not usable.
    pub fn claim() -> Result<Result<(OnBus, Receiver<HotKeyAction>), RunningAgent>, DisplayError> {
        let bus = connect(&Arc::default()).map_err(|trouble| of_trouble(&trouble))?;
        let ((pressed, presses), words) =
            (sync_channel(PRESSES_MAX), Arc::<Mutex<String>>::default());
        let served = Served { pressed, words: Arc::clone(&words) };
        bus.object_server().at(OBJECT, served).map_err(failed)?;
        let reply = bus.request_name_with_flags(NAME, RequestNameFlags::DoNotQueue.into());
        match reply {
            Ok(RequestNameReply::PrimaryOwner | RequestNameReply::AlreadyOwner) => {
                Ok(Ok((OnBus { words, _bus: bus }, presses)))
            }
            Ok(_) | Err(zbus::Error::NameTaken) => {
                Ok(Err(agent(&bus)?.unwrap_or(RunningAgent { pid: 0, words: String::new() })))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Returns the description of this agent's keys.
    pub fn words(&self) -> String {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the description of this agent's keys.
    pub fn describe(&self, words: &str) {
        words.clone_into(&mut self.words.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Finds the agent of this session on the bus.
///
/// # Errors
/// Fails if there is no session bus, or it is not usable.
pub fn find() -> Result<Option<RunningAgent>, DisplayError> {
    agent(&connect(&Arc::default()).map_err(|trouble| of_trouble(&trouble))?)
}

/// Makes the agent of this session perform an action; returns `false` if there is no agent.
///
/// # Errors
/// Fails if there is no session bus, or the agent refuses.
pub fn press(action: HotKeyAction) -> Result<bool, DisplayError> {
    let bus = connect(&Arc::default()).map_err(|trouble| of_trouble(&trouble))?;
    if owner(&bus)?.is_none() {
        return Ok(false);
    }
    bus.call_method(Some(NAME), OBJECT, Some(NAME), "Press", &action.name()).map_err(failed)?;
    Ok(true)
}

fn agent(bus: &Connection) -> Result<Option<RunningAgent>, DisplayError> {
    let Some(pid) = owner(bus)? else { return Ok(None) };
    if is_stopped(pid) {
        return Ok(Some(RunningAgent { pid, words: String::new() }));
    }
    let reply = bus.call_method(Some(NAME), OBJECT, Some(NAME), "Words", &()).map_err(failed)?;
    let words: String = reply.body().deserialize().map_err(failed)?;
    Ok(Some(RunningAgent { pid, words: plain(&words, WORDS_MAX) }))
}

/// Returns the process that has the agent's name.
fn owner(bus: &Connection) -> Result<Option<u32>, DisplayError> {
    let name = BusName::try_from(NAME).map_err(|error| failed(error.into()))?;
    match DBusProxy::new(bus).map_err(failed)?.get_connection_unix_process_id(name) {
        Ok(pid) => Ok(Some(pid)),
        Err(fdo::Error::NameHasNoOwner(_)) => Ok(None),
        Err(error) => Err(failed(error.into())),
    }
}

fn of_trouble(trouble: &Trouble) -> DisplayError {
    DisplayError::NoBus { reason: trouble.to_string() }
}

fn failed(error: zbus::Error) -> DisplayError {
    DisplayError::NoBus { reason: plain(&error.to_string(), WORDS_MAX) }
}
