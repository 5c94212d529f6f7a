// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs that keep others waiting, by name.

use super::{bus, display, hogs, holders, peers};
use crate::worker::WorkerProgram;

pub(crate) const PROGRAMS: &[(&str, WorkerProgram)] = &[
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::run_named;
    use std::collections::BTreeSet;

    #[test]
    fn only_programs_of_the_list_are_run() {
        assert!(run_named(PROGRAMS, &["nothing".into()]).is_none());
        let names: BTreeSet<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), PROGRAMS.len());
    }
}
