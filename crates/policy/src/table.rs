// SPDX-License-Identifier: MIT OR Apache-2.0
//! The single table of values for each role. [`TABLE`] lists everything that the manager may
//! change.
//!
//! **Meaning of the numbers.** CPU shares are proportional to weights: a cgroup's weight, or the
//! weight that the kernel derives from a nice value (a factor of 1.25 for each step, 1024 for 0).
//! The ratio of the weights shortens a burst of work of many milliseconds. The start of a short one
//! depends on the slice: beside twenty computing sessions the median wakeup latency was 4 ms even
//! with a favoured weight, and 0.1 ms with a slice of 0.1 ms. The slice of sets without attention
//! matters as much. The scheduler picks the earliest deadline, and a slice shorter than a tick
//! leaves a computing thread behind its own deadline: one wakeup in ten then waited for such
//! threads, 4 ms and more, whatever its weight. With a slice of 20 ms for those threads, 99% of the
//! wakeups took less than 2 ms and 95% at most 0.16 ms (8 ms: 0.27), at no cost in shares and with
//! fewer preemptions of the computing threads. The strength moves the focused set away from the
//! rest. In the gentle table the visible sets stay below the focused one. The favour of a recent
//! set decays from its value in the table to that of the rest.
//!
//! **Nothing starves**, under any backend and strength:
//! 1. No real-time policy and no frozen process: every process has a weight, and the scheduler
//!    gives each its share.
//! 2. A set of the rest has at least 1% of a CPU ([`REST_SHARE_MIN_PERCENT`]), even while a set of
//!    each of the four favoured roles works on this CPU without a pause. This bounds the ratio of
//!    the weights, and is why the strong focus has 8900 instead of the kernel's maximum of 10000.
//! 3. A hog has at least [`HOG_RUN_MIN_MS`] ms in every 10 s, one slice, beside a focused set that
//!    works without a pause. It is a hog only while memory is short, and its memory never shrinks
//!    below its share.
//! 4. No I/O class `idle`: a hog's requests come last within their class, but are served.
//!
//! Tests compute 2 and 3 from the table with the kernel's weights. Several sets of one role divide
//! its share, as they do without a manager.
//!
//! **Autogroup.** With autogroups the kernel weighs sessions, and a nice value counts within a
//! session only. The backend therefore sets the session's value and also the nice value, which
//! distinguishes the processes of one session, such as everything started by one start script. If
//! another scheduler (sched_ext) ignores cgroup weights, the nice values of the rows `Nice` are set
//! in addition.

use crate::knobs::{Backend, IoPriority, Knobs, Scheduling, Strength};
use crate::role::Role;

/// Minimum share of a CPU for a busy set of the rest beside a busy set of each favoured role, in
/// percent.
pub const REST_SHARE_MIN_PERCENT: u32 = 1;
/// Minimum CPU time in 10 s for a busy hog beside a busy focused set, in milliseconds.
pub const HOG_RUN_MIN_MS: u32 = 3;

/// Values of a role under the strengths gentle, normal and strong.
struct KnobRow(Backend, Role, [Knobs; 3]);

use Backend::{Autogroup, Cgroup, Nice};
use Role::{Core, Focused, Hog, Recent, Rest, Visible};

/// Everything that the manager sets. Settings not listed here are left as found.
#[rustfmt::skip]
const TABLE: [KnobRow; 18] = [
    // backend, role              gentle                       normal                       strong
    KnobRow(Cgroup, Core,    [weight(500).disk(500).slice(300), weight(500).disk(500).slice(100),  weight(500).disk(500).slice(100)]),
    KnobRow(Cgroup, Focused, [weight(300).disk(500).slice(300), weight(3000).disk(500).slice(100), weight(8900).disk(500).slice(100)]),
    KnobRow(Cgroup, Visible, [weight(200),                 weight(300),                 weight(300)]),
    KnobRow(Cgroup, Recent,  [weight(150),                 weight(200),                 weight(200)]),
    KnobRow(Cgroup, Rest,    [weight(100).slice(8_000),    weight(100).slice(20_000),   weight(100).slice(20_000)]),
    KnobRow(Cgroup, Hog,     [weight(20).disk(10).slice(8_000), weight(20).disk(10).slice(20_000), weight(20).disk(10).slice(20_000)]),

    KnobRow(Autogroup, Core,    [session(-5).nice(-4).slice(300).io(2),  session(-10).nice(-8).slice(100).io(0), session(-15).nice(-10).slice(100).io(0)]),
    KnobRow(Autogroup, Focused, [session(-5).nice(-4).slice(300).io(2),  session(-10).nice(-8).slice(100).io(0), session(-15).nice(-10).slice(100).io(0)]),
    KnobRow(Autogroup, Visible, [session(-2).nice(-2),        session(-4).nice(-4),        session(-4).nice(-4)]),
    KnobRow(Autogroup, Recent,  [session(-2).nice(-2),        session(-4).nice(-4),        session(-4).nice(-4)]),
    KnobRow(Autogroup, Rest,    [AS_FOUND.slice(8_000),       AS_FOUND.slice(20_000),      AS_FOUND.slice(20_000)]),
    KnobRow(Autogroup, Hog,     [session(19).slice(8_000).idle().io(7), session(19).slice(20_000).idle().io(7), session(19).slice(20_000).idle().io(7)]),

    KnobRow(Nice, Core,    [AS_FOUND.nice(-4).slice(300).io(2),     AS_FOUND.nice(-8).slice(100).io(0),     AS_FOUND.nice(-10).slice(100).io(0)]),
    KnobRow(Nice, Focused, [AS_FOUND.nice(-4).slice(300).io(2),     AS_FOUND.nice(-8).slice(100).io(0),     AS_FOUND.nice(-10).slice(100).io(0)]),
    KnobRow(Nice, Visible, [AS_FOUND.nice(-2),           AS_FOUND.nice(-4),           AS_FOUND.nice(-4)]),
    KnobRow(Nice, Recent,  [AS_FOUND.nice(-2),           AS_FOUND.nice(-4),           AS_FOUND.nice(-4)]),
    KnobRow(Nice, Rest,    [AS_FOUND.slice(8_000),       AS_FOUND.slice(20_000),      AS_FOUND.slice(20_000)]),
    KnobRow(Nice, Hog,     [AS_FOUND.slice(8_000).idle().io(7), AS_FOUND.slice(20_000).idle().io(7), AS_FOUND.slice(20_000).idle().io(7)]),
];

