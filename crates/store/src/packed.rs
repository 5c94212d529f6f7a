// SPDX-License-Identifier: MIT OR Apache-2.0
//! An incident on its way from the recorder's memory to the disk. Its chunks, which may be hundreds
//! of megabytes, are compressed as they are copied and stay so in a memory file; readers and
//! editors see one chunk at a time unpacked.

use crate::decode::{WINDOW_LOG_MAX, decode_beside};
use crate::encode::{
    ChecksumWriter, LEVEL_FAST, check_bounds, encoder, write_credible, write_header, write_seal,
    write_section, write_stored,
};
use crate::error::ReadError;
use crate::file::memory_file;
use crate::layout::{COMPRESSED, SECTION_HEAD_BYTES};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use tipme_record::CHUNK_BYTES;
use tipme_record::incident::{Incident, Section, Sections};

/// An incident with its chunks in a file and its other sections in memory.
pub struct PackedIncident {
    file: File,
    incident: Incident,
    chunks: Vec<PackedChunks>,
}

/// Chunks of a section.
struct PackedChunks {
    section: Section,
    /// Flags of the section in a file.
    flags: u32,
    raw_len: u64,
    stored: StoredBytes,
}

enum StoredBytes {
    InFile { at: u64, len: u64 },
    InMemory(Vec<u8>),
}

impl PackedIncident {
    /// Creates an incident without sections, in a file in memory.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn in_memory() -> io::Result<PackedIncident> {
        let mut file = memory_file()?;
        write_header(&mut file)?;
        Ok(PackedIncident { file, incident: Incident::default(), chunks: Vec::new() })
    }

    /// Adds a section of chunks and returns their total bytes. `copy` passes each chunk to the
    /// function that it receives, from any thread and in any order.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn pack(
        &mut self,
        section: Section,
        copy: impl FnOnce(&(dyn Fn(&[u8]) + Sync)),
    ) -> io::Result<u64> {
        let at = self.file.stream_position()? + SECTION_HEAD_BYTES as u64;
        let (mut flags, mut raw_len) = (0, 0);
        let len = write_stored(&mut self.file, section, |stored| {
            (flags, raw_len) = packed(stored, copy)?;
            Ok((flags, raw_len))
        })?;
        self.chunks.push(PackedChunks {
            section,
            flags,
            raw_len,
            stored: StoredBytes::InFile { at, len },
        });
        Ok(raw_len)
    }

    /// Returns the sections without chunks.
    pub fn incident_mut(&mut self) -> &mut Incident {
        &mut self.incident
    }

    /// Appends the sections without chunks and returns the file, for [`PackedIncident::read`].
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn hand_over(mut self) -> io::Result<File> {
        for (section, raw) in &self.incident.sections {
            write_section(&mut self.file, *section, raw, None)?;
        }
        write_seal(&mut self.file)?;
        Ok(self.file)
    }

    /// Reads an incident from the beginning of a file; of its chunks only the checksums are
    /// verified. Damage is recorded in the incident.
    ///
    /// # Errors
    /// Those of [`crate::decode()`].
    pub fn read(mut file: File) -> Result<PackedIncident, ReadError> {
        let mut chunks = Vec::new();
        let incident = decode_beside(&mut file, |section, head, at| {
            if section.has_chunks() {
                let stored = StoredBytes::InFile { at, len: head.stored_len };
                chunks.push(PackedChunks {
                    section,
                    flags: head.flags,
                    raw_len: head.raw_len,
                    stored,
                });
            }
            section.has_chunks()
        })?;
        Ok(PackedIncident { file, incident, chunks })
    }

    /// Replaces each chunk of a section by the result of `edit`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn edit_chunks(
        &mut self,
        section: Section,
        mut edit: impl FnMut(&[u8]) -> Vec<u8>,
    ) -> io::Result<()> {
        for index in 0..self.chunks.len() {
            if self.chunks[index].section == section {
                self.chunks[index] = self.edited(&self.chunks[index], &mut edit)?;
            }
        }
        Ok(())
    }

    fn edited(
        &self,
        chunks: &PackedChunks,
        edit: &mut impl FnMut(&[u8]) -> Vec<u8>,
    ) -> io::Result<PackedChunks> {
        let (mut raw_len, mut written) = (0, Ok(()));
        let mut out = encoder(Vec::new(), LEVEL_FAST, chunks.raw_len)?;
        self.see(chunks, &mut |chunk| {
            if written.is_ok() {
                let edited = edit(chunk);
                raw_len += edited.len() as u64;
                written = out.write_all(&edited);
            }
        })?;
        written?;
        let stored = StoredBytes::InMemory(out.finish()?);
        Ok(PackedChunks { section: chunks.section, flags: COMPRESSED, raw_len, stored })
    }

    fn see(&self, chunks: &PackedChunks, see: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let (mut from, mut seen) = (self.unpacked(chunks)?, 0);
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        while from.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut chunk)? > 0 {
            seen += chunk.len() as u64;
            see(&chunk);
            chunk.clear();
        }
        if seen == chunks.raw_len {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "{:?} unpacks to a different length than stated",
            chunks.section
        )))
    }

    /// Writes the incident without its seal, like [`crate::write_open`].
    ///
    /// # Errors
    /// Those of [`crate::encode()`] and of `out`, and chunks that cannot be read.
    pub fn write_open(&self, out: &mut (impl Write + Seek)) -> io::Result<()> {
        let plain = self.incident.sections.iter().map(|(_, raw)| raw.len() as u64);
        check_bounds(plain.chain(self.chunks.iter().map(|chunks| chunks.raw_len)))?;
        write_header(out)?;
        for section in Section::ALL {
            for (_, raw) in self.incident.sections.iter().filter(|(kind, _)| *kind == section) {
                write_section(out, section, raw, Some(LEVEL_FAST))?;
            }
            for chunks in self.chunks.iter().filter(|chunks| chunks.section == section) {
                self.write_chunks(out, chunks)?;
            }
        }
        Ok(())
    }

    fn write_chunks(&self, out: &mut (impl Write + Seek), chunks: &PackedChunks) -> io::Result<()> {
        write_credible(
            out,
            chunks.section,
            chunks.raw_len,
            |stored| io::copy(&mut self.stored(chunks), stored).map(|_| chunks.flags),
            |stored| io::copy(&mut self.unpacked(chunks)?, stored).map(drop),
        )
    }

    fn stored<'a>(&'a self, chunks: &'a PackedChunks) -> Box<dyn Read + 'a> {
        match &chunks.stored {
            StoredBytes::InFile { at, len } => {
                Box::new(FilePart { file: &self.file, at: *at }.take(*len))
            }
            StoredBytes::InMemory(bytes) => Box::new(&bytes[..]),
        }
    }

    fn unpacked<'a>(&'a self, chunks: &'a PackedChunks) -> io::Result<Box<dyn Read + 'a>> {
        let stored = self.stored(chunks);
        if chunks.flags & COMPRESSED == 0 {
            return Ok(stored);
        }
        let mut decoder = zstd::Decoder::new(stored)?;
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        Ok(Box::new(decoder.take(chunks.raw_len)))
    }
}

