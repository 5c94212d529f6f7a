// SPDX-License-Identifier: MIT OR Apache-2.0
//! A desktop's GlobalShortcuts portal on the test's own bus. No display server of these tests has
//! one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use zbus::blocking::{Connection, connection::Builder};
use zbus::zvariant::{ObjectPath, OwnedObjectPath, OwnedValue, Value};

const OBJECT: &str = "/org/freedesktop/portal/desktop";
const SHORTCUTS: &str = "org.freedesktop.portal.GlobalShortcuts";

type Options = HashMap<String, OwnedValue>;

/// Ids of shortcuts with their requested keys.
type Wanted = Arc<Mutex<Vec<(String, String)>>>;

type Bound = Arc<Mutex<Option<OwnedObjectPath>>>;

/// The portal, which ends on drop.
pub struct Portal {
    bus: Connection,
    pub wanted: Wanted,
    /// Session in which they were bound.
    pub session: Bound,
}

struct Shortcuts {
    wanted: Wanted,
    session: Bound,
    /// The user's response to the request for keys; 0 is yes.
    says: u32,
}

#[zbus::interface(name = "org.freedesktop.portal.GlobalShortcuts")]
impl Shortcuts {
    #[zbus(property, name = "version")]
    fn version(&self) -> u32 {
        1
    }

    async fn create_session(
        &self,
        #[zbus(header)] header: zbus::message::Header<'_>,
        #[zbus(connection)] bus: &zbus::Connection,
        options: Options,
    ) -> OwnedObjectPath {
        let sender = header.sender().unwrap().to_string();
        let session = path("session", &sender, &options, "session_handle_token");
        let results = HashMap::from([("session_handle", Value::from(session.as_str()))]);
        respond(bus, &sender, &options, (0, results)).await
    }

    async fn bind_shortcuts(
        &self,
        #[zbus(header)] header: zbus::message::Header<'_>,
        #[zbus(connection)] bus: &zbus::Connection,
        session: OwnedObjectPath,
        shortcuts: Vec<(String, Options)>,
        _parent_window: String,
        options: Options,
    ) -> OwnedObjectPath {
        let sender = header.sender().unwrap().to_string();
        let wanted: Vec<(String, String)> = shortcuts
            .iter()
            .map(|(id, options)| (id.clone(), text(options, "preferred_trigger")))
            .collect();
        let bound: Vec<(String, HashMap<&str, Value<'_>>)> = wanted
            .iter()
            .map(|(id, key)| {
                let description = Value::from(format!("Press {key}"));
                (id.clone(), HashMap::from([("trigger_description", description)]))
            })
            .collect();
        let results = HashMap::from([("shortcuts", Value::from(bound))]);
        *self.wanted.lock().unwrap() = wanted;
        *self.session.lock().unwrap() = Some(session);
        respond(bus, &sender, &options, (self.says, results)).await
    }
}

/// Returns a text among options.
fn text(options: &Options, name: &str) -> String {
    String::try_from(options[name].try_clone().unwrap()).unwrap()
}

/// Returns a path such as `/org/freedesktop/portal/desktop/request/1_7/TOKEN`, as specified.
fn path(kind: &str, sender: &str, options: &Options, token: &str) -> OwnedObjectPath {
    let token = text(options, token);
    let sender = sender.trim_start_matches(':').replace('.', "_");
    format!("{OBJECT}/{kind}/{sender}/{token}").try_into().unwrap()
}

/// Responds to a request, even before its path is returned.
async fn respond(
    bus: &zbus::Connection,
    sender: &str,
    options: &Options,
    answer: (u32, HashMap<&str, Value<'_>>),
) -> OwnedObjectPath {
    let request = path("request", sender, options, "handle_token");
    bus.emit_signal(Some(sender), &request, "org.freedesktop.portal.Request", "Response", &answer)
        .await
        .unwrap();
    request
}

impl Portal {
    /// Starts a portal with a user that answers yes (0), no (1), or something else.
    pub fn start(address: &str, says: u32) -> Portal {
        let (wanted, session) = (Wanted::default(), Bound::default());
        let shortcuts =
            Shortcuts { wanted: Arc::clone(&wanted), session: Arc::clone(&session), says };
        let builder = Builder::address(address).unwrap().serve_at(OBJECT, shortcuts).unwrap();
        let bus = builder.name("org.freedesktop.portal.Desktop").unwrap().build().unwrap();
        Portal { bus, wanted, session }
    }

    /// Presses the key of a shortcut in that client's session.
    pub fn press(&self, session: &ObjectPath<'_>, id: &str) {
        let body = (session, id, 7_u64, HashMap::<&str, Value<'_>>::new());
        self.bus.emit_signal(None::<&str>, OBJECT, SHORTCUTS, "Activated", &body).unwrap();
    }

    /// Closes the session, as a desktop that revokes the shortcuts does.
    pub fn close(&self, session: &ObjectPath<'_>) {
        self.bus
            .emit_signal(None::<&str>, session, "org.freedesktop.portal.Session", "Closed", &())
            .unwrap();
    }
}

/// A portal that accepts every request and answers none, as with a backend that does not start.
pub struct SilentPortal {
    _bus: Connection,
}

struct NoAnswer;

#[zbus::interface(name = "org.freedesktop.portal.GlobalShortcuts")]
impl NoAnswer {
    #[zbus(property, name = "version")]
    async fn version(&self) -> u32 {
        std::future::pending().await
    }
}

impl SilentPortal {
    pub fn start(address: &str) -> SilentPortal {
        let builder = Builder::address(address).unwrap().serve_at(OBJECT, NoAnswer).unwrap();
        SilentPortal {
            _bus: builder.name("org.freedesktop.portal.Desktop").unwrap().build().unwrap(),
        }
    }
}
