// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time of a diagnosis grows linearly with the records and with the clients of the display.

mod support;

use rustix::time::{ClockId, clock_gettime};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use support::busy::busy;
use support::{APP, DRAW_TEXT, Machinery, SERVER};
use tipme_analysis::model::Verdict;
use tipme_analysis::{DiagnoseOptions, diagnose};
use tipme_record::incident::Incident;

/// Typing into an editor beside `clients` other clients, each of which receives a motion and draws
/// once.
fn many_clients(clients: u32) -> Incident {
    let mut machine = Machinery::with_app("editor");
    for number in 0..clients {
        let (client, us) = (10_000 + number, 50_000 + u64::from(number) * 500);
        machine.task(client, client, 1, "applet", 1);
        machine.switch(us, 0, SERVER, 1).message(
            us + 10,
            SERVER,
            (client, client),
            2,
            32,
            &[[6, 0, 0, 0]],
        );
        machine.wake_from(us + 12, client, SERVER, 0, 1).switch(us + 20, 0, 0, 1);
        machine.switch(us + 30, 1, client, 0);
        machine.message(us + 40, client, (client, client), 3, 32, &[]).wake(
            us + 50,
            SERVER,
            client,
        );
        machine.message(us + 60, client, (client, client), 0, 20, &[DRAW_TEXT]).switch(
            us + 70,
            1,
            0,
            1,
        );
        machine.switch(us + 80, 0, SERVER, 0).message(
            us + 90,
            SERVER,
            (client, client),
            1,
            20,
            &[],
        );
        machine.switch(us + 120, 0, 0, 1);
    }
    let end = 100_000 + u64::from(clients) * 500;
    machine.typing(end, 20);
    machine.task(APP + 1, APP, 1, "worker", 1);
    machine.incident(end + 10_000_000)
}

/// Serializes the measurements: parallel ones share the caches.
static ALONE: Mutex<()> = Mutex::new(());

/// Returns the CPU time of each diagnosis: the shortest of three, alternating between the two.
fn shortest(incidents: [&Incident; 2]) -> [Duration; 2] {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut best = [Duration::MAX; 2];
    for _ in 0..3 {
        for (best, incident) in best.iter_mut().zip(incidents) {
            let begun = cpu_time();
            diagnose(incident, &DiagnoseOptions::default()).expect("the scene is well formed");
            *best = (*best).min(cpu_time() - begun);
        }
    }
    best
}

/// Returns the CPU time of this thread, which does not depend on the load.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn four_times_the_clients_take_four_times_the_time() {
    let (few, many) = (many_clients(1_000), many_clients(4_000));
    let [few, many] = shortest([&few, &many]);
    assert!(many < few * 8, "1,000 clients {few:?}, 4,000 clients {many:?}");
}

#[test]
fn four_times_the_records_take_four_times_the_time() {
    let (few, many) = (busy(50_000), busy(200_000));
    let [few, many] = shortest([&few, &many]);
    assert!(many < few * 8, "50,000 records {few:?}, 200,000 records {many:?}");
}

/// An editor that answers a key after `count` short waits.
fn short_waits(count: u64) -> Verdict {
    let mut machine = Machinery::with_app("editor");
    machine.typing(100_000, 12).press(3_000_000);
    for out in (3_005_000..).step_by(4).take(count as usize) {
        machine.switch(out, 1, 0, 0x8002).wake_from(out + 2, APP, 0, 2, 1);
        machine.switch(out + 3, 1, APP, 0);
    }
    machine.draw(3_100_000 + count * 4);
    machine.diagnose(6_000_000)
}

#[test]
fn short_waits_are_followed_up_to_a_bound_that_is_noted() {
    for (count, is_bounded) in [(100_000, false), (400_000, true)] {
        let verdict = short_waits(count);
        let unknown = verdict.partition.iter().filter(|share| share.state == "unknown");
        let latency_ms = verdict.interval.as_ref().expect("it is the key's").latency_ms;
        let share = unknown.map(|share| share.ms).sum::<f64>() / latency_ms;
        assert!(if is_bounded { share > 0.1 } else { share < 0.01 }, "{share}");
        let is_noted = verdict
            .notes
            .iter()
            .any(|note| note.starts_with("The chain was followed for 1,000,00"));
        assert_eq!(is_noted, is_bounded, "{:?}", verdict.notes);
    }
}