impl Sections for PackedIncident {
    fn incident(&self) -> &Incident {
        &self.incident
    }

    fn see_chunks(&self, section: Section, see: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        self.chunks
            .iter()
            .filter(|chunks| chunks.section == section)
            .try_for_each(|chunks| self.see(chunks, see))
    }
}

/// Compresses each chunk that `copy` passes into a frame of its own, one frame after the other.
/// Returns flags and unpacked bytes.
fn packed<W: Write + Send>(
    stored: &mut ChecksumWriter<'_, W>,
    copy: impl FnOnce(&(dyn Fn(&[u8]) + Sync)),
) -> io::Result<(u32, u64)> {
    let written = Mutex::new((stored, Ok(0)));
    copy(&|raw| {
        let frame = zstd::bulk::compress(raw, LEVEL_FAST);
        let (stored, raw_len) = &mut *written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(before) = *raw_len {
            *raw_len = frame
                .and_then(|frame| stored.write_all(&frame))
                .map(|()| before + raw.len() as u64);
        }
    });
    let raw_len = written.into_inner().unwrap_or_else(PoisonError::into_inner).1?;
    Ok((if raw_len == 0 { 0 } else { COMPRESSED }, raw_len))
}

/// Reader of a file from an offset, independent of other readers.
struct FilePart<'a> {
    file: &'a File,
    at: u64,
}

