// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table and its guarantees.

use tipme_policy::{Backend, HOG_RUN_MIN_MS, Knobs, REST_SHARE_MIN_PERCENT, Role, Strength, knobs};

/// Weights that the kernel assigns to the nice values -20 to 19 (`sched_prio_to_weight`).
const NICE_WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];
/// Weight of SCHED_IDLE.
const IDLE_WEIGHT: u32 = 3;
/// Default weight of a cgroup.
const CGROUP_WEIGHT: u32 = 100;

/// Tick length at the slowest common rate, 250 Hz, in microseconds.
const TICK_US: u32 = 4_000;

const ON: [Strength; 3] = [Strength::Gentle, Strength::Normal, Strength::Strong];

fn first_knobs(backend: Backend, strength: Strength, role: Role) -> Knobs {
    knobs(backend, strength, role, 0.0)
}

fn nice_weight(nice: Option<i8>) -> u32 {
    NICE_WEIGHTS[(i32::from(nice.unwrap_or(0)) + 20) as usize]
}

fn thread_weight(knobs: Knobs) -> u32 {
    if knobs.is_idle { IDLE_WEIGHT } else { nice_weight(knobs.nice) }
}

/// Returns the weights that decide between two sets, one list for each way in which they compete:
/// in separate sessions and, with autogroups, also in the same session.
fn weights(backend: Backend, strength: Strength) -> Vec<[u32; 6]> {
    let knobs = Role::ALL.map(|role| first_knobs(backend, strength, role));
    let threads = knobs.map(thread_weight);
    match backend {
        Backend::Systemd | Backend::Cgroup => {
            vec![knobs.map(|knobs| knobs.cpu_weight.unwrap_or(CGROUP_WEIGHT))]
        }
        Backend::Autogroup => vec![knobs.map(|knobs| nice_weight(knobs.autogroup)), threads],
        Backend::Nice => vec![threads],
    }
}

fn all_weights() -> Vec<(Backend, Strength, [u32; 6])> {
    let mut all = Vec::new();
    for backend in Backend::ALL {
        for strength in ON {
            all.extend(
                weights(backend, strength).into_iter().map(|weights| (backend, strength, weights)),
            );
        }
    }
    all
}

#[test]
fn off_gives_no_knobs() {
    for (backend, role) in
        Backend::ALL.into_iter().flat_map(|backend| Role::ALL.map(|role| (backend, role)))
    {
        assert_eq!(knobs(backend, Strength::Off, role, 0.5), Knobs::default());
    }
}

#[test]
fn the_rest_keeps_its_share_beside_favoured_sets() {
    for (backend, strength, [core, focused, visible, recent, rest, _]) in all_weights() {
        let all = core + focused + visible + recent + rest;
        assert!(
            rest * 100 >= all * REST_SHARE_MIN_PERCENT,
            "{backend} {strength}: {rest} of {all}"
        );
    }
}

#[test]
fn a_hog_runs_in_every_ten_seconds() {
    for (backend, strength, [_, focused, .., hog]) in all_weights() {
        let ms = 10_000 * hog / (hog + focused);
        assert!(ms >= HOG_RUN_MIN_MS, "{backend} {strength}: {ms} ms");
    }
}

#[test]
fn nobody_can_lock_others_out() {
    for (backend, strength) in
        Backend::ALL.into_iter().flat_map(|backend| ON.map(|strength| (backend, strength)))
    {
        for knobs in Role::ALL.map(|role| first_knobs(backend, strength, role)) {
            assert!(knobs.io_level.is_none_or(|level| level <= 7));
            assert!(knobs.cpu_weight.is_none_or(|weight| (1..=10_000).contains(&weight)));
            assert!(knobs.io_weight.is_none_or(|weight| (1..=10_000).contains(&weight)));
            assert!(knobs.slice_us.is_none_or(|slice| (100..=100_000).contains(&slice)));
            assert!(
                [knobs.nice, knobs.autogroup]
                    .iter()
                    .flatten()
                    .all(|nice| (-20..=19).contains(nice))
            );
        }
    }
}

#[test]
fn weights_follow_the_order_of_roles() {
    for (backend, strength, weights) in all_weights() {
        let [_, focused, visible, recent, rest, hog] = weights;
        let ordered = focused > visible && visible >= recent && recent > rest && rest > hog;
        assert!(ordered, "{backend} {strength}: {weights:?}");
        assert!(
            weights[0] > visible,
            "{backend} {strength}: the core is slower than what is only visible"
        );
    }
}

#[test]
fn a_stronger_knob_is_stronger() {
    for backend in Backend::ALL {
        for pair in ON.windows(2) {
            let [weaker, stronger] =
                [pair[0], pair[1]].map(|strength| weights(backend, strength)[0][1]);
            assert!(weaker < stronger, "{backend}: {} {weaker}, {} {stronger}", pair[0], pair[1]);
        }
    }
}

fn recent(backend: Backend, faded: f32) -> Knobs {
    knobs(backend, Strength::Normal, Role::Recent, faded)
}

#[test]
fn recent_favour_fades_to_the_rest() {
    let weights =
        [0.0, 0.1, 0.5, 0.9, 1.0].map(|faded| recent(Backend::Cgroup, faded).cpu_weight.unwrap());
    assert_eq!(weights, [200, 190, 150, 110, 100]);
    let nices = [0.0, 0.1, 0.5, 0.8, 0.9, 1.0].map(|faded| recent(Backend::Nice, faded).nice);
    assert_eq!(nices, [Some(-4), Some(-4), Some(-2), Some(-1), None, None]);
    for backend in Backend::ALL {
        let rest = knobs(backend, Strength::Normal, Role::Rest, 0.0);
        for faded in [1.0, 7.0, f32::NAN, f32::INFINITY] {
            assert_eq!(recent(backend, faded), rest, "{faded}");
        }
        assert_eq!(recent(backend, -3.0), recent(backend, 0.0));
    }
}

#[test]
fn favoured_wakeups_do_not_wait_for_slices_of_others() {
    for (backend, strength) in
        Backend::ALL.into_iter().flat_map(|backend| ON.map(|strength| (backend, strength)))
    {
        let [core, focused, visible, recent, rest, hog] =
            Role::ALL.map(|role| first_knobs(backend, strength, role).slice_us);
        let fading = knobs(backend, strength, Role::Recent, 0.99).slice_us;
        assert_eq!(core, focused);
        assert!(focused < rest && rest == hog);
        assert!(rest > Some(TICK_US), "a slice that ends before a tick makes its thread late");
        assert_eq!([visible, recent, fading], [None; 3], "they may have to answer as well");
    }
}

#[test]
fn only_recent_fades() {
    for role in Role::ALL.into_iter().filter(|role| *role != Role::Recent) {
        let full = knobs(Backend::Cgroup, Strength::Normal, role, 0.0);
        assert_eq!(knobs(Backend::Cgroup, Strength::Normal, role, 1.0), full);
    }
}

#[test]
fn words_and_json_name_the_same() {
    for strength in Strength::ALL {
        assert_eq!(Strength::named(strength.name()), Some(strength));
        assert_eq!(serde_json::to_string(&strength).unwrap(), format!("\"{strength}\""));
    }
    for role in Role::ALL {
        assert_eq!(serde_json::to_string(&role).unwrap(), format!("\"{role}\""));
    }
    for backend in Backend::ALL {
        assert_eq!(serde_json::to_string(&backend).unwrap(), format!("\"{backend}\""));
    }
    assert_eq!(Strength::named("Strong"), None);
}
