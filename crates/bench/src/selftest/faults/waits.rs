// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits: for threads, processes, the display server, the time to pass.

pub(super) mod causes;
mod parts;
mod screen;

pub(super) use parts::OrderedCauses;

use crate::selftest::fault::{App, Fault};

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "mutex-asleep",
        about: "a thread of the application sleeps with a mutex that the main thread needs",
        kinds: &[&["lock-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::mutex_asleep]),
        ..Fault::OURS
    },
    Fault {
        name: "mutex-starved",
        about: "a thread of the application has a mutex, and gets no processor among others",
        kinds: &[&["cpu-competition"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::mutex_starved]),
        ..Fault::OURS
    },
    Fault {
        name: "rwlock-writer-waits",
        about: "a thread of the application reads under a lock that the main thread wants to write under",
        kinds: &[&["lock-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::write_lock]),
        ..Fault::OURS
    },
    Fault {
        name: "condition-late",
        about: "a thread of the application sleeps before it signals a condition",
        kinds: &[&["lock-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::condition]),
        ..Fault::OURS
    },
    Fault {
        name: "semaphore-process",
        about: "another process computes before it releases a semaphore",
        kinds: &[&["lock-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::semaphore]),
        ..Fault::OURS
    },
    Fault {
        name: "file-lock",
        about: "another process sleeps with a file locked",
        kinds: &[&["lock-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::file_lock]),
        ..Fault::OURS
    },
    Fault {
        name: "record-lock",
        about: "another process sleeps with a record of a file locked",
        kinds: &[&["lock-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::record_lock]),
        ..Fault::OURS
    },
    Fault {
        name: "slow-helper",
        about: "a helper computes before it answers on a socket",
        kinds: &[&["peer-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::slow_helper]),
        ..Fault::OURS
    },
    Fault {
        name: "sleeping-helper",
        about: "a helper sleeps before it answers on a socket",
        kinds: &[&["peer-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::sleeping_helper]),
        ..Fault::OURS
    },
    Fault {
        name: "helper-chain",
        about: "a helper asks a second one, which computes",
        kinds: &[&["peer-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::helper_chain]),
        ..Fault::OURS
    },
    Fault {
        name: "helper-starved",
        about: "a helper gets no processor among others",
        kinds: &[&["cpu-competition"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::helper_starved]),
        ..Fault::OURS
    },
    Fault {
        name: "contained-helper",
        about: "a helper in name spaces of its own computes before it answers",
        kinds: &[&["peer-wait"]],
        programs: &["unshare"],
        prepare: |site| OrderedCauses::prepare(site, &[causes::contained_helper]),
        ..Fault::OURS
    },
    Fault {
        name: "full-pipe",
        about: "nobody reads the pipe that the application writes to",
        kinds: &[&["peer-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::full_pipe]),
        ..Fault::OURS
    },
    Fault {
        name: "empty-pipe",
        about: "a process computes before it writes to the pipe that the application reads",
        kinds: &[&["peer-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::empty_pipe]),
        ..Fault::OURS
    },
    Fault {
        name: "event-counter",
        about: "another process sleeps before it adds to an event counter",
        kinds: &[&["peer-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::event_counter]),
        ..Fault::OURS
    },
    Fault {
        name: "message-bus",
        about: "a service on a message bus computes before it answers a call",
        kinds: &[&["peer-wait"]],
        programs: &["dbus-daemon"],
        prepare: |site| OrderedCauses::prepare(site, &[causes::message_bus]),
        ..Fault::OURS
    },
    Fault {
        name: "loopback-service",
        about: "a service on the loopback address answers late",
        kinds: &[&["network-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::loopback_service]),
        ..Fault::OURS
    },
    Fault {
        name: "pool-busy",
        about: "the threads of a pool compute before they come to the application's item",
        kinds: &[&["own-computation", "lock-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::pool]),
        ..Fault::OURS
    },
    Fault {
        name: "child-wait",
        about: "the application waits for a child that sleeps",
        kinds: &[&["child-wait"]],
        programs: &["sleep"],
        prepare: |site| OrderedCauses::prepare(site, &[causes::child_wait]),
        ..Fault::OURS
    },
    Fault {
        name: "child-computes",
        about: "the application waits for a child that computes",
        kinds: &[&["child-wait"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::child_computes]),
        ..Fault::OURS
    },
    Fault {
        name: "own-sleep",
        about: "the application sleeps",
        kinds: &[&["timer-sleep"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::own_sleep]),
        ..Fault::OURS
    },
    Fault {
        name: "own-computation",
        about: "the application computes",
        kinds: &[&["own-computation"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::own_computation]),
        ..Fault::OURS
    },
    Fault {
        name: "poll-timeout",
        about: "the application waits for a file that never gets ready",
        kinds: &[&["timer-sleep"]],
        prepare: |site| OrderedCauses::prepare(site, &[causes::poll_timeout]),
        ..Fault::OURS
    },
    Fault {
        name: "server-busy",
        about: "another client keeps the display server busy with long requests",
        kinds: &[&["server-busy"]],
        apps: App::OF_X11,
        prepare: screen::server_busy,
        ..Fault::OURS
    },
    Fault {
        name: "server-grab",
        about: "another client has grabbed the display server",
        kinds: &[&["server-grab"]],
        apps: App::OF_X11,
        prepare: screen::server_grab,
        ..Fault::OURS
    },
    Fault {
        name: "stopped",
        about: "a job stops the application's process for a while",
        kinds: &[&["stopped"]],
        apps: &App::ALL,
        prepare: screen::stopped,
        ..Fault::OURS
    },
    Fault {
        name: "compositor-stopped",
        about: "a job stops the compositor of Wayland for a while",
        kinds: &[&["stopped"]],
        apps: App::OF_WAYLAND,
        prepare: screen::compositor_stopped,
        ..Fault::OURS
    },
];
