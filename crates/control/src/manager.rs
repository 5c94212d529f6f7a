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
            "{} may not use this manager, only root and the user of its display may",
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

/// State of the manager.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "tipme manage status --json")]
pub struct ManagerStatus {
    pub pid: u32,
    /// Name of the display, such as `:0`.
    pub display: String,
    /// Uid of the user with the processes that may be changed.
    pub user: u32,
    /// Only descendants of this process are changed; left out if all of the user's may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under: Option<u32>,
    /// `off`, `gentle`, `normal` or `strong`.
    pub strength: String,
    /// `cgroup`, `systemd`, `autogroup` or `nice`.
    pub backend: String,
    /// Helper process of a manager without root; left out if the manager changes processes itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helper: Option<u32>,
    /// Functions missing with this backend or for this user, each with the reason.
    pub missing: Vec<String>,
    /// Seconds since the manager became ready.
    pub seconds: f64,
    /// The user is present.
    pub present: bool,
    /// Time since the display's last answer, while nothing is changed; left out if it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_seconds: Option<f64>,
    /// Display server, window manager and other session processes: program and pid.
    pub core: Vec<(String, u32)>,
    pub sets: Vec<SetStatus>,
    pub sets_left_out: usize,
    /// Time from the notification of a focus change to the last knob.
    pub focus_changes: TimeFigures,
    pub memory: MemoryStatus,
    /// Left out if reading ahead is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prediction: Option<PredictionStatus>,
    /// Left out if reading ahead is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preload: Option<PreloadStatus>,
    pub counts: ManagerCounts,
    /// The manager's own CPU time since it was ready, in percent of one CPU.
    pub own_cpu_percent: f64,
    /// CPU time in percent by task; threads that read ahead are not included.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub own_cpu_by: BTreeMap<String, f64>,
    /// Resident memory of the manager.
    pub own_rss_bytes: u64,
}

/// A set of processes and its role for the user.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SetStatus {
    /// Name of the process that is connected to the display or leads the background job.
    pub program: String,
    pub pid: u32,
    pub role: String,
    /// Human-readable.
    pub reason: String,
    pub processes: usize,
}

/// Distribution of the latest times of one kind, at most a thousand; zeros without any.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TimeFigures {
    /// Number since the start, including those no longer in the percentiles.
    pub n: u64,
    pub last_ms: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

/// Memory at the last sample.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MemoryStatus {
    pub total_bytes: u64,
    pub available_bytes: u64,
    /// PSI `some` of memory over the last samples, in percent; 0 if the kernel does not provide it.
    pub some_percent: f32,
    /// Number of samples since the start.
    pub looks: u64,
    /// Number of memory actions since the start.
    pub actions: u64,
}

/// Accuracy of the prediction that the focus moves to one of the two sets used last.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PredictionStatus {
    /// Number of focus changes from one set to another since the start.
    pub predictions: u64,
    /// Number of these that went to one of the two predicted sets.
    pub hits: u64,
    /// Number of sets prefetched into memory.
    pub warmed: u64,
}

/// Files read ahead at the start; zeros until that has ended.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PreloadStatus {
    pub state: PreloadState,
    /// Number of programs with files read ahead.
    pub programs: u64,
    /// Files that were read ahead, and how many bytes these have.
    pub files: u64,
    pub bytes: u64,
    /// Bytes of these that were not in memory yet; 0 if the kernel does not count them.
    pub fetched_bytes: u64,
    /// Number of files skipped because they have changed since they were remembered.
    pub skipped: u64,
    /// Time from begin to end.
    pub seconds: f64,
    /// Part of it spent paused, because others waited for disk or memory, or a program started.
    pub paused_seconds: f64,
}

/// Progress of reading ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreloadState {
    #[default]
    UnderWay,
    Done,
    /// Stopped at its time limit.
    OutOfTime,
    /// Disabled by the user's strength `off`.
    Off,
}

/// Totals since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ManagerCounts {
    /// Number of changed knobs.
    pub changed: u64,
    /// Number of knobs left alone, each for a reason.
    pub skipped: u64,
    /// Number of windows, sets, processes and hints dropped at the bounds.
    pub dropped: u64,
    /// Number of rejected claims of windows.
    pub disbelieved: u64,
    /// Number of process checks skipped to stay within a thousandth of a CPU.
    pub looks_left: u64,
}

/// Treatment of a process, with its reason.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "tipme why --json")]
pub struct ProcessTreatment {
    pub pid: u32,
    pub program: String,
    /// Left out for a process without a role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Reason for its role, or for leaving it alone; human-readable.
    pub reason: String,
    /// `client`, `child`, `foreground`, `server`, `property` or `alone`; left out without a set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub membership: Option<String>,
    /// Process that the set is named after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<u32>,
    /// For a process without a role: values inherited from one with a role, and those to restore.
    pub knobs: Vec<KnobStatus>,
    /// Knobs left alone, each with the reason.
    pub skipped: Vec<String>,
}

/// One knob of a process.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KnobStatus {
    /// Name, such as `nice`.
    pub name: String,
    /// Value found by the manager.
    pub baseline: String,
    /// Value set by the manager.
    pub applied: String,
}
