// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies of clients from presses and pointer moves, as counted by the display tap while
//! recording goes on.
//!
//! All of it is read from mapped memory without a system call. The kernel writes meanwhile: a value
//! may be half old and half new, which costs one wrong count at most.

use crate::load::Kernel;
use crate::skeleton::types::{answer, bss, pointer, told_answer};
use anyhow::Result;
use libbpf_rs::{MapCore, MapFlags};
use std::cmp::Ordering;
use tipme_record::incident::Display;
use tipme_record::x11::DRAWING_REQUESTS;
use tipme_record::{Nanos, Pid};
use zerocopy::IntoBytes;

/// Number of buckets of a histogram. The first one holds latencies below 65,536 ns, followed by
/// eight per doubling; the last one holds those above 2^36 ns.
pub const BUCKETS: usize = 162;

/// Number of classes counted separately: keys, buttons, the wheel and the pointer.
pub const CLASSES: usize = 4;

/// Number of major opcodes for X11 extensions, from 128 on.
const EXTENSIONS: usize = 128;

/// Counts by class and bucket.
pub type Counts = [[u32; BUCKETS]; CLASSES];

/// Counts of one connection since the first use of its slot; they wrap.
#[derive(Clone, Debug)]
pub struct AnswerCounts {
    pub slot: usize,
    pub client: Pid,
    /// Time of the last input sent to the client.
    pub used: Nanos,
    pub counts: Counts,
}

/// One answer, or a long time in a client's queue. Moves of the pointer and the wheel are reported
/// only if the client was busy with them for long: `first` and `last` are that time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToldAnswer {
    /// Time at which it ended.
    pub at: Nanos,
    /// Time from the first press to the end.
    pub first: Nanos,
    /// Time from the last press to the end.
    pub last: Nanos,
    /// Part of `first` for which the thread that reads presses waited for something other than its
    /// own process or a disk, at least a millisecond at a time.
    pub slept: Nanos,
    pub client: Pid,
    pub slot: usize,
    /// Number of presses answered together, or read from the queue together; moves count as one.
    pub presses: u32,
    /// Number of earlier presses that the client finished without a drawing, and then waited for
    /// its next event.
    pub silent: u32,
    /// Less than [`CLASSES`].
    pub class: usize,
    /// Time in the queue only, known without a drawing.
    pub queued: bool,
}

/// Position of a reader of answers, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AnswersRead {
    next: u64,
    /// Number of answers overwritten before they were read.
    pub lost: u64,
}

/// Unanswered presses on one connection, or unread moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenPresses {
    pub slot: usize,
    pub client: Pid,
    /// Time of the first press.
    pub since: Nanos,
    /// Time at which the oldest unread input was sent.
    pub untaken: Option<Nanos>,
    pub presses: u32,
    /// Less than [`CLASSES`].
    pub class: usize,
}

impl Kernel<'_> {
    /// Returns the answers since the last call with the same reader. If there are more than the
    /// kernel keeps, the newest are returned and the rest counted as lost.
    pub fn answers(&self, read: &mut AnswersRead) -> Vec<ToldAnswer> {
        let Some(bss) = self.skeleton.maps.bss_data.as_deref() else { return Vec::new() };
        let (made, kept) = (volatile(&bss.answers_told), bss.told_answers.len() as u64);
        let first = read.next.max(made.saturating_sub(kept));
        read.lost += first - read.next;
        read.next = first;
        let mut answers = Vec::new();
        while read.next < made {
            let one = volatile(&bss.told_answers[(read.next % kept) as usize]);
            match one.turn.cmp(&(read.next + 1)) {
                Ordering::Equal => answers.push(read_answer(one)),
                Ordering::Greater => read.lost += 1,
                // Being written now: the next call reads it.
                Ordering::Less => break,
            }
            read.next += 1;
        }
        answers
    }

    /// Returns connections with unanswered presses or unread moves.
    pub fn open_presses(&self) -> Vec<OpenPresses> {
        let Some(bss) = self.skeleton.maps.bss_data.as_deref() else { return Vec::new() };
        let words = bss.answers_open.iter().enumerate().filter(|(_, word)| volatile(*word) != 0);
        let slots = words.flat_map(|(at, word)| bits(volatile(word)).map(move |bit| 64 * at + bit));
        slots.filter_map(|slot| open(bss, slot)).collect()
    }

    /// Returns the counts of all connections used at or after `since`.
    pub fn counted(&self, since: Nanos) -> Vec<AnswerCounts> {
        let Some(bss) = self.skeleton.maps.bss_data.as_deref() else { return Vec::new() };
        (0..bss.answers.len()).filter_map(|slot| counted(bss, slot, since)).collect()
    }

    /// Returns the number of presses on connections beyond the maximum, and of messages lost
    /// because another CPU was updating that connection.
    pub fn unwatched(&self) -> u64 {
        self.skeleton.maps.bss_data.as_deref().map_or(0, |bss| volatile(&bss.answers_unwatched))
    }
}

