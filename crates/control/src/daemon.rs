// SPDX-License-Identifier: MIT OR Apache-2.0
//! What differs between the daemons' sockets.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// A daemon as its socket sees it: what is asked and answered there, and what people are told of it.
pub trait Daemon {
    type Request: Serialize + DeserializeOwned + Debug;
    type Response: Serialize + DeserializeOwned + Debug;

    /// As in "the recorder".
    const NAME: &'static str;
    /// Name of the socket in the state directory.
    const SOCKET: &'static str;
    /// The command that starts it.
    const START: &'static str;

    /// The answer that says why something was not done.
    fn refusal(why: String) -> Self::Response;

    /// The answer, or what it says of why not.
    ///
    /// # Errors
    /// The daemon's own words, where it refused.
    fn granted(response: Self::Response) -> Result<Self::Response, String>;

    /// What a user is told who may not call.
    fn not_allowed(uid: u32) -> String;

    /// The same with the reason, where there is one.
    fn not_allowed_because(uid: u32, why: &str) -> String {
        let refusal = Self::not_allowed(uid);
        if why.is_empty() { refusal } else { format!("{refusal}; {why}") }
    }
}