impl Read for FilePart<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(bytes, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn chunk(number: u8) -> Vec<u8> {
        let mut chunk = vec![number; CHUNK_BYTES];
        // Noise, since an incompressible part must remain.
        chunk.iter_mut().skip(8).step_by(97).for_each(|byte| *byte = fastrand::u8(..));
        chunk
    }

    fn seen(incident: &impl Sections, section: Section) -> Vec<Vec<u8>> {
        let mut chunks = Vec::new();
        incident
            .see_chunks(section, &mut |chunk| chunks.push(chunk.to_vec()))
            .expect("they can be read");
        chunks.sort();
        chunks
    }

    /// Captures chunks from two threads, and sections without chunks.
    fn captured(chunks: &[Vec<u8>]) -> PackedIncident {
        let mut packed = PackedIncident::in_memory().expect("there is memory");
        let (one, other) = chunks.split_at(chunks.len() / 2);
        let bytes = packed.pack(Section::Rare, |take| {
            thread::scope(|scope| {
                scope.spawn(|| one.iter().for_each(|chunk| take(chunk)));
                other.iter().for_each(|chunk| take(chunk));
            });
        });
        assert_eq!(bytes.expect("there is memory"), (chunks.len() * CHUNK_BYTES) as u64);
        assert_eq!(packed.pack(Section::Sched, |_| ()).expect("there is memory"), 0);
        packed.incident_mut().push(Section::Tasks, b"tasks".to_vec());
        packed
    }

    fn handed_over(captured: PackedIncident) -> PackedIncident {
        let mut file = captured.hand_over().expect("there is memory");
        file.rewind().expect("it is a file");
        PackedIncident::read(file).expect("it has a header")
    }

    #[test]
    fn packed_chunks_are_read_edited_and_written_as_a_plain_file() {
        let chunks: Vec<Vec<u8>> = (0..40).map(chunk).collect();
        let captured = captured(&chunks);
        assert!(seen(&captured, Section::Rare) == chunks, "before it is handed over");
        let mut read = handed_over(captured);
        assert!(seen(&read, Section::Rare) == chunks, "when it is read");
        assert!(read.incident().damage.is_empty());
        read.edit_chunks(Section::Rare, |chunk| {
            if chunk[1] % 2 == 0 { vec![chunk[1]; 8] } else { Vec::new() }
        })
        .expect("it is whole");
        let mut out = io::Cursor::new(Vec::new());
        read.write_open(&mut out).and_then(|()| write_seal(&mut out)).expect("it is memory");
        let file = crate::decode(&out.into_inner()).expect("it is whole");
        assert!(file.damage.is_empty(), "{:?}", file.damage);
        assert_eq!(file.bytes(Section::Tasks), b"tasks");
        let mut words: Vec<&[u8]> = file.bytes(Section::Rare).chunks(8).collect();
        words.sort_unstable();
        let kept: Vec<Vec<u8>> = (0..40).step_by(2).map(|number| vec![number; 8]).collect();
        assert_eq!(words, kept);
        assert_eq!(
            file.sections.iter().map(|(section, _)| *section).collect::<Vec<_>>(),
            [Section::Sched, Section::Rare, Section::Tasks]
        );
    }

    #[test]
    fn chunks_with_an_incredible_ratio_are_written_unpacked() {
        let chunks = vec![vec![0; CHUNK_BYTES]; 64];
        let mut out = io::Cursor::new(Vec::new());
        handed_over(captured(&chunks))
            .write_open(&mut out)
            .and_then(|()| write_seal(&mut out))
            .expect("it is memory");
        let file = crate::decode(&out.into_inner()).expect("it is whole");
        assert!(file.damage.is_empty(), "{:?}", file.damage);
        assert!(file.bytes(Section::Rare) == chunks.concat());
    }

    fn length(file: &File) -> u64 {
        file.metadata().expect("it is open").len()
    }

    /// Reads a file after `spoil` has damaged it.
    fn spoiled(spoil: impl FnOnce(&File)) -> Result<PackedIncident, ReadError> {
        let mut file =
            captured(&(0..4).map(chunk).collect::<Vec<_>>()).hand_over().expect("there is memory");
        spoil(&file);
        file.rewind().expect("it is a file");
        PackedIncident::read(file)
    }

    #[test]
    fn damage_and_cut_files_are_reported() {
        let damaged = spoiled(|file| file.write_all_at(&[1, 2, 3], 1_000).expect("it is memory"));
        assert!(matches!(damaged, Err(ReadError::Nothing { why, .. }) if why.contains("checksum")));
        let cut = spoiled(|file| file.set_len(length(file) - 2).expect("it is memory"));
        assert!(
            matches!(cut, Err(ReadError::Nothing { why, .. }) if why.contains("the file ends"))
        );
        let more = spoiled(|file| file.write_all_at(&[1; 8], length(file)).expect("it is memory"))
            .expect("it has tasks");
        assert_eq!(more.incident().damage.len(), 1);
    }

    #[test]
    fn every_section_of_a_kind_is_edited() {
        let mut twice = captured(&[chunk(1)]);
        twice.pack(Section::Rare, |take| take(&chunk(2))).expect("there is memory");
        twice.edit_chunks(Section::Rare, |_| vec![7; 8]).expect("it is whole");
        assert_eq!(seen(&twice, Section::Rare), [[7; 8], [7; 8]]);
    }
}
