// SPDX-License-Identifier: MIT OR Apache-2.0
//! Information about other users' processes that an incident gives to a user other than root.
//!
//! Names, states and waits of all threads stay: an incident exists to show the culprit. Display
//! messages, terminal data and command lines stay if they belong to the user or to system services.
//! But a person at a terminal or display is behind the input of a service: a password may be typed
//! at a login. So a terminal belongs to the user of its session, and a service's messages are shown
//! only if no other user has clients on that display. A process with an unknown owner does not
//! belong to this user.

use crate::incident::{Display, Incident, Locks, PortOwner, Section, Sections, Withheld};
use crate::records::{
    Exec, Exit, FarEnd, Message, Owner, Polled, RecordKind, Task, Tty, Wait, WlMessage,
};
use crate::rewrite;
use crate::units::{Nanos, Pid, Tid};
use crate::whereabouts::{conceal_arguments, conceal_functions, conceal_locks, conceal_sample};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::mem::offset_of;

/// Bytes before a command line: process and length.
const LINE_HEAD: usize = 8;

/// Returns `true` for root and the users of services, as which no person logs in. Uids from 61184
/// on are allocated for one run of a service, and 65534 is nobody.
pub(crate) fn is_system(uid: u32) -> bool {
    matches!(uid, 0..1000 | 61_184..=65_519 | 65_534)
}

/// Tolerance of the end of a process: records of one exit differ by less.
const END_MAX: Nanos = Nanos::from_millis(1);

/// End of processes that live at the mark.
const AT_MARK: Nanos = Nanos(u64::MAX);

/// One process that had a pid, and its user.
#[derive(Clone, Copy, Debug)]
struct ProcessOwner {
    /// Start, if known.
    from: Option<Nanos>,
    until: Nanos,
    uid: u32,
}

impl ProcessOwner {
    fn covers(&self, at: Nanos) -> bool {
        self.from.is_some_and(|from| from <= at) && at <= self.until.after(END_MAX)
    }
}

/// Owner of a process, relative to the user of the incident.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ownership {
    Own,
    System,
    Other(u32),
    /// Unknown, or the pid was reused by several users at unknown times.
    Unknown,
}

/// Filter that removes data that a user may not know from an incident, and counts it. It does not
/// handle input devices. Root may know everything. `disguise` maps addresses in processes to other
/// numbers; those of functions are mapped for root too.
pub struct Concealer<'a> {
    /// `None` for root.
    view: Option<UserView>,
    disguise: &'a dyn Fn(u64) -> u64,
}

impl<'a> Concealer<'a> {
    /// Creates the filter for a user from the process records of the incident.
    ///
    /// # Errors
    /// If chunks cannot be read.
    pub fn of(
        sections: &impl Sections,
        user: u32,
        disguise: &'a dyn Fn(u64) -> u64,
    ) -> io::Result<Concealer<'a>> {
        let view = if user == 0 { None } else { Some(UserView::of(sections, user)?) };
        Ok(Concealer { view, disguise })
    }

    /// Filters a chunk of rare records or of ended processes.
    pub fn chunk(&mut self, chunk: &[u8]) -> Vec<u8> {
        rewrite::chunk(chunk, &mut |kind, record| {
            if kind == RecordKind::Sample {
                conceal_sample(record, self.disguise);
            }
            self.view.as_mut().is_none_or(|view| view.edit(kind, record, self.disguise))
        })
    }

    /// Filters the other sections, and returns the amount withheld from all.
    pub fn finish(self, incident: &mut Incident) -> Withheld {
        conceal_functions(incident, self.disguise);
        self.view.map_or_else(Withheld::default, |view| view.finish(incident, self.disguise))
    }
}

/// A display with clients: an X display by number, or a Wayland compositor by its listening
/// process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum DisplayId {
    X11(u32),
    Wayland(Pid),
}

/// Client, display and time of a message.
struct Sent {
    client: Pid,
    at: DisplayId,
    ts: Nanos,
    /// `true` if the server sent the client a message, which it does only after it has accepted it.
    let_in: bool,
}

/// First byte of an X11 reply to a connection setup: refused (0), or more authentication required
/// (2).
const REFUSES: [u8; 2] = [0, 2];
const CODE: u8 = 0x7f;
/// Direction of data sent by a server.
const EVENT_SENT: u8 = 2;

/// Returns `true` if a record holds a reply or event of an X server. Any user may try to connect,
/// and be refused.
fn lets_in(message: &Message, record: &[u8]) -> bool {
    let first = record
        .get(Message::SIZE)
        .filter(|_| message.direction == EVENT_SENT && message.operations > 0);
    first.is_some_and(|first| !REFUSES.contains(&(first & CODE)))
}

