// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shortages: of CPU time, of memory, of the disk, of locks inside the kernel.

mod disk;
mod kernel;
mod memory;
mod processor;
mod quota;
mod shortage;

use crate::selftest::fault::Fault;

pub(super) const FAULTS: &[Fault] = &[
    processor::HOGS,
    processor::STORM,
    processor::REALTIME,
    processor::PERIODIC,
    quota::QUOTA,
    quota::QUOTA_WITH_NEIGHBOUR,
    disk::PAGE_IN,
    disk::PAGE_IN_BEHIND_WRITER,
    disk::QUEUE,
    disk::FSYNC,
    disk::LOCK_OWNER,
    disk::HELPER,
    memory::HOG,
    memory::THRASHING,
    kernel::SOFTIRQ,
    kernel::MEMORY_MAP,
    kernel::INODE,
];
