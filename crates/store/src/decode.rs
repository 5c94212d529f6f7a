// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes the bytes of an incident file, damaged or hostile ones included.

use crate::error::ReadError;
use crate::layout::{
    COMPRESSED, HEADER_BYTES, Header, INCOMPLETE, MAGIC, MAX_SECTIONS, MAX_TOTAL_BYTES, RATIO_MAX,
    SECTION_HEAD_BYTES, SectionHead, VERSION, credible_bytes,
};
use std::io::{self, Read};
use tipme_record::incident::{Damage, Incident, Section};
use zerocopy::FromBytes;

/// Maximum decompression window, as a power of two (16 MiB): larger frames are refused.
pub(crate) const WINDOW_LOG_MAX: u32 = 24;
/// Maximum ratio of a section's initial buffer to its stored bytes: a false length claim allocates
/// little.
const EXPECTED_RATIO: u64 = 16;
/// Number of bytes to unpack between two checks of the total.
const STEP_BYTES: u64 = 1 << 20;

/// Decodes an incident file.
///
/// # Errors
/// If not even one section can be read. Later damage ends the reading: it is recorded in
/// [`Incident::damage`], and all sections before it are kept.
pub fn decode(bytes: &[u8]) -> Result<Incident, ReadError> {
    decode_from(bytes)
}

/// Decodes an incident section by section from a reader, like [`decode`].
pub(crate) fn decode_from(from: impl Read) -> Result<Incident, ReadError> {
    decode_beside(from, |_, _, _| false)
}

/// Decodes an incident without the sections that `aside` takes, given their heads and the offset of
/// their stored bytes: their checksums are verified, but nothing is unpacked.
pub(crate) fn decode_beside(
    mut from: impl Read,
    aside: impl FnMut(Section, &SectionHead, u64) -> bool,
) -> Result<Incident, ReadError> {
    let header = read_header(&mut from)?;
    let (at, incident) = (HEADER_BYTES as u64, Incident::default());
    let mut reader = IncidentReader { from, aside, at, raw_total: 0, incident };
    reader.note_flags(&header);
    if let Err(damage) = reader.sections() {
        reader.incident.damage.push(damage);
    }
    reader.finish(&header)
}

pub(crate) fn read_header(from: &mut impl Read) -> Result<Header, ReadError> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    from.take(HEADER_BYTES as u64).read_to_end(&mut bytes).map_err(ReadError::Header)?;
    if !bytes.starts_with(&MAGIC) {
        return Err(ReadError::NotAnIncident);
    }
    let header = Header::read_from_bytes(&bytes).map_err(|_| ReadError::DamagedHeader)?;
    if !header.is_intact() {
        return Err(ReadError::DamagedHeader);
    }
    if header.version > VERSION {
        return Err(ReadError::Version { found: header.version, known: VERSION });
    }
    Ok(header)
}

/// Reads the head of a section; returns `None` at the end of the file.
pub(crate) fn read_section_head(
    from: &mut impl Read,
    at: u64,
) -> Result<Option<SectionHead>, Damage> {
    let mut bytes = Vec::with_capacity(SECTION_HEAD_BYTES);
    let read = from.take(SECTION_HEAD_BYTES as u64).read_to_end(&mut bytes);
    let why = match (read, SectionHead::read_from_bytes(&bytes)) {
        (Err(error), _) => error.to_string(),
        _ if bytes.is_empty() => return Ok(None),
        (_, Err(_)) => "the file ends within its head".to_owned(),
        (_, Ok(head)) => match head.fault() {
            Some(why) => why.to_owned(),
            None => return Ok(Some(head)),
        },
    };
    Err(Damage { place: format!("section at byte {at}"), why })
}

/// Reads the section that begins at `at`; returns `None` if it cannot be read.
pub(crate) fn read_section(from: &mut impl Read, at: u64) -> Option<Vec<u8>> {
    let head = read_section_head(from, at).ok()??;
    read_stored(from, &head, (0, at)).ok()
}

struct IncidentReader<R, A> {
    from: R,
    aside: A,
    at: u64,
    raw_total: u64,
    incident: Incident,
}

impl<R: Read, A: FnMut(Section, &SectionHead, u64) -> bool> IncidentReader<R, A> {
    fn note_flags(&mut self, header: &Header) {
        if header.flags & INCOMPLETE != 0 {
            self.note(
                "header",
                "the file was never sealed; the recorder was stopped while it wrote",
            );
        } else if header.flags != 0 {
            self.note("header", "it has flags that this version does not know");
        }
    }

    fn note(&mut self, place: &str, why: &str) {
        self.incident.damage.push(Damage { place: place.into(), why: why.into() });
    }

