// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs that keep others waiting, by name.

use super::{bus, display, hogs, holders, peers};
use anyhow::{Context, Result};
use std::ffi::OsString;

type Program = fn(&[&str]) -> Result<()>;

const PROGRAMS: &[(&str, Program)] = &[
    ("hogs", hogs::hogs),
    ("compute", hogs::compute_once),
    ("helper", peers::helper),
    ("service", peers::service),
    ("pipe-reader", peers::pipe_reader),
    ("pipe-writer", peers::pipe_writer),
    ("semaphore", peers::semaphore),
    ("counter", peers::counter),
    ("lock-holder", holders::lock_holder),
    ("stopper", holders::stopper),
    ("bus-service", bus::serve),
    ("x-flood", display::flood),
    ("x-grab", display::grab),
];

/// Runs one of them with its words; `None` where none has the name that comes first.
pub(crate) fn run(words: &[OsString]) -> Option<Result<()>> {
    let (name, rest) = words.split_first()?;
    let (_, program) = PROGRAMS.iter().find(|(known, _)| name == known)?;
    let rest = rest.iter().map(|word| word.to_str()).collect::<Option<Vec<&str>>>();
    Some(rest.context("a word is not UTF-8 text").and_then(|rest| program(&rest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn only_programs_of_the_list_are_run() {
        assert!(run(&["nothing".into()]).is_none());
        let names: BTreeSet<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), PROGRAMS.len());
    }
}