impl Sent {
    /// Reads a message of either protocol; returns `None` for other records.
    fn read(kind: RecordKind, record: &[u8]) -> Option<Sent> {
        match kind {
            RecordKind::Message => Message::read(record).map(|message| Sent {
                client: message.client,
                at: DisplayId::X11(message.display),
                ts: message.head.ts,
                let_in: lets_in(&message, record),
            }),
            RecordKind::WlMessage => WlMessage::read(record).map(|message| Sent {
                client: message.client,
                at: DisplayId::Wayland(message.server),
                ts: message.head.ts,
                let_in: true,
            }),
            _ => None,
        }
    }
}

/// Knowledge that one user is entitled to.
struct UserView {
    user: u32,
    lives: HashMap<Pid, Vec<ProcessOwner>>,
    /// Processes of threads that waited.
    processes: HashMap<Tid, Pid>,
    /// Displays with clients of this user only.
    displays: BTreeSet<DisplayId>,
    withheld: Withheld,
    /// Users with withheld data.
    hidden: BTreeSet<u32>,
}

impl UserView {
    fn of(sections: &impl Sections, user: u32) -> io::Result<UserView> {
        let (displays, hidden) = (BTreeSet::new(), BTreeSet::new());
        let known = OwnerRecords::of(sections)?;
        let (lives, processes) = (known.lives(), known.waiters);
        let mut view =
            UserView { user, lives, processes, displays, withheld: Withheld::default(), hidden };
        view.displays = view.own_displays(sections)?;
        Ok(view)
    }

    /// Filters the sections without chunks.
    fn finish(mut self, incident: &mut Incident, disguise: &dyn Fn(u64) -> u64) -> Withheld {
        let own = self.own_waiters(incident);
        for (section, bytes) in &mut incident.sections {
            match section {
                Section::Tasks => {
                    *bytes =
                        rewrite::loose(bytes, &mut |kind, record| self.edit(kind, record, disguise))
                }
                Section::Cmdlines => *bytes = self.command_lines(bytes),
                Section::Ports => *bytes = self.ports(bytes),
                Section::Locks => *bytes = locks(bytes, |tid| !own.contains(&Tid(tid)), disguise),
                // Edited chunk by chunk; nothing is withheld of switches, wakeups and migrations.
                Section::Sched | Section::Rare | Section::Exits => {}
                // Already selected by user: events of input devices, and paths.
                Section::Inputs | Section::Files => {}
                Section::Meta
                | Section::Stacks
                | Section::Symbols
                | Section::Displays
                | Section::Samples
                | Section::Losses
                | Section::Cost
                | Section::Words
                | Section::Groups
                | Section::Baselines => {}
            }
        }
        self.withheld.users = self.hidden.len() as u32;
        self.withheld
    }

    /// Returns the owner of the process that had a pid at a time.
    fn owner(&self, pid: Pid, at: Nanos) -> Ownership {
        match self.user_of(pid, at) {
            Some(uid) if uid == self.user => Ownership::Own,
            Some(uid) if is_system(uid) => Ownership::System,
            Some(uid) => Ownership::Other(uid),
            None => Ownership::Unknown,
        }
    }

    /// Returns the user only within the known life of a process, even if it is the only one known
    /// for the pid: records of an earlier one may have been overwritten, and any user can exhaust
    /// the pids.
    fn user_of(&self, pid: Pid, at: Nanos) -> Option<u32> {
        self.lives.get(&pid)?.iter().find(|life| life.covers(at)).map(|life| life.uid)
    }

    /// Returns this user's threads that wait at the mark.
    fn own_waiters(&self, incident: &Incident) -> BTreeSet<Tid> {
        let waits = rewrite::tasks(incident).filter(|(kind, _)| *kind == RecordKind::Wait);
        let waits = waits.filter_map(|(_, bytes)| Wait::read(bytes));
        waits
            .filter(|wait| self.owner(wait.pid, AT_MARK) == Ownership::Own)
            .map(|wait| wait.head.tid)
            .collect()
    }

    fn own_displays(&self, sections: &impl Sections) -> io::Result<BTreeSet<DisplayId>> {
        let (mut own, mut shared) = (BTreeSet::new(), BTreeSet::new());
        rewrite::see(sections, Section::Rare, |kind, bytes| {
            let Some(sent) = Sent::read(kind, bytes) else { return };
            match self.owner(sent.client, sent.ts) {
                Ownership::Own if sent.let_in => own.insert(sent.at),
                Ownership::Own | Ownership::System => false,
                Ownership::Other(_) | Ownership::Unknown => shared.insert(sent.at),
            };
        })?;
        let servers: Vec<Display> = sections.incident().json(Section::Displays).unwrap_or_default();
        for server in servers {
            let display = DisplayId::X11(server.display);
            match self.owner(Pid(server.server_pid), AT_MARK) {
                Ownership::Own => own.insert(display),
                Ownership::System => false,
                Ownership::Other(_) | Ownership::Unknown => shared.insert(display),
            };
        }
        Ok(own.into_iter().filter(|display| !shared.contains(display)).collect())
    }

