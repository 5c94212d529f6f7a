// SPDX-License-Identifier: MIT OR Apache-2.0
//! A decoded incident, with its records sorted by time and kind.

use crate::decode::bytes::loose_records;
use crate::decode::events::SchedChange;
use crate::decode::messages::Messages;
use crate::decode::names::Names;
use crate::decode::sections::{Rare, document, read_events, typed};
use crate::error::DiagnoseError;
use crate::timeline::attempts::Attempts;
use crate::timeline::contention::Contention;
use crate::timeline::deferred::DeferredCalls;
use crate::timeline::descendants::Descendants;
use crate::timeline::disk::Disk;
use crate::timeline::drawings::Drawings;
use crate::timeline::interrupts::Interrupts;
use crate::timeline::io_limits::IoLimits;
use crate::timeline::losses::Passed;
use crate::timeline::overdue::OverdueTimers;
use crate::timeline::packets::Packets;
use crate::timeline::pauses::{EventWaits, PauseIndex};
use crate::timeline::polls::{FarEnds, Polls};
use crate::timeline::priorities::Priorities;
use crate::timeline::reclaim::Reclaiming;
use crate::timeline::spent_times::SpentIndex;
use crate::timeline::steal::Steal;
use crate::timeline::tasks::{TaskSources, Tasks};
use crate::timeline::terminals::Terminals;
use crate::timeline::threads::{Resting, Timeline};
use crate::timeline::throttle::{QuotaGroup, Throttling};
use crate::timeline::waits::Waits;
use crate::timeline::wakes::Wakes;
use crate::timeline::withdrawals::Withdrawals;
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use tipme_record::incident::{
    Cost, Display, FileName, Groups, Incident, Locks, Losses, Meta, PortOwner, Section,
    StoredBaseline,
};
use tipme_record::records::{
    Attempt, Block, Deferred, Exec, Exit, FarEnd, Fork, Input, Irq, Lock, Message, Overdue, Polled,
    Reclaim, Rename, Sample, Signal, Tally, Task, Throttled, Tty, Wait, Withdrawn, WlMessage,
};
use tipme_record::{Cpu, Device, Nanos, Pid, RecordKind, RingClass, Tid};

/// Trigger of an automatic mark.
const AUTO: &str = "auto";

/// Input of the analysis.
#[derive(Debug, Default)]
pub struct Recording {
    pub meta: Meta,
    pub mark: Nanos,
    pub timeline: Timeline,
    pub tasks: Tasks,
    pub waits: Waits,
    /// Polled files of small sets.
    pub polls: Polls,
    /// Remote IPv6 addresses of waits.
    pub far_ends: FarEnds,
    pub names: Names,
    pub messages: Messages,
    pub terminals: Terminals,
    pub wakes: Wakes,
    pub interrupts: Interrupts,
    pub deferred: DeferredCalls,
    pub withdrawals: Withdrawals,
    pub overdue: OverdueTimers,
    pub disk: Disk,
    pub inputs: Vec<Input>,
    pub reclaims: Vec<Reclaim>,
    pub reclaiming: Reclaiming,
    pub tallies: Vec<Tally>,
    /// Limits of the control groups that still existed at the mark.
    pub groups: Groups,
    pub throttling: Throttling,
    pub io_limits: IoLimits,
    pub steal: Steal,
    pub priorities: Priorities,
    /// File paths by device and inode.
    pub files: HashMap<(Device, u64), String>,
    /// Attempts at file locks.
    pub attempts: Attempts,
    pub signals: Vec<Signal>,
    pub samples: Vec<Sample>,
    pub displays: Vec<Display>,
    pub locks: Locks,
    /// Owners of the local ports that threads waited for at the mark.
    pub ports: Vec<PortOwner>,
    pub losses: Losses,
    /// For each loss, the number of held records of its class in the same second.
    pub beside_losses: Vec<u64>,
    pub cost: Cost,
    pub baselines: Vec<StoredBaseline>,
    /// Comment of the user, from the mark or later.
    pub user_text: String,
    pub user_right: Option<bool>,
    pub pauses: PauseIndex,
    pub spent_times: SpentIndex,
    /// Found on first use.
    pub event_waits: OnceCell<EventWaits>,
    pub descendants: OnceCell<Descendants>,
    pub drawings: OnceCell<Drawings>,
    pub packets: OnceCell<Packets>,
    /// Damage and omissions, in full sentences.
    pub notes: Vec<String>,
}

/// Minimum share of a delay for which a quota held the thread back, for it to count as throttled.
const SHARE_MIN: f64 = 0.5;

