// SPDX-License-Identifier: MIT OR Apache-2.0
//! Incident files: written atomically, readable by their owner only.

use crate::decode::{decode_from, read_header, read_section, read_section_head};
use crate::encode::{LEVEL_FAST, write_open, write_seal, write_section};
use crate::error::{ReadError, WriteError};
use crate::id::{ENDING, PARTIAL_ENDING, is_plain_id};
use crate::layout::{HEADER_BYTES, INCOMPLETE, MAX_SECTIONS, MAX_WORDS_BYTES, SECTION_HEAD_BYTES};
use rustix::fs::{CWD, MemfdFlags, OFlags, RenameFlags, Uid, memfd_create};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tipme_record::incident::{Incident, Meta, Section, Words};

/// Maximum bytes of a words section: JSON escapes take up to six bytes per byte.
const WORDS_SECTION_BYTES: u64 = 8 * MAX_WORDS_BYTES as u64;

/// Mode of incident files: owner only, since they show what ran on the machine.
const MODE: u32 = 0o600;

/// Writes an incident into `dir` as `<id>.tipme`, readable only by user `owner`, and returns its
/// path.
///
/// The file gets that name once all of it is on the disk, and never replaces another.
///
/// # Errors
/// A full disk, a folder that is not writable, an `id` in [`Meta`] that already exists or is not a
/// plain file name, or content over a bound. No part of the file is left behind.
pub fn write(dir: &Path, incident: &Incident, owner: u32) -> Result<PathBuf, WriteError> {
    let meta: Meta =
        incident.json(Section::Meta).map_err(|error| WriteError::Content(error.to_string()))?;
    write_by(dir, &meta.id, owner, |file| write_open(file, incident))
}

/// Writes an incident like [`write`]; `fill` writes header and sections to an empty file. The
/// position at which it leaves the file is the end of the incident, which is sealed here.
pub(crate) fn write_by(
    dir: &Path,
    id: &str,
    owner: u32,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<PathBuf, WriteError> {
    if !is_plain_id(id) {
        return Err(WriteError::Id(id.to_owned()));
    }
    let partial = dir.join(format!("{id}{PARTIAL_ENDING}"));
    let path = dir.join(format!("{id}{ENDING}"));
    let mut file = create(&partial).map_err(|error| WriteError::io(&partial, error))?;
    let written =
        fill(&mut file).and_then(|()| finish(file, owner)).and_then(|()| settle(&partial, &path));
    written.map_err(|error| {
        // The first error is the one to report; the next start removes a partial file that stays.
        let _ = std::fs::remove_file(&partial);
        match error.kind() {
            io::ErrorKind::InvalidInput => WriteError::Content(error.to_string()),
            _ => WriteError::io(&path, error),
        }
    })?;
    Ok(path)
}

/// Creates an unnamed file in memory, not executable where the kernel supports that.
///
/// # Errors
/// If `memfd_create` fails.
pub fn memory_file() -> io::Result<File> {
    let made = memfd_create("incident", MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL);
    let made = made.or_else(|error| match error {
        Errno::INVAL => memfd_create("incident", MemfdFlags::CLOEXEC),
        error => Err(error),
    });
    Ok(File::from(made?))
}

/// Reads an incident file.
///
/// # Errors
/// If the file cannot be opened, or nothing in it can be read; see [`crate::decode()`].
pub fn read(path: &Path) -> Result<Incident, ReadError> {
    read_from(open_regular(path).map_err(ReadError::Open)?)
}

/// Opens a regular file for reading; neither a pipe blocks the caller nor a device feeds it without
/// end.
///
/// # Errors
/// If it cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    let regular = file.metadata()?.is_file();
    regular.then_some(file).ok_or_else(|| io::Error::other("it is not a regular file"))
}

/// Reads an incident from an open file, from its current position on.
///
/// # Errors
/// If nothing in it can be read; see [`crate::decode()`].
pub fn read_from(from: impl Read) -> Result<Incident, ReadError> {
    decode_from(BufReader::with_capacity(256 * 1024, from))
}

