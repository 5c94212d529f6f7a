// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expansion of packed records.

use crate::chunk::{CHUNK_BYTES, ChunkEntry, ChunkHead, ChunkPart, parts};
use crate::packed::{CONTEXT, FROM, PackedWord, TARGET, TO, WORD_BYTES};
use crate::records::{Head, Migrate, RecordKind, Switch, Waking};
use crate::units::{Nanos, Tid};
use zerocopy::IntoBytes;

/// Thread on a CPU, with its priority if known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Running {
    tid: Tid,
    prio: Option<u8>,
}

/// State of a CPU as known to the reader of its chunk.
struct Unpacker {
    generation: u8,
    /// Time of the latest full record.
    base: Nanos,
    /// `None` until a full record provides it.
    running: Option<Running>,
}

impl Unpacker {
    /// Updates the state from a full record.
    fn learn(&mut self, entry: &ChunkEntry<'_>) {
        self.base = self.base.max(entry.head.ts);
        match entry.kind {
            RecordKind::Switch => {
                self.running = Switch::read(entry.bytes).map(|switch| switched(&switch))
            }
            RecordKind::Waking => {
                Waking::read(entry.bytes).into_iter().for_each(|waking| self.woke(&waking))
            }
            RecordKind::Migrate => Migrate::read(entry.bytes)
                .into_iter()
                .for_each(|migrate| self.is_running(migrate.by)),
            _ => {}
        }
    }

    /// Updates the state from a wakeup. Ignores self-wakeups, like the writer: an interrupt may
    /// have caused them.
    fn woke(&mut self, waking: &Waking) {
        if waking.head.tid != waking.waker {
            self.is_running(waking.waker);
        }
    }

    fn is_running(&mut self, tid: Tid) {
        if self.running.is_none_or(|running| running.tid != tid) {
            self.running = Some(Running { tid, prio: None });
        }
    }

    /// Expands a word to a full record; adds nothing if the running thread, or for a switch its
    /// priority, is unknown.
    fn expand(&mut self, word: PackedWord, mut add: impl FnMut(&[u8])) {
        let Some(running) = self.running else { return };
        match word.kind {
            RecordKind::Switch => {
                let switch = self.switch(word, running);
                self.running = Some(switched(&switch));
                if running.prio.is_some() {
                    add(switch.as_bytes());
                }
            }
            RecordKind::Waking => add(self.waking(word, running).as_bytes()),
            _ => add(self.migrate(word, running).as_bytes()),
        }
    }

    fn switch(&self, word: PackedWord, Running { tid, prio }: Running) -> Switch {
        let head = self.head(word, tid, Switch::SIZE);
        let (next, next_prio) = (word.tid(), word.prio());
        Switch {
            head,
            next,
            prev_state: word.state(),
            prev_prio: prio.unwrap_or_default(),
            next_prio,
        }
    }

    fn waking(&self, word: PackedWord, running: Running) -> Waking {
        let head = self.head(word, word.tid(), Waking::SIZE);
        let (target_cpu, context) = (TARGET.of(word.bits) as u16, CONTEXT.of(word.bits) as u8);
        Waking { head, waker: running.tid, target_cpu, context, prio: word.prio() }
    }

    fn migrate(&self, word: PackedWord, running: Running) -> Migrate {
        let head = self.head(word, word.tid(), Migrate::SIZE);
        Migrate {
            head,
            from: FROM.of(word.bits) as u16,
            to: TO.of(word.bits) as u16,
            by: running.tid,
        }
    }

    fn head(&self, word: PackedWord, tid: Tid, size: usize) -> Head {
        let (ts, size, kind) = (word.time(self.base), size as u16, word.kind as u8);
        Head { ts, tid, size, kind, generation: self.generation }
    }
}

fn switched(switch: &Switch) -> Running {
    Running { tid: switch.next, prio: Some(switch.next_prio) }
}

/// Expands all packed records of a section of chunks, or of a single one. A chunk becomes as many
/// chunks as needed, all with its head; invalid records are left out.
///
/// After an invalid record, packed ones are left out until a full one identifies the running thread
/// again: they were written while the chunk was copied.
pub fn unpacked(section: &[u8]) -> Vec<u8> {
    let mut whole =
        WholeRecords { chunks: Vec::with_capacity(section.len() * Switch::SIZE / WORD_BYTES) };
    for chunk in section.chunks(CHUNK_BYTES) {
        ChunkHead::of(chunk).into_iter().for_each(|head| unpack(chunk, &head, &mut whole));
    }
    whole.finished()
}

fn unpack(chunk: &[u8], head: &ChunkHead, to: &mut WholeRecords) {
    let mut unpacker = Unpacker { generation: head.taken as u8, base: Nanos(0), running: None };
    to.begin(head);
    for part in parts(chunk) {
        match part {
            ChunkPart::Word(word) => unpacker.expand(word, |record| to.add(head, record)),
            ChunkPart::Record(entry) => {
                unpacker.learn(&entry);
                to.add(head, entry.bytes);
            }
            ChunkPart::Gap => unpacker.running = None,
        }
    }
}

/// Growing list of chunks.
struct WholeRecords {
    chunks: Vec<u8>,
}

impl WholeRecords {
    fn begin(&mut self, head: &ChunkHead) {
        self.chunks.resize(self.chunks.len().next_multiple_of(CHUNK_BYTES), 0);
        self.chunks.extend_from_slice(head.as_bytes());
    }

    fn add(&mut self, head: &ChunkHead, record: &[u8]) {
        let used = self.chunks.len() % CHUNK_BYTES;
        if used == 0 || used + record.len() > CHUNK_BYTES {
            self.begin(head);
        }
        self.chunks.extend_from_slice(record);
    }

    fn finished(mut self) -> Vec<u8> {
        self.chunks.resize(self.chunks.len().next_multiple_of(CHUNK_BYTES), 0);
        self.chunks
    }
}

#[cfg(test)]
mod tests;
