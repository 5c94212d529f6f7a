// SPDX-License-Identifier: MIT OR Apache-2.0
//! End of a session: its message bus or its compositor closes the connection. The waits take no CPU
//! time.

use crate::notify::connect;
use std::io::{ErrorKind, Read as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use zbus::blocking::MessageIterator;

/// Waits for the end of the session's bus. Returns `false` if there is none.
pub fn wait_for_bus() -> bool {
    let Ok(bus) = connect(&Arc::default()) else { return false };
    // The iterator ends with the connection.
    MessageIterator::from(&bus).for_each(drop);
    true
}

/// Waits for the end of the session's compositor. Returns `false` if there is none.
pub fn wait_for_compositor() -> bool {
    let Some(mut socket) = socket().and_then(|path| UnixStream::connect(path).ok()) else {
        return false;
    };
    let mut bytes = [0; 64];
    loop {
        match socket.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return true,
        }
    }
}

/// Returns the socket that `WAYLAND_DISPLAY` names.
fn socket() -> Option<PathBuf> {
    let name = std::env::var_os("WAYLAND_DISPLAY").filter(|name| !name.is_empty())?;
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).unwrap_or_default();
    Some(folder.join(name)).filter(|path| path.is_absolute())
}
