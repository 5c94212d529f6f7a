// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory as a made-up /proc tells of it.

use super::*;
use std::fs;

struct Machine {
    root: tempfile::TempDir,
    watch: Watch,
}

impl Machine {
    fn new() -> Machine {
        let root = tempfile::tempdir().expect("the test made it");
        fs::create_dir(root.path().join("pressure")).expect("the test made it");
        let watch = Watch::new(root.path().to_owned(), Nanos(0));
        Machine { root, watch }
    }

    fn set(&self, available_kib: u64, waited_us: u64) {
        let root = self.root.path();
        fs::write(root.join("meminfo"), format!("MemTotal: 16000 kB\nMemAvailable: {available_kib} kB\n"))
            .expect("the test made it");
        let some = format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={waited_us}\nfull total=0\n");
        fs::write(root.join("pressure/memory"), some).expect("the test made it");
    }

    fn add(&self, pid: u32, pages: u64) {
        let dir = self.root.path().join(pid.to_string());
        fs::create_dir(&dir).expect("the test made it");
        fs::write(dir.join("statm"), format!("9999 {pages} 1 1 0 1 0\n")).expect("the test made it");
        let stat = format!(
            "{pid} (x) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 {pid}00 1 1 1 1 1 1 1 1 1 1 1 1 1 0 0 0 17 0 0 0\n"
        );
        fs::write(dir.join("stat"), stat).expect("the test made it");
    }

    fn look(&mut self, ms: u64) -> Option<MemorySample> {
        self.watch.look(Nanos::from_millis(ms), &Others)
    }
}

/// Process 3 belongs to another user, process 4 to the core.
struct Others;

impl Circle for Others {
    fn dearest(&self) -> BTreeSet<u32> {
        BTreeSet::from([4, 77])
    }

    fn may_change(&self, process: Identity) -> bool {
        process.pid != 3
    }

    fn set_of(&self, _: u32) -> Option<SetId> {
        None
    }
}

#[test]
fn with_enough_memory_looks_are_seldom_and_nobody_is_searched() {
    let mut machine = Machine::new();
    machine.set(8000, 0);
    machine.add(1, 100);
    machine.add(4, 100);
    let sample = machine.look(0).expect("the test made it");
    assert_eq!((sample.total, sample.available, sample.groups.len()), (16000 << 10, 8000 << 10, 1));
    assert_eq!(machine.look(4_999), None);
    assert!(machine.look(5_000).is_some());
    assert!(machine.watch.has_plenty());
}

#[test]
fn short_memory_is_looked_at_each_second_and_names_the_biggest_and_the_core() {
    let mut machine = Machine::new();
    machine.set(1000, 0);
    for (pid, pages) in [(1, 100), (2, 300), (3, 900), (4, 1)] {
        machine.add(pid, pages);
    }
    let sample = machine.look(0).expect("the test made it");
    let group = |group: &GroupMemory| (group.group.clone(), group.bytes);
    let expected = [(4, 1), (2, 300), (1, 100)]
        .map(|(pid, pages)| (MemoryGroup::Process(Identity { pid, start: u64::from(pid) * 100 }), pages << 12));
    assert_eq!(sample.groups.iter().map(group).collect::<Vec<_>>(), expected);
    assert!(machine.look(1_000).is_some());
    assert!(!machine.watch.has_plenty());
}

#[test]
fn the_share_of_waiting_is_that_of_two_seconds() {
    let mut machine = Machine::new();
    let mut seen = Vec::new();
    for (second, waited_us) in [0, 200_000, 600_000, 600_000, 600_000].into_iter().enumerate() {
        machine.set(1000, waited_us);
        seen.push(machine.look(second as u64 * 1000).expect("the test made it").some_percent);
    }
    assert_eq!(seen, [0.0, 20.0, 30.0, 20.0, 0.0]);
}

#[test]
fn what_is_no_number_is_no_sample() {
    let mut machine = Machine::new();
    fs::write(machine.root.path().join("meminfo"), "MemTotal: many kB\n").expect("the test made it");
    assert_eq!(machine.look(0), None);
    assert_eq!(some_total("some total=-4"), None);
    assert_eq!(resident(machine.root.path(), 77), None);
}
