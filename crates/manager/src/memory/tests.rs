// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory samples on a simulated `/proc`.

use super::*;
use std::fs;

struct MemoryFixture {
    root: tempfile::TempDir,
    watch: MemoryWatch,
}

impl MemoryFixture {
    fn new() -> MemoryFixture {
        let root = tempfile::tempdir().expect("the test made it");
        fs::create_dir(root.path().join("pressure")).expect("the test made it");
        let watch = MemoryWatch::new(root.path().to_owned(), Nanos(0));
        MemoryFixture { root, watch }
    }

    fn set(&self, available_kib: u64, waited_us: u64) {
        let root = self.root.path();
        fs::write(
            root.join("meminfo"),
            format!("MemTotal: 16000 kB\nMemAvailable: {available_kib} kB\n"),
        )
        .expect("the test made it");
        let some =
            format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={waited_us}\nfull total=0\n");
        fs::write(root.join("pressure/memory"), some).expect("the test made it");
    }

    fn add(&self, pid: u32, pages: u64) {
        let dir = self.root.path().join(pid.to_string());
        fs::create_dir(&dir).expect("the test made it");
        fs::write(dir.join("statm"), format!("9999 {pages} 1 1 0 1 0\n"))
            .expect("the test made it");
        let stat = format!(
            "{pid} (x) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 {pid}00 \
             1 1 1 1 1 1 1 1 1 1 1 1 1 0 0 0 17 0 0 0\n"
        );
        fs::write(dir.join("stat"), stat).expect("the test made it");
    }

    fn look(&mut self, ms: u64) -> Option<MemorySample> {
        self.watch.look(Nanos::from_millis(ms), &Others)
    }
}

/// Process 3 belongs to another user, process 4 to the core.
struct Others;

impl ProcessFacts for Others {
    fn most_favoured(&self) -> Vec<Identity> {
        [4, 77].map(|pid| Identity { pid, start: u64::from(pid) * 100 }).into()
    }

    fn may_change(&self, process: Identity) -> bool {
        process.pid != 3 && process.pid != 77
    }

    fn set_of(&self, _: u32) -> Option<SetId> {
        None
    }
}

