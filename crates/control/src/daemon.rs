// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties that differ between the daemons' sockets.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// A daemon's socket: its requests and responses, and its names in messages.
pub trait Daemon {
    type Request: Serialize + DeserializeOwned + Debug;
    type Response: Serialize + DeserializeOwned + Debug;

    /// Name as in "the recorder".
    const NAME: &'static str;
    /// Name of the socket in the state directory.
    const SOCKET: &'static str;
    /// Command that starts it.
    const START: &'static str;

    /// Returns the response that refuses a request.
    fn refusal(why: String) -> Self::Response;

    /// Returns a response that is not a refusal.
    ///
    /// # Errors
    /// The daemon's own message if it refused.
    fn granted(response: Self::Response) -> Result<Self::Response, String>;

    /// Returns the message for a user without permission.
    fn not_allowed(uid: u32) -> String;

    /// Returns that message with the reason, if there is one.
    fn not_allowed_because(uid: u32, why: &str) -> String {
        let refusal = Self::not_allowed(uid);
        if why.is_empty() { refusal } else { format!("{refusal}; {why}") }
    }
}
