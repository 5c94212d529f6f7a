// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of the recorder's socket. Their JSON forms are a contract, see the tests.

use crate::daemon::Daemon;
use crate::{MAX_LINE_BYTES, SOCKET_NAME, accounts};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tipme_measure::lived::DayFigures;

/// A request of a client.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecorderRequest {
    /// Writes an incident about the recent past. Returns [`RecorderResponse::Marked`].
    Mark {
        /// The user's description; may be empty.
        #[serde(default)]
        text: String,
        #[serde(default)]
        trigger: Trigger,
    },
    /// Adds the user's words to an earlier incident. Returns [`RecorderResponse::Done`].
    Describe {
        incident: PathBuf,
        /// An empty text keeps the earlier one.
        #[serde(default)]
        text: String,
        /// `true` if the cause found was the right one; a missing value keeps the earlier one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        right: Option<bool>,
    },
    /// Removes an incident of the caller's by id; root may remove all. Returns
    /// [`RecorderResponse::Done`].
    Remove { id: String },
    /// Pins or unpins an incident of the caller's, which protects it from pruning. Returns
    /// [`RecorderResponse::Done`].
    Pin { id: String, pinned: bool },
    /// Stops (false) or restarts (true) the recording of input records. Returns
    /// [`RecorderResponse::Done`].
    Keys { record: bool },
    /// Returns [`RecorderResponse::Status`].
    Status,
    /// Queries the caller's latencies between two times, in seconds since 1970; root may query
    /// another user's. Returns [`RecorderResponse::Day`].
    Day {
        from_s: u64,
        to_s: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<u32>,
    },
    /// Deletes the caller's latencies. Returns [`RecorderResponse::Done`].
    ForgetDays,
    /// Follows the keyboard focus on the caller's compositors. Returns [`RecorderResponse::Done`],
    /// then [`RecorderResponse::Focus`] for each of them and for each change, while the connection
    /// lasts.
    Follow,
    /// Resumes all recording, including input if that was stopped. Returns
    /// [`RecorderResponse::Done`].
    Start,
    /// Pauses all recording until the caller or root resumes it. Returns
    /// [`RecorderResponse::Done`].
    Pause,
    /// Records these details for a number of seconds, at most an hour; 0 withdraws the caller's
    /// earlier request. Returns [`RecorderResponse::Done`].
    Detail { details: Vec<String>, seconds: u32 },
}

/// A response of the recorder.
#[allow(clippy::large_enum_variant, reason = "one answer is made at a time, and sent")]
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecorderResponse {
    /// The incident is written and sealed.
    Marked {
        /// Path of the file.
        incident: PathBuf,
        id: String,
        /// Time from the request to the sealed file.
        seconds: f64,
        /// `true` if input is not recorded now, so the incident lacks the times of key presses.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        input_stopped: bool,
    },
    Done,
    Status(RecorderStatus),
    Day(Box<DayFigures>),
    /// A change of the keyboard focus.
    Focus(Focused),
    /// Refusal: the object and the remedy, as a message for the user.
    Error(String),
}

/// Origin of a user's mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// `tipme mark`.
    #[default]
    Command,
    /// A hot key of the session agent, or of the console.
    Hotkey,
}

impl Trigger {
    /// Name in the incident.
    pub fn name(self) -> &'static str {
        match self {
            Trigger::Command => "command",
            Trigger::Hotkey => "hotkey",
        }
    }
}

/// State of the recorder.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Status")]
pub struct RecorderStatus {
    pub pid: u32,
    /// Begin of the recording, CLOCK_MONOTONIC.
    pub armed_ns: u64,
    /// Time covered by the records now, in seconds.
    pub held_s: f64,
    /// Time that an incident covers if memory allows, in seconds.
    pub window_s: f64,
    /// Time for which ended processes are remembered, in seconds.
    pub ended_s: f64,
    /// Limit of that time: `time` (maximum age), `memory` (full) or `start` (recording began then).
    pub ended_bound: String,
    /// Number of records lost since the start.
    pub lost: u64,
    /// Begin of the pause, CLOCK_MONOTONIC; left out unless recording is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_since_ns: Option<u64>,
    /// Uid of the user that paused it; left out unless recording is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_by_uid: Option<u32>,
    /// Uids of the users that may mark, besides root.
    pub allowed: Vec<u32>,
    /// Reason why the caller may mark; human-readable.
    pub because: String,
    /// Functions of the recorder's own hot keys, human-readable; left out if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hot_keys: Option<String>,
    /// The hot keys also work in graphical sessions; left out if only on text consoles.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub any_keyboard: bool,
    /// False while input records are stopped.
    pub keys: bool,
    /// First of the users that stopped them; left out without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_stopped_by_uid: Option<u32>,
    /// Part of the window without recorded input, in seconds; left out if 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub input_stopped_s: f64,
    /// Additional details recorded now; left out without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<RecordedDetail>,
    /// Recorded displays, such as `:0`.
    pub displays: Vec<String>,
    /// Keyboard focus on the caller's compositors; left out if not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub focus: Vec<Focused>,
    /// Records not available here, each with the reason.
    pub missing: Vec<String>,
    /// The latencies of each user's day are counted; left out if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub day: bool,
    /// Ids of the caller's automatic incidents, oldest first; left out without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suggested: Vec<String>,
    /// The caller's adapted limits of automatic marks; left out if all are the usual ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerances: Vec<ToldTolerance>,
    /// Results of automatic marking; left out if it is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto: Option<AutoCounts>,
}

