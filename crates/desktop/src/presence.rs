// SPDX-License-Identifier: MIT OR Apache-2.0
//! Agent of a display: one at a time, which owns a selection of the display and describes itself
//! there.
//!
//! The selection ends with the connection, so a killed agent is in nobody's way.

use crate::connect::{DisplayConnection, DisplayTarget};
use crate::error::DisplayError;
use crate::plain::plain;
use tipme_record::proc_text::StatLine;
use x11rb::protocol::xproto::{
    AtomEnum, ConnectionExt as _, CreateWindowAux, PropMode, Window, WindowClass,
};
use x11rb::{CURRENT_TIME, NONE};

/// The selection that an agent owns.
const SELECTION: &[u8] = b"_TIPME_AGENT";
/// Property with the agent's description, on the window that owns the selection.
const WORDS: &[u8] = b"_TIPME_AGENT_WORDS";
const PID: &[u8] = b"_NET_WM_PID";
/// Maximum length of the description, in units of four bytes.
const WORDS_MAX: u32 = 256;
/// Maximum length of a window manager's name, in characters.
const NAME_MAX: usize = 40;

/// An agent, as seen by other processes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningAgent {
    pub pid: u32,
    /// Description of its keys.
    pub words: String,
}

impl RunningAgent {
    /// Returns `true` if a signal has stopped it, so that it serves no key.
    pub fn is_stopped(&self) -> bool {
        is_stopped(self.pid)
    }
}

pub(crate) fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    StatLine::read(&stat).and_then(|line| line.field(3)).is_some_and(|state| state == "T")
}

/// Makes this process the agent of the display, as long as the value lives.
pub struct AgentPresence {
    connection: DisplayConnection,
    window: Window,
}

impl AgentPresence {
    /// Takes the display for this process; returns the other agent if one serves it already.
    ///
    /// # Errors
    /// Fails if the display is not usable.
    pub fn claim(
        target: &DisplayTarget,
    ) -> Result<Result<AgentPresence, RunningAgent>, DisplayError> {
        let connection = DisplayConnection::open(target)?;
        if let Some(agent) = agent(&connection)? {
            return Ok(Err(agent));
        }
        let (selection, window) = (connection.atom(SELECTION)?, connection.new_id()?);
        let (wire, root, class) = (connection.wire(), connection.root(), WindowClass::INPUT_ONLY);
        let aux = CreateWindowAux::new();
        connection.send(wire.create_window(0, window, root, -1, -1, 1, 1, 0, class, 0, &aux))?;
        connection.send(wire.set_selection_owner(window, selection, CURRENT_TIME))?;
        let presence = AgentPresence { connection, window };
        let pid = std::process::id().to_ne_bytes();
        presence.set(PID, AtomEnum::CARDINAL, 32, &pid)?;
        Ok(Ok(presence))
    }

    /// Sets the description of this agent.
    ///
    /// # Errors
    /// Fails if the display is not usable.
    pub fn describe(&self, words: &str) -> Result<(), DisplayError> {
        self.set(WORDS, AtomEnum::STRING, 8, words.as_bytes())
    }

    fn set(
        &self,
        property: &[u8],
        kind: AtomEnum,
        format: u8,
        data: &[u8],
    ) -> Result<(), DisplayError> {
        let property = self.connection.atom(property)?;
        let count = data.len() as u32 / u32::from(format / 8);
        self.connection.done(self.connection.wire().change_property(
            PropMode::REPLACE,
            self.window,
            property,
            kind,
            format,
            count,
            data,
        ))
    }
}

/// Finds the agent that serves a display.
///
/// # Errors
/// Fails if the display is not usable.
pub fn find(target: &DisplayTarget) -> Result<Option<RunningAgent>, DisplayError> {
    agent(&DisplayConnection::open(target)?)
}

/// Returns the name of a display's window manager, if it has one.
///
/// # Errors
/// Fails if the display is not usable.
pub fn window_manager(target: &DisplayTarget) -> Result<Option<String>, DisplayError> {
    let connection = DisplayConnection::open(target)?;
    let check = property(&connection, connection.root(), b"_NET_SUPPORTING_WM_CHECK")?;
    let Some(window) = number(&check) else { return Ok(None) };
    let name = property(&connection, window, b"_NET_WM_NAME")?;
    let name = String::from_utf8_lossy(&name);
    // Some append the architecture that they were built for.
    let name = name.split(['\0', '(']).next().unwrap_or_default();
    let name = plain(name.trim(), NAME_MAX);
    Ok(Some(name).filter(|name| !name.is_empty()))
}

fn agent(connection: &DisplayConnection) -> Result<Option<RunningAgent>, DisplayError> {
    let selection = connection.atom(SELECTION)?;
    let window = connection.reply(connection.wire().get_selection_owner(selection))?.owner;
    if window == NONE {
        return Ok(None);
    }
    let pid = number(&property(connection, window, PID)?).unwrap_or(0);
    let words = property(connection, window, WORDS)?;
    Ok(Some(RunningAgent {
        pid,
        words: plain(&String::from_utf8_lossy(&words), 4 * WORDS_MAX as usize),
    }))
}

/// Reads a property; empty if the window does not have it, or is gone.
fn property(
    connection: &DisplayConnection,
    window: Window,
    name: &[u8],
) -> Result<Vec<u8>, DisplayError> {
    let name = connection.atom(name)?;
    let sent = connection.wire().get_property(false, window, name, AtomEnum::ANY, 0, WORDS_MAX);
    match sent.map_err(|error| connection.failed(error))?.reply() {
        Ok(reply) => Ok(reply.value),
        Err(x11rb::errors::ReplyError::X11Error(_)) => Ok(Vec::new()),
        Err(error) => Err(connection.failed(error)),
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?))
}