/// Adds the user's words, at most `MAX_WORDS_BYTES`, to a sealed file. They replace earlier words,
/// so the file never grows by more than one such section; fields that they leave empty keep their
/// earlier values.
///
/// Leftovers of an interrupted call at the end are overwritten. A symbolic link is not followed,
/// and the owner of the file cannot block the caller with a file lease.
///
/// # Errors
/// A damaged or unsealed file, words over the bound, a full disk. The file is then unchanged.
pub fn append_words(path: &Path, words: &Words) -> Result<(), WriteError> {
    if words.text.len() > MAX_WORDS_BYTES {
        let why = format!("they have more than {MAX_WORDS_BYTES} bytes");
        return Err(WriteError::unfit(path, why));
    }
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
        .open(path)
        .map_err(|error| WriteError::io(path, error))?;
    let end = whole_end(&mut file).map_err(|why| WriteError::unfit(path, why))?;
    let words = words_at(&mut file, end).then(words.clone());
    let bytes =
        serde_json::to_vec(&words).map_err(|error| WriteError::unfit(path, error.to_string()))?;
    replace(&mut file, end, &bytes).map_err(|error| WriteError::io(path, error))
}

fn create(path: &Path) -> io::Result<File> {
    // A partial file of this name can only stem from an interrupted write.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)
}

/// Sets the owner of the file, and seals it once all of it is on the disk.
fn finish(mut file: File, owner: u32) -> io::Result<()> {
    if owner != rustix::process::geteuid().as_raw() {
        rustix::fs::fchown(&file, Some(Uid::from_raw(owner)), None)?;
    }
    file.sync_all()?;
    file.seek(SeekFrom::End(0))?;
    write_seal(&mut file)?;
    file.sync_all()
}

/// Renames the file to its final name, and syncs the folder.
fn settle(partial: &Path, path: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, partial, CWD, path, RenameFlags::NOREPLACE) {
        // Some file systems do not support RENAME_NOREPLACE.
        Err(Errno::INVAL) if !path.exists() => std::fs::rename(partial, path)?,
        done => done?,
    }
    let dir = path.parent().expect("a path made by joining has a parent");
    File::open(dir)?.sync_all()
}

/// Returns the offset at which the sealed sections of a file end, or an error if it is damaged or
/// unsealed.
fn whole_end(file: &mut File) -> Result<u64, String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let header = read_header(file).map_err(|error| error.to_string())?;
    if header.flags & INCOMPLETE != 0 {
        return Err("it was never sealed".into());
    }
    let mut end = HEADER_BYTES as u64;
    for _ in 0..MAX_SECTIONS {
        if end >= header.sealed_len {
            break;
        }
        let Ok(Some(head)) = read_section_head(file, end) else { break };
        end += SECTION_HEAD_BYTES as u64 + head.stored_len;
        file.seek(SeekFrom::Start(end)).map_err(|error| error.to_string())?;
    }
    if end == header.sealed_len && end <= length { Ok(end) } else { Err("it is damaged".into()) }
}

/// Returns the words after the sealed sections; empty if there are none or they cannot be read.
fn words_at(file: &mut File, end: u64) -> Words {
    let bytes = file.seek(SeekFrom::Start(end)).ok().and_then(|_| read_section(file, end));
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// Writes words after the sealed sections, and restores the previous bytes on failure.
fn replace(file: &mut File, end: u64, bytes: &[u8]) -> io::Result<()> {
    let mut before = Vec::new();
    file.seek(SeekFrom::Start(end))?;
    (&*file).take(WORDS_SECTION_BYTES).read_to_end(&mut before)?;
    write_words(file, end, bytes).inspect_err(|_| {
        // The first error is the one to report; readers stop at any leftovers.
        let _ =
            file.write_all_at(&before, end).and_then(|()| file.set_len(end + before.len() as u64));
    })
}

fn write_words(file: &mut File, end: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(end))?;
    write_section(file, Section::Words, bytes, Some(LEVEL_FAST))?;
    let end = file.stream_position()?;
    file.set_len(end)?;
    file.sync_all()
}
