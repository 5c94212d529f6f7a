// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files used by a person's programs, and the choice of those to read ahead at login.
//!
//! For each of the most recently used programs the history holds the files that its processes had
//! mapped: paths, sizes and times, but no contents. It can be serialized; any deserialized history
//! keeps the bounds. The caller decides which files may be remembered, and reads them.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::text::cut;

/// Maximum number of remembered programs; the least recently used one is dropped.
pub const PROGRAMS_MAX: usize = 16;
/// Maximum number of files per program; those mapped last are dropped.
pub const FILES_MAX: usize = 256;
/// Maximum length of a path in bytes; a file with a longer one is not remembered.
pub const PATH_BYTES_MAX: usize = 512;
/// Maximum length of a program's name in bytes; longer ones are truncated.
const NAME_BYTES_MAX: usize = 64;

/// A file as it was when a program had it mapped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RememberedFile {
    pub path: String,
    pub bytes: u64,
    /// Time of its last change, in seconds since 1970.
    pub changed_s: i64,
}

/// Files of the most recently used programs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "WrittenFiles")]
pub struct FileHistory {
    programs: BTreeMap<String, ProgramFiles>,
    /// Count of programs remembered so far, used as a clock to find the least recently used one.
    turn: u64,
}

/// Files that a program had mapped, in that order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ProgramFiles {
    files: Vec<RememberedFile>,
    turn: u64,
}

/// A serialized history from an untrusted source.
#[derive(Deserialize, Default)]
#[serde(default)]
struct WrittenFiles {
    programs: BTreeMap<String, ProgramFiles>,
    turn: u64,
}

impl From<WrittenFiles> for FileHistory {
    fn from(written: WrittenFiles) -> FileHistory {
        let mut history = FileHistory { programs: BTreeMap::new(), turn: written.turn };
        for (name, ProgramFiles { files, turn }) in written.programs {
            history.put(&name, ProgramFiles { files: sound(files), turn });
        }
        history
    }
}

impl FileHistory {
    /// Remembers the files that a program has mapped now, in this order; they replace earlier ones.
    pub fn remember(&mut self, program: &str, files: Vec<RememberedFile>) {
        self.turn = self.turn.saturating_add(1);
        self.put(program, ProgramFiles { files: sound(files), turn: self.turn });
    }

    /// Returns the files to read ahead by program, the most recently remembered program first. Each
    /// file is listed with the first program that has it. A program that does not fit entirely into
    /// the rest of `bytes_max` is skipped.
    pub fn plan(&self, bytes_max: u64) -> Vec<Vec<RememberedFile>> {
        let (mut left, mut planned) = (bytes_max, BTreeSet::new());
        let mut plan = Vec::new();
        let mut programs: Vec<&ProgramFiles> = self.programs.values().collect();
        programs.sort_by_key(|program| std::cmp::Reverse(program.turn));
        for program in programs {
            let files = program.files.iter().filter(|file| !planned.contains(file.path.as_str()));
            let files: Vec<&RememberedFile> = files.collect();
            let bytes = files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.bytes));
            if bytes <= left {
                left -= bytes;
                planned.extend(files.iter().map(|file| file.path.as_str()));
                plan.push(files.into_iter().cloned().collect());
            }
        }
        plan
    }

    fn put(&mut self, name: &str, program: ProgramFiles) {
        if program.files.is_empty() {
            return;
        }
        self.programs.insert(cut(name, NAME_BYTES_MAX).to_owned(), program);
        if self.programs.len() > PROGRAMS_MAX {
            let oldest = self.programs.iter().min_by_key(|(_, program)| program.turn);
            let oldest = oldest.map(|(name, _)| name.clone()).unwrap_or_default();
            self.programs.remove(&oldest);
        }
    }
}

/// Keeps files with an absolute path within the bound, each once, up to [`FILES_MAX`].
fn sound(mut files: Vec<RememberedFile>) -> Vec<RememberedFile> {
    let mut seen = BTreeSet::new();
    files.retain(|file| {
        file.path.starts_with('/') && file.path.len() <= PATH_BYTES_MAX && file.bytes > 0
    });
    files.retain(|file| seen.insert(file.path.clone()));
    files.truncate(FILES_MAX);
    files
}
