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

/// How the recorder is.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Status")]
pub struct RecorderStatus {
    pub pid: u32,
    /// When recording began, CLOCK_MONOTONIC.
    pub armed_ns: u64,
    /// How far back the records reach now, in seconds.
    pub held_s: f64,
    /// How far back an incident reaches if memory allows, in seconds.
    pub window_s: f64,
    /// How far back it is known what processes were that have ended, in seconds.
    pub ended_s: f64,
    /// Why no further: `time` they are kept no longer, `memory` the memory holds no more, `start` recording began then.
    pub ended_bound: String,
    /// Records that were lost since it was armed.
    pub lost: u64,
    /// Since when recording is paused, CLOCK_MONOTONIC; left out where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_since_ns: Option<u64>,
    /// The user who paused it; left out where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_by_uid: Option<u32>,
    /// Users that may mark, besides root.
    pub allowed: Vec<u32>,
    /// Why the one who asks may mark, for people.
    pub because: String,
    /// What the recorder's own hot keys do, for people; left out where it sees none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hot_keys: Option<String>,
    /// They count over a graphical session too, not on text consoles only; left out where they do not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub any_keyboard: bool,
    /// False while input records are stopped.
    pub keys: bool,
    /// First of the users that stopped them; left out where none has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_stopped_by_uid: Option<u32>,
    /// For how long of the window no input was recorded, in seconds; left out where it always was.
    #[serde(skip_serializing_if = "is_zero")]
    pub input_stopped_s: f64,
    /// What is recorded more closely than usual; left out where nothing is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<RecordedDetail>,
    /// Displays that are recorded, such as `:0`.
    pub displays: Vec<String>,
    /// Who has the keyboard focus on compositors of the one who asks; left out where nobody is known to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub focus: Vec<Focused>,
    /// What cannot be recorded, and why.
    pub missing: Vec<String>,
    /// It is counted what each user lives with; left out where it is not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub day: bool,
    /// Incidents of the one who asks that were marked without being asked for, by id, the oldest first; left out where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suggested: Vec<String>,
    /// What the one who asks puts up with, where that is not the usual; left out where it all is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerances: Vec<ToldTolerance>,
    /// What became of latencies that the recorder noticed by itself; left out where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto: Option<AutoCounts>,
}

/// Something that is recorded more closely than usual.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Detail")]
pub struct RecordedDetail {
    /// `waits`, `interrupts`, `locks`, `writers` or `memory`.
    pub name: String,
    /// Since when, CLOCK_MONOTONIC.
    pub since_ns: u64,
    /// Until when, CLOCK_MONOTONIC; left out where the recorder was started so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ns: Option<u64>,
    /// The user who asked for it until then; left out where the recorder was started so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_uid: Option<u32>,
}

/// Who has the keyboard focus on a compositor of Wayland, as the compositor told its clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Focused {
    /// The process of the compositor.
    pub server: u32,
    /// The process of the client; `null` where none has it, or one of another user.
    pub client: Option<u32>,
    /// Since when, CLOCK_MONOTONIC.
    pub since_ns: u64,
}

/// The limits of the automatic mark for one class of one application, and what moved them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ToldTolerance {
    pub class: String,
    pub application: String,
    /// Of the usual limits, from 50 to 200.
    pub percent: u64,
    /// Marks of what was within the limits.
    pub bad: u32,
    /// Answers that it was this, and that it was something else (a removal is one), to what was marked without being asked for.
    pub right: u32,
    pub wrong: u32,
    /// How often five such marks in a row had no answer.
    pub ignored: u32,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// Suspicions of a recorder that marks by itself, counted since it was armed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AutoCounts {
    /// Kept, or told of in a dry run.
    pub marked: u64,
    /// Recorded and diagnosed; the next three and `marked` are what became of these.
    pub looked_at: u64,
    /// Nothing unusual was found.
    pub without_finding: u64,
    /// The cause had been marked within the hour.
    pub known_causes: u64,
    /// Could not be recorded or diagnosed.
    pub failed: u64,
    /// Not looked at, because the bounds of an hour were reached.
    pub passed_over: u64,
    /// Presses on connections beyond those that can be watched at once, and messages that could not be noted as another CPU was
    /// at that connection: how long they took is not known.
    pub unwatched: u64,
}

impl RecorderRequest {
    /// Parses a line, with or without its newline.
    ///
    /// # Errors
    /// A description of the problem for the user; any bytes are accepted.
    pub fn parse(line: &[u8]) -> Result<RecorderRequest, String> {
        request(line)
    }

    /// Returns the line to send, including its newline.
    pub fn to_line(&self) -> Vec<u8> {
        to_line(self)
    }
}

impl RecorderResponse {
    /// Parses a line, with or without its newline.
    ///
    /// # Errors
    /// A description of the problem for the user; any bytes are accepted.
    pub fn parse(line: &[u8]) -> Result<RecorderResponse, String> {
        response(line)
    }

    /// Returns the line to send, including its newline.
    pub fn to_line(&self) -> Vec<u8> {
        to_line(self)
    }
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

/// Remedy for a user who may not mark.
const LET_MARK: &str = "run: tipme setup (it makes you a member of the group tipme)";

/// Parses a request to any daemon.
pub(crate) fn request<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    parse(line).map_err(|why| format!("the request is not understood: {why}"))
}

/// Parses a response of any daemon.
pub(crate) fn response<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    parse(line).map_err(|why| format!("the answer is not understood: {why}"))
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    if line.len() > MAX_LINE_BYTES {
        return Err(format!("it has more than {MAX_LINE_BYTES} bytes"));
    }
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

/// Returns one line for any daemon, including its newline.
pub(crate) fn to_line(message: &impl Serialize) -> Vec<u8> {
    let mut line =
        serde_json::to_vec(message).expect("messages have string keys only, so they are JSON");
    line.push(b'\n');
    line
}