/// Minimum shortfall of the window that is reported, in seconds.
const SHORTER_S: f64 = 1.0;

/// Maximum length of a text in a document, and of the user's comment, in characters.
const LETTERS_MAX: usize = 1_000;
const WORDS_LETTERS_MAX: usize = 1 << 16;
/// Maximum length of the name of a ring class or BPF program, in characters.
const NAME_LETTERS_MAX: usize = 40;
/// Maximum length of a path, in characters, as in the kernel.
const PATH_LETTERS_MAX: usize = 4_096;
/// Maximum numbers of seconds with losses and of BPF programs that are read: more than any recorder
/// writes.
const LOSSES_MAX: usize = 10_000;
const PROGRAMS_MAX: usize = 1_000;

/// Truncates a text and removes terminal controls: a file may come from anywhere.
fn bounded(text: &str, letters_max: usize) -> String {
    let end = text.char_indices().nth(letters_max).map_or(text.len(), |(end, _)| end);
    crate::decode::bytes::clean(&text[..end])
}

/// Bounds and cleans all texts of the metadata.
fn cleaned(mut meta: Meta) -> Meta {
    let machine =
        [&mut meta.machine.hostname, &mut meta.machine.kernel, &mut meta.id, &mut meta.trigger];
    let names = meta.irq_names.iter_mut().chain(&mut meta.devices).map(|(_, name)| name);
    let missing = meta.missing.iter_mut().flat_map(|missing| [&mut missing.what, &mut missing.why]);
    let texts = machine.into_iter().chain(names).chain(missing).chain(&mut meta.details);
    let spans = meta.detail_spans.iter_mut().map(|span| &mut span.name);
    let texts = texts.chain(spans);
    texts.for_each(|text| *text = bounded(text, LETTERS_MAX));
    meta
}

fn cleaned_losses(mut losses: Losses) -> Losses {
    losses.per_second.truncate(LOSSES_MAX);
    losses
        .per_second
        .iter_mut()
        .for_each(|loss| loss.class = bounded(&loss.class, NAME_LETTERS_MAX));
    losses
}

fn cleaned_cost(mut cost: Cost) -> Cost {
    cost.programs.truncate(PROGRAMS_MAX);
    cost.programs
        .iter_mut()
        .for_each(|program| program.name = bounded(&program.name, NAME_LETTERS_MAX));
    cost
}

impl Recording {
    /// Decodes an incident. Damaged binary sections are read up to the damage.
    pub fn read(incident: &Incident) -> Result<Recording, DiagnoseError> {
        let meta: Meta = document(incident, Section::Meta)?;
        if incident.bytes(Section::Meta).is_empty() {
            return Err(DiagnoseError::NoMeta);
        }
        let mut recording =
            Recording { mark: Nanos(meta.mark_ns), meta: cleaned(meta), ..Recording::default() };
        recording.read_documents(incident)?;
        recording.names =
            Names::read(incident.bytes(Section::Stacks), incident.bytes(Section::Symbols));
        recording.inputs =
            typed(loose_records(incident.bytes(Section::Inputs)), RecordKind::Input, Input::read);
        recording.note_damage(incident);
        recording.read_records(incident);
        Ok(recording)
    }

    fn read_documents(&mut self, incident: &Incident) -> Result<(), DiagnoseError> {
        self.displays = document(incident, Section::Displays)?;
        self.locks = document(incident, Section::Locks)?;
        self.losses = cleaned_losses(document(incident, Section::Losses)?);
        self.ports = document(incident, Section::Ports)?;
        self.cost = cleaned_cost(document(incident, Section::Cost)?);
        self.baselines = document(incident, Section::Baselines)?;
        let files: Vec<FileName> = document(incident, Section::Files)?;
        let paths = files
            .into_iter()
            .map(|file| ((Device(file.device), file.inode), bounded(&file.path, PATH_LETTERS_MAX)));
        self.files = paths.collect();
        self.groups = document(incident, Section::Groups)?;
        let words = incident
            .words()
            .map_err(|cause| DiagnoseError::Document { section: Section::Words, cause })?;
        self.user_right = words.right;
        self.steal = Steal::read(incident.bytes(Section::Samples), self.meta.machine.cpus as usize);
        let text = if words.text.is_empty() { &self.meta.user_text } else { &words.text };
        self.user_text = bounded(text, WORDS_LETTERS_MAX);
        Ok(())
    }

