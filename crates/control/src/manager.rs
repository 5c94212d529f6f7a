// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of the manager's socket. Their JSON forms are a contract, see the tests.

use crate::daemon::Daemon;
use crate::{CallOf, ClientOf, ServerOf, accounts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the manager's socket in the state directory.
pub const SOCKET_NAME: &str = "manage.sock";
/// Maximum number of sets listed in a [`ManagerStatus`]; the others are counted in `sets_left_out`.
pub const LISTED_MAX: usize = 128;

/// Client of the manager's socket.
pub type Client = ClientOf<ManagerSocket>;
/// The manager's socket.
pub type Server = ServerOf<ManagerSocket>;
/// A request to the manager.
pub type Call = CallOf<ManagerSocket>;

/// Type of the manager's socket.
#[derive(Clone, Copy, Debug)]
pub enum ManagerSocket {}

impl Daemon for ManagerSocket {
    type Request = ManagerRequest;
    type Response = ManagerResponse;
    const NAME: &'static str = "manager";
    const SOCKET: &'static str = SOCKET_NAME;
    const START: &'static str = "sudo tipme manage";

    fn refusal(why: String) -> ManagerResponse {
        ManagerResponse::Error(why)
    }

    fn granted(response: ManagerResponse) -> Result<ManagerResponse, String> {
        if let ManagerResponse::Error(why) = response { Err(why) } else { Ok(response) }
    }

    fn not_allowed(uid: u32) -> String {
        format!(
            "{} may not use this manager, only root and the user whose display it manages",
            accounts::in_words(uid)
        )
    }
}

/// A request of a client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ManagerRequest {
    /// Returns [`ManagerResponse::Status`].
    Status,
    /// Sets the user's strength: `off`, `gentle`, `normal` or `strong`. Returns
    /// [`ManagerResponse::Done`].
    Strength(String),
    /// Returns the treatment of a process and its reason as [`ManagerResponse::Why`].
    Why { pid: u32 },
}

/// A response of the manager.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ManagerResponse {
    Done,
    Status(Box<ManagerStatus>),
    Why(ProcessTreatment),
    /// Refusal: the object and the remedy, as a message for the user.
    Error(String),
}

/// How the manager is.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "tipme manage status --json")]
pub struct ManagerStatus {
    pub pid: u32,
    /// As in `:0`.
    pub display: String,
    /// Whose processes may be changed.
    pub user: u32,
    /// Only processes below this one are changed; left out where all of the user's may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under: Option<u32>,
    /// `off`, `gentle`, `normal` or `strong`.
    pub strength: String,
    /// `cgroup`, `systemd`, `autogroup` or `nice`.
    pub backend: String,
    /// The process that turns the knobs for a manager without root; left out where the manager does so itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helper: Option<u32>,
    /// What this back end or this user cannot do, and why.
    pub missing: Vec<String>,
    /// Since the manager was ready.
    pub seconds: f64,
    /// Somebody is at the desk.
    pub present: bool,
    /// For so long the display has not answered, and all stays as it was; left out where it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_seconds: Option<f64>,
    /// The display server, the window manager and what else every answer needs: program and pid.
    pub core: Vec<(String, u32)>,
    pub sets: Vec<SetStatus>,
    pub sets_left_out: usize,
    /// From the news of a focus change to the last knob.
    pub focus_changes: TimeFigures,
    pub memory: MemoryStatus,
    /// Left out where reading ahead is switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prediction: Option<PredictionStatus>,
    /// Left out where reading ahead is switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preload: Option<PreloadStatus>,
    pub counts: ManagerCounts,
    /// The manager's own CPU time since it was ready, in percent of one CPU.
    pub own_cpu_percent: f64,
    /// What of it goes to what; what is read ahead, by threads of its own, is not among it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub own_cpu_by: BTreeMap<String, f64>,
    /// The manager's own memory.
    pub own_rss_bytes: u64,
}

/// A set of processes and what it is to the user now.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SetStatus {
    /// Name of the process that is connected to the display, or leads the background job.
    pub program: String,
    pub pid: u32,
    pub role: String,
    /// Words for people.
    pub reason: String,
    pub processes: usize,
}

/// The latest times of one kind, at most a thousand of them; zeros where there is none.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TimeFigures {
    /// All since the start, also those that the percentiles no longer see.
    pub n: u64,
    pub last_ms: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

/// Memory at the last look.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MemoryStatus {
    pub total_bytes: u64,
    pub available_bytes: u64,
    /// Share of time in which some task waited for memory, over the last looks; 0 without the kernel's PSI.
    pub some_percent: f32,
    /// Looks at it since the start.
    pub looks: u64,
    /// What was done about it since the start.
    pub actions: u64,
}

/// How well the next set is predicted: one of the two used last.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PredictionStatus {
    /// Changes of focus from one set to another since the start.
    pub predictions: u64,
    /// Of these, those that went to one of the two sets that were ready.
    pub hits: u64,
    /// Sets that were brought into memory ahead.
    pub warmed: u64,
}

/// What was read ahead at the start; zeros while that is under way.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PreloadStatus {
    pub state: PreloadState,
    /// Programs whose files were read ahead.
    pub programs: u64,
    /// Files that were read ahead, and how many bytes these have.
    pub files: u64,
    pub bytes: u64,
    /// Of these bytes, those that were not in memory already; 0 where the kernel does not count them.
    pub fetched_bytes: u64,
    /// Files that were left out, since they are no longer as they were remembered.
    pub skipped: u64,
    /// From the begin to the end.
    pub seconds: f64,
    /// Of these, how long it stood still, since others waited for disk or memory or a program was started.
    pub paused_seconds: f64,
}

/// How far reading ahead has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreloadState {
    #[default]
    UnderWay,
    Done,
    /// It took so long that it was no longer ahead of anything.
    OutOfTime,
    /// The user's knob is off.
    Off,
}

/// Totals since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ManagerCounts {
    /// Knobs that were turned.
    pub changed: u64,
    /// Knobs that were left alone, each time for a reason.
    pub skipped: u64,
    /// Windows, sets, processes and hints beyond the bounds.
    pub dropped: u64,
    /// Claims of windows that were not believed.
    pub disbelieved: u64,
    /// Looks at processes that were due and were left, since all of them together take a thousandth of a CPU.
    pub looks_left: u64,
}

/// What is done to a process, and why.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "tipme why --json")]
pub struct ProcessTreatment {
    pub pid: u32,
    pub program: String,
    /// Left out for a process that has no role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Why it has its role, or why it is left alone: words for people.
    pub reason: String,
    /// `client`, `child`, `foreground`, `server`, `property` or `alone`; left out for what belongs to no set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub membership: Option<String>,
    /// The process that the set is named by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<u32>,
    /// Of a process without a role: what it has inherited from one that has, and what it is to have.
    pub knobs: Vec<KnobStatus>,
    /// Knobs that were left alone, and why.
    pub skipped: Vec<String>,
}

/// One knob of a process.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KnobStatus {
    /// Such as `nice`.
    pub name: String,
    /// As it was found.
    pub baseline: String,
    /// As the manager set it.
    pub applied: String,
}
