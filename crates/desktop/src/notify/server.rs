// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notification servers: their names, and the capabilities that shape a notification.

use crate::plain::plain;
use zbus::Message;
use zbus::blocking::Connection;

pub(super) const NAME: &str = "org.freedesktop.Notifications";
pub(super) const OBJECT: &str = "/org/freedesktop/Notifications";
/// Maximum length of name and version, in characters.
const NAME_MAX: usize = 120;

/// Servers that redraw a replaced notification in place, with its new actions. Others may drop the
/// actions (GNOME Shell), or change a text that has left the screen without raising a banner.
const UPDATE_IN_PLACE: [&str; 3] = ["dunst", "mako", "Notification Daemon"];

/// Servers that draw a button for the default action, and do not invoke it by a click.
const DRAWS_DEFAULT_ACTION: [&str; 1] = ["Xfce Notify Daemon"];

/// A notification server, as it describes itself. Without an answer about its capabilities it has
/// none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct NotificationServer {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) has_actions: bool,
    /// Interprets markup in bodies, so that markup characters have to be escaped.
    pub(super) has_body_markup: bool,
}

impl NotificationServer {
    /// Queries the server of the session; the bus starts one that can be activated.
    pub(super) fn ask(bus: &Connection) -> Result<NotificationServer, zbus::Error> {
        let reply = call(bus, "GetServerInformation")?;
        let (name, _, version, _): (String, String, String, String) = reply.body().deserialize()?;
        let capabilities: Vec<String> = match call(bus, "GetCapabilities") {
            Ok(reply) => reply.body().deserialize()?,
            Err(zbus::Error::MethodError(..)) => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(NotificationServer {
            name,
            version,
            has_actions: capabilities.iter().any(|name| name == "actions"),
            has_body_markup: capabilities.iter().any(|name| name == "body-markup"),
        })
    }

    /// Returns `true` if a replaced notification is shown again with its new actions.
    pub(super) fn updates_in_place(&self) -> bool {
        UPDATE_IN_PLACE.contains(&self.name.as_str())
    }

    /// Returns `true` if a click on a notification invokes its action `default`.
    pub(super) fn has_default_action(&self) -> bool {
        !DRAWS_DEFAULT_ACTION.contains(&self.name.as_str())
    }

    /// Name and version for output.
    pub(super) fn described(&self) -> String {
        plain(&format!("{} {}", self.name, self.version), NAME_MAX)
    }
}

fn call(bus: &Connection, method: &str) -> Result<Message, zbus::Error> {
    bus.call_method(Some(NAME), OBJECT, Some(NAME), method, &())
}

#[cfg(test)]
mod tests {
    use super::*;

    impl NotificationServer {
        pub(in crate::notify) fn named(name: &str) -> NotificationServer {
            NotificationServer { name: name.to_owned(), ..NotificationServer::default() }
        }
    }

    #[test]
    fn the_name_of_a_server_decides_on_updates_and_clicks() {
        for (name, updates, has_default_action) in [
            ("dunst", true, true),
            ("gnome-shell", false, true),
            ("", false, true),
            ("Xfce Notify Daemon", false, false),
        ] {
            let server = NotificationServer::named(name);
            assert_eq!(server.updates_in_place(), updates, "{name}");
            assert_eq!(server.has_default_action(), has_default_action, "{name}");
        }
    }
}
