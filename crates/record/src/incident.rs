// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an incident is made of: sections of bytes, some of them JSON documents.
//!
//! The recorder fills an [`Incident`], the store writes and reads it, the analysis takes it apart.
//! Nothing here reads or writes a file.

use crate::chunk::CHUNK_BYTES;
use crate::units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io;

/// Number and content of a section; `docs/format.md` gives the layout of each.
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
    /// Task and wait records of the tasks that live at the mark, and the block requests in flight.
    Tasks = 5,
    /// Command lines of living processes.
    Cmdlines = 6,
    /// Stacks by content.
    Stacks = 7,
    /// Names of functions.
    Symbols = 8,
    /// JSON, a list of [`Display`].
    Displays = 9,
    /// Raw text of pressure, CPU and memory files, once a second, and ten times while somebody waits for them.
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
    /// All sections in the order in which they are written.
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

    /// Whether it is one of chunks.
    pub fn has_chunks(self) -> bool {
        matches!(self, Section::Sched | Section::Rare | Section::Exits)
    }

    /// The section with this number, if there is one.
    pub fn from_number(number: u32) -> Option<Section> {
        Section::ALL.into_iter().find(|section| *section as u32 == number)
    }
}

/// What the recorder knew of itself and of the machine.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// Unique name of the incident, also its file name without ending.
    pub id: String,
    /// The mark, CLOCK_MONOTONIC.
    pub mark_ns: u64,
    /// The mark, nanoseconds since 1970 UTC.
    pub mark_realtime_ns: u64,
    pub machine: Machine,
    /// Seconds asked for, as nanoseconds.
    pub window_requested_ns: u64,
    /// Records of all classes but that of ended processes are complete from here on.
    pub held_from_ns: u64,
    /// Per class: complete from where, and how many bytes.
    pub classes: Vec<ClassHeld>,
    /// When recording began; the first 100 ms after it are tainted by the attaching.
    pub armed_ns: u64,
    /// Records before this time may be incomplete because programs were being attached.
    pub tainted_until_ns: u64,
    /// Record classes that were switched on.
    pub classes_on: Vec<String>,
    /// What was recorded more closely than usual, in all of the window or in a part of it: `waits`, `interrupts`, `locks`,
    /// `writers`, `memory`.
    pub details: Vec<String>,
    /// In which part, where somebody asked for it while the recorder ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub detail_spans: Vec<DetailSpan>,
    /// What could not be recorded, and why.
    pub missing: Vec<Missing>,
    /// For how long of the window no input was recorded, since somebody did not want it.
    pub input_stopped_ns: u64,
    pub recorder_pid: u32,
    pub marked_by_uid: u32,
    /// `command`, `hotkey`, `signal` or `auto`.
    pub trigger: String,
    /// The last earlier mark of this user by hot key, CLOCK_MONOTONIC: what was over by then was
    /// answered. Zero for none, and where this mark was not made by hot key.
    #[serde(skip_serializing_if = "is_zero")]
    pub answered_ns: u64,
    /// What the user said with the mark; later words are in the section [`Words`].
    pub user_text: String,
    /// Interrupt numbers and their names.
    pub irq_names: Vec<(u32, String)>,
    /// Device numbers (kernel encoding) of block devices and their names.
    pub devices: Vec<(u32, String)>,
    /// Page size in bytes.
    pub page_size: u64,
    /// What was recorded and is not in the file, since it belongs to users other than whoever marked.
    pub withheld: Withheld,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// How much belongs to others, who are neither whoever marked nor services.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Withheld {
    /// Users that are known to own some of it.
    pub users: u32,
    /// Messages of displays.
    pub messages: u64,
    /// Events of input devices, and data of terminals.
    pub inputs: u64,
    pub command_lines: u64,
}

impl Withheld {
    /// What people are told of it: `input and messages of 1 other user`; `None` where all is there.
    pub fn told(&self) -> Option<String> {
        let kinds = [("input", self.inputs), ("messages", self.messages), ("command lines", self.command_lines)];
        let kinds: Vec<&str> = kinds.into_iter().filter(|(_, count)| *count > 0).map(|(kind, _)| kind).collect();
        let (last, first) = kinds.split_last()?;
        let kinds = if first.is_empty() { (*last).to_owned() } else { format!("{} and {last}", first.join(", ")) };
        let users = match self.users {
            0 => "other users".to_owned(),
            1 => "1 other user".to_owned(),
            many => format!("{many} other users"),
        };
        Some(format!("{kinds} of {users}"))
    }
}

/// When something was recorded more closely than usual, CLOCK_MONOTONIC.
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

/// How far back one class of records reaches.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassHeld {
    pub name: String,
    pub held_from_ns: u64,
    pub bytes: u64,
    /// Why it reaches no further back: `time` as far as was asked for, `memory` the memory holds no more, `start` recording
    /// began then. Empty in older files.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bound: String,
}

/// Something that is not recorded on this machine.
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
    /// As in `:99`.
    pub display: u32,
    pub server_pid: u32,
    pub extensions: Vec<Extension>,
}

/// A protocol extension and the major opcode this server gave it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Extension {
    pub name: String,
    pub major: u8,
}

/// Who held which lock at the mark.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Locks {
    /// Text of /proc/locks.
    pub proc_locks: String,
    /// Owners read from the lock words of mutexes that threads were waiting for.
    pub futexes: Vec<FutexOwner>,
    /// Who had the other end of pipes that threads were waiting for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pipes: Vec<PipeEnd>,
}

