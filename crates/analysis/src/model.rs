// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verdict as a document. Its field names are a stable interface.
//!
//! Fields are only ever added. Times ending in `_ns` are CLOCK_MONOTONIC nanoseconds, durations
//! ending in `_ms` are milliseconds, `null` means not available.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of the document.
pub const SCHEMA: u32 = 2;

/// Why one interaction took long, or that none did.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "tipme diagnose --json")]
pub struct Verdict {
    pub schema: u32,
    pub incident: About,
    /// The interval to explain: the worst interaction. `null` where there was none.
    pub interval: Option<Interval>,
    /// Latencies of the same gesture in the same application at other times of the window.
    pub baseline: Option<Baseline>,
    /// Shares of the interval, which sum to its latency.
    pub partition: Vec<Piece>,
    pub unattributed_ms: f64,
    /// Causes by weight; empty where nothing took longer than its threshold.
    pub findings: Vec<Finding>,
    /// The delays that the user may mean, the most likely one first, which `interval` and
    /// `findings` explain in full; at most three.
    #[serde(default)]
    pub candidates: Vec<Candidate>,
    /// Delays that were over at the last answer (`incident.answered_s`), listed where nothing since
    /// then took long; at most three.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Candidate>,
    /// The way back from the end of the interval to its start, in the order of time.
    pub chain: Vec<Step>,
    /// Overhead of recording itself within the interval.
    pub overhead_ms: f64,
    /// Reservations about the verdict, in full sentences.
    pub notes: Vec<String>,
}

/// A delay that the user may mean, at a glance.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// The action waited for, as in `typing in xterm`.
    pub subject: String,
    pub start_ns: u64,
    pub end_ns: u64,
    pub latency_ms: f64,
    /// The first cause; `unattributed` where none was found.
    pub kind: CauseKind,
    /// The culprit of the first cause; `null` where none was found.
    pub culprit: Option<Culprit>,
    /// Confidence in the first cause, 0 to 1.
    pub confidence: f64,
    /// As in `findings`.
    pub unusual: bool,
}

/// The incident that was read.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct About {
    pub id: String,
    /// The mark, UTC, as in `2026-01-31T12:00:00Z`.
    pub time: String,
    pub machine: tipme_record::incident::Machine,
    pub user_text: String,
    /// The user's answer to whether the cause is right.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user_right: Option<bool>,
    /// Seconds before the mark that are held completely; some processes that ended then may be
    /// missing.
    pub window_s: f64,
    /// Number of keys, clicks, scrolls and motions among them that were looked at.
    #[serde(default)]
    pub inputs: usize,
    /// Names of the programs that took those, the one with most first; at most five.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Seconds of the window without recorded input, since a user had turned that off; left out
    /// where there were none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub input_stopped_s: f64,
    /// Seconds from the last press with an answer to the mark: delays that were over by then are
    /// not reported again. Left out where there was none within the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_s: Option<f64>,
    /// Seconds from the start of the recording to the mark; missing from documents of older
    /// versions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub recorded_s: f64,
    /// The mark, by the clock of the interval (CLOCK_MONOTONIC).
    #[serde(default)]
    pub mark_ns: u64,
    pub losses: Vec<tipme_record::incident::Loss>,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// The delay to explain.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    pub start_ns: u64,
    pub end_ns: u64,
    pub latency_ms: f64,
    /// `key`, `click`, `scroll`, `motion`, `start` (from an input to the first prompt or window of
    /// the program that it started), or `activity` where no input is known.
    pub class: String,
    /// Milestone at the end: `response` (the first drawing is shown), `handled` (the program waits
    /// for the next event), `completed` (the last drawing is shown, or the command is done), or
    /// `hanging`: none of them before the mark.
    #[serde(default)]
    pub milestone: String,
    /// `exact`, `speculative`, or `none` where no input and drawing were joined.
    pub join: String,
    pub client: Client,
    /// `true` if the client had the keyboard focus at the end, as reported by its compositor; left
    /// out where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focused: Option<bool>,
    /// The interval was still unfinished at the mark: its latency is a lower bound.
    pub censored: bool,
    /// The kind of input is known only from the shape of a Wayland message, since the client
    /// created its keyboard or pointer before the recorded time; left out where known exactly.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inferred: bool,
    /// Up to the last drawing that the input caused; `null` where there was only one or none.
    pub settled_ms: Option<f64>,
    /// From the input until the application took it; `null` where it was not taken.
    pub queue_ms: Option<f64>,
    /// The latency that people accept in this class.
    pub threshold_ms: f64,
    /// `true` if the latency exceeds the usual one by more than the threshold; the usual one counts
    /// as the threshold at most.
    pub exceeded: bool,
    /// The client went on drawing meanwhile: no gap between its drawings lasted three quarters of
    /// the interval. Left out elsewhere, and where the interval does not end with `handled`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drew: bool,
    /// The command in a terminal that the user waited for; left out elsewhere.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The shell ran that command by itself, for its prompt, a completion or a function. Left out
    /// elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prompt: bool,
    /// Time from the receipt of the last key or click, for a client that stayed away from its event
    /// loop though no input was late; left out elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_input_ms: Option<f64>,
    /// Number of messages from its display server that such a client left unread; left out where
    /// there were none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub untaken: usize,
}

