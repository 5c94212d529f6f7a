// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one table of what each role gets. Whoever wants to know what the manager may do reads [`TABLE`].
//!
//! **What the numbers mean.** Shares of a CPU are as the weights: a cgroup's weight, or what the kernel makes of a
//! nice value, a factor of 1.25 for each step and 1024 for 0. The ratio of the weights is what shortens a burst of
//! work of many milliseconds. How soon a short one begins is a matter of the slice: beside twenty computing sessions
//! a wake-up took 4 ms in the median, with a favoured weight as well, and 0.1 ms with a slice of 0.1 ms.
//! The slice of those who are not attended to counts as much. The scheduler takes the earliest deadline, and a slice
//! shorter than a tick leaves a computing thread behind its own: one wake-up in ten then waited behind such
//! threads, 4 ms and more, whatever its weight. With a slice of 20 ms for them 99 of 100 took less than
//! 2 ms and 95 took 0.16 ms (8 ms: 0.27), at no cost in shares, and they are interrupted less often.
//! Strength moves the focused set away from the rest. In a gentle table the visible sets stay below the focused one. A
//! recent set's favour goes down from its value in the table to that of the rest.
//!
//! **Nothing starves**, under any back end and strength:
//! 1. No real-time policy and no frozen process: every process has a weight, and the scheduler gives each its share.
//! 2. A set of the rest has at least 1 % of a CPU ([`REST_SHARE_MIN_PERCENT`]), even while a set of each of the
//!    four favoured roles works on this CPU without a pause. That bounds the ratio of the weights, and is why the
//!    strong focus has 8900 and not the 10000 that the kernel would allow.
//! 3. A hog has at least [`HOG_RUN_MIN_MS`] ms in every 10 s, one slice, beside a focused set that works without a
//!    pause. It is a hog only while memory is short, and its memory is never taken below its share.
//! 4. No I/O class `idle`: a hog's requests are the last of their class, and have their turn.
//!
//! Tests compute 2 and 3 from the table, with the kernel's weights. More sets divide what their role has, as
//! they do without a manager.
//!
//! **Autogroup.** The kernel weighs sessions then, and a nice value counts within a session only. So the session's
//! value is set, and the nice value as well, which tells apart what shares a session, such as everything that one
//! start script has started. Where another scheduler (sched_ext) ignores cgroup weights, the nice values of the
//! rows `Nice` are set besides.

use crate::knobs::{Backend, IoPriority, Knobs, Scheduling, Strength};
use crate::role::Role;

/// Percent of a CPU that a busy set of the rest has at least, beside a busy set of each favoured role.
pub const REST_SHARE_MIN_PERCENT: u32 = 1;
/// Milliseconds in 10 s that a busy hog has at least, beside a busy focused set.
pub const HOG_RUN_MIN_MS: u32 = 3;

/// What a role gets, under the strengths gentle, normal and strong.
struct KnobRow(Backend, Role, [Knobs; 3]);

use Backend::{Autogroup, Cgroup, Nice};
use Role::{Core, Focused, Hog, Recent, Rest, Visible};

/// All that the manager sets. What is not here is left as it was found.
#[rustfmt::skip]
const TABLE: [KnobRow; 18] = [
    // back end, role             gentle                       normal                       strong
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

/// What a set of this role is to have. `faded` counts for [`Role::Recent`] only: 0 has just lost the focus, 1 lost
/// it ten minutes ago and has what the rest has; what lies outside counts as the nearer end, and NaN as 1.
/// [`Strength::Off`] gives no knobs.
pub fn knobs(backend: Backend, strength: Strength, role: Role, faded: f32) -> Knobs {
    let column = match strength {
        Strength::Off => return AS_FOUND,
        Strength::Gentle => 0,
        Strength::Normal => 1,
        Strength::Strong => 2,
    };
    match role {
        Role::Recent => fade(entry(backend, Role::Recent, column), entry(backend, Role::Rest, column), faded),
        _ => entry(backend, role, column),
    }
}

/// Units of systemd have the numbers of plain cgroups: they are the same knobs, set by another hand.
fn entry(backend: Backend, role: Role, column: usize) -> Knobs {
    let backend = if backend == Backend::Systemd { Cgroup } else { backend };
    let row = TABLE.iter().find(|row| row.0 == backend && row.1 == role);
    row.map_or(AS_FOUND, |row| row.2[column])
}

/// What lies between two entries, where both are numbers or the rest is left as found.
fn fade(from: Knobs, to: Knobs, faded: f32) -> Knobs {
    let faded = if faded.is_nan() { 1.0 } else { faded.clamp(0.0, 1.0) };
    let between = |from: f32, to: f32| (from + (to - from) * faded).round();
    let weight = |from: Option<u32>, to: Option<u32>| Some(between(from? as f32, to? as f32) as u32);
    let nice = |from: Option<i8>, to: Option<i8>| {
        let nice = between(f32::from(from?), f32::from(to.unwrap_or(0))) as i8;
        (nice != 0 || to.is_some()).then_some(nice)
    };
    Knobs {
        cpu_weight: weight(from.cpu_weight, to.cpu_weight),
        autogroup: nice(from.autogroup, to.autogroup),
        nice: nice(from.nice, to.nice),
        slice_us: if faded < 1.0 { from.slice_us } else { to.slice_us },
        ..to
    }
}

/// The table as text, a line for each back end, strength and role.
pub fn table() -> String {
    let mut text = String::new();
    for KnobRow(backend, role, columns) in &TABLE {
        for (strength, knobs) in Strength::ALL[1..].iter().zip(columns) {
            text.push_str(&format!("{backend:9} {role:7} {strength:6} {knobs}\n"));
        }
    }
    text
}
