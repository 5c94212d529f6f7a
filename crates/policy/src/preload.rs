// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which files a person's programs use, and which of them are read ahead at login.
//!
//! The history holds, for each of the programs that were used last, the files that its processes had mapped: paths,
//! sizes and times, no contents. It can be written down and read again; whatever is read keeps the bounds. Which files
//! may be remembered, and reading them, are the caller's.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::text::cut;

/// Programs whose files are known; beyond, the one that was used longest ago is dropped.
pub const PROGRAMS_MAX: usize = 16;
/// Files of a program; those that it had mapped last are left out.
pub const FILES_MAX: usize = 256;
/// Bytes of a path; a file with a longer one is not remembered.
pub const PATH_BYTES_MAX: usize = 512;
/// Bytes of a program's name; longer ones are cut.
const NAME_BYTES_MAX: usize = 64;

/// A file as it was when a program had it mapped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RememberedFile {
    pub path: String,
    pub bytes: u64,
    /// When it was changed last, in seconds since 1970.
    pub changed_s: i64,
}

/// The files of the programs that were used last.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "WrittenFiles")]
pub struct FileHistory {
    programs: BTreeMap<String, ProgramFiles>,
    /// Programs remembered, which is also the clock of the bounds.
    turn: u64,
}

/// What a program had mapped, in that order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ProgramFiles {
    files: Vec<RememberedFile>,
    turn: u64,
}

/// A history as it was written down, by whomever.
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
    /// A program has these files mapped now, in this order; they take the place of those of before.
    pub fn remember(&mut self, program: &str, files: Vec<RememberedFile>) {
        self.turn = self.turn.saturating_add(1);
        self.put(program, ProgramFiles { files: sound(files), turn: self.turn });
    }

    /// Returns the files to read ahead, by program, the program remembered last first. Each file stands with the first
    /// program that has it. A program of which not all fits into what is left of `bytes_max` is left out.
    pub fn plan(&self, bytes_max: u64) -> Vec<Vec<RememberedFile>> {
        let (mut left, mut planned) = (bytes_max, BTreeSet::new());
        let mut plan = Vec::new();
        let mut programs: Vec<&ProgramFiles> = self.programs.values().collect();
        programs.sort_by_key(|program| std::cmp::Reverse(program.turn));
        for program in programs {
            let new = |file: &&RememberedFile| !planned.contains(file.path.as_str());
            let files: Vec<&RememberedFile> = program.files.iter().filter(new).collect();
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

/// Those with an absolute path within the bound, each once, as many as are kept.
fn sound(mut files: Vec<RememberedFile>) -> Vec<RememberedFile> {
    let mut seen = BTreeSet::new();
    files.retain(|file| file.path.starts_with('/') && file.path.len() <= PATH_BYTES_MAX && file.bytes > 0);
    files.retain(|file| seen.insert(file.path.clone()));
    files.truncate(FILES_MAX);
    files
}
