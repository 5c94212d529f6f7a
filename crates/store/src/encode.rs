// SPDX-License-Identifier: MIT OR Apache-2.0
//! Encodes an incident as the bytes of a file.

use crate::layout::{
    COMPRESSED, Header, MAX_SECTION_BYTES, MAX_SECTIONS, MAX_TOTAL_BYTES, RATIO_MAX,
    SECTION_HEAD_BYTES, SectionHead,
};
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use tipme_record::incident::{Incident, Section};
use zerocopy::IntoBytes;

/// Fast compression level: a mark must be on disk within a second.
pub(crate) const LEVEL_FAST: i32 = 1;
/// Compression level of in-memory copies made for export: a fifth smaller, at a tenth of the speed.
const LEVEL_SMALL: i32 = 9;
/// Number of compression threads for large sections.
const THREADS: u32 = 2;
/// Minimum size of a section that is compressed with more than one thread.
const THREADS_FROM_BYTES: u64 = 4 << 20;
/// Minimum size of a section to keep within the ratio that the reader accepts. Smaller sections
/// stay within its allowance even together.
const CREDIBLE_FROM_BYTES: u64 = 1 << 20;
/// Minimum size of a compressed section. [`Section::Meta`], the first one, is never compressed, so
/// any tool can identify a file.
const PLAIN_BELOW_BYTES: usize = 4096;

/// Encodes an incident as a sealed file.
///
/// # Errors
/// `InvalidInput` if the incident exceeds a bound that the reader enforces.
pub fn encode(incident: &Incident) -> io::Result<Vec<u8>> {
    let mut out = Cursor::new(Vec::new());
    write_unsealed(&mut out, incident, LEVEL_SMALL)?;
    write_seal(&mut out)?;
    Ok(out.into_inner())
}

/// Writes a compressed incident without its seal: see [`crate::IncidentFolder::keep_by`].
///
/// # Errors
/// Those of [`encode`] and of `out`.
pub fn write_open(out: &mut (impl Write + Seek), incident: &Incident) -> io::Result<()> {
    write_unsealed(out, incident, LEVEL_FAST)
}

/// Writes header and sections from the start of `out`; the header is marked incomplete.
fn write_unsealed(
    out: &mut (impl Write + Seek),
    incident: &Incident,
    level: i32,
) -> io::Result<()> {
    check_bounds(incident.sections.iter().map(|(_, raw)| raw.len() as u64))?;
    write_header(out)?;
    for (section, raw) in &incident.sections {
        write_section(out, *section, raw, Some(level))?;
    }
    Ok(())
}

/// Writes the header of an unsealed file.
pub(crate) fn write_header(out: &mut impl Write) -> io::Result<()> {
    out.write_all(Header::incomplete().as_bytes())
}

/// Overwrites the header with that of a sealed file that ends at the current position.
pub(crate) fn write_seal(out: &mut (impl Write + Seek)) -> io::Result<()> {
    let header = Header::sealed(out.stream_position()?);
    out.seek(SeekFrom::Start(0))?;
    out.write_all(header.as_bytes())
}

/// Writes one section at the current position, uncompressed if `level` is `None`.
pub(crate) fn write_section(
    out: &mut (impl Write + Seek),
    section: Section,
    raw: &[u8],
    level: Option<i32>,
) -> io::Result<()> {
    let plain = section == Section::Meta || raw.len() < PLAIN_BELOW_BYTES;
    write_credible(
        out,
        section,
        raw.len() as u64,
        |stored| pack(stored, raw, level.filter(|_| !plain)),
        |stored| stored.write_all(raw),
    )
}

/// Writes one section at the current position: packed, or plain if its ratio would exceed the
/// reader's limit. `packed` returns the flags of the section.
pub(crate) fn write_credible<W: Write + Seek>(
    out: &mut W,
    section: Section,
    raw_len: u64,
    packed: impl FnOnce(&mut ChecksumWriter<'_, W>) -> io::Result<u32>,
    plain: impl FnOnce(&mut ChecksumWriter<'_, W>) -> io::Result<()>,
) -> io::Result<()> {
    let start = out.stream_position()?;
    let stored_len = write_stored(out, section, |stored| Ok((packed(stored)?, raw_len)))?;
    if raw_len < CREDIBLE_FROM_BYTES || stored_len.saturating_mul(RATIO_MAX) >= raw_len {
        return Ok(());
    }
    out.seek(SeekFrom::Start(start))?;
    write_stored(out, section, |stored| plain(stored).map(|()| (0, raw_len))).map(drop)
}

/// Writes one section at the current position: `fill` writes the stored bytes and returns flags and
/// unpacked length, and the head is written last. Returns the number of stored bytes.
pub(crate) fn write_stored<W: Write + Seek>(
    out: &mut W,
    section: Section,
    fill: impl FnOnce(&mut ChecksumWriter<'_, W>) -> io::Result<(u32, u64)>,
) -> io::Result<u64> {
    let start = out.stream_position()?;
    out.write_all(&[0; SECTION_HEAD_BYTES])?;
    let mut stored = ChecksumWriter { out, crc: crc32fast::Hasher::new(), len: 0 };
    let (flags, raw_len) = fill(&mut stored)?;
    let (stored_len, crc) = (stored.len, stored.crc.finalize());
    let head = SectionHead { kind: section as u32, flags, raw_len, stored_len, crc, head_crc: 0 };
    out.seek(SeekFrom::Start(start))?;
    out.write_all(head.summed().as_bytes())?;
    out.seek(SeekFrom::Current(stored_len as i64))?;
    Ok(stored_len)
}

/// Writes `raw` compressed, or as it is if no level is given, and returns the section's flags.
fn pack(stored: &mut impl Write, raw: &[u8], level: Option<i32>) -> io::Result<u32> {
    let Some(level) = level else {
        stored.write_all(raw)?;
        return Ok(0);
    };
    let mut encoder = encoder(stored, level, raw.len() as u64)?;
    encoder.write_all(raw)?;
    encoder.finish()?;
    Ok(COMPRESSED)
}

/// Returns an encoder for about `raw_len` bytes.
pub(crate) fn encoder<W: Write>(
    stored: W,
    level: i32,
    raw_len: u64,
) -> io::Result<zstd::Encoder<'static, W>> {
    let mut encoder = zstd::Encoder::new(stored, level)?;
    if raw_len >= THREADS_FROM_BYTES {
        encoder.multithread(THREADS)?;
    }
    Ok(encoder)
}

/// Checks sections of these unpacked lengths against the bounds of the reader.
pub(crate) fn check_bounds(lengths: impl Iterator<Item = u64> + Clone) -> io::Result<()> {
    let fits = lengths.clone().count() <= MAX_SECTIONS
        && lengths.clone().all(|length| length <= MAX_SECTION_BYTES)
        && lengths.sum::<u64>() <= MAX_TOTAL_BYTES;
    if fits {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is larger than the format allows"))
    }
}

/// Writer that counts the bytes written and computes their CRC-32.
pub(crate) struct ChecksumWriter<'a, W> {
    out: &'a mut W,
    crc: crc32fast::Hasher,
    len: u64,
}

impl<W: Write> Write for ChecksumWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.crc.update(&bytes[..written]);
        self.len += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
