// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an incident tells a user who is not root of the processes of others.
//!
//! Names, states and waits of all threads stay: to know who was in the way is what an incident is for. Messages of
//! displays, data of terminals and command lines stay where they are the user's own, or of the system's
//! services. But what reaches a service over a terminal or a display is the doing of whoever sits there: a password
//! may be typed at a login. So a terminal is of the user whose session it is, and a service's messages are shown
//! where nobody else has clients at that display. Who owns a process that is not known is not this user.

use crate::incident::{Display, Incident, Locks, Section, Withheld};
use crate::records::{Exec, Exit, Kind, Message, Owner, Tty, Wait};
use crate::rewrite;
use crate::units::{Pid, Tid};
use crate::whereabouts::{conceal_arguments, conceal_locks};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::offset_of;

/// In front of a command line: process and length.
const LINE_HEAD: usize = 8;

/// Whether this user is root or what a service runs as: no person logs in as one. Those from 61184 on are made
/// for one run of a service, and 65534 stands for nobody.
pub fn is_system(uid: u32) -> bool {
    matches!(uid, 0..1000 | 61_184..=65_519 | 65_534)
}

/// Whose process something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    Own,
    System,
    Other(u32),
    /// Not known, or the number was of several users' processes one after the other.
    Unknown,
}

/// Takes out of an incident what this user may not know, but does not look at input devices, and says how much it was.
/// Root may know all. Addresses of other users' memory become what `disguise` makes of them.
pub fn conceal(incident: &mut Incident, user: u32, disguise: &dyn Fn(u64) -> u64) -> Withheld {
    if user == 0 {
        return Withheld::default();
    }
    let mut view = View::of(incident, user);
    for section in [Section::Rare, Section::Exits, Section::Tasks] {
        rewrite::section(incident, section, &mut |kind, record| view.edit(kind, record, disguise));
    }
    let own = view.own_waiters(incident);
    for (section, bytes) in &mut incident.sections {
        match section {
            Section::Cmdlines => *bytes = view.command_lines(bytes),
            Section::Locks => *bytes = locks(bytes, |tid| !own.contains(&Tid(tid)), disguise),
            _ => {}
        }
    }
    view.withheld.users = view.hidden.len() as u32;
    view.withheld
}

/// What one user may know.
struct View {
    user: u32,
    owners: HashMap<Pid, Option<u32>>,
    /// Displays that nobody but this user has clients at.
    displays: BTreeSet<u32>,
    withheld: Withheld,
    /// Users of whom something was withheld.
    hidden: BTreeSet<u32>,
}

impl View {
    fn of(incident: &Incident, user: u32) -> View {
        let (displays, hidden) = (BTreeSet::new(), BTreeSet::new());
        let mut view = View { user, owners: owners(incident), displays, withheld: Withheld::default(), hidden };
        view.displays = view.own_displays(incident);
        view
    }

    fn whose(&self, pid: Pid) -> Of {
        match self.owners.get(&pid) {
            Some(Some(uid)) if *uid == self.user => Of::Own,
            Some(Some(uid)) if is_system(*uid) => Of::System,
            Some(Some(uid)) => Of::Other(*uid),
            Some(None) | None => Of::Unknown,
        }
    }

    /// This user's threads that wait at the mark.
    fn own_waiters(&self, incident: &Incident) -> BTreeSet<Tid> {
        let waits = rewrite::records(incident, Section::Tasks).filter(|(kind, _)| *kind == Kind::Wait);
        let waits = waits.filter_map(|(_, bytes)| Wait::read(bytes));
        waits.filter(|wait| self.whose(wait.pid) == Of::Own).map(|wait| wait.head.tid).collect()
    }

    fn own_displays(&self, incident: &Incident) -> BTreeSet<u32> {
        let servers: Vec<Display> = incident.json(Section::Displays).unwrap_or_default();
        let servers = servers.into_iter().map(|display| (display.display, Pid(display.server_pid)));
        let messages = rewrite::records(incident, Section::Rare).filter(|(kind, _)| *kind == Kind::Message);
        let messages = messages.filter_map(|(_, bytes)| Message::read(bytes));
        let mut only: BTreeMap<u32, bool> = BTreeMap::new();
        let clients: BTreeSet<(u32, Pid)> = messages.map(|message| (message.display, message.client)).collect();
        for (display, pid) in clients.into_iter().chain(servers) {
            match self.whose(pid) {
                Of::Own => drop(only.entry(display).or_insert(true)),
                Of::System => {}
                Of::Other(_) | Of::Unknown => drop(only.insert(display, false)),
            }
        }
        only.into_iter().filter(|(_, only)| *only).map(|(display, _)| display).collect()
    }

