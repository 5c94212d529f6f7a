// SPDX-License-Identifier: MIT OR Apache-2.0
//! A notification server on the test's own bus, with a configurable name and capabilities. It shows
//! nothing, logs its calls, and reports actions that the test invokes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tipme_bench::until;
use zbus::blocking::{Connection, connection::Builder};
use zbus::zvariant::OwnedValue;

const NAME: &str = "org.freedesktop.Notifications";
const OBJECT: &str = "/org/freedesktop/Notifications";

/// A call of `Notify`.
#[derive(Clone, Debug)]
pub struct Notified {
    pub id: u32,
    pub replaces: u32,
    pub summary: String,
    pub body: String,
    /// Keys of its actions.
    pub keys: Vec<String>,
    /// Names of its hints.
    pub hints: Vec<String>,
}

/// A call to the server.
#[derive(Clone, Debug)]
pub enum ServerCall {
    Notify(Notified),
    Close(u32),
}

type Calls = Arc<Mutex<Vec<ServerCall>>>;

struct Served {
    name: &'static str,
    capabilities: &'static [&'static str],
    calls: Calls,
}

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Served {
    fn get_server_information(&self) -> (String, String, String, String) {
        (self.name.to_owned(), "a test".to_owned(), "1.0".to_owned(), "1.2".to_owned())
    }

    fn get_capabilities(&self) -> Vec<String> {
        self.capabilities.iter().map(ToString::to_string).collect()
    }

    #[allow(clippy::too_many_arguments, reason = "the specification has them")]
    fn notify(
        &self,
        _program: String,
        replaces: u32,
        _icon: String,
        summary: String,
        body: String,
        actions: Vec<String>,
        hints: HashMap<String, OwnedValue>,
        _expires: i32,
    ) -> u32 {
        let mut calls = self.calls.lock().unwrap();
        let id = if replaces == 0 { calls.len() as u32 + 100 } else { replaces };
        let keys = actions.chunks(2).map(|pair| pair[0].clone()).collect();
        let hints = hints.into_keys().collect();
        calls.push(ServerCall::Notify(Notified { id, replaces, summary, body, keys, hints }));
        id
    }

    fn close_notification(&self, id: u32) {
        self.calls.lock().unwrap().push(ServerCall::Close(id));
    }
}

/// The server, which leaves the bus on drop.
pub struct FakeServer {
    bus: Connection,
    calls: Calls,
}

impl FakeServer {
    pub fn start(
        address: &str,
        name: &'static str,
        capabilities: &'static [&'static str],
    ) -> FakeServer {
        let calls = Calls::default();
        let served = Served { name, capabilities, calls: Arc::clone(&calls) };
        let builder = Builder::address(address).unwrap().serve_at(OBJECT, served).unwrap();
        FakeServer { bus: builder.name(NAME).unwrap().build().unwrap(), calls }
    }

    pub fn calls(&self) -> Vec<ServerCall> {
        self.calls.lock().unwrap().clone()
    }

    /// Returns the notifications so far, in order.
    pub fn notified(&self) -> Vec<Notified> {
        let notified = self.calls().into_iter().filter_map(|call| match call {
            ServerCall::Notify(one) => Some(one),
            ServerCall::Close(_) => None,
        });
        notified.collect()
    }

    /// Waits for the notification with this index.
    pub fn wait_for(&self, place: usize) -> Notified {
        until(&format!("notification {place} arrives"), || self.notified().len() > place);
        self.notified().swap_remove(place)
    }

    /// Invokes an action as the user would; the server then closes the notification if `closes` is
    /// set.
    pub fn invoke(&self, id: u32, key: &str, closes: bool) {
        self.bus.emit_signal(None::<&str>, OBJECT, NAME, "ActionInvoked", &(id, key)).unwrap();
        if closes {
            self.bus
                .emit_signal(None::<&str>, OBJECT, NAME, "NotificationClosed", &(id, 2_u32))
                .unwrap();
        }
    }
}