/// The application that the user waited for.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    pub pid: u32,
    pub comm: String,
    pub cmdline: String,
}

/// The same class in the same application, the interval itself left out.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    pub n: usize,
    /// `null` with fewer than 10 observations.
    pub p50_ms: Option<f64>,
    /// `null` with fewer than 250 observations.
    pub p98_ms: Option<f64>,
    pub max_ms: f64,
    /// From the recorder's coarse statistics of the time before the window; left out where it is
    /// from the window.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stored: bool,
}

/// A share of the interval: what a thread on the chain did or waited for.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Piece {
    /// `running`, `runnable`, `blocked` or `unknown`.
    pub state: String,
    pub kind: CauseKind,
    pub ms: f64,
    pub pid: u32,
    pub comm: String,
    pub detail: String,
}

/// A cause.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub kind: CauseKind,
    pub culprit: Culprit,
    /// `true` if the delay is longer than its class accounts for; `false` where a command or start
    /// just did its work, and where less than half of the delay is explained. Always `true` after
    /// an automatic mark.
    #[serde(default)]
    pub unusual: bool,
    /// The name of the program that the culprit delayed directly, where that is not the client but,
    /// for example, the compositor; left out elsewhere.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub waiter: String,
    /// `waiter` descends from the client, and does not belong to the command that the user waited
    /// for. Left out elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub within: bool,
    /// No process is known to owe the answer or to hold the lock: the culprit is the waiter itself.
    /// Left out elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unowed: bool,
    /// The lock is a condition or a semaphore that the culprit had to signal. Left out elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signalled: bool,
    /// Another thread of the waiting process held the lock. Left out elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held_by_own_thread: bool,
    /// The culprit kept the computing program, `waiter` or the client, busy with data that it sent.
    /// Left out elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept_at_work: bool,
    pub ms: f64,
    /// Share of the latency beyond the usual one, 0 to 1.
    pub share: f64,
    /// 0 to 1.
    pub confidence: f64,
    /// The first line names the culprit and what it did; the others give figures.
    pub evidence: Vec<String>,
    /// Kernel functions of its longest wait, the innermost first; left out where they are not
    /// known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<String>,
    pub remedy: String,
    /// Owner of the CPU during a stall; left out elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outsider: Option<Outsider>,
    /// Number of other jobs that did the same, each to a lesser extent, so that the culprit stands
    /// for them; left out where there were none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub others: usize,
    /// Seconds between one activation of the culprit and the next; `null` where they are not
    /// regular.
    #[serde(default)]
    pub period_s: Option<f64>,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Owner of a CPU on which nothing of this machine runs, as far as there is evidence.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Outsider {
    /// It counts the time as taken, or the machine is a virtual one and no device was waited for.
    Hypervisor,
    /// All CPUs of a machine without a hypervisor stopped at once.
    Firmware,
    /// One CPU stopped in code that accesses a device, while others went on.
    Device,
    /// None of them is shown.
    Undecided,
}

/// Process, device or remote host to blame.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Culprit {
    Process {
        pid: u32,
        comm: String,
        cmdline: String,
        /// The job that the process belongs to, as in `make (pid 3988)`; `null` where it is its own
        /// job.
        job: Option<String>,
    },
    Device {
        device: String,
    },
    Address {
        address: String,
    },
}