/// A process that had the other end of a pipe which a thread waited for.
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

/// Limits of control groups, as far as the groups were there at the mark.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Groups {
    /// Those that were throttled since they had used up their CPU quota.
    pub limited: Vec<LimitedGroup>,
    /// Threads that lived at the mark and had ended when the members of groups had been read: that they are not listed
    /// says nothing.
    pub ended: Vec<u32>,
    /// Those around threads that had waited for I/O, where they limit it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub io: Vec<IoLimitedGroup>,
}

/// A control group that may do so much I/O and no more.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IoLimitedGroup {
    /// Its folder, with the mount.
    pub folder: String,
    pub limits: Vec<IoLimit>,
    /// The threads that had waited for I/O, and were in it or in a group below it.
    pub tids: Vec<u32>,
}

/// A limit on I/O of one kind to one device.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IoLimit {
    /// The file that sets it.
    pub file: String,
    /// Device, in the kernel's encoding.
    pub device: u32,
    /// Writes, else reads.
    pub write: bool,
    /// Operations are counted, else bytes.
    pub operations: bool,
    pub per_second: u64,
}

/// A control group that may use so much CPU time and no more.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitedGroup {
    /// The kernel's number of it, which records of throttling carry.
    pub number: u64,
    /// Its path below the hierarchy's mount, as /proc/PID/cgroup gives it.
    pub path: String,
    /// The file that sets the quota.
    pub file: String,
    /// CPU time in each period at the mark, microseconds; 0 where the quota was taken away by then.
    pub quota_us: u64,
    pub period_us: u64,
    /// The threads that were in it, or in a group below it, at the mark.
    pub tids: Vec<u32>,
    /// The processes that were, in files that do not tell of threads.
    pub pids: Vec<u32>,
}

/// The path of a file that threads waited for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FileName {
    /// Device of its file system, in the kernel's encoding.
    pub device: u32,
    pub inode: u64,
    pub path: String,
}

/// A process that has a port of this machine which threads waited for at the mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PortOwner {
    pub port: u16,
    pub pid: u32,
}

/// What was usual for a class of interactions in an application, learned until the mark and before the window:
/// coarse times, at most an eighth too long. Those of a response are from the press to the client's next drawing request.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredBaseline {
    /// `key` or `click`.
    pub class: String,
    /// The name of the client's program.
    pub application: String,
    /// `response`, `handled` or `completed`; empty in older files, which hold responses only.
    pub milestone: String,
    pub n: u64,
    pub p50_ns: u64,
    pub p98_ns: u64,
    pub max_ns: u64,
}

impl StoredBaseline {
    /// The milestone of what the kernel counts: the first drawing after a press.
    pub const RESPONSE: &str = "response";

    /// What the times lead to.
    pub fn milestone(&self) -> &str {
        if self.milestone.is_empty() { StoredBaseline::RESPONSE } else { &self.milestone }
    }
}

/// Records that could not be kept.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Losses {
    /// By second: when something was lost, of which class, how many.
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

/// What recording costs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    pub programs: Vec<ProgramCost>,
    /// User-space CPU time of the recorder since it was armed.
    pub user_cpu_ns: u64,
    /// Time since it was armed.
    pub wall_ns: u64,
}

/// Mean cost of one kernel program, sampled.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramCost {
    pub name: String,
    pub runs_per_second: f64,
    pub ns_per_run: f64,
}

/// What the user said after the mark.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Words {
    pub text: String,
    /// Whether the cause that was found was the one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<bool>,
    pub at_ns: u64,
}

impl Words {
    /// These, and what was said later: what that leaves out stays.
    pub fn then(self, later: Words) -> Words {
        let text = if later.text.is_empty() { self.text } else { later.text };
        Words { text, right: later.right.or(self.right), at_ns: later.at_ns }
    }
}

/// A damaged place in a file: what was not read, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    pub place: String,
    pub why: String,
}

/// The sections of an incident, of which those of chunks need not be in memory as they are.
pub trait Sections {
    /// The sections that are.
    fn incident(&self) -> &Incident;

    /// Shows the chunks of a section, one after the other.
    ///
    /// # Errors
    /// Where they cannot be read.
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

/// An incident in memory: its sections, unpacked.
#[derive(Clone, Debug, Default)]
pub struct Incident {
    pub sections: Vec<(Section, Vec<u8>)>,
    /// Empty for a whole file.
    pub damage: Vec<Damage>,
}

impl Incident {
    /// The bytes of a section, the last one where several were written; empty where there is none.
    pub fn bytes(&self, section: Section) -> &[u8] {
        self.sections.iter().rev().find(|(kind, _)| *kind == section).map_or(&[], |(_, bytes)| bytes)
    }

    /// A JSON section; the default value where the section is missing, an error where it is no such document.
    pub fn json<T: for<'a> Deserialize<'a> + Default>(&self, section: Section) -> Result<T, serde_json::Error> {
        let bytes = self.bytes(section);
        if bytes.is_empty() { Ok(T::default()) } else { serde_json::from_slice(bytes) }
    }

    /// What the user said after the mark: the last text and the last judgement, which may stand in different sections.
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
    pub fn push_json<T: Serialize>(&mut self, section: Section, value: &T) -> Result<(), serde_json::Error> {
        self.push(section, serde_json::to_vec(value)?);
        Ok(())
    }

    /// The mark.
    pub fn mark(&self) -> Result<Nanos, serde_json::Error> {
        Ok(Nanos(self.json::<Meta>(Section::Meta)?.mark_ns))
    }
}
