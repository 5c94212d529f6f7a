// SPDX-License-Identifier: MIT OR Apache-2.0
//! Incidents recorded on real machines: those of the golden tests.

use std::error::Error;
use std::io::{Cursor, Seek, Write};
use std::path::{Path, PathBuf};
use tipme_analysis::scene::scene;
use tipme_analysis::{DiagnoseOptions, timed};
use tipme_record::incident::{Incident, Section};
use tipme_record::{Nanos, cut, scrub};
use tipme_store::{HEADER_BYTES, PackedIncident, decode, encode, memory_file, with_sums};

/// Maximum size of an incident file used as a seed: small ones can be tried often.
const FILE_BYTES_MAX: u64 = 60_000;
/// Maximum size of a section in a seed.
const SECTION_BYTES: usize = 128 << 10;

fn golden() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
    let entries = std::fs::read_dir(folder).expect("the golden files are there").flatten();
    let small =
        |entry: &std::fs::DirEntry| entry.metadata().is_ok_and(|meta| meta.len() <= FILE_BYTES_MAX);
    let mut paths: Vec<PathBuf> = entries.filter(small).map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "tipme"));
    paths.sort();
    paths
}

/// Returns the files.
pub fn files() -> Vec<Vec<u8>> {
    golden().iter().map(|path| std::fs::read(path).expect("it can be read")).collect()
}

/// Returns their unpacked sections: one byte section number, three bytes length, the content.
pub fn sections() -> Vec<Vec<u8>> {
    files().iter().map(|file| flatten(&decode(file).expect("it is whole"))).collect()
}

fn flatten(incident: &Incident) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (section, content) in &incident.sections {
        let content = &content[..content.len().min(SECTION_BYTES)];
        bytes.extend(((content.len() as u32) << 8 | *section as u32).to_le_bytes());
        bytes.extend(content);
    }
    bytes
}

/// Parses such bytes as an incident, as far as possible.
fn incident(mut bytes: &[u8]) -> Incident {
    let mut incident = Incident::default();
    while let Some((head, rest)) = bytes.split_first_chunk() {
        let head = u32::from_le_bytes(*head);
        let (content, rest) = rest.split_at(rest.len().min((head >> 8) as usize));
        if let Some(section) = Section::from_number(head & 0xff) {
            incident.push(section, content.to_vec());
        }
        bytes = rest;
    }
    incident
}

/// Diagnoses sections, and writes all output.
pub fn check(bytes: &[u8]) -> bool {
    check_incident(&incident(bytes))
}

/// Diagnoses an incident, and writes all output; returns `true` if there is a verdict.
pub fn check_incident(incident: &Incident) -> bool {
    let mut understood = false;
    for options in [
        DiagnoseOptions::default(),
        DiagnoseOptions { at_s: Some(1.5), ..DiagnoseOptions::default() },
    ] {
        if let Ok(scene) = scene(incident, &options) {
            understood = true;
            let verdict = &scene.verdict;
            drop((
                tipme_report::text(verdict, &tipme_report::Layout::default()),
                tipme_report::json(verdict),
            ));
            drop((tipme_report::notice(verdict), tipme_report::page(&scene)));
        }
    }
    if let Ok(timed) = timed(incident) {
        drop(tipme_report::interactions(&timed, Nanos(0)));
    }
    understood
}

/// Reads a file and processes it without a diagnosis. Checksums would reject nearly every input, so
/// each is read unchanged and with correct checksums.
pub fn check_file(bytes: &[u8]) -> bool {
    let _ = decode(bytes);
    let mended = mended(bytes.to_vec());
    seal(&mended).ok();
    let Ok(incident) = decode(&mended) else { return false };
    drop(scrub(&incident, &["xterm".to_owned()]));
    drop(cut(&incident, Nanos(1_000_000_000)));
    drop(encode(&incident));
    !incident.sections.is_empty()
}

/// Seals a capture like the recorder.
fn seal(captured: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut file = memory_file()?;
    file.write_all(captured)?;
    file.rewind()?;
    let finished = tipme_recorder::finish(PackedIncident::read(file)?, None)?;
    Ok(finished.write_open(&mut Cursor::new(Vec::new()))?)
}

/// Returns the file with a valid header and correct section checksums.
fn mended(mut file: Vec<u8>) -> Vec<u8> {
    let whole = encode(&Incident::default()).expect("nothing is within every bound");
    let known = file.len().min(HEADER_BYTES);
    file[..known].copy_from_slice(&whole[..known]);
    with_sums(file)
}
