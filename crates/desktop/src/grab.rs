// SPDX-License-Identifier: MIT OR Apache-2.0
//! A grab of the whole X server.

use crate::connect::{DisplayConnection, DisplayTarget};
use crate::error::DisplayError;
use x11rb::protocol::xproto::ConnectionExt as _;

/// Runs `hold` while the server serves no other client, and returns its result.
pub fn grab_server<T>(target: &DisplayTarget, hold: impl FnOnce() -> T) -> Result<T, DisplayError> {
    let connection = DisplayConnection::open(target)?;
    connection.done(connection.wire().grab_server())?;
    let held = hold();
    connection.done(connection.wire().ungrab_server())?;
    Ok(held)
}
