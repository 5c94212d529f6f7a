// SPDX-License-Identifier: MIT OR Apache-2.0
//! The busy watch on a simulated `/proc`.

use super::*;
use std::fs;
use std::path::Path;

/// Clock ticks in a second, and uptime of the machine in seconds.
const SECOND: u64 = 100;
const UP_S: u64 = 1_000;

struct BusyFixture {
    root: tempfile::TempDir,
}

impl BusyFixture {
    fn new() -> BusyFixture {
        let machine = BusyFixture { root: tempfile::tempdir().expect("a folder") };
        machine.put("uptime", &format!("{UP_S}.00 5.00\n"));
        machine
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.root.path().join(name);
        fs::create_dir_all(path.parent().expect("below the root")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn want_cpu(&self, tasks: u64) {
        self.put("loadavg", &format!("0.00 0.00 0.00 {tasks}/200 4711\n"));
    }

    /// Adds a process that is `age` ticks old; it and its children have used these ticks.
    fn process(&self, pid: u32, age: u64, own: u64, children: u64) {
        let start = UP_S * SECOND - age;
        let line = format!(
            "{pid} (x) R 1 {pid} {pid} 0 -1 4194304 1 0 0 0 {own} 0 {children} 0 20 0 1 0 {start} \
             1 1 1 1 1 1 1 1 1 0 0 0 0 0 0 17 1 0 0 0 0 0"
        );
        self.put(&format!("{pid}/stat"), &line);
    }

    fn watch(&self) -> BusyWatch {
        BusyWatch { cpus: 2, ..BusyWatch::new(self.root.path().to_path_buf()) }
    }
}

fn pids(found: Option<Vec<Identity>>) -> Option<Vec<u32>> {
    found.map(|found| found.iter().map(|who| who.pid).collect())
}

/// Looks as if the previous look had been cheap, on any machine.
fn look(watch: &mut BusyWatch, second: u64) -> Option<Vec<u32>> {
    watch.due = watch.due.min(watch.looked.after(PERIOD));
    pids(watch.look(Nanos::from_secs(second), |_| true))
}

#[test]
fn no_process_is_read_while_cpus_are_free() {
    let machine = BusyFixture::new();
    machine.process(10, 200, 190, 0);
    machine.want_cpu(3);
    assert_eq!(look(&mut machine.watch(), 100), None);
    assert_eq!(runnable("no load at all"), None);
    fs::remove_file(machine.root.path().join("loadavg")).expect("it was there");
    assert_eq!(look(&mut machine.watch(), 100), None);
}

#[test]
fn a_busy_process_is_reported_at_once_and_released_later() {
    let machine = BusyFixture::new();
    machine.process(10, 200, 190, 0);
    machine.process(11, 90_000, 190, 0);
    machine.process(12, 200, 0, 150);
    machine.want_cpu(4);
    let mut watch = BusyWatch { last: Some(Nanos::from_secs(99)), ..machine.watch() };
    assert_eq!(
        look(&mut watch, 100),
        Some(vec![10, 12]),
        "over its life, with its children; 11 is old and idle"
    );
    assert_eq!(look(&mut watch, 101), None, "not due");
    machine.process(11, 90_000, 190 + 100, 0);
    machine.process(12, 200, 0, 150 + 4);
    assert_eq!(
        look(&mut watch, 104),
        Some(vec![11, 12]),
        "10 had nothing since; 1% is enough to stay"
    );
    machine.want_cpu(1);
    machine.process(11, 90_000, 190 + 200, 0);
    machine.process(12, 200, 0, 150 + 100);
    assert_eq!(look(&mut watch, 108), None, "the same ones");
    assert_eq!(look(&mut watch, 114), Some(vec![]), "ten seconds after the last shortage");
    assert_eq!(look(&mut watch, 115), None);
}

/// Returns the times at which the watch looks at the processes, in milliseconds after CPUs became
/// scarce.
fn looks_after(machine: &BusyFixture, watch: &mut BusyWatch, begin_ms: u64) -> Vec<u64> {
    let mut looks = Vec::new();
    for after_ms in (0..20_000).step_by(200) {
        let before = watch.looked;
        watch.cost = Nanos(0);
        watch.look(Nanos::from_millis(begin_ms + after_ms), |_| true);
        if watch.looked != before {
            looks.push(after_ms);
            watch.due = watch.due.min(watch.looked.after(PERIOD));
        }
        machine.want_cpu(22);
    }
    looks
}

#[test]
fn looks_are_frequent_at_first_and_rare_later() {
    let machine = BusyFixture::new();
    let mut watch = machine.watch();
    machine.want_cpu(1);
    let looks = looks_after(&machine, &mut watch, 1_000_000);
    assert_eq!(looks[..7], [0, 200, 400, 800, 1_600, 3_200, 6_400].map(|after_ms| 200 + after_ms));
    assert!(looks[6..].windows(2).all(|pair| pair[1] - pair[0] >= 4_000), "{looks:?}");
    machine.want_cpu(1);
    let again = looks_after(&machine, &mut watch, 1_023_000);
    assert!(
        looks.iter().all(|after_ms| again.contains(after_ms)),
        "they were free for three seconds: {again:?}"
    );
    machine.want_cpu(1);
    let flickers = looks_after(&machine, &mut watch, 1_044_000);
    assert!(
        flickers.windows(2).all(|pair| pair[1] - pair[0] >= 4_000),
        "they were free for one: {flickers:?}"
    );
}

#[test]
fn a_process_as_old_as_the_watch_is_found_at_the_second_look() {
    let machine = BusyFixture::new();
    machine.want_cpu(22);
    machine.process(10, 0, 0, 0);
    machine.process(11, 0, 0, 0);
    let mut watch = machine.watch();
    assert_eq!(pids(watch.look(Nanos::from_secs(100), |_| true)), None);
    machine.process(10, 0, 2, 0);
    machine.process(11, 0, 1, 0);
    watch.cost = Nanos(0);
    assert_eq!(
        pids(watch.look(Nanos::from_millis(100_300), |_| true)),
        Some(vec![10]),
        "a tick is none"
    );
    watch.cost = Nanos(0);
    let later = Nanos::from_millis(100_700);
    assert_eq!(
        (pids(watch.look(later, |_| true)), watch.looked),
        (None, later),
        "a process without a turn since then stays"
    );
}

#[test]
fn looks_take_a_thousandth_of_a_cpu_after_the_first_ones() {
    let mut watch = BusyFixture::new().watch();
    (watch.since, watch.cost) = (Nanos::from_secs(100), Nanos::from_millis(80));
    let next = [100, 103, 104].map(|now_s| watch.until_next(Nanos::from_secs(now_s)));
    assert_eq!(next, [16, 16, 80].map(Nanos::from_secs));
}

#[test]
fn unchangeable_processes_and_reused_pids_are_left_out() {
    let machine = BusyFixture::new();
    machine.want_cpu(40);
    machine.process(10, 200, 190, 0);
    machine.process(11, 200, 190, 0);
    let mut watch = machine.watch();
    assert_eq!(pids(watch.look(Nanos::from_secs(9), |who| who.pid != 10)), Some(vec![11]));
    machine.process(11, 100, 0, 0);
    assert_eq!(look(&mut watch, 13), Some(vec![]));
}

#[test]
fn the_list_is_bounded_and_torn_entries_are_skipped() {
    let machine = BusyFixture::new();
    machine.want_cpu(400);
    (1_000..1_000 + BUSY_MAX as u32 + 10)
        .for_each(|pid| machine.process(pid, 1_000, u64::from(pid) - 900, 0));
    machine.put("5/stat", "5 (torn");
    let busy = look(&mut machine.watch(), 50).expect("some");
    assert_eq!((busy.len(), busy.first()), (BUSY_MAX, Some(&1_010)), "the busiest");
    assert_eq!(look(&mut BusyWatch::new(Path::new("/nonexistent").to_path_buf()), 50), None);
}
