// SPDX-License-Identifier: MIT OR Apache-2.0
//! Program that has the keyboard focus.

use crate::connect::{DisplayConnection, Wire};
use crate::error::DisplayError;
use x11rb::cookie::Cookie;
use x11rb::errors::ConnectionError;
use x11rb::protocol::res::{ClientIdMask, ClientIdSpec, ConnectionExt as _, QueryClientIdsReply};
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, Window};

/// Source of a window's process id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PidSource {
    /// The server, which knows its clients.
    Server,
    /// The window's property, which is only the program's claim.
    Property,
}

/// The window with the keyboard focus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FocusedWindow {
    /// 0 if no window has it.
    pub window: u32,
    /// Its process, if known.
    pub pid: Option<(u32, PidSource)>,
}

/// Maximum number of ancestors that are checked for a property.
const DEPTH_MAX: usize = 16;

/// Queries the focused window and its process.
pub fn focus(connection: &DisplayConnection) -> Result<FocusedWindow, DisplayError> {
    let window = connection.reply(connection.wire().get_input_focus())?.focus;
    if window <= 1 {
        return Ok(FocusedWindow { window: 0, pid: None });
    }
    let pid = match client_pid(connection, window)? {
        Some(pid) => Some((pid, PidSource::Server)),
        None => property_pid(connection, window)?.map(|pid| (pid, PidSource::Property)),
    };
    Ok(FocusedWindow { window, pid })
}

/// Returns the process that made a window, if the server has the XRes extension and the client is
/// local.
pub(crate) fn client_pid(
    connection: &DisplayConnection,
    window: Window,
) -> Result<Option<u32>, DisplayError> {
    let Ok(cookie) = ask_client(connection.wire(), window) else { return Ok(None) };
    let Ok(reply) = cookie.reply() else { return Ok(None) };
    Ok(local_client_pid(&reply))
}

/// Sends the query for the process that made a window; fails if the server lacks the XRes
/// extension.
pub(crate) fn ask_client(
    wire: &Wire,
    window: Window,
) -> Result<Cookie<'_, Wire, QueryClientIdsReply>, ConnectionError> {
    let spec = ClientIdSpec { client: window, mask: ClientIdMask::LOCAL_CLIENT_PID };
    wire.res_query_client_ids(&[spec])
}

/// Returns the process in the reply; `None` for a client of another machine.
pub(crate) fn local_client_pid(reply: &QueryClientIdsReply) -> Option<u32> {
    let pid = reply.ids.iter().find(|id| id.spec.mask == ClientIdMask::LOCAL_CLIENT_PID);
    pid.and_then(|id| id.value.first().copied()).filter(|pid| *pid != 0)
}

fn property_pid(
    connection: &DisplayConnection,
    mut window: Window,
) -> Result<Option<u32>, DisplayError> {
    let wire = connection.wire();
    let atom = connection.atom(b"_NET_WM_PID")?;
    for _ in 0..DEPTH_MAX {
        let asked = wire.get_property(false, window, atom, AtomEnum::CARDINAL, 0, 1);
        let value = connection.reply(asked)?.value32().and_then(|mut values| values.next());
        if value.is_some() {
            return Ok(value);
        }
        window = connection.reply(wire.query_tree(window))?.parent;
        if window == 0 {
            break;
        }
    }
    Ok(None)
}
