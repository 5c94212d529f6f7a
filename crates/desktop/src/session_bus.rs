// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names on the session's message bus.

use crate::notify::connect;
use std::sync::Arc;
use zbus::blocking::Connection;
use zbus::blocking::fdo::DBusProxy;
use zbus::names::BusName;

/// Returns `true` if a program serves this name now; starts none. Returns `false` without a session
/// bus.
pub fn is_served(name: &str) -> bool {
    connect(&Arc::default()).is_ok_and(|bus| has_owner(&bus, name))
}

pub(crate) fn has_owner(bus: &Connection, name: &str) -> bool {
    let Ok(name) = BusName::try_from(name) else { return false };
    DBusProxy::new(bus).is_ok_and(|daemon| daemon.name_has_owner(name).unwrap_or(false))
}
