// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions to name in programs and libraries, each file once, and processing of the answers.
//!
//! This module reads only the kernel's text of the processes' mappings. A less privileged process
//! opens the files and returns the function at each offset.

use super::names::push;
use crate::processes::{Mapping, maps};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::iter::repeat;

/// Maximum number of files examined per incident.
const MODULES: usize = 1_024;
/// Maximum number of paths tried per file.
const PLACES: usize = 8;
/// Maximum bytes of a path; longer ones are not tried.
const PATH_BYTES: usize = 1_024;
/// Maximum bytes of all answers together; the rest is ignored.
const ANSWER_BYTES: usize = 8 << 20;

/// Name of the vDSO mapping.
pub(super) const VDSO: &str = "[vdso]";

/// Device of a file in the kernel's encoding, and inode.
pub(crate) type Key = (u32, u64);

/// A file mapped by processes, with the offsets of the functions to name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Module {
    /// `None` for the vDSO.
    pub(crate) file: Option<Key>,
    pub(crate) places: Vec<ModulePath>,
    pub(crate) offsets: Vec<u64>,
}

/// Path of a file as seen by a process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ModulePath {
    pub(crate) pid: u32,
    pub(crate) path: String,
}

/// Module number, and the names of the functions at its offsets.
pub(crate) type Answer = (usize, Vec<Option<String>>);

/// Process and address for an offset, with the name of the file there.
struct ModuleAddress {
    pid: u32,
    ip: u64,
    module: String,
}

/// Processes that need names of a module.
#[derive(Default)]
struct ModuleUsers {
    /// User of the first process.
    user: u32,
    /// One entry per offset.
    callers: Vec<ModuleAddress>,
    answered: bool,
}

/// Functions to name for an incident.
#[derive(Default)]
pub(crate) struct Modules {
    modules: Vec<Module>,
    callers: Vec<ModuleUsers>,
    numbers: HashMap<Option<Key>, usize>,
    /// Symbol rows of mappings without functions.
    nameless: Vec<u8>,
    /// Incomplete line of answers, and the number of bytes received.
    line: Vec<u8>,
    heard: usize,
}

impl Modules {
    /// Returns the questions of a process of user 7 about one file at two addresses.
    pub(super) fn sample() -> Modules {
        let mut modules = Modules::default();
        let mapping = Mapping {
            start: 0x1000,
            end: 0x3000,
            offset: 0x500,
            file: (1, 2),
            path: "/usr/lib/a.so",
        };
        if let Some(number) = modules.number(7, 9, &mapping) {
            [0x1010, 0x2020].into_iter().for_each(|ip| modules.ask(number, 9, ip, &mapping));
        }
        modules
    }

    /// Adds the mappings of a user's process at these addresses.
    pub(crate) fn add(&mut self, user: u32, pid: u32, addresses: &BTreeSet<u64>) {
        let maps = maps(pid);
        for mapping in
            maps.lines().filter_map(Mapping::parse).filter(|mapping| !mapping.path.is_empty())
        {
            let ips: Vec<u64> = addresses.range(mapping.start..mapping.end).copied().collect();
            if ips.is_empty() {
                continue;
            }
            match self.number(user, pid, &mapping) {
                Some(number) => ips.into_iter().for_each(|ip| self.ask(number, pid, ip, &mapping)),
                None => ips
                    .into_iter()
                    .for_each(|ip| push(&mut self.nameless, pid, ip, "", mapping.name())),
            }
        }
    }

    /// Returns the questions for [`super::name()`].
    pub(crate) fn questions(&self) -> Vec<u8> {
        // Numbers and strings always serialize.
        serde_json::to_vec(&self.modules).unwrap_or_default()
    }

