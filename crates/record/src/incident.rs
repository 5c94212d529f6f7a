// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contents of an incident: sections of bytes, some of them JSON documents.
//!
//! The recorder fills an [`Incident`], the store writes and reads it, the analysis evaluates it.
//! Nothing here reads or writes a file.

use crate::chunk::CHUNK_BYTES;
use crate::units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io;

/// Kind of a section, with its number; `docs/reference/format.md` gives the layout of each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u32)]
pub enum Section {
    /// JSON, a [`Meta`].
    Meta = 1,
    /// Chunks of switch, waking and migrate records.
    Sched = 2,
    /// Chunks of all other records.
    Rare = 3,
    /// Chunks of exit records.
    Exits = 4,
    /// Task and wait records of the live tasks, and block requests in flight, at the mark.
    Tasks = 5,
    /// Command lines of live processes.
    Cmdlines = 6,
    /// Stacks by content.
    Stacks = 7,
    /// Names of functions.
    Symbols = 8,
    /// JSON, a list of [`Display`].
    Displays = 9,
    /// Raw text of pressure, CPU and memory files, once a second, and ten times under pressure.
    Samples = 10,
    /// Input records from evdev devices.
    Inputs = 11,
    /// JSON, [`Locks`].
    Locks = 12,
    /// JSON, [`Losses`].
    Losses = 13,
    /// JSON, [`Cost`].
    Cost = 14,
    /// JSON, [`Words`]; may be appended to a sealed file, see [`Incident::words`].
    Words = 15,
    /// JSON, [`Groups`].
    Groups = 16,
    /// JSON, a list of [`FileName`].
    Files = 17,
    /// JSON, a list of [`StoredBaseline`].
    Baselines = 18,
    /// JSON, a list of [`PortOwner`].
    Ports = 19,
}

impl Section {
    /// All sections in write order.
    pub const ALL: [Section; 19] = [
        Section::Meta,
        Section::Sched,
        Section::Rare,
        Section::Exits,
        Section::Tasks,
        Section::Cmdlines,
        Section::Stacks,
        Section::Symbols,
        Section::Displays,
        Section::Samples,
        Section::Inputs,
        Section::Locks,
        Section::Losses,
        Section::Cost,
        Section::Groups,
        Section::Files,
        Section::Baselines,
        Section::Ports,
        Section::Words,
    ];

    /// Returns `true` if the section consists of chunks.
    pub fn has_chunks(self) -> bool {
        matches!(self, Section::Sched | Section::Rare | Section::Exits)
    }

    /// Returns the section with this number, if there is one.
    pub fn from_number(number: u32) -> Option<Section> {
        Section::ALL.into_iter().find(|section| *section as u32 == number)
    }
}

/// The recorder's description of itself and the machine.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// Unique id of the incident, also its file name without ending.
    pub id: String,
    /// Time of the mark, CLOCK_MONOTONIC.
    pub mark_ns: u64,
    /// Time of the mark in nanoseconds since 1970 UTC.
    pub mark_realtime_ns: u64,
    pub machine: Machine,
    /// Length of the window requested.
    pub window_requested_ns: u64,
    /// Time from which on records of all classes except ended processes are complete.
    pub held_from_ns: u64,
    /// Complete time and number of bytes of each class.
    pub classes: Vec<ClassHeld>,
    /// Start of recording; the first 100 ms after it are tainted by the attaching of programs.
    pub armed_ns: u64,
    /// Time before which records may be incomplete because programs were being attached.
    pub tainted_until_ns: u64,
    /// Record classes that were enabled.
    pub classes_on: Vec<String>,
    /// Details recorded in all or part of the window: `waits`, `interrupts`, `locks`, `writers`,
    /// `memory`.
    pub details: Vec<String>,
    /// Spans of details that a user requested while the recorder ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub detail_spans: Vec<DetailSpan>,
    /// Records that were not available, with the reason.
    pub missing: Vec<Missing>,
    /// Part of the window without recorded input, at a user's request.
    pub input_stopped_ns: u64,
    pub recorder_pid: u32,
    pub marked_by_uid: u32,
    /// `command`, `hotkey`, `signal` or `auto`.
    pub trigger: String,
    /// This user's previous mark by hot key, CLOCK_MONOTONIC: problems that were over by then have
    /// been answered. Zero if there is none, or if this mark was not made by hot key.
    #[serde(skip_serializing_if = "is_zero")]
    pub answered_ns: u64,
    /// Text given with the mark; later text is in the section [`Words`].
    pub user_text: String,
    /// Interrupt numbers with their names.
    pub irq_names: Vec<(u32, String)>,
    /// Device numbers (kernel encoding) of block devices with their names.
    pub devices: Vec<(u32, String)>,
    /// Page size in bytes.
    pub page_size: u64,
    /// Recorded data left out of the file, since it belongs to other users.
    pub withheld: Withheld,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// Amount of data that belongs to users other than the marking one and services.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Withheld {
    /// Number of users known to own some of it.
    pub users: u32,
    /// Display messages.
    pub messages: u64,
    /// Events of input devices, and terminal data.
    pub inputs: u64,
    pub command_lines: u64,
}

