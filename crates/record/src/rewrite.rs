// SPDX-License-Identifier: MIT OR Apache-2.0
//! Editing of sections of records.

use crate::chunk::{CHUNK_BYTES, ChunkHead, entries};
use crate::incident::{Incident, Section, Sections};
use crate::records::{Head, RecordKind};
use std::io;
use zerocopy::FromBytes;

/// Function that edits a record of a known kind, and returns `true` if it stays.
pub(crate) trait Edit: FnMut(RecordKind, &mut [u8]) -> bool {}
impl<T: FnMut(RecordKind, &mut [u8]) -> bool> Edit for T {}

/// Edits the records of all chunks.
pub(crate) fn chunks(section: &[u8], edit: &mut impl Edit) -> Vec<u8> {
    section.chunks(CHUNK_BYTES).flat_map(|bytes| chunk(bytes, edit)).collect()
}

/// Edits the records of a chunk, and clears the leftovers of earlier uses after them.
pub(crate) fn chunk(bytes: &[u8], edit: &mut impl Edit) -> Vec<u8> {
    let mut clean = vec![0; bytes.len()];
    let mut at = bytes.len().min(size_of::<ChunkHead>());
    clean[..at].copy_from_slice(&bytes[..at]);
    for entry in entries(bytes) {
        let place = &mut clean[at..at + entry.bytes.len()];
        place.copy_from_slice(entry.bytes);
        if edit(entry.kind, place) {
            at += entry.bytes.len();
        } else {
            place.fill(0);
        }
    }
    clean
}

/// Edits consecutive records. Drops unknown kinds, and everything after a record without a size.
pub(crate) fn loose(section: &[u8], edit: &mut impl Edit) -> Vec<u8> {
    let mut clean = Vec::with_capacity(section.len());
    for record in places(section) {
        let from = clean.len();
        clean.extend_from_slice(record);
        if !kind(record).is_some_and(|kind| edit(kind, &mut clean[from..])) {
            clean.truncate(from);
        }
    }
    clean
}

/// Iterates over consecutive records.
pub(crate) fn places(section: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = section.get(at..)?;
        let (head, _) = Head::read_from_prefix(rest).ok()?;
        let size = usize::from(head.size).max(size_of::<Head>());
        at += size;
        rest.get(..size)
    })
}

/// Returns the records of the walk over all tasks.
pub(crate) fn tasks(incident: &Incident) -> impl Iterator<Item = (RecordKind, &[u8])> {
    places(incident.bytes(Section::Tasks)).filter_map(|bytes| Some((kind(bytes)?, bytes)))
}

/// Passes all records of a section to `see`, in chunks or consecutive.
pub(crate) fn see(
    sections: &impl Sections,
    section: Section,
    mut see: impl FnMut(RecordKind, &[u8]),
) -> io::Result<()> {
    if section == Section::Tasks {
        tasks(sections.incident()).for_each(|(kind, bytes)| see(kind, bytes));
        return Ok(());
    }
    sections.see_chunks(section, &mut |chunk| {
        entries(chunk).for_each(|entry| see(entry.kind, entry.bytes))
    })
}

fn kind(record: &[u8]) -> Option<RecordKind> {
    Head::read_from_prefix(record).ok().and_then(|(head, _)| RecordKind::from_number(head.kind))
}

/// Writes bytes into a record, if it is long enough.
pub(crate) fn put(record: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = record.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}