#[test]
fn with_enough_memory_looks_are_rare_and_walk_nothing() {
    let mut machine = MemoryFixture::new();
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
fn short_memory_is_sampled_every_second_with_the_largest() {
    let mut machine = MemoryFixture::new();
    machine.set(1000, 0);
    for (pid, pages) in [(1, 100), (2, 300), (3, 900), (4, 1)] {
        machine.add(pid, pages);
    }
    let sample = machine.look(0).expect("the test made it");
    let expected = [(4, 1), (2, 300), (1, 100)].map(|(pid, pages)| {
        (MemoryGroup::Process(Identity { pid, start: u64::from(pid) * 100 }), pages << 12)
    });
    let found = sample.groups.into_iter().map(|group| (group.group, group.bytes));
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert!(machine.look(1_000).is_some());
    assert!(!machine.watch.has_plenty());
}

impl MemoryFixture {
    /// Returns `true` if the sample contains a process.
    fn has_process(&mut self, pid: u32, ms: u64) -> bool {
        let sample = self.look(ms).expect("it is due");
        let who = MemoryGroup::Process(Identity { pid, start: u64::from(pid) * 100 });
        sample.groups.iter().any(|group| group.group == who)
    }
}

#[test]
fn all_processes_are_sized_every_five_seconds_in_a_shortage() {
    let mut machine = MemoryFixture::new();
    machine.set(1000, 0);
    machine.add(1, 100);
    assert!(machine.has_process(1, 0));
    machine.add(2, 300);
    let found = [1_000, 2_000, 4_999, 5_999].map(|ms| machine.has_process(2, ms));
    assert_eq!(found, [false, false, false, true]);
    fs::remove_dir_all(machine.root.path().join("1")).expect("it was made");
    assert!(!machine.has_process(1, 7_000), "it has ended");
}

#[test]
fn growth_and_a_new_shortage_have_all_processes_sized() {
    let mut machine = MemoryFixture::new();
    machine.set(1000, 0);
    assert!(!machine.has_process(2, 0));
    machine.add(2, 300);
    machine.set(501, 0);
    assert!(!machine.has_process(2, 1_000), "less than a thirty-second of memory is gone");
    machine.set(499, 0);
    assert!(machine.has_process(2, 2_000));
    machine.set(8000, 0);
    assert!(!machine.has_process(2, 3_000), "there is plenty");
    machine.add(5, 200);
    machine.set(1000, 0);
    assert!(machine.has_process(5, 8_000));
}

#[test]
fn a_change_of_focus_has_all_processes_looked_at() {
    let mut machine = MemoryFixture::new();
    machine.set(1000, 0);
    assert!(!machine.has_process(2, 0));
    machine.add(2, 300);
    machine.watch.bring_look_forward(Nanos::from_millis(100));
    assert!(machine.has_process(2, 250));
}

#[test]
fn the_share_of_waiting_is_that_of_two_seconds() {
    let mut machine = MemoryFixture::new();
    let mut seen = Vec::new();
    for (second, waited_us) in [0, 200_000, 600_000, 600_000, 600_000].into_iter().enumerate() {
        machine.set(1000, waited_us);
        seen.push(machine.look(second as u64 * 1000).expect("the test made it").some_percent);
    }
    assert_eq!(seen, [0.0, 20.0, 30.0, 20.0, 0.0]);
}

#[test]
fn an_invalid_number_is_no_sample() {
    let mut machine = MemoryFixture::new();
    fs::write(machine.root.path().join("meminfo"), "MemTotal: many kB\n")
        .expect("the test made it");
    assert_eq!(machine.look(0), None);
    assert_eq!(processes::resident(machine.root.path(), 77), None);
}

/// Many helpers of the focused set, in descending order.
struct Many;

impl ProcessFacts for Many {
    fn most_favoured(&self) -> Vec<Identity> {
        (1..=MOST_FAVOURED_MAX as u32 + 9)
            .rev()
            .map(|pid| Identity { pid, start: u64::from(pid) * 100 })
            .collect()
    }

    fn may_change(&self, _: Identity) -> bool {
        true
    }

    fn set_of(&self, _: u32) -> Option<SetId> {
        None
    }
}

#[test]
fn a_sample_has_the_most_favoured_processes() {
    let mut machine = MemoryFixture::new();
    machine.set(8000, 0);
    (1..=MOST_FAVOURED_MAX as u32 + 9).for_each(|pid| machine.add(pid, 5));
    let sample = machine.watch.look(Nanos(0), &Many).expect("the test made it");
    let found: Vec<MemoryGroup> = sample.groups.into_iter().map(|group| group.group).collect();
    let expected =
        Many.most_favoured().into_iter().take(MOST_FAVOURED_MAX).map(MemoryGroup::Process);
    assert_eq!(found, expected.collect::<Vec<_>>());
}

#[test]
fn a_change_of_focus_hastens_a_look_where_memory_is_short() {
    let mut machine = MemoryFixture::new();
    machine.set(8000, 0);
    machine.look(0).expect("the first one");
    assert!(!machine.watch.bring_look_forward(Nanos::from_millis(100)), "there is plenty");
    machine.set(1000, 0);
    machine.look(5_000).expect("it is due");
    assert!(machine.watch.bring_look_forward(Nanos::from_millis(5_100)));
    assert_eq!((machine.look(5_249), machine.watch.due()), (None, Nanos::from_millis(5_250)));
    assert!(
        !machine.watch.bring_look_forward(Nanos::from_millis(5_200)),
        "it was brought forward already"
    );
    machine.look(5_250).expect("it was brought forward");
    assert!(machine.watch.bring_look_forward(Nanos::from_millis(6_000)));
    machine.look(6_000).expect("it was brought forward");
}

#[test]
fn a_sample_has_the_pressure_of_a_strained_group() {
    let machine = MemoryFixture::new();
    let (root, mount) = (machine.root.path(), machine.root.path().join("cg"));
    for folder in [root.join("self"), mount.join("hog-2-200")] {
        fs::create_dir_all(folder).expect("the test made it");
    }
    machine.set(1000, 0);
    machine.add(2, 300);
    let mount_line = format!("30 20 0:26 / {} rw - cgroup2 cgroup2 rw\n", mount.display());
    for (file, text) in [
        (root.join("self/mountinfo"), mount_line.as_str()),
        (root.join("2/cgroup"), "0::/hog-2-200\n"),
        (
            mount.join("hog-2-200/memory.pressure"),
            "full avg10=90.25 avg60=0.00 avg300=0.00 total=1\n",
        ),
    ] {
        fs::write(file, text).expect("the test made it");
    }
    let mut watch = MemoryWatch::new(root.to_owned(), Nanos(0));
    let sample = watch.look(Nanos(0), &Others).expect("the test made it");
    assert_eq!(sample.groups.iter().map(|group| group.full_percent).collect::<Vec<_>>(), [90.25]);
}