impl Withheld {
    /// Describes it, as in `input and messages of 1 other user`; returns `None` if nothing is
    /// withheld.
    pub fn summary(&self) -> Option<String> {
        let kinds = [
            ("input", self.inputs),
            ("messages", self.messages),
            ("command lines", self.command_lines),
        ];
        let kinds: Vec<&str> =
            kinds.into_iter().filter(|(_, count)| *count > 0).map(|(kind, _)| kind).collect();
        let (last, first) = kinds.split_last()?;
        let kinds = if first.is_empty() {
            (*last).to_owned()
        } else {
            format!("{} and {last}", first.join(", "))
        };
        let users = match self.users {
            0 => "other users".to_owned(),
            1 => "1 other user".to_owned(),
            many => format!("{many} other users"),
        };
        Some(format!("{kinds} of {users}"))
    }
}

/// Time in which a detail was recorded, CLOCK_MONOTONIC.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DetailSpan {
    pub name: String,
    pub from_ns: u64,
    pub until_ns: u64,
}

/// The machine that was recorded.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Machine {
    pub hostname: String,
    pub kernel: String,
    pub cpus: u32,
    /// Runs under a hypervisor.
    pub virtualized: bool,
}

/// Time that one class of records reaches back to.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassHeld {
    pub name: String,
    pub held_from_ns: u64,
    pub bytes: u64,
    /// Reason for that bound: `time` for the requested window, `memory` for its size, `start` for
    /// the start of recording. Empty in older files.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bound: String,
}

/// A kind of record that is not available on this machine.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Missing {
    pub what: String,
    pub why: String,
}

/// One X server.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Display {
    /// Number as in `:99`.
    pub display: u32,
    pub server_pid: u32,
    pub extensions: Vec<Extension>,
}

/// A protocol extension with the major opcode assigned by this server.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Extension {
    pub name: String,
    pub major: u8,
}

/// Owners of locks and pipes at the mark.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Locks {
    /// Text of /proc/locks.
    pub proc_locks: String,
    /// Owners in the lock words of mutexes that threads were waiting for.
    pub futexes: Vec<FutexOwner>,
    /// Holders of the other ends of pipes that threads were waiting for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pipes: Vec<PipeEnd>,
}

/// A process that held the other end of a pipe that a thread waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PipeEnd {
    pub tid: u32,
    pub inode: u64,
    pub holder: u32,
}

/// A thread that waited for a mutex at the mark, and the owner in the lock word.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FutexOwner {
    pub tid: u32,
    pub address: u64,
    pub owner: u32,
}

/// Limits of control groups that existed at the mark.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Groups {
    /// Groups that were throttled because of an exhausted CPU quota.
    pub limited: Vec<LimitedGroup>,
    /// Threads that lived at the mark but ended before the members of groups were read: they may be
    /// missing there.
    pub ended: Vec<u32>,
    /// I/O limits of the groups of threads that waited for I/O.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub io: Vec<IoLimitedGroup>,
}

/// A control group with I/O limits.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IoLimitedGroup {
    /// Its folder, including the mount.
    pub folder: String,
    pub limits: Vec<IoLimit>,
    /// Threads that had waited for I/O, in this group or one below it.
    pub tids: Vec<u32>,
}

/// A limit on one kind of I/O to one device.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IoLimit {
    /// File that sets it.
    pub file: String,
    /// Device in the kernel's encoding.
    pub device: u32,
    /// `true` for writes, `false` for reads.
    pub write: bool,
    /// `true` for operations, `false` for bytes.
    pub operations: bool,
    pub per_second: u64,
}

/// A control group with a CPU quota.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitedGroup {
    /// The kernel's number of the group, as in throttling records.
    pub number: u64,
    /// Path below the mount of the hierarchy, as in /proc/PID/cgroup.
    pub path: String,
    /// File that sets the quota.
    pub file: String,
    /// CPU time per period at the mark, in microseconds; 0 if the quota had been removed by then.
    pub quota_us: u64,
    pub period_us: u64,
    /// Threads in this group or one below it at the mark.
    pub tids: Vec<u32>,
    /// Processes in them, in files without the threads.
    pub pids: Vec<u32>,
}

/// Path of a file that threads waited for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FileName {
    /// Device of its file system in the kernel's encoding.
    pub device: u32,
    pub inode: u64,
    pub path: String,
}

/// A process that owns a local port that threads waited for at the mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PortOwner {
    pub port: u16,
    pub pid: u32,
}

