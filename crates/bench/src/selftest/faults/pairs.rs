// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two causes, one after the other, each of about the same length.
//!
//! A wait that is over by itself, such as for a lock that is held for a time, comes first: so it is
//! not shortened by the other.

use super::waits::{OrderedCauses, causes};
use crate::selftest::fault::Fault;

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "pair-computation-child",
        about: "the application computes, then waits for a child",
        kinds: &[&["own-computation"], &["child-wait"]],
        programs: &["sleep"],
        prepare: |site| OrderedCauses::prepare(site, &[causes::own_computation, causes::child_wait]),
        ..Fault::OURS
    },
    Fault {
        name: "pair-lock-helper",
        about: "the application waits for a file lock, then for a slow helper",
        kinds: &[&["lock-wait"], &["peer-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::file_lock, causes::slow_helper]),
        ..Fault::OURS
    },
    Fault {
        name: "pair-sleep-computation",
        about: "the application sleeps, then computes",
        kinds: &[&["timer-sleep"], &["own-computation"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::own_sleep, causes::own_computation]),
        ..Fault::OURS
    },
    Fault {
        name: "pair-mutex-helper",
        about: "the application waits for its own thread's lock, then for a slow helper",
        kinds: &[&["lock-wait"], &["peer-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::mutex_asleep, causes::slow_helper]),
        ..Fault::OURS
    },
    Fault {
        name: "pair-lock-child",
        about: "the application waits for a file lock, then for a child",
        kinds: &[&["lock-wait"], &["child-wait"]],
        programs: &["sleep"],
        prepare: |site| OrderedCauses::prepare(site, &[causes::file_lock, causes::child_wait]),
        ..Fault::OURS
    },
    Fault {
        name: "pair-service-computation",
        about: "the application waits for a service on the loopback address, then computes",
        kinds: &[&["network-wait"], &["own-computation"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::loopback_service, causes::own_computation]),
        ..Fault::OURS
    },
    Fault {
        name: "pair-pipe-sleep",
        about: "the application writes to a full pipe, then sleeps",
        kinds: &[&["peer-wait"], &["timer-sleep"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::full_pipe, causes::own_sleep]),
        ..Fault::OURS
    },
];