    fn sections(&mut self) -> Result<(), Damage> {
        let mut count = 0;
        while let Some(head) = read_section_head(&mut self.from, self.at)? {
            count += 1;
            if count > MAX_SECTIONS {
                return Err(Damage {
                    place: head.name(),
                    why: format!("more than {MAX_SECTIONS} sections"),
                });
            }
            self.read_section(&head).map_err(|why| Damage { place: head.name(), why })?;
        }
        Ok(())
    }

    fn read_section(&mut self, head: &SectionHead) -> Result<(), String> {
        self.raw_total += head.raw_len;
        if self.raw_total > MAX_TOTAL_BYTES {
            return Err("with it the file would unpack to more than 2 GiB".into());
        }
        // Bytes unpacked before this section, and the stored bytes that they came from.
        let before = (self.raw_total - head.raw_len, self.at);
        let begin = self.at + SECTION_HEAD_BYTES as u64;
        self.at = begin + head.stored_len;
        let section = Section::from_number(head.kind);
        if section.is_some_and(|section| (self.aside)(section, head, begin)) {
            return read_checked(&mut self.from, head, |_| ());
        }
        let raw = read_stored(&mut self.from, head, before)?;
        match section {
            Some(section) => self.incident.push(section, raw),
            None => self.note(&head.name(), "this version does not know it; it was left out"),
        }
        Ok(())
    }

    fn finish(mut self, header: &Header) -> Result<Incident, ReadError> {
        if self.incident.damage.is_empty() && self.at < header.sealed_len {
            let why = format!("it ends after {} of {} bytes", self.at, header.sealed_len);
            self.note("file", &why);
        }
        match self.incident.damage.first() {
            Some(damage) if self.incident.sections.is_empty() => {
                Err(ReadError::Nothing { place: damage.place.clone(), why: damage.why.clone() })
            }
            _ => Ok(self.incident),
        }
    }
}

/// Reads, verifies and unpacks the stored bytes of a section; the error describes the damage.
fn read_stored(
    from: &mut impl Read,
    head: &SectionHead,
    before: (u64, u64),
) -> Result<Vec<u8>, String> {
    let unpacked = read_checked(from, head, |stored| unpack(stored, head, before))?;
    let raw = unpacked.map_err(|error| format!("it cannot be unpacked: {error}"))?;
    if raw.len() as u64 == head.raw_len {
        Ok(raw)
    } else {
        Err("it unpacks to a different length than stated".into())
    }
}

/// Verifies the stored bytes of a section while `read` consumes them, all or in part.
fn read_checked<R: Read, T>(
    from: &mut R,
    head: &SectionHead,
    read: impl FnOnce(&mut ChecksumReader<io::Take<&mut R>>) -> T,
) -> Result<T, String> {
    let mut stored =
        ChecksumReader { from: from.take(head.stored_len), crc: crc32fast::Hasher::new(), len: 0 };
    let found = read(&mut stored);
    io::copy(&mut stored, &mut io::sink()).map_err(|error| error.to_string())?;
    if stored.len < head.stored_len {
        return Err(format!("the file ends after {} of its {} bytes", stored.len, head.stored_len));
    }
    if stored.crc.finalize() != head.crc {
        return Err("the checksum of its bytes does not fit".into());
    }
    Ok(found)
}

/// Unpacks at most one byte more than the head states, and no more than is credible for the stored
/// bytes read so far.
fn unpack(
    stored: &mut ChecksumReader<impl Read>,
    head: &SectionHead,
    (raw_before, at): (u64, u64),
) -> io::Result<Vec<u8>> {
    let expected =
        head.raw_len.min(head.stored_len.saturating_mul(EXPECTED_RATIO)).min(credible_bytes(0));
    let mut raw = Vec::with_capacity(expected as usize);
    if head.flags & COMPRESSED == 0 {
        stored.read_to_end(&mut raw)?;
        return Ok(raw);
    }
    let mut decoder = zstd::Decoder::new(stored)?;
    decoder.window_log_max(WINDOW_LOG_MAX)?;
    let mut left = head.raw_len + 1;
    while left > 0 {
        let read = (&mut decoder).take(left.min(STEP_BYTES)).read_to_end(&mut raw)? as u64;
        left -= read;
        if raw_before + raw.len() as u64 > credible_bytes(at + decoder.get_ref().get_ref().len) {
            return Err(io::Error::other(format!(
                "it holds more than {RATIO_MAX} times the bytes that it is stored in"
            )));
        }
        if read == 0 {
            break;
        }
    }
    Ok(raw)
}

/// Reader that counts the bytes read and computes their CRC-32.
struct ChecksumReader<R> {
    from: R,
    crc: crc32fast::Hasher,
    len: u64,
}

impl<R: Read> Read for ChecksumReader<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(bytes)?;
        self.crc.update(&bytes[..count]);
        self.len += count as u64;
        Ok(count)
    }
}