/// Baseline of a class of interactions in an application, learned until the mark from before the
/// window: coarse times, at most 1/8 too long. Those of a response run from the press to the
/// client's next drawing request.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredBaseline {
    /// `key` or `click`.
    pub class: String,
    /// Name of the client's program.
    pub application: String,
    /// `response`, `handled` or `completed`; empty in older files, which hold responses only.
    pub milestone: String,
    pub n: u64,
    pub p50_ns: u64,
    pub p98_ns: u64,
    pub max_ns: u64,
}

impl StoredBaseline {
    /// Milestone counted by the kernel: the first drawing after a press.
    pub const RESPONSE: &str = "response";

    /// Returns the milestone that these times belong to.
    pub fn milestone(&self) -> &str {
        if self.milestone.is_empty() { StoredBaseline::RESPONSE } else { &self.milestone }
    }
}

/// Records that could not be kept.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Losses {
    /// Losses by second and class.
    pub per_second: Vec<Loss>,
}

/// Losses of one class within one second.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Loss {
    /// End of the second, CLOCK_MONOTONIC nanoseconds.
    pub until_ns: u64,
    pub class: String,
    pub count: u64,
}

/// Cost of recording.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    pub programs: Vec<ProgramCost>,
    /// CPU time of the recorder in user space since it was armed.
    pub user_cpu_ns: u64,
    /// Time since it was armed.
    pub wall_ns: u64,
}

/// Mean sampled cost of one kernel program.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramCost {
    pub name: String,
    pub runs_per_second: f64,
    pub ns_per_run: f64,
}

/// Text and verdict given by the user after the mark.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Words {
    pub text: String,
    /// `true` if the cause found was the right one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<bool>,
    pub at_ns: u64,
}

impl Words {
    /// Combines these words with later ones: fields that those leave empty stay.
    pub fn then(self, later: Words) -> Words {
        let text = if later.text.is_empty() { self.text } else { later.text };
        Words { text, right: later.right.or(self.right), at_ns: later.at_ns }
    }
}

/// A damaged part of a file, and the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    pub place: String,
    pub why: String,
}

/// Sections of an incident, of which those with chunks need not be unpacked in memory.
pub trait Sections {
    /// Returns the sections without chunks.
    fn incident(&self) -> &Incident;

    /// Passes the chunks of a section to `see`, one after the other.
    ///
    /// # Errors
    /// If they cannot be read.
    fn see_chunks(&self, section: Section, see: &mut dyn FnMut(&[u8])) -> io::Result<()>;
}

impl Sections for Incident {
    fn incident(&self) -> &Incident {
        self
    }

    fn see_chunks(&self, section: Section, see: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        self.bytes(section).chunks(CHUNK_BYTES).for_each(see);
        Ok(())
    }
}

/// An incident in memory, with unpacked sections.
#[derive(Clone, Debug, Default)]
pub struct Incident {
    pub sections: Vec<(Section, Vec<u8>)>,
    /// Empty for an intact file.
    pub damage: Vec<Damage>,
}

impl Incident {
    /// Returns the bytes of a section, the last one if there are several; empty if there is none.
    pub fn bytes(&self, section: Section) -> &[u8] {
        self.sections
            .iter()
            .rev()
            .find(|(kind, _)| *kind == section)
            .map_or(&[], |(_, bytes)| bytes)
    }

    /// Parses a JSON section. Returns the default value if the section is missing, and an error if
    /// it is not a valid document.
    pub fn json<T: for<'a> Deserialize<'a> + Default>(
        &self,
        section: Section,
    ) -> Result<T, serde_json::Error> {
        let bytes = self.bytes(section);
        if bytes.is_empty() { Ok(T::default()) } else { serde_json::from_slice(bytes) }
    }

    /// Returns the user's last text and last verdict, which may be in different sections.
    pub fn words(&self) -> Result<Words, serde_json::Error> {
        let mut words = Words::default();
        for (_, bytes) in self.sections.iter().filter(|(kind, _)| *kind == Section::Words) {
            words = words.then(serde_json::from_slice(bytes)?);
        }
        Ok(words)
    }

    /// Adds a section of raw bytes.
    pub fn push(&mut self, section: Section, bytes: Vec<u8>) {
        self.sections.push((section, bytes));
    }

    /// Adds a JSON section.
    pub fn push_json<T: Serialize>(
        &mut self,
        section: Section,
        value: &T,
    ) -> Result<(), serde_json::Error> {
        self.push(section, serde_json::to_vec(value)?);
        Ok(())
    }

    /// Returns the time of the mark.
    pub fn mark(&self) -> Result<Nanos, serde_json::Error> {
        Ok(Nanos(self.json::<Meta>(Section::Meta)?.mark_ns))
    }
}