impl Kernel<'_> {
    /// Returns an X server with unknown drawing requests on which something was pressed since the
    /// last call: its display number and the pid that listens at its socket.
    pub fn unknown_server(&mut self) -> Option<(u32, Pid)> {
        let bss = self.skeleton.maps.bss_data.as_deref_mut()?;
        let unknown = volatile(&bss.unknown_server);
        if unknown.server == 0 {
            return None;
        }
        write(&mut bss.unknown_server.server, 0);
        Some((unknown.display, Pid(unknown.server)))
    }

    /// Replaces the drawing requests of X servers. For an unknown server, every extension request
    /// counts as a drawing.
    ///
    /// # Errors
    /// If the kernel refuses the update.
    pub fn know_servers(&self, displays: &[Display]) -> Result<()> {
        let known = &self.skeleton.maps.drawing_requests;
        let listed =
            |key: &[u8]| displays.iter().any(|display| display.server_pid.to_le_bytes() == key);
        for gone in known.keys().filter(|key| !listed(key)).collect::<Vec<_>>() {
            known.delete(&gone)?;
        }
        for display in displays {
            known.update(
                &display.server_pid.to_le_bytes(),
                drawing_minors(display).as_bytes(),
                MapFlags::ANY,
            )?;
        }
        Ok(())
    }
}

/// Returns a bit per minor opcode that draws, indexed by the major opcode from 128 on.
fn drawing_minors(display: &Display) -> [u64; EXTENSIONS] {
    let mut by_major = [0; EXTENSIONS];
    for extension in &display.extensions {
        let known = DRAWING_REQUESTS.iter().find(|(name, _)| *name == extension.name);
        let minors = known.map_or(&[][..], |(_, minors)| minors);
        if let Some(bits) =
            extension.major.checked_sub(128).and_then(|at| by_major.get_mut(usize::from(at)))
        {
            *bits |= minors.iter().fold(0, |bits, minor| bits | 1 << minor);
        }
    }
    by_major
}

/// Writes a value that the kernel may be reading.
fn write<T>(place: &mut T, value: T) {
    // SAFETY: a reference is valid for writes; the kernel programs read plain integers there
    // concurrently.
    unsafe { std::ptr::from_mut(place).write_volatile(value) }
}

/// Reads a value that the kernel may be writing.
fn volatile<T: Copy>(place: &T) -> T {
    // SAFETY: a reference is valid for reads; the kernel writes plain integers there concurrently,
    // for which every bit pattern is valid.
    unsafe { std::ptr::from_ref(place).read_volatile() }
}

fn bits(word: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |bit| word >> bit & 1 == 1)
}

fn read_answer(answer: told_answer) -> ToldAnswer {
    ToldAnswer {
        at: Nanos(answer.at),
        first: Nanos(answer.first),
        last: Nanos(answer.last),
        slept: Nanos(answer.slept),
        client: Pid(answer.client),
        slot: answer.slot as usize,
        presses: answer.presses,
        silent: answer.silent,
        class: class(answer.class),
        queued: answer.queued == 1,
    }
}

fn class(number: u32) -> usize {
    (number as usize).min(CLASSES - 1)
}

/// Reads an open slot: those for presses come first, then those for the pointer.
fn open(bss: &bss, slot: usize) -> Option<OpenPresses> {
    match slot.checked_sub(bss.answers.len()) {
        None => unanswered(slot, volatile(&bss.answers[slot])),
        Some(own) => {
            untaken(slot, volatile(&bss.answers[own].client), volatile(&bss.pointers[own]))
        }
    }
}

fn untaken(slot: usize, client: u32, pointer: pointer) -> Option<OpenPresses> {
    let (moves, since) = (pointer.told, Nanos(pointer.untaken));
    (moves.count > 0).then_some(OpenPresses {
        slot,
        client: Pid(client),
        since,
        untaken: Some(since),
        presses: moves.count,
        class: class(moves.class),
    })
}

fn unanswered(slot: usize, answer: answer) -> Option<OpenPresses> {
    let untaken = (answer.fresh > 0 && answer.untaken > 0).then_some(Nanos(answer.untaken));
    (answer.presses > 0).then_some(OpenPresses {
        slot,
        client: Pid(answer.client),
        since: Nanos(answer.since),
        untaken,
        presses: answer.presses,
        class: class(answer.class),
    })
}

fn counted(bss: &bss, slot: usize, since: Nanos) -> Option<AnswerCounts> {
    let answer = volatile(&bss.answers[slot]);
    (volatile(&bss.owners[slot]) != 0 && answer.used >= since.0).then(|| AnswerCounts {
        slot,
        client: Pid(answer.client),
        used: Nanos(answer.used),
        counts: volatile(&bss.answer_counts[slot]),
    })
}

#[cfg(test)]
mod tests;
