// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entry point for fuzzing: turns any bytes into an incident, diagnoses it and builds its scene.

use crate::decode::bytes::Cursor;
use crate::scene::whole::scene;
use crate::verdict::options::DiagnoseOptions;
use tipme_record::CHUNK_BYTES;
use tipme_record::incident::{Incident, Meta, Section};

/// Diagnoses an incident made of these bytes and builds its scene, which must not panic.
///
/// The input consists of parts: one byte with the section number, three bytes with the length, and
/// the content. Sections of chunks are padded to whole chunks, so that small inputs reach the
/// records in them.
pub fn exercise(data: &[u8]) {
    let incident = incident(data);
    let mark = incident.json::<Meta>(Section::Meta).map(|meta| meta.mark_ns).unwrap_or_default();
    for options in [
        DiagnoseOptions::default(),
        DiagnoseOptions { pid: Some(tipme_record::Pid(mark as u32)), ..DiagnoseOptions::default() },
    ] {
        let _ = scene(&incident, &options).map(|scene| {
            serde_json::to_string(&(scene.verdict, scene.tracks, scene.curves))
                .map(|text| text.len())
        });
    }
}

fn incident(data: &[u8]) -> Incident {
    let mut incident = Incident::default();
    let meta = Meta { mark_ns: u64::MAX / 2, ..Meta::default() };
    let _ = incident.push_json(Section::Meta, &meta);
    let mut cursor = Cursor::new(data);
    while let Some((section, content)) = part(&mut cursor) {
        incident.push(section, content);
    }
    incident
}

fn part(cursor: &mut Cursor<'_>) -> Option<(Section, Vec<u8>)> {
    let head = cursor.u32()?;
    let section = Section::from_number(head & 0xff)?;
    let mut content = cursor.take_up_to((head >> 8) as usize).to_vec();
    if matches!(section, Section::Sched | Section::Rare | Section::Exits) {
        content.resize(content.len().next_multiple_of(CHUNK_BYTES), 0);
    }
    Some((section, content))
}
