// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder's times of typing compared with those of a client that stamps its own. Needs root.

use std::process::Command;
use support::{Recording, Running, session};
use tipme_analysis::{Timed, timed};
use tipme_bench::truth::{Truth, TruthClient};
use tipme_bench::worker::WorkerLauncher;
use tipme_desktop::inject::Pace;

const KEYS: u32 = 400;

/// Minimum number of known keys. A receiver can read a socket message before its send is recorded;
/// then the key is unknown.
const KEYS_FOUND_MIN: usize = 392;

/// Minimum distance between keys, half of it on each side, in nanoseconds.
const APART_NS: u64 = 10_000_000;

/// Starts programs that compute.
fn hogs(count: usize) -> Vec<Running> {
    let hogs =
        (0..count).map(|_| Running::start(Command::new("sh").args(["-c", "while :; do :; done"])));
    hogs.collect()
}

fn quantile(errors: &mut [u64], share: f64) -> f64 {
    errors.sort_unstable();
    let at = (errors.len() as f64 * share).ceil() as usize;
    errors[at.clamp(1, errors.len()) - 1] as f64 / 1e6
}

/// Checks the median error against a bound. Large errors are only printed: a busy machine can delay
/// a stamp by any time.
fn check(what: &str, mut errors: Vec<u64>) {
    let (median, p99) = (quantile(&mut errors, 0.5), quantile(&mut errors, 0.99));
    println!("{what}: error p50 {median:.3} ms, p99 {p99:.3} ms of {}", errors.len());
    assert!(median <= 0.3, "{what}: median error {median} ms");
}

/// Checks the order of one key's times, which no delay can reverse: the client stamps a receive
/// after the receive, and a send after the send.
fn check_order(one: &Timed, truth: &Truth) {
    let (taken, drawn) = (one.taken_ns.unwrap(), one.drawn_ns.unwrap());
    let order = [truth.injected.0, one.input_ns, taken, truth.received.0];
    assert!(order.is_sorted(), "injected, input, taken, received: {order:?}");
    let order = [taken, drawn, truth.drawn.0];
    assert!(order.is_sorted(), "taken, drawing sent, stamped: {order:?}");
    assert!(drawn <= one.end_ns, "drawing sent, done: {drawn} {}", one.end_ns);
}

/// Returns the interaction that starts with this injected key.
fn nearest<'a>(recorded: &'a [Timed], truth: &Truth) -> Option<&'a Timed> {
    let distances = recorded.iter().map(|one| (one.input_ns.abs_diff(truth.injected.0), one));
    let (distance, one) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance < APART_NS).then_some(one)
}

/// Types beside this many computing programs, and compares the analysis with the client's stamps.
fn compare(what: &str, count: usize) {
    let _alone = support::alone();
    let session = session();
    let recording = Recording::start(&["--display", &session.display_name()]);
    let launcher = WorkerLauncher(vec![support::built("tipme-lab").into(), "worker".into()]);
    let client = TruthClient::start(&session, &launcher, KEYS).unwrap();
    let pid = client.pid();
    let load = hogs(count);
    let pace = Pace { words_per_minute: 600.0, variation: 0.5, seed: 3 };
    let truths: Vec<Truth> = client.drive(&session, pace).unwrap();
    let (_, incident) = recording.mark();
    drop(load);
    let recorded: Vec<Timed> = timed(&incident)
        .unwrap()
        .into_iter()
        .filter(|one| one.client_pid == pid && one.class == "key")
        .collect();
    let pairs: Vec<(&Timed, &Truth)> =
        truths.iter().filter_map(|truth| Some((nearest(&recorded, truth)?, truth))).collect();
    assert!(pairs.len() >= KEYS_FOUND_MIN, "{} of {KEYS} keys were found", pairs.len());
    pairs.iter().for_each(|(one, truth)| check_order(one, truth));
    type Time<T> = fn(&T) -> u64;
    let times: [(&str, Time<Timed>, Time<Truth>); 3] = [
        ("input", |one| one.input_ns, |truth| truth.injected.0),
        ("event taken", |one| one.taken_ns.unwrap(), |truth| truth.received.0),
        (
            "input to end",
            |one| one.end_ns - one.input_ns,
            |truth| truth.finished.since(truth.injected).0,
        ),
    ];
    for (name, recorded, known) in times {
        let errors =
            pairs.iter().map(|(one, truth)| recorded(one).abs_diff(known(truth))).collect();
        check(&format!("{what}, {name}"), errors);
    }
}

#[test]
fn latencies_agree_with_the_clients_own_on_an_idle_machine() {
    compare("idle", 0);
}

#[test]
fn latencies_agree_with_the_clients_own_under_load() {
    compare("three hogs", 3);
}
