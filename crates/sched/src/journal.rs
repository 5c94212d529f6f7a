// SPDX-License-Identifier: MIT OR Apache-2.0
//! Write-ahead journal of all changes.
//!
//! A line is a JSON object with a check sum over its entry and the boot id, so a damaged line is
//! detected by itself and the others remain valid. Each batch of lines is appended with a single
//! write. The lines are in the page cache before the change is made, which suffices if the process
//! is killed. There is no `fsync`, since a machine that loses its memory also loses every change
//! that the journal could restore.
//!
//! A rewrite drops obsolete lines: it writes a second file, which is then renamed over the first.
//! At every moment one complete file exists under that name.

use crate::world::{KnobPlace, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

/// Growth beyond twice the needed size after which the journal is rewritten, in bytes.
const COMPACT_BYTES: usize = 256 << 10;
/// Maximum number of bytes read from a journal, above the size that [`COMPACT_BYTES`] and the
/// ledger's bound allow.
pub(crate) const READ_BYTES_MAX: usize = 16 << 20;

/// Changes made to a place.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) baseline: Value,
    pub(crate) applied: Value,
    /// Value applied before the present one.
    pub(crate) before: Option<Value>,
    /// Time of the first change, in clock ticks.
    pub(crate) since: u64,
    /// Session of the process.
    pub(crate) session: u32,
    /// For a group: the folder from which its processes came.
    #[serde(rename = "home")]
    pub(crate) return_to: Option<String>,
    /// The last change is known to be done, so the place no longer has the value before it.
    #[serde(skip)]
    pub(crate) done: bool,
}

impl Cell {
    /// Returns the cell after an unanswered request: the place has its old value, or will get the
    /// new one.
    pub(crate) fn undecided(self) -> Cell {
        let applied = self.before.unwrap_or_else(|| self.baseline.clone());
        Cell { before: Some(self.applied), applied, ..self }
    }

    /// Returns `true` if the place has an applied value: that of the last change, or the one before
    /// if the last change is unconfirmed.
    pub(crate) fn has_applied(&self, value: &Value) -> bool {
        self.applied == *value || !self.done && self.before.as_ref() == Some(value)
    }

    /// Returns `true` if the place had this value, so that a child forked meanwhile may have
    /// inherited it.
    pub(crate) fn has_had(&self, value: &Value) -> bool {
        self.applied == *value || self.before.as_ref() == Some(value)
    }
}

/// Storage of the journal's lines.
pub(crate) trait Log {
    /// Reads all bytes, at most [`READ_BYTES_MAX`].
    fn read(&mut self) -> io::Result<Vec<u8>>;
    /// Appends bytes.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Replaces the contents atomically: on failure all old bytes remain.
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// An entry of the journal.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JournalLine {
    /// The place is about to get the value `cell.applied`.
    Change { place: KnobPlace, cell: Cell },
    /// The place needs no restore any more.
    Clear { place: KnobPlace },
}

#[derive(Serialize, Deserialize)]
struct Line {
    check: u64,
    boot: u64,
    entry: JournalLine,
}

/// Contents of a journal.
#[derive(Default, Debug)]
pub(crate) struct Contents {
    pub(crate) cells: BTreeMap<KnobPlace, Cell>,
    pub(crate) unreadable: usize,
}

pub(crate) struct Journal<L> {
    log: L,
    boot: u64,
    /// Size of the log in bytes.
    size: usize,
    /// Size of the log after its last rewrite, in bytes.
    compact: usize,
    /// The last append may have left a partial line.
    torn: bool,
}

impl<L: Log> Journal<L> {
    /// Opens the log, without changes to it, and reads the entries of this boot.
    pub(crate) fn open(mut log: L, boot: u64) -> io::Result<(Journal<L>, Contents)> {
        let bytes = log.read()?;
        let torn = bytes.last().is_some_and(|&last| last != b'\n');
        let journal = Journal { log, boot, size: bytes.len(), compact: 0, torn };
        Ok((journal, read_lines(&bytes, boot)))
    }

    /// Appends entries. If that fails, none of the announced changes may be made.
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

    /// Returns `true` if much of the log is obsolete.
    pub(crate) fn is_long(&self) -> bool {
        self.size > COMPACT_BYTES + 2 * self.compact
    }

    /// Rewrites the log so that it contains exactly `cells`.
    pub(crate) fn compact(&mut self, cells: &BTreeMap<KnobPlace, Cell>) -> io::Result<()> {
        let mut bytes = Vec::new();
        for (place, cell) in cells {
            self.write(
                &JournalLine::Change { place: place.clone(), cell: cell.clone() },
                &mut bytes,
            );
        }
        self.log.replace(&bytes)?;
        (self.size, self.compact, self.torn) = (bytes.len(), bytes.len(), false);
        Ok(())
    }

    fn write(&self, entry: &JournalLine, bytes: &mut Vec<u8>) {
        let line = Line { check: check(self.boot, entry), boot: self.boot, entry: entry.clone() };
        serde_json::to_writer(&mut *bytes, &line)
            .expect("numbers and texts can be written to memory");
        bytes.push(b'\n');
    }
}

