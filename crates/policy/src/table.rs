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
//! another scheduler (sched_ext) ignores cgroup weights, the nice values of the table are set in
//! addition.

use crate::knobs::{Backend, Knobs, Strength};
use crate::role::Role;

/// Minimum share of a CPU for a busy set of the rest beside a busy set of each favoured role, in
/// percent.
pub const REST_SHARE_MIN_PERCENT: u32 = 1;
/// Minimum CPU time in 10 s for a busy hog beside a busy focused set, in milliseconds.
pub const HOG_RUN_MIN_MS: u32 = 3;

/// Values of a role: `cpu.weight`, `io.weight`, autogroup, nice value, slice in microseconds, and
/// I/O level. Lists are for the strengths gentle, normal and strong; 0 leaves a setting as found.
struct KnobRow(Role, [u32; 3], u32, [i8; 3], [i8; 3], [u32; 3], Option<[u8; 3]>);

use Role::{Core, Focused, Hog, Recent, Rest, Visible};

/// Everything that the manager sets, besides the policy SCHED_IDLE of hogs. Settings not listed
/// here are left as found.
#[rustfmt::skip]
const TABLE: [KnobRow; 6] = [
    KnobRow(Core,    [500, 500, 500],     500, [-5, -10, -15], [-4, -8, -10], [300, 100, 100], Some([2, 0, 0])),
    KnobRow(Focused, [300, 3_000, 8_900], 500, [-5, -10, -15], [-4, -8, -10], [300, 100, 100], Some([2, 0, 0])),
    KnobRow(Visible, [200, 300, 300],       0, [-2, -4, -4],   [-2, -4, -4],  [0, 0, 0],       None),
    KnobRow(Recent,  [150, 200, 200],       0, [-2, -4, -4],   [-2, -4, -4],  [0, 0, 0],       None),
    KnobRow(Rest,    [100, 100, 100],       0, [0, 0, 0],      [0, 0, 0],     REST_SLICE_US,   None),
    KnobRow(Hog,     [20, 20, 20],         10, [19, 19, 19],   [0, 0, 0],     REST_SLICE_US,   Some([7, 7, 7])),
];

const REST_SLICE_US: [u32; 3] = [8_000, 20_000, 20_000];

/// Returns the knobs for a set of this role. `faded` applies to [`Role::Recent`] only: 0 has just
/// lost the focus, 1 lost it ten minutes ago and gets the values of the rest. Values outside of
/// this range are clamped; NaN counts as 1. [`Strength::Off`] sets no knobs.
pub fn knobs(backend: Backend, strength: Strength, role: Role, faded: f32) -> Knobs {
    let column = match strength {
        Strength::Off => return Knobs::default(),
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
    let row = TABLE.iter().find(|row| row.0 == role);
    let Some(KnobRow(_, cpu_weight, io_weight, autogroup, nice, slice_us, io_level)) = row else {
        return Knobs::default();
    };
    let plain = Knobs { slice_us: set(slice_us[column]), ..Knobs::default() };
    match backend {
        Backend::Systemd | Backend::Cgroup => {
            Knobs { cpu_weight: set(cpu_weight[column]), io_weight: set(*io_weight), ..plain }
        }
        Backend::Autogroup | Backend::Nice => Knobs {
            autogroup: set(autogroup[column]).filter(|_| backend == Backend::Autogroup),
            nice: set(nice[column]),
            is_idle: role == Role::Hog,
            io_level: io_level.map(|levels| levels[column]),
            ..plain
        },
    }
}

fn set<T: Default + PartialEq>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
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
