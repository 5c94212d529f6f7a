// SPDX-License-Identifier: MIT OR Apache-2.0
//! The journal: what is going to be changed, written before it is.
//!
//! A line is one JSON object with a check sum over what it says and the number of the boot it
//! belongs to, so any damaged line is noticed by itself and the others are still good. Lines are
//! appended with one write each batch. They are in the kernel's hands when the change is made, which
//! is enough for a process that is killed; there is no `fsync`, since a machine that loses its
//! memory also loses every change that the journal could take back.
//!
//! What is no longer needed is left out when the journal is rewritten, to a second file that then
//! takes the name of the first: at every moment one of them is whole under that name.

use crate::world::{KnobPlace, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

/// The journal is rewritten when it has grown by this many bytes, and to twice of what is needed.
const COMPACT_BYTES: usize = 256 << 10;
/// Bytes that are read of a journal at most: above what [`COMPACT_BYTES`] and the ledger's bound let it grow to.
pub(crate) const READ_BYTES_MAX: usize = 16 << 20;

/// What was done to a place.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) baseline: Value,
    pub(crate) applied: Value,
    /// What was put there before that.
    pub(crate) before: Option<Value>,
    /// Clock ticks when the place was first changed.
    pub(crate) since: u64,
    /// The session of the process.
    pub(crate) session: u32,
    /// Of a group: the folder where its processes came from.
    #[serde(rename = "home")]
    pub(crate) return_to: Option<String>,
    /// The last change is known to be done, so the place does not hold what it held before that.
    #[serde(skip)]
    pub(crate) done: bool,
}

impl Cell {
    /// What is known after nobody has answered: the place has what it had before, or will have the new value.
    pub(crate) fn undecided(self) -> Cell {
        let applied = self.before.unwrap_or_else(|| self.baseline.clone());
        Cell { before: Some(self.applied), applied, ..self }
    }

    /// True where the place holds what was put there: by the last change, or by the one before it where it is not known
    /// that the last one was done.
    pub(crate) fn put(&self, value: &Value) -> bool {
        self.applied == *value || !self.done && self.before.as_ref() == Some(value)
    }

    /// True where a value was there that whoever was forked meanwhile may have.
    pub(crate) fn lent(&self, value: &Value) -> bool {
        self.applied == *value || self.before.as_ref() == Some(value)
    }
}

/// Where the lines are kept.
pub(crate) trait Log {
    /// All bytes, [`READ_BYTES_MAX`] at most.
    fn read(&mut self) -> io::Result<Vec<u8>>;
    /// Adds bytes at the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Has exactly these bytes instead, or still all the old ones where it fails.
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// What a line says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JournalLine {
    /// The place is about to hold `cell.applied`.
    Change { place: KnobPlace, cell: Cell },
    /// The place needs nothing any more.
    Clear { place: KnobPlace },
}

#[derive(Serialize, Deserialize)]
struct Line {
    check: u64,
    boot: u64,
    entry: JournalLine,
}

/// What a journal tells.
#[derive(Default, Debug)]
pub(crate) struct Contents {
    pub(crate) cells: BTreeMap<KnobPlace, Cell>,
    pub(crate) unreadable: usize,
}

pub(crate) struct Journal<L> {
    log: L,
    boot: u64,
    /// Bytes in the log.
    size: usize,
    /// Bytes in it when it was last rewritten.
    compact: usize,
    /// The last append may have left half a line.
    torn: bool,
}

impl<L: Log> Journal<L> {
    /// Opens the log and reads what it tells of this boot. It is left as it is.
    pub(crate) fn open(mut log: L, boot: u64) -> io::Result<(Journal<L>, Contents)> {
        let bytes = log.read()?;
        let torn = bytes.last().is_some_and(|&last| last != b'\n');
        let journal = Journal { log, boot, size: bytes.len(), compact: 0, torn };
        Ok((journal, tell(&bytes, boot)))
    }

    /// Adds entries; where it fails, none of what they announce may be done.
    pub(crate) fn append(&mut self, entries: &[JournalLine]) -> io::Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut bytes = if self.torn { vec![b'\n'] } else { Vec::new() };
        entries.iter().for_each(|entry| self.write(entry, &mut bytes));
        self.torn = true;
        self.log.append(&bytes)?;
        self.torn = false;
        self.size += bytes.len();
        Ok(())
    }

    /// True where much of the log is no longer needed.
    pub(crate) fn is_long(&self) -> bool {
        self.size > COMPACT_BYTES + 2 * self.compact
    }

    /// Rewrites the log so that it tells exactly `cells`.
    pub(crate) fn compact(&mut self, cells: &BTreeMap<KnobPlace, Cell>) -> io::Result<()> {
        let mut bytes = Vec::new();
        for (place, cell) in cells {
            self.write(&JournalLine::Change { place: place.clone(), cell: cell.clone() }, &mut bytes);
        }
        self.log.replace(&bytes)?;
        (self.size, self.compact, self.torn) = (bytes.len(), bytes.len(), false);
        Ok(())
    }

    fn write(&self, entry: &JournalLine, bytes: &mut Vec<u8>) {
        let line = Line { check: check(self.boot, entry), boot: self.boot, entry: entry.clone() };
        serde_json::to_writer(&mut *bytes, &line).expect("numbers and texts can be written to memory");
        bytes.push(b'\n');
    }
}