    /// Removes from a record the data that the user may not see, and returns `true` if the record
    /// stays. The table in `docs/internals/security.md` gives the reason for each kind.
    fn edit(&mut self, kind: RecordKind, record: &mut [u8], disguise: &dyn Fn(u64) -> u64) -> bool {
        match kind {
            RecordKind::Message | RecordKind::WlMessage => self.message(kind, record),
            RecordKind::Tty => self.terminal(record),
            RecordKind::Wait => self.wait(record, disguise),
            RecordKind::Polled => self.polled(record),
            RecordKind::FarEnd => self.far_end(record),
            RecordKind::Exec => self.line(
                record,
                Exec::read(record).map(|exec| (exec.pid, exec.head.ts)),
                Exec::SIZE,
            ),
            RecordKind::Exit => self.line(
                record,
                Exit::read(record).map(|exit| (exit.pid, exit.head.ts)),
                Exit::SIZE,
            ),
            // Input events have a section of their own, where the recorder selects them by user.
            RecordKind::Input => false,
            // Names, owners, states, waits and stacks of all threads, and their actions on each
            // other.
            RecordKind::Switch
            | RecordKind::Waking
            | RecordKind::Migrate
            | RecordKind::Fork
            | RecordKind::Rename
            | RecordKind::Task
            | RecordKind::Owner
            | RecordKind::Throttled
            | RecordKind::Attempt
            | RecordKind::Lock
            | RecordKind::Signal
            | RecordKind::Sample
            | RecordKind::Tally => true,
            // Load of disks, memory and interrupts.
            RecordKind::Irq
            | RecordKind::Block
            | RecordKind::Reclaim
            | RecordKind::Deferred
            | RecordKind::Withdrawn
            | RecordKind::Overdue => true,
        }
    }

    fn message(&mut self, kind: RecordKind, record: &[u8]) -> bool {
        let Some(message) = Sent::read(kind, record) else { return false };
        let of = self.owner(message.client, message.ts);
        if of == Ownership::Own || (of == Ownership::System && self.displays.contains(&message.at))
        {
            return true;
        }
        self.withheld.messages += 1;
        self.note(of)
    }

    fn terminal(&mut self, record: &[u8]) -> bool {
        let Some(tty) = Tty::read(record) else { return false };
        let of = self.owner(tty.session, tty.head.ts);
        if of == Ownership::Own {
            return true;
        }
        self.withheld.inputs += 1;
        self.note(of)
    }

    fn wait(&mut self, record: &mut [u8], disguise: &dyn Fn(u64) -> u64) -> bool {
        let Some(wait) = Wait::read(record) else { return false };
        let of = self.owner(wait.pid, wait.head.ts);
        if of != Ownership::Own {
            conceal_arguments(record, disguise);
        }
        if !matches!(of, Ownership::Own | Ownership::System) {
            rewrite::put(record, offset_of!(Wait, address), &[0; 4]);
            rewrite::put(record, offset_of!(Wait, port), &[0; 2]);
        }
        true
    }

    fn polled(&mut self, record: &mut [u8]) -> bool {
        let Some(polled) = Polled::read(record) else { return false };
        let pid = self.processes.get(&polled.head.tid).copied();
        if !matches!(
            pid.map_or(Ownership::Unknown, |pid| self.owner(pid, polled.head.ts)),
            Ownership::Own | Ownership::System
        ) {
            rewrite::put(record, offset_of!(Polled, address), &[0; 4]);
            rewrite::put(record, offset_of!(Polled, port), &[0; 2]);
        }
        true
    }

    fn far_end(&mut self, record: &[u8]) -> bool {
        let Some(end) = FarEnd::read(record) else { return false };
        let pid = self.processes.get(&end.head.tid).copied();
        matches!(
            pid.map_or(Ownership::Unknown, |pid| self.owner(pid, end.head.ts)),
            Ownership::Own | Ownership::System
        )
    }

    /// Returns the ports of this user's processes and of services.
    fn ports(&self, bytes: &[u8]) -> Vec<u8> {
        let mut ports: Vec<PortOwner> = serde_json::from_slice(bytes).unwrap_or_default();
        ports.retain(|port| {
            matches!(self.owner(Pid(port.pid), AT_MARK), Ownership::Own | Ownership::System)
        });
        serde_json::to_vec(&ports).unwrap_or_default()
    }