    /// Returns the symbol rows of mappings without functions.
    pub(crate) fn nameless(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.nameless)
    }

    /// Returns the user of the first module without an answer.
    pub(crate) fn waits_for(&self) -> Option<u32> {
        self.callers.iter().find(|callers| !callers.answered).map(|callers| callers.user)
    }

    /// Returns symbol rows for answers received: lines of arbitrary bytes, in arbitrary pieces.
    pub(crate) fn read_answers(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let room = ANSWER_BYTES - self.heard;
        for byte in &bytes[..bytes.len().min(room)] {
            match byte {
                b'\n' => out.extend(self.answer()),
                byte => self.line.push(*byte),
            }
        }
        self.heard += bytes.len().min(room);
        out
    }

    /// Returns symbol rows for the modules without an answer, with the mapped file only.
    pub(crate) fn give_up(&mut self) -> Vec<u8> {
        let left = self.callers.iter_mut().filter(|callers| !callers.answered);
        left.flat_map(|callers| callers.name(&[])).collect()
    }

    fn number(&mut self, user: u32, pid: u32, mapping: &Mapping<'_>) -> Option<usize> {
        let file = match mapping.path {
            // A 32-bit vDSO differs.
            VDSO if mapping.start > u64::from(u32::MAX) => None,
            path if path.starts_with('/') && path.len() <= PATH_BYTES => Some(mapping.file),
            _ => return None,
        };
        let number = *self.numbers.get(&file).unwrap_or(&self.modules.len());
        if number == self.modules.len() {
            if number == MODULES {
                return None;
            }
            self.numbers.insert(file, number);
            self.modules.push(Module { file, places: Vec::new(), offsets: Vec::new() });
            self.callers.push(ModuleUsers { user, ..ModuleUsers::default() });
        }
        let place = ModulePath { pid, path: mapping.path.to_owned() };
        let places = &mut self.modules[number].places;
        if file.is_some() && places.len() < PLACES && !places.contains(&place) {
            places.push(place);
        }
        Some(number)
    }

    fn ask(&mut self, number: usize, pid: u32, ip: u64, mapping: &Mapping<'_>) {
        let offset = (ip - mapping.start).saturating_add(mapping.offset);
        self.modules[number].offsets.push(offset);
        self.callers[number].callers.push(ModuleAddress {
            pid,
            ip,
            module: mapping.name().to_owned(),
        });
    }

    /// Takes names from one line of answers, once per module; nothing else in it is trusted.
    fn answer(&mut self) -> Vec<u8> {
        let line = std::mem::take(&mut self.line);
        let Ok((number, names)) = serde_json::from_slice::<Answer>(&line) else {
            return Vec::new();
        };
        let callers = self.callers.get_mut(number).filter(|callers| !callers.answered);
        callers.map(|callers| callers.name(&names)).unwrap_or_default()
    }
}

impl ModuleUsers {
    fn name(&mut self, names: &[Option<String>]) -> Vec<u8> {
        self.answered = true;
        let mut out = Vec::new();
        let names = names.iter().map(Option::as_deref).chain(repeat(None));
        for (caller, name) in self.callers.iter().zip(names) {
            push(&mut out, caller.pid, caller.ip, name.unwrap_or_default(), &caller.module);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(entries: &[(u64, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        entries.iter().for_each(|(ip, name)| push(&mut out, 9, *ip, name, "a.so"));
        out
    }

    #[test]
    fn a_file_is_asked_for_once_wherever_it_is_mapped() {
        let mut modules = Modules::sample();
        let mut again =
            Mapping { start: 0x9000, end: 0xa000, offset: 0, file: (1, 2), path: "/usr/lib/a.so" };
        for pid in 10..100 {
            let number = modules.number(8, pid, &again).expect("there is room");
            modules.ask(number, pid, 0x9004, &again);
        }
        assert_eq!((modules.modules.len(), modules.modules[0].places.len()), (1, PLACES));
        assert_eq!(modules.modules[0].offsets[..3], [0x510, 0x1520, 4]);
        assert_eq!(modules.waits_for(), Some(7));
        again.path = "[vdso]";
        assert_eq!(modules.number(8, 9, &again), None, "the code of 32 bits");
        again.start = 1 << 40;
        assert_eq!(modules.number(8, 9, &again), Some(1));
        let many = (0..2 * MODULES as u64).filter_map(|inode| {
            modules.number(8, 9, &Mapping { file: (3, inode), path: "/many", ..again })
        });
        assert_eq!(many.count(), MODULES - 2);
    }

    #[test]
    fn answers_come_in_any_pieces() {
        let mut modules = Modules::sample();
        let found: Vec<u8> = br#"[0,["first",null]]
"#
        .iter()
        .flat_map(|byte| modules.read_answers(&[*byte]))
        .collect();
        assert_eq!(found, section(&[(0x1010, "first"), (0x2020, "")]));
        assert_eq!((modules.waits_for(), modules.give_up()), (None, Vec::new()));
    }

    #[test]
    fn nothing_is_believed_but_names() {
        for wrong in [
            "[1,[\"a\"]]\n",
            "[-1,[]]\n",
            "rubbish\n",
            "[18446744073709551615,[]]\n",
            "\n",
            "[0,[\"a\"]]",
        ] {
            let mut modules = Modules::sample();
            assert!(modules.read_answers(wrong.as_bytes()).is_empty(), "{wrong}");
            assert_eq!(modules.give_up(), section(&[(0x1010, ""), (0x2020, "")]), "{wrong}");
        }
        let (mut few, mut many) = (Modules::sample(), Modules::sample());
        assert_eq!(
            few.read_answers(b"[0,[]]\n[0,[\"late\"]]\n"),
            section(&[(0x1010, ""), (0x2020, "")])
        );
        let long = "a".repeat(1 << 20);
        let found = many.read_answers(format!("[0,[\"{long}\",\"b\",\"c\"]]\n").as_bytes());
        assert_eq!(
            found,
            section(&[(0x1010, &long[..super::super::names::NAME_BYTES]), (0x2020, "b")])
        );
        let mut endless = Modules::sample();
        (0..20).for_each(|_| assert!(endless.read_answers(long.as_bytes()).is_empty()));
        assert_eq!(endless.line.len(), ANSWER_BYTES);
    }
}