impl Interval {
    /// Describes the action that the user waited for, as in `typing in xterm` or ``the command
    /// `make` in xterm``.
    pub fn subject(&self) -> String {
        let comm = &self.client.comm;
        match self.class.as_str() {
            _ if self.prompt => {
                let program = if self.command.is_empty() {
                    ""
                } else {
                    &format!(": `{}`", cut_command(&self.command))
                };
                format!("the shell's own work in {comm} (prompt, completion or function{program})")
            }
            "start" if self.command.is_empty() => format!("the start of a program from {comm}"),
            "start" => format!("the start of `{}` from {comm}", cut_command(&self.command)),
            _ if !self.command.is_empty() => {
                format!("the command `{}` in {comm}", cut_command(&self.command))
            }
            "key" => format!("typing in {comm}"),
            "click" => format!("clicking in {comm}"),
            "scroll" => format!("scrolling in {comm}"),
            "motion" => format!("moving the pointer in {comm}"),
            _ => format!("{comm} (pid {})", self.client.pid),
        }
    }
}

/// Maximum length of a command line in characters; longer ones are cut.
const COMMAND_MAX: usize = 60;

fn cut_command(line: &str) -> String {
    let mut cut: String = line.chars().take(COMMAND_MAX).collect();
    if cut.len() < line.len() {
        cut.push('…');
    }
    cut
}

impl Default for Culprit {
    fn default() -> Culprit {
        Culprit::Device { device: String::new() }
    }
}

/// One stay of the chain in one thread.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    pub start_ns: u64,
    pub end_ns: u64,
    pub pid: u32,
    pub comm: String,
    pub state: String,
    pub detail: String,
    /// Thread that ended a wait; `null` where the step is no wait, or the thread is not known.
    pub woken_by: Option<String>,
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident = $name:literal,)*) => {
        /// Cause of a share of the interval.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize, JsonSchema)]
        #[schemars(rename = "Kind")]
        pub enum CauseKind {
            $($(#[doc = $doc])* #[serde(rename = $name)] $kind,)*
            /// Nothing recorded explains it.
            #[default]
            #[serde(rename = "unattributed")]
            Unattributed,
        }

        impl CauseKind {
            /// Every kind that can be a finding.
            pub const CAUSES: &[CauseKind] = &[$(CauseKind::$kind,)*];

            /// The name in text and JSON.
            pub fn name(self) -> &'static str {
                match self { $(CauseKind::$kind => $name,)* CauseKind::Unattributed => "unattributed" }
            }
        }
    };
}

kinds! {
    /// Runnable while others ran.
    CpuCompetition = "cpu-competition",
    /// Runnable but held back by the quota of its control group.
    CpuThrottled = "cpu-throttled",
    /// Ran longer than usual.
    OwnComputation = "own-computation",
    /// A page of a file had to be read.
    PageIn = "page-in",
    /// A page had to be read from swap.
    SwapIn = "swap-in",
    /// Memory had to be freed first.
    Reclaim = "reclaim",
    /// Waited for block I/O.
    DiskQueue = "disk-queue",
    /// Waited for I/O that no disk had got yet.
    IoHeldBack = "io-held-back",
    /// Waited until data was on the disk.
    Fsync = "fsync",
    /// Waited for a lock that another thread held.
    LockWait = "lock-wait",
    /// Waited for a lock inside the kernel.
    KernelLock = "kernel-lock",
    /// Waited inside the kernel for something that has no name of its own here.
    KernelWait = "kernel-wait",
    /// The display server served another client.
    ServerBusy = "server-busy",
    /// Another client held a grab of the display server.
    ServerGrab = "server-grab",
    /// Waited for another process to answer.
    PeerWait = "peer-wait",
    /// Waited for an answer over the network.
    NetworkWait = "network-wait",
    /// Waited for a child to end.
    ChildWait = "child-wait",
    /// Slept by itself.
    TimerSleep = "timer-sleep",
    /// Was stopped by a signal, a debugger or the freezer.
    Stopped = "stopped",
    /// Interrupt handlers took the CPU.
    Interrupt = "interrupt",
    /// Time passed on a CPU that no record explains.
    Stall = "stall",
}

impl fmt::Display for CauseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
