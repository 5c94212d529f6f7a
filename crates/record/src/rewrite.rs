// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sections of records, with some of the records changed or left out.

use crate::chunk::{CHUNK_BYTES, ChunkHead, entries};
use crate::incident::{Incident, Section};
use crate::records::{Head, RecordKind};
use zerocopy::FromBytes;

/// Changes a record of a kind that this version knows, and says whether it stays.
pub(crate) trait Edit: FnMut(RecordKind, &mut [u8]) -> bool {}
impl<T: FnMut(RecordKind, &mut [u8]) -> bool> Edit for T {}

/// Edits the records of all chunks. What follows the valid records of a chunk, of an earlier life of it, is cleared.
pub(crate) fn chunks(section: &[u8], edit: &mut impl Edit) -> Vec<u8> {
    let mut clean = vec![0; section.len()];
    for (chunk, to) in section.chunks(CHUNK_BYTES).zip(clean.chunks_mut(CHUNK_BYTES)) {
        let head = chunk.len().min(size_of::<ChunkHead>());
        to[..head].copy_from_slice(&chunk[..head]);
        let mut at = head;
        for entry in entries(chunk) {
            let place = &mut to[at..at + entry.bytes.len()];
            place.copy_from_slice(entry.bytes);
            if edit(entry.kind, place) {
                at += entry.bytes.len();
            } else {
                place.fill(0);
            }
        }
    }
    clean
}

/// Edits records that stand one behind the other. Those of unknown kinds go, and what follows a record of no size.
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

/// Records that stand one behind the other.
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

/// All records of a section of the incident, whichever way they stand there.
pub(crate) fn records(incident: &Incident, section: Section) -> Box<dyn Iterator<Item = (RecordKind, &[u8])> + '_> {
    let bytes = incident.bytes(section);
    if section == Section::Tasks {
        Box::new(places(bytes).filter_map(|bytes| Some((kind(bytes)?, bytes))))
    } else {
        Box::new(bytes.chunks(CHUNK_BYTES).flat_map(entries).map(|entry| (entry.kind, entry.bytes)))
    }
}

/// Edits the records of a section in place.
pub(crate) fn section(incident: &mut Incident, section: Section, edit: &mut impl Edit) {
    for (_, bytes) in incident.sections.iter_mut().filter(|(kind, _)| *kind == section) {
        *bytes = if section == Section::Tasks { loose(bytes, edit) } else { chunks(bytes, edit) };
    }
}

fn kind(record: &[u8]) -> Option<RecordKind> {
    Head::read_from_prefix(record).ok().and_then(|(head, _)| RecordKind::from_number(head.kind))
}

/// Puts bytes into a record, where it reaches so far.
pub(crate) fn put(record: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = record.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}