    fn note_damage(&mut self, incident: &Incident) {
        let damage = incident
            .damage
            .iter()
            .map(|damage| format!("The file is damaged at {}: {}.", damage.place, damage.why));
        self.notes.extend(damage.map(|note| crate::decode::bytes::clean(&note)));
        self.notes.extend(self.meta.withheld.summary().map(|what| format!("Not shown: {what}.")));
        let stopped = self.meta.input_stopped_ns as f64 / 1e9;
        if stopped > 0.0 {
            let why = "since a user had turned it off; keys and clicks of that time are unknown";
            self.notes
                .push(format!("Input was not recorded for {stopped:.1} s of the window, {why}."));
        }
        self.notes.extend(short_window(&self.meta));
    }

    fn read_records(&mut self, incident: &Incident) {
        let rare = Rare::read(incident);
        let tasks = rare.walked(RecordKind::Task, Task::read);
        self.read_events(incident, &rare, &tasks);
        let contention = Contention::new(rare.records(RecordKind::Lock, Lock::read));
        let waits = rare.all(RecordKind::Wait, Wait::read);
        self.waits = Waits::new(waits, &self.names, contention);
        self.polls = Polls::new(rare.all(RecordKind::Polled, Polled::read));
        self.far_ends = FarEnds::new(&rare.all(RecordKind::FarEnd, FarEnd::read));
        self.wakes = Wakes::new(&self.timeline);
        self.tasks = Tasks::new(&mut sources(tasks, &rare, incident.bytes(Section::Cmdlines)));
        let attempts = rare.records(RecordKind::Attempt, Attempt::read);
        self.attempts = Attempts::new(attempts, &self.tasks, self.mark);
        let messages = rare.with_tails(RecordKind::Message, Message::read, Message::SIZE);
        let wayland = rare.with_tails(RecordKind::WlMessage, WlMessage::read, WlMessage::SIZE);
        self.messages = Messages::new(messages, wayland, &self.displays, |tid, lo, hi| {
            self.timeline.is_busy(tid, lo, hi)
        });
        self.terminals = Terminals::new(&rare.records(RecordKind::Tty, Tty::read), &self.timeline);
        self.disk = Disk::new(&rare.all(RecordKind::Block, Block::read));
        self.reclaims = rare.records(RecordKind::Reclaim, Reclaim::read);
        self.reclaiming = Reclaiming::new(&self.reclaims);
        self.tallies = rare.records(RecordKind::Tally, Tally::read);
        self.signals = rare.records(RecordKind::Signal, Signal::read);
        self.signals.sort_by_key(|signal| signal.head.ts);
        self.samples = rare.records(RecordKind::Sample, Sample::read);
        self.samples.sort_by_key(|sample| (sample.head.tid, sample.head.ts));
        self.interrupts = Interrupts::new(&rare.on_cpus(RecordKind::Irq, Irq::read));
        // A work item still running at the mark has no CPU in its record, and needs none.
        let unfinished = rare.walked(RecordKind::Deferred, Deferred::read).into_iter();
        let mut deferred = rare.on_cpus(RecordKind::Deferred, Deferred::read);
        deferred.extend(unfinished.map(|record| (Cpu(0), record)));
        self.deferred = DeferredCalls::new(&deferred, &self.names);
        self.withdrawals = Withdrawals::new(&rare.on_cpus(RecordKind::Withdrawn, Withdrawn::read));
        let throttled = rare.records(RecordKind::Throttled, Throttled::read);
        self.throttling = Throttling::new(&throttled, &self.groups, &self.tasks, &self.timeline);
        self.io_limits = IoLimits::new(&self.groups.io, &self.tasks);
        self.overdue = OverdueTimers::new(&rare.on_cpus(RecordKind::Overdue, Overdue::read));
    }

    /// Builds the timeline and the priorities in one pass over the scheduler events.
    fn read_events(&mut self, incident: &Incident, rare: &Rare<'_>, tasks: &[Task]) {
        let (events, left_out) = read_events(incident, rare);
        if left_out || rare.is_full() {
            self.notes
                .push("The incident holds too many records; the oldest were left out.".to_owned());
        }
        let (mut priorities, mut passed) = (Priorities::at_mark(tasks), Passed::new(&self.losses));
        let events = events.inspect(|event| {
            priorities.see(event);
            if event.change != SchedChange::Sampled {
                passed.see(event.ts);
            }
        });
        let resting: Vec<Resting> = tasks.iter().map(resting).collect();
        self.timeline = Timeline::new(events, &resting, self.mark);
        priorities.close();
        self.priorities = priorities;
        self.beside_losses =
            self.losses.per_second.iter().map(|loss| passed.beside(loss, rare)).collect();
    }