const AS_FOUND: Knobs = Knobs {
    cpu_weight: None,
    io_weight: None,
    autogroup: None,
    nice: None,
    slice_us: None,
    scheduling: None,
    io: None,
};

const fn weight(cpu: u32) -> Knobs {
    Knobs { cpu_weight: Some(cpu), ..AS_FOUND }
}

const fn session(nice: i8) -> Knobs {
    Knobs { autogroup: Some(nice), ..AS_FOUND }
}

impl Knobs {
    const fn disk(self, weight: u32) -> Knobs {
        Knobs { io_weight: Some(weight), ..self }
    }

    const fn nice(self, nice: i8) -> Knobs {
        Knobs { nice: Some(nice), ..self }
    }

    const fn slice(self, us: u32) -> Knobs {
        Knobs { slice_us: Some(us), ..self }
    }

    const fn idle(self) -> Knobs {
        Knobs { scheduling: Some(Scheduling::Idle), ..self }
    }

    const fn io(self, level: u8) -> Knobs {
        Knobs { io: Some(IoPriority::BestEffort(level)), ..self }
    }
}

/// Returns the knobs for a set of this role. `faded` applies to [`Role::Recent`] only: 0 has just
/// lost the focus, 1 lost it ten minutes ago and gets the values of the rest. Values outside of
/// this range are clamped; NaN counts as 1. [`Strength::Off`] sets no knobs.
pub fn knobs(backend: Backend, strength: Strength, role: Role, faded: f32) -> Knobs {
    let column = match strength {
        Strength::Off => return AS_FOUND,
        Strength::Gentle => 0,
        Strength::Normal => 1,
        Strength::Strong => 2,
    };
    match role {
        Role::Recent => {
            fade(entry(backend, Role::Recent, column), entry(backend, Role::Rest, column), faded)
        }
        _ => entry(backend, role, column),
    }
}

/// Systemd units use the numbers of plain cgroups: the kernel knobs are the same.
fn entry(backend: Backend, role: Role, column: usize) -> Knobs {
    let backend = if backend == Backend::Systemd { Cgroup } else { backend };
    let row = TABLE.iter().find(|row| row.0 == backend && row.1 == role);
    row.map_or(AS_FOUND, |row| row.2[column])
}

/// Interpolates between two entries if both have a number, or if the rest is left as found.
fn fade(from: Knobs, to: Knobs, faded: f32) -> Knobs {
    let faded = if faded.is_nan() { 1.0 } else { faded.clamp(0.0, 1.0) };
    let weights = from.cpu_weight.zip(to.cpu_weight);
    Knobs {
        cpu_weight: weights.map(|(from, to)| between(from as f32, to as f32, faded) as u32),
        autogroup: fade_nice(from.autogroup, to.autogroup, faded),
        nice: fade_nice(from.nice, to.nice, faded),
        slice_us: if faded < 1.0 { from.slice_us } else { to.slice_us },
        ..to
    }
}

fn between(from: f32, to: f32, faded: f32) -> f32 {
    (from + (to - from) * faded).round()
}

fn fade_nice(from: Option<i8>, to: Option<i8>, faded: f32) -> Option<i8> {
    let nice = between(f32::from(from?), f32::from(to.unwrap_or(0)), faded) as i8;
    (nice != 0 || to.is_some()).then_some(nice)
}

/// Formats the table as text, with a line for each backend, role and strength.
pub fn table() -> String {
    let mut text = String::new();
    for KnobRow(backend, role, columns) in &TABLE {
        for (strength, knobs) in Strength::ALL[1..].iter().zip(columns) {
            text.push_str(&format!("{backend:9} {role:7} {strength:6} {knobs}\n"));
        }
    }
    text
}