    /// Whether a record stays, without what is not to be known.
    fn edit(&mut self, kind: Kind, record: &mut [u8], disguise: &dyn Fn(u64) -> u64) -> bool {
        match kind {
            Kind::Message => self.message(record),
            Kind::Tty => self.terminal(record),
            Kind::Wait => self.wait(record, disguise),
            Kind::Exec => self.line(record, Exec::read(record).map(|exec| exec.pid), Exec::SIZE),
            Kind::Exit => self.line(record, Exit::read(record).map(|exit| exit.pid), Exit::SIZE),
            _ => true,
        }
    }

    fn message(&mut self, record: &[u8]) -> bool {
        let Some(message) = Message::read(record) else { return false };
        let of = self.whose(message.client);
        if of == Of::Own || (of == Of::System && self.displays.contains(&message.display)) {
            return true;
        }
        self.withheld.messages += 1;
        self.note(of)
    }

    fn terminal(&mut self, record: &[u8]) -> bool {
        let Some(tty) = Tty::read(record) else { return false };
        let of = self.whose(tty.session);
        if of == Of::Own {
            return true;
        }
        self.withheld.inputs += 1;
        self.note(of)
    }

    fn wait(&mut self, record: &mut [u8], disguise: &dyn Fn(u64) -> u64) -> bool {
        let Some(wait) = Wait::read(record) else { return false };
        let of = self.whose(wait.pid);
        if of != Of::Own {
            conceal_arguments(record, disguise);
        }
        if !matches!(of, Of::Own | Of::System) {
            rewrite::put(record, offset_of!(Wait, address), &[0; 4]);
            rewrite::put(record, offset_of!(Wait, port), &[0; 2]);
        }
        true
    }

    /// Takes out the command line behind a record's fixed part.
    fn line(&mut self, record: &mut [u8], pid: Option<Pid>, fixed: usize) -> bool {
        let of = pid.map_or(Of::Unknown, |pid| self.whose(pid));
        if !matches!(of, Of::Own | Of::System)
            && let Some(line) = record.get_mut(fixed..).filter(|line| line.iter().any(|byte| *byte != 0))
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
            let Some(size) = length.checked_next_multiple_of(8).filter(|size| *size <= behind.len()) else { break };
            let of = self.whose(Pid(u32::from_le_bytes([*a, *b, *c, *d])));
            if matches!(of, Of::Own | Of::System) {
                clean.extend_from_slice(&rest[..LINE_HEAD + size]);
            } else {
                self.withheld.command_lines += 1;
                self.note(of);
            }
            rest = &behind[size..];
        }
        clean
    }

    /// Notes whose it was; false, since it does not stay.
    fn note(&mut self, of: Of) -> bool {
        if let Of::Other(uid) = of {
            self.hidden.insert(uid);
        }
        false
    }
}

/// The section of locks with others' addresses disguised; none where it is no such document.
fn locks(bytes: &[u8], others: impl Fn(u32) -> bool, disguise: &dyn Fn(u64) -> u64) -> Vec<u8> {
    let mut locks: Locks = serde_json::from_slice(bytes).unwrap_or_default();
    conceal_locks(&mut locks, others, disguise);
    serde_json::to_vec(&locks).unwrap_or_default()
}

/// The user of each process that lived at the mark, or ended before it.
fn owners(incident: &Incident) -> HashMap<Pid, Option<u32>> {
    let mut owners: HashMap<Pid, Option<u32>> = HashMap::new();
    for section in [Section::Exits, Section::Tasks] {
        let records = rewrite::records(incident, section).filter(|(kind, _)| *kind == Kind::Owner);
        for owner in records.filter_map(|(_, bytes)| Owner::read(bytes)) {
            let known = owners.entry(owner.pid).or_insert(Some(owner.uid));
            *known = known.filter(|uid| *uid == owner.uid);
        }
    }
    owners
}

#[cfg(test)]
mod tests;