/// An additional detail of the recording.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Detail")]
pub struct RecordedDetail {
    /// `waits`, `interrupts`, `locks`, `writers` or `memory`.
    pub name: String,
    /// Begin, CLOCK_MONOTONIC.
    pub since_ns: u64,
    /// End, CLOCK_MONOTONIC; left out if it was requested at the recorder's start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ns: Option<u64>,
    /// Uid of the user that requested it; left out if it was requested at the recorder's start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_uid: Option<u32>,
}

/// Keyboard focus on a Wayland compositor, as sent to its clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Focused {
    /// Process of the compositor.
    pub server: u32,
    /// Process of the client; `null` without one, or if it belongs to another user.
    pub client: Option<u32>,
    /// Begin, CLOCK_MONOTONIC.
    pub since_ns: u64,
}

/// Limits of automatic marks for a class of events of an application, and their adaptation.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ToldTolerance {
    pub class: String,
    pub application: String,
    /// Limits in percent of the usual ones, from 50 to 200.
    pub percent: u64,
    /// Number of manual marks of latencies within the limits.
    pub bad: u32,
    /// Answers to automatic marks: the cause was right, or it was wrong or the incident removed.
    pub right: u32,
    pub wrong: u32,
    /// Number of series of five such marks without an answer.
    pub ignored: u32,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// Suspicions of a recorder with automatic marks, counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AutoCounts {
    /// Kept, or reported in a dry run.
    pub marked: u64,
    /// Recorded and diagnosed: the sum of `marked` and the next three.
    pub looked_at: u64,
    /// Diagnosed without an unusual cause.
    pub without_finding: u64,
    /// Diagnosed with a cause that was already marked within the hour.
    pub known_causes: u64,
    /// Could not be recorded or diagnosed.
    pub failed: u64,
    /// Ignored because of the hourly limits.
    pub passed_over: u64,
    /// Inputs of unknown latency: presses on connections beyond the limit, and messages not noted
    /// because another CPU was busy with the connection.
    pub unwatched: u64,
}

/// Type of the recorder's socket.
#[derive(Clone, Copy, Debug)]
pub enum RecorderSocket {}

impl Daemon for RecorderSocket {
    type Request = RecorderRequest;
    type Response = RecorderResponse;
    const NAME: &'static str = "recorder";
    const SOCKET: &'static str = SOCKET_NAME;
    const START: &'static str = "sudo tipme record";

    fn refusal(why: String) -> RecorderResponse {
        RecorderResponse::Error(why)
    }

    fn granted(response: RecorderResponse) -> Result<RecorderResponse, String> {
        if let RecorderResponse::Error(why) = response { Err(why) } else { Ok(response) }
    }

    fn not_allowed(uid: u32) -> String {
        format!("{} may not use this recorder; {LET_MARK}", accounts::in_words(uid))
    }

    /// Gives one reason and one remedy; further advice from polkit is left out.
    fn not_allowed_because(uid: u32, why: &str) -> String {
        match why.split("; ").next() {
            None | Some("") => RecorderSocket::not_allowed(uid),
            Some(why) => format!(
                "{} may not use this recorder, since {why}; {LET_MARK}",
                accounts::in_words(uid)
            ),
        }
    }
}

/// Remedy for a user without permission.
const LET_MARK: &str = "run: tipme setup (it makes you a member of the group tipme)";

/// Parses the line of a request to any daemon, with or without its newline.
///
/// # Errors
/// A description of the problem for the user; any bytes are accepted.
pub fn parse_request<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    parse(line).map_err(|why| format!("the request is not understood: {why}"))
}

/// Same for a response of any daemon.
///
/// # Errors
/// Those of [`parse_request`].
pub fn parse_response<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    parse(line).map_err(|why| format!("the answer is not understood: {why}"))
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    if line.len() > MAX_LINE_BYTES {
        return Err(format!("it has more than {MAX_LINE_BYTES} bytes"));
    }
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

/// Returns one line for any daemon, including its newline.
pub fn to_line(message: &impl Serialize) -> Vec<u8> {
    let mut line =
        serde_json::to_vec(message).expect("messages have string keys only, so they are JSON");
    line.push(b'\n');
    line
}
