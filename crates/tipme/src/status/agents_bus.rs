// SPDX-License-Identifier: MIT OR Apache-2.0
//! The notification server of an agent, on its own message bus, which may differ from that of this
//! shell.

use rustix::process::geteuid;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use tipme_desktop::notify;

/// Returns the server on the bus of this user's agent, else on the bus of this process, or the
/// reason why there is none.
pub fn notifications(agent: Option<u32>) -> Result<String, String> {
    let environment = agent.and_then(environment);
    let found = match environment.as_deref().map(address) {
        Some(Some(address)) => notify::daemon_at(&address),
        Some(None) => {
            return Err("no notification is shown: there is no session bus for the agent; \
                        start it from within the session"
                .to_owned());
        }
        None => notify::daemon(),
    };
    found.map_err(|error| error.to_string())
}

/// Returns the initial environment of a process of this user.
fn environment(pid: u32) -> Option<Vec<u8>> {
    let path = format!("/proc/{pid}/environ");
    let is_own = std::fs::metadata(&path).is_ok_and(|meta| meta.uid() == geteuid().as_raw());
    is_own.then(|| std::fs::read(&path).ok()).flatten()
}

/// Returns the address of the session bus in an environment.
fn address(environment: &[u8]) -> Option<String> {
    value(environment, "DBUS_SESSION_BUS_ADDRESS=").or_else(|| {
        let folder = value(environment, "XDG_RUNTIME_DIR=")?;
        Some(format!("unix:path={folder}/bus"))
    })
}

/// Returns the value after a name such as `HOME=`, unless it is empty.
fn value(environment: &[u8], name: &str) -> Option<String> {
    let mut entries = environment.split(|byte| *byte == 0);
    let value = entries.find_map(|entry| entry.strip_prefix(name.as_bytes()))?;
    (!value.is_empty()).then(|| OsStr::from_bytes(value).to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bus_is_the_one_that_is_named_or_the_users() {
        let both =
            b"A=1\0XDG_RUNTIME_DIR=/run/user/7\0DBUS_SESSION_BUS_ADDRESS=unix:path=/tmp/bus\0";
        assert_eq!(address(both).as_deref(), Some("unix:path=/tmp/bus"));
        assert_eq!(address(&both[..32]).as_deref(), Some("unix:path=/run/user/7/bus"));
        assert_eq!(address(b"DBUS_SESSION_BUS_ADDRESS=\0HOME=/"), None);
    }
}
