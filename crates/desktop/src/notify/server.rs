// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notification servers: their names, and the capabilities that shape a notification.

use crate::plain::plain;
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
        let call = |method| bus.call_method(Some(NAME), OBJECT, Some(NAME), method, &());
        let (name, _, version, _): (String, String, String, String) =
            call("GetServerInformation")?.body().deserialize()?;
        let capabilities: Vec<String> = match call("GetCapabilities") {
            Ok(reply) => reply.body().deserialize()?,
            Err(zbus::Error::MethodError(..)) => Vec::new(),
            Err(error) => return Err(error),
        };
        let has = |capability: &str| capabilities.iter().any(|one| one == capability);
        let (has_actions, has_body_markup) = (has("actions"), has("body-markup"));
        Ok(NotificationServer { name, version, has_actions, has_body_markup })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_apart_by_how_they_update_and_what_a_click_does() {
        let named = |name: &str| NotificationServer {
            name: name.to_owned(),
            ..NotificationServer::default()
        };
        assert!(named("dunst").updates_in_place());
        assert!(!named("gnome-shell").updates_in_place() && !named("").updates_in_place());
        assert!(named("dunst").has_default_action() && named("").has_default_action());
        assert!(!named("Xfce Notify Daemon").has_default_action());
    }
}
