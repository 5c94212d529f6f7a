// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long clients take to answer presses, and moves of the pointer, as the display tap counts it while recording goes on.
//!
//! All of it is read from mapped memory, without a system call. The kernel writes meanwhile: a figure
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

/// Buckets of one histogram; the first holds what is shorter than 65,536 ns, then there are eight to each
/// doubling, and the last holds what is longer than 2^36 ns.
pub const BUCKETS: usize = 162;

/// Classes that are counted apart: keys, buttons, the wheel and the pointer.
pub const CLASSES: usize = 4;

/// Major opcodes that extensions of X11 may have, from 128 on.
const EXTENSIONS: usize = 128;

/// Counts by bucket, of each class.
pub type Counts = [[u32; BUCKETS]; CLASSES];

/// What was counted on one connection since its slot was first used; numbers wrap.
#[derive(Clone, Debug)]
pub struct AnswerCounts {
    pub slot: usize,
    pub client: Pid,
    /// When the client was last told of input.
    pub used: Nanos,
    pub counts: Counts,
}

/// One answer, or a stay in a client's queue that was long; of moves of the pointer and the wheel only where the client was
/// busy with them for long: `first` and `last` are that time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToldAnswer {
    /// When it ended.
    pub at: Nanos,
    /// From the first of the presses until then.
    pub first: Nanos,
    /// From the last of them.
    pub last: Nanos,
    /// Of the first, how long the thread that took them waited for nobody of its process and no disk, at least a
    /// millisecond at a time.
    pub slept: Nanos,
    pub client: Pid,
    pub slot: usize,
    /// How many presses were answered together, or taken from the queue together; moves count as one.
    pub presses: u32,
    /// Presses before them that the client was done with, without a drawing: it waited for whatever comes next.
    pub silent: u32,
    /// Below [`CLASSES`].
    pub class: usize,
    /// The stay in the queue alone; no drawing is needed to know it.
    pub queued: bool,
}

/// Where a reader of answers is: they are counted from 0 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AnswersRead {
    next: u64,
    /// Answers that were overwritten before they were read.
    pub lost: u64,
}

/// Presses on one connection that were not answered so far, or moves that were not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenPresses {
    pub slot: usize,
    pub client: Pid,
    /// The first of the presses.
    pub since: Nanos,
    /// When the oldest was sent that the client has not even taken.
    pub untaken: Option<Nanos>,
    pub presses: u32,
    /// Below [`CLASSES`].
    pub class: usize,
}

impl Kernel<'_> {
    /// What was told since the last call with the same reader. Of more than the kernel keeps between two calls, the
    /// newest are given and the others counted.
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
                Ordering::Equal => answers.push(told(one)),
                Ordering::Greater => read.lost += 1,
                // It is being written: it is there the next time.
                Ordering::Less => break,
            }
            read.next += 1;
        }
        answers
    }

    /// Connections with presses that were not answered so far, or with moves that were not taken.
    pub fn open_presses(&self) -> Vec<OpenPresses> {
        let Some(bss) = self.skeleton.maps.bss_data.as_deref() else { return Vec::new() };
        let words = bss.answers_open.iter().enumerate().filter(|(_, word)| volatile(*word) != 0);
        let slots = words.flat_map(|(at, word)| bits(volatile(word)).map(move |bit| 64 * at + bit));
        slots.filter_map(|slot| open(bss, slot)).collect()
    }

    /// The counts of all connections that were used at `since` or later.
    pub fn counted(&self, since: Nanos) -> Vec<AnswerCounts> {
        let Some(bss) = self.skeleton.maps.bss_data.as_deref() else { return Vec::new() };
        (0..bss.answers.len()).filter_map(|slot| counted(bss, slot, since)).collect()
    }

    /// Presses on connections beyond those that can be watched at once, and messages that were not noted since another CPU was
    /// at that connection.
    pub fn unwatched(&self) -> u64 {
        self.skeleton.maps.bss_data.as_deref().map_or(0, |bss| volatile(&bss.answers_unwatched))
    }
}

impl Kernel<'_> {
    /// An X server at which somebody pressed something since this was asked last, and of which it is not known which requests
    /// draw: the number of its display, and who listens at its socket.
    pub fn unknown_server(&mut self) -> Option<(u32, Pid)> {
        let bss = self.skeleton.maps.bss_data.as_deref_mut()?;
        let unknown = volatile(&bss.unknown_server);
        if unknown.server == 0 {
            return None;
        }
        write(&mut bss.unknown_server.server, 0);
        Some((unknown.display, Pid(unknown.server)))
    }

    /// Hands in which requests of X servers draw, and forgets what was handed in before. Where a server is not known, every
    /// request of an extension counts as a drawing.
    ///
    /// # Errors
    /// Where the kernel refuses it.
    pub fn know_servers(&self, displays: &[Display]) -> Result<()> {
        let known = &self.skeleton.maps.drawing_requests;
        let listed = |key: &[u8]| displays.iter().any(|display| display.server_pid.to_le_bytes() == key);
        for gone in known.keys().filter(|key| !listed(key)).collect::<Vec<_>>() {
            known.delete(&gone)?;
        }
        for display in displays {
            known.update(&display.server_pid.to_le_bytes(), drawing_minors(display).as_bytes(), MapFlags::ANY)?;
        }
        Ok(())
    }
}

/// A bit for each minor opcode that draws, by major opcode from 128 on.
fn drawing_minors(display: &Display) -> [u64; EXTENSIONS] {
    let mut by_major = [0; EXTENSIONS];
    for extension in &display.extensions {
        let known = DRAWING_REQUESTS.iter().find(|(name, _)| *name == extension.name);
        let minors = known.map_or(&[][..], |(_, minors)| minors);
        if let Some(bits) = extension.major.checked_sub(128).and_then(|at| by_major.get_mut(usize::from(at))) {
            *bits |= minors.iter().fold(0, |bits, minor| bits | 1 << minor);
        }
    }
    by_major
}

/// Writes what the kernel may be reading.
fn write<T>(place: &mut T, value: T) {
    // SAFETY: a reference is valid for writes; the kernel programs read plain integers there meanwhile.
    unsafe { std::ptr::from_mut(place).write_volatile(value) }
}

/// Reads what the kernel may be writing.
fn volatile<T: Copy>(place: &T) -> T {
    // SAFETY: a reference is valid for reads; the kernel writes plain integers there meanwhile, of which
    // every bit pattern is one.
    unsafe { std::ptr::from_ref(place).read_volatile() }
}

fn bits(word: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |bit| word >> bit & 1 == 1)
}

fn told(answer: told_answer) -> ToldAnswer {
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

/// Behind the slots for presses of all connections are those for the pointer.
fn open(bss: &bss, slot: usize) -> Option<OpenPresses> {
    match slot.checked_sub(bss.answers.len()) {
        None => unanswered(slot, volatile(&bss.answers[slot])),
        Some(own) => untaken(slot, volatile(&bss.answers[own].client), volatile(&bss.pointers[own])),
    }
}

fn untaken(slot: usize, client: u32, pointer: pointer) -> Option<OpenPresses> {
    let (told, since) = (pointer.told, Nanos(pointer.untaken));
    (told.count > 0).then_some(OpenPresses {
        slot,
        client: Pid(client),
        since,
        untaken: Some(since),
        presses: told.count,
        class: class(told.class),
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