/// Parses the entries of boot `boot`. Lines of another boot need no restore: a reboot undoes all
/// changes.
fn read_lines(bytes: &[u8], boot: u64) -> Contents {
    let mut contents = Contents::default();
    for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice::<Line>(line)
            .ok()
            .filter(|line| line.check == check(line.boot, &line.entry))
        {
            None => contents.unreadable += 1,
            Some(line) if line.boot != boot => {}
            Some(Line { entry: JournalLine::Change { place, cell }, .. }) => {
                drop(contents.cells.insert(place, cell))
            }
            Some(Line { entry: JournalLine::Clear { place }, .. }) => {
                drop(contents.cells.remove(&place))
            }
        }
    }
    contents
}

/// Parses arbitrary bytes, as they are and with corrected check sums; returns `true` if a line was
/// valid then.
pub(crate) fn read_any(bytes: &[u8]) -> bool {
    let lines = bytes
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Line>(line).ok());
    let mut mended = Vec::new();
    for line in lines {
        let line = Line { check: check(line.boot, &line.entry), ..line };
        serde_json::to_writer(&mut mended, &line)
            .expect("numbers and texts can be written to memory");
        mended.push(b'\n');
    }
    drop(read_lines(bytes, 9));
    !read_lines(&mended, 9).cells.is_empty()
}

fn check(boot: u64, entry: &JournalLine) -> u64 {
    hash(
        format!(
            "{boot} {}",
            serde_json::to_string(entry).expect("numbers and texts can be written")
        )
        .as_bytes(),
    )
}

/// FNV-1a: each step is invertible, so a single changed byte always changes the sum.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::MemoryLog;
    use crate::world::Value;
    use tipme_policy::Identity;

    fn entry(pid: u32) -> JournalLine {
        let place = KnobPlace::Member { process: Identity { pid, start: 5 }, root: "/r".into() };
        let cell =
            Cell { baseline: Value::Text("/r/a".into()), applied: 7.into(), ..Cell::default() };
        JournalLine::Change { place, cell }
    }

    fn written() -> (MemoryLog, Vec<u8>) {
        let log = MemoryLog::default();
        let (mut journal, contents) = Journal::open(log.clone(), 9).unwrap();
        assert!(contents.cells.is_empty());
        journal.append(&[entry(1), entry(2), entry(3)]).unwrap();
        (log.clone(), log.bytes())
    }

    #[test]
    fn entries_are_read_on_the_same_boot_only() {
        let (_, bytes) = written();
        assert_eq!(read_lines(&bytes, 9).cells.len(), 3);
        let other = read_lines(&bytes, 8);
        assert_eq!((other.cells.len(), other.unreadable), (0, 0));
    }

    #[test]
    fn a_cut_at_any_byte_costs_one_line_at_most() {
        let (_, bytes) = written();
        for end in 0..bytes.len() {
            let contents = read_lines(&bytes[..end], 9);
            let whole = bytes[..end].iter().filter(|&&byte| byte == b'\n').count();
            assert!(
                contents.cells.len() == whole || contents.cells.len() == whole + 1,
                "cut at {end}"
            );
            assert!(contents.unreadable <= 1);
        }
    }

    #[test]
    fn a_changed_byte_is_never_believed() {
        let (_, bytes) = written();
        let good = read_lines(&bytes, 9).cells;
        for at in 0..bytes.len() {
            for flip in [0x01, 0x10, 0x80] {
                let mut bad = bytes.clone();
                bad[at] ^= flip;
                let contents = read_lines(&bad, 9);
                assert!(
                    contents.cells.iter().all(|(place, cell)| good.get(place) == Some(cell)),
                    "byte {at}"
                );
                assert!(!contents.cells.is_empty(), "the other lines are still good");
            }
        }
    }

    #[test]
    fn half_a_line_does_not_spoil_the_next_one() {
        let (log, bytes) = written();
        log.set(&bytes[..bytes.len() - 9]);
        let (mut journal, contents) = Journal::open(log.clone(), 9).unwrap();
        assert_eq!((contents.cells.len(), contents.unreadable), (2, 1));
        journal.append(&[entry(4)]).unwrap();
        assert_eq!(read_lines(&log.bytes(), 9).cells.len(), 3);
    }

    #[test]
    fn the_journal_does_not_grow_without_end() {
        let log = MemoryLog::default();
        let (mut journal, _) = Journal::open(log.clone(), 9).unwrap();
        let mut cells = read_lines(&[], 9).cells;
        for round in 0..20_000u32 {
            let JournalLine::Change { place, cell } = entry(round % 7) else { unreachable!() };
            journal
                .append(&[JournalLine::Change { place: place.clone(), cell: cell.clone() }])
                .unwrap();
            cells.insert(place, cell);
            if journal.is_long() {
                journal.compact(&cells).unwrap();
            }
        }
        assert!(log.bytes().len() < 2 * COMPACT_BYTES, "{} bytes", log.bytes().len());
        assert_eq!(read_lines(&log.bytes(), 9).cells, cells);
    }
}