/// What the bytes of a journal tell of boot `boot`. Lines of another boot need nothing: the machine has forgotten.
fn tell(bytes: &[u8], boot: u64) -> Contents {
    let mut told = Contents::default();
    for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice::<Line>(line).ok().filter(|line| line.check == check(line.boot, &line.entry)) {
            None => told.unreadable += 1,
            Some(line) if line.boot != boot => {}
            Some(Line { entry: JournalLine::Change { place, cell }, .. }) => drop(told.cells.insert(place, cell)),
            Some(Line { entry: JournalLine::Clear { place }, .. }) => drop(told.cells.remove(&place)),
        }
    }
    told
}

/// Reads any bytes, as they are and with right check sums; whether a line was good then.
pub(crate) fn tell_any(bytes: &[u8]) -> bool {
    let lines = bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice::<Line>(line).ok());
    let mut mended = Vec::new();
    for line in lines {
        let line = Line { check: check(line.boot, &line.entry), ..line };
        serde_json::to_writer(&mut mended, &line).expect("numbers and texts can be written to memory");
        mended.push(b'\n');
    }
    drop(tell(bytes, 9));
    !tell(&mended, 9).cells.is_empty()
}

fn check(boot: u64, entry: &JournalLine) -> u64 {
    hash(format!("{boot} {}", serde_json::to_string(entry).expect("numbers and texts can be written")).as_bytes())
}

/// FNV-1a: each step can be undone, so a single changed byte always changes the sum.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::MemoryLog;
    use crate::world::Value;
    use tipme_policy::Identity;

    fn entry(pid: u32) -> JournalLine {
        let place = KnobPlace::Member { process: Identity { pid, start: 5 }, root: "/r".into() };
        let cell = Cell { baseline: Value::Text("/r/a".into()), applied: 7.into(), ..Cell::default() };
        JournalLine::Change { place, cell }
    }

    fn written() -> (MemoryLog, Vec<u8>) {
        let log = MemoryLog::default();
        let (mut journal, told) = Journal::open(log.clone(), 9).unwrap();
        assert!(told.cells.is_empty());
        journal.append(&[entry(1), entry(2), entry(3)]).unwrap();
        (log.clone(), log.bytes())
    }

    #[test]
    fn what_was_written_is_told_on_the_same_boot_only() {
        let (_, bytes) = written();
        assert_eq!(tell(&bytes, 9).cells.len(), 3);
        let other = tell(&bytes, 8);
        assert_eq!((other.cells.len(), other.unreadable), (0, 0));
    }

    #[test]
    fn a_cut_at_any_byte_costs_one_line_at_most() {
        let (_, bytes) = written();
        for end in 0..bytes.len() {
            let told = tell(&bytes[..end], 9);
            let whole = bytes[..end].iter().filter(|&&byte| byte == b'\n').count();
            assert!(told.cells.len() == whole || told.cells.len() == whole + 1, "cut at {end}");
            assert!(told.unreadable <= 1);
        }
    }

    #[test]
    fn a_changed_byte_is_never_believed() {
        let (_, bytes) = written();
        let good = tell(&bytes, 9).cells;
        for at in 0..bytes.len() {
            for flip in [0x01, 0x10, 0x80] {
                let mut bad = bytes.clone();
                bad[at] ^= flip;
                let told = tell(&bad, 9);
                assert!(told.cells.iter().all(|(place, cell)| good.get(place) == Some(cell)), "byte {at}");
                assert!(!told.cells.is_empty(), "the other lines are still good");
            }
        }
    }

    #[test]
    fn half_a_line_does_not_spoil_the_next_one() {
        let (log, bytes) = written();
        log.set(&bytes[..bytes.len() - 9]);
        let (mut journal, told) = Journal::open(log.clone(), 9).unwrap();
        assert_eq!((told.cells.len(), told.unreadable), (2, 1));
        journal.append(&[entry(4)]).unwrap();
        assert_eq!(tell(&log.bytes(), 9).cells.len(), 3);
    }

    #[test]
    fn the_journal_does_not_grow_without_end() {
        let log = MemoryLog::default();
        let (mut journal, _) = Journal::open(log.clone(), 9).unwrap();
        let mut cells = tell(&[], 9).cells;
        for round in 0..20_000u32 {
            let JournalLine::Change { place, cell } = entry(round % 7) else { unreachable!() };
            journal.append(&[JournalLine::Change { place: place.clone(), cell: cell.clone() }]).unwrap();
            cells.insert(place, cell);
            if journal.is_long() {
                journal.compact(&cells).unwrap();
            }
        }
        assert!(log.bytes().len() < 2 * COMPACT_BYTES, "{} bytes", log.bytes().len());
        assert_eq!(tell(&log.bytes(), 9).cells, cells);
    }
}