    /// Returns the time from which every record is held: no ring has overwritten any since, and all
    /// BPF programs were attached.
    pub fn complete_from(&self) -> Nanos {
        Nanos(self.meta.held_from_ns.max(self.meta.tainted_until_ns))
    }

    /// Returns the threads that ran but are otherwise unknown: they were hidden from the recorder,
    /// or their records are lost.
    pub fn nameless(&self) -> Vec<Tid> {
        let threads = self.timeline.threads().filter(|tid| *tid != Tid(0));
        threads.filter(|tid| self.tasks.life(*tid, self.mark).is_none()).collect()
    }

    /// Returns the drawing requests by thread.
    pub(crate) fn drawings(&self) -> &Drawings {
        self.drawings.get_or_init(|| Drawings::find(&self.messages))
    }

    /// Returns the index of descendants.
    pub fn descendants(&self) -> &Descendants {
        self.descendants.get_or_init(|| Descendants::find(&self.tasks, &self.messages, self.mark))
    }

    /// Returns the display servers of some processes, and the compositors of these servers.
    pub fn display_servers(&self, pids: &[u32]) -> BTreeSet<Pid> {
        let (mut clients, mut all) = (pids.iter().copied().map(Pid).collect(), BTreeSet::new());
        for _ in 0..2 {
            clients = self.messages.servers_of(&clients);
            all.extend(&clients);
        }
        all
    }

    /// Returns the samples of one thread in `lo..hi`.
    pub(crate) fn samples_of(&self, tid: Tid, lo: Nanos, hi: Nanos) -> &[Sample] {
        let first =
            self.samples.partition_point(|sample| (sample.head.tid, sample.head.ts) < (tid, lo));
        let last =
            self.samples.partition_point(|sample| (sample.head.tid, sample.head.ts) < (tid, hi));
        self.samples.get(first..last.max(first)).unwrap_or_default()
    }

    /// Returns the group that throttled a runnable thread for most of `lo..hi`.
    pub fn throttled(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Option<&QuotaGroup> {
        let groups = self.throttling.groups_of(&self.tasks, tid, lo);
        let (held_back, group) = groups
            .into_iter()
            .map(|group| (group.within(lo, hi), group))
            .max_by_key(|(time, _)| *time)?;
        (held_back.0 as f64 >= SHARE_MIN * hi.since(lo).0 as f64).then_some(group)
    }

    /// Returns the path of the file of a wait.
    pub fn file(&self, wait: &Wait) -> Option<&str> {
        self.files.get(&(wait.device, wait.inode)).filter(|_| wait.inode != 0).map(String::as_str)
    }

    /// Returns `true` if the mark was set automatically.
    pub(crate) fn is_marked_automatically(&self) -> bool {
        self.meta.trigger == AUTO
    }

    /// Returns the name of a block device.
    pub(crate) fn device_name(&self, device: tipme_record::Device) -> String {
        crate::timeline::disk::DiskRequest::device_name(device, &self.meta.devices)
    }
}

/// Explains a window shorter than requested.
fn short_window(meta: &Meta) -> Option<String> {
    let asked = meta.mark_ns.saturating_sub(meta.window_requested_ns).max(meta.armed_ns);
    let first = meta.classes.iter().take(2).max_by_key(|class| class.held_from_ns)?;
    let what =
        if first.name == RingClass::Sched.name() { "scheduler events" } else { "other events" };
    let [held, wanted] =
        [first.held_from_ns, asked].map(|from| meta.mark_ns.saturating_sub(from) as f64 / 1e9);
    (held + SHORTER_S < wanted).then(|| {
        format!(
            "Only {held:.0} s of {wanted:.0} s were recorded: the memory was full of {what}; \
             enlarge it with tipme record --memory."
        )
    })
}

fn resting(task: &Task) -> Resting {
    Resting { tid: task.head.tid, state: task.state as u16, cpu: task.cpu }
}

fn sources<'a>(tasks: Vec<Task>, rare: &Rare<'a>, cmdlines: &'a [u8]) -> TaskSources<'a> {
    TaskSources {
        tasks,
        cmdlines,
        exits: rare.with_tails(RecordKind::Exit, Exit::read, Exit::SIZE).collect(),
        execs: rare.with_tails(RecordKind::Exec, Exec::read, Exec::SIZE).collect(),
        forks: rare.records(RecordKind::Fork, Fork::read),
        renames: rare.records(RecordKind::Rename, Rename::read),
    }
}
