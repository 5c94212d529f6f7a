// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs that take CPU time, memory or the disk from others, by name.

use super::{disk, flood, hogs, memory, realtime};
use crate::worker::WorkerProgram;

pub(crate) const PROGRAMS: &[(&str, WorkerProgram)] = &[
    ("neighbour", hogs::neighbour),
    ("realtime-hog", realtime::once),
    ("realtime-turns", realtime::turns),
    ("memory-hog", memory::hog),
    ("warm", memory::warm),
    ("reader-service", disk::service),
    ("lock-reader", disk::lock_reader),
    ("dirtier", disk::dirtier),
    ("rewriter", disk::rewriter),
    ("flood", flood::flood),
];