    /// Clears the command line after a record's fixed part.
    fn line(&mut self, record: &mut [u8], of: Option<(Pid, Nanos)>, fixed: usize) -> bool {
        let of = of.map_or(Ownership::Unknown, |(pid, at)| self.owner(pid, at));
        if !matches!(of, Ownership::Own | Ownership::System)
            && let Some(line) =
                record.get_mut(fixed..).filter(|line| line.iter().any(|byte| *byte != 0))
        {
            line.fill(0);
            self.withheld.command_lines += 1;
            self.note(of);
        }
        true
    }

    fn command_lines(&mut self, section: &[u8]) -> Vec<u8> {
        let (mut clean, mut rest) = (Vec::new(), section);
        while let Some(([a, b, c, d, e, f, g, h], behind)) = rest.split_first_chunk::<LINE_HEAD>() {
            let length = u32::from_le_bytes([*e, *f, *g, *h]) as usize;
            let Some(size) =
                length.checked_next_multiple_of(8).filter(|size| *size <= behind.len())
            else {
                break;
            };
            let of = self.owner(Pid(u32::from_le_bytes([*a, *b, *c, *d])), AT_MARK);
            if matches!(of, Ownership::Own | Ownership::System) {
                clean.extend_from_slice(&rest[..LINE_HEAD + size]);
            } else {
                self.withheld.command_lines += 1;
                self.note(of);
            }
            rest = &behind[size..];
        }
        clean
    }

    /// Notes the owner of withheld data; returns false, since it does not stay.
    fn note(&mut self, owner: Ownership) -> bool {
        if let Ownership::Other(uid) = owner {
            self.hidden.insert(uid);
        }
        false
    }
}

/// Returns the lock section with other users' addresses disguised; empty if it is not a valid
/// document.
fn locks(bytes: &[u8], others: impl Fn(u32) -> bool, disguise: &dyn Fn(u64) -> u64) -> Vec<u8> {
    let mut locks: Locks = serde_json::from_slice(bytes).unwrap_or_default();
    conceal_locks(&mut locks, others, disguise);
    serde_json::to_vec(&locks).unwrap_or_default()
}

/// Records of an incident about the owners of processes.
#[derive(Default)]
struct OwnerRecords {
    /// End and start times of processes, by pid.
    starts: HashMap<Pid, Vec<(Nanos, Nanos)>>,
    /// Pid, end and user of processes.
    owners: Vec<(Pid, Nanos, u32)>,
    /// Processes of threads that waited.
    waiters: HashMap<Tid, Pid>,
}

impl OwnerRecords {
    fn of(sections: &impl Sections) -> io::Result<OwnerRecords> {
        let mut known = OwnerRecords::default();
        for section in [Section::Rare, Section::Exits, Section::Tasks] {
            rewrite::see(sections, section, |kind, bytes| {
                known.see(section, kind, bytes);
            })?;
        }
        Ok(known)
    }

    /// Adds a record; returns `None` if it cannot be read.
    fn see(&mut self, section: Section, kind: RecordKind, bytes: &[u8]) -> Option<()> {
        match kind {
            RecordKind::Exit => {
                let exit = Exit::read(bytes)?;
                self.lived((exit.head.tid, exit.pid), (exit.head.ts, exit.start));
            }
            RecordKind::Task => {
                let task = Task::read(bytes)?;
                self.lived((task.head.tid, task.pid), (AT_MARK, task.start));
            }
            RecordKind::Owner => {
                let owner = Owner::read(bytes)?;
                let until = if section == Section::Tasks { AT_MARK } else { owner.head.ts };
                self.owners.push((owner.pid, until, owner.uid));
            }
            RecordKind::Wait => {
                let wait = Wait::read(bytes)?;
                self.waiters.insert(wait.head.tid, wait.pid);
            }
            _ => {}
        }
        Some(())
    }

    /// Adds end and start of a thread; only the main thread counts.
    fn lived(&mut self, (tid, pid): (Tid, Pid), times: (Nanos, Nanos)) {
        if tid.0 == pid.0 {
            self.starts.entry(pid).or_default().push(times);
        }
    }

    /// Returns the processes that lived at the mark or ended before it, by pid.
    fn lives(&self) -> HashMap<Pid, Vec<ProcessOwner>> {
        let mut lives: HashMap<Pid, Vec<ProcessOwner>> = HashMap::new();
        for (pid, until, uid) in self.owners.iter().copied() {
            let mut ends = self.starts.get(&pid).into_iter().flatten();
            let life = ends.find(|(end, _)| end.since(until).max(until.since(*end)) <= END_MAX);
            let from = life.map(|(_, from)| *from);
            lives.entry(pid).or_default().push(ProcessOwner { from, until, uid });
        }
        lives
    }
}

#[cfg(test)]
mod tests;
