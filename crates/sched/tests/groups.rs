// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups: real ones for moves of processes, a folder of plain files for writes. Runs as
//! root.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{Fixture, Forked, Started, assign, own_session, proc, wait_for};
use tipme_policy::{Action, Backend, Identity, MemoryAction, MemoryGroup, Role, SetId};
use tipme_sched::{Knob, Mechanism, MechanismError, SkipReason, processes};

/// A group of the real hierarchy for this test.
struct Delegated {
    path: PathBuf,
}

impl Delegated {
    fn new(name: &str) -> Delegated {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mut mounts = mounts.lines().map(|line| line.split(' ').skip(1));
        let mount = mounts.find_map(|mut fields| {
            let folder = fields.next()?;
            (fields.next()? == "cgroup2").then_some(folder)
        });
        let path =
            Path::new(mount.unwrap()).join(format!("tipme-test-{}-{name}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Delegated { path }
    }

    fn groups(&self) -> Vec<String> {
        let entries =
            fs::read_dir(&self.path).unwrap().flatten().filter(|entry| entry.path().is_dir());
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        // A killed process stays in its group until it is reaped.
        while fs::remove_dir(&self.path)
            .is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
        {
            if std::thread::panicking() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

fn group_of(who: Identity) -> String {
    let groups = fs::read_to_string(format!("/proc/{}/cgroup", who.pid)).unwrap();
    groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap().to_owned()
}

fn set_name(who: Identity) -> String {
    format!("set-{}-{}", who.pid, who.start)
}

#[test]
fn processes_are_moved_once_and_come_back_with_their_children() {
    let delegated = Delegated::new("move");
    let mut fixture = Fixture::new(Backend::Cgroup);
    fixture.config.cgroup = Some(delegated.path.clone());
    let mut command = Command::new("sh");
    command.args(["-c", "read go; sleep 600 & wait"]).stdin(Stdio::piped());
    let (shell, other) = (Started::new(own_session(&mut command)), Started::sleeper());
    let home = group_of(shell.who);
    let (mut mechanism, _) = fixture.open();
    mechanism.apply(&[assign(Role::Focused, &[shell.who]), assign(Role::Rest, &[other.who])]);
    assert_eq!(delegated.groups().len(), 2);
    assert!(group_of(shell.who).ends_with(&set_name(shell.who)), "{}", group_of(shell.who));
    std::io::Write::write_all(&mut shell.child.stdin.as_ref().unwrap(), b"go\n").unwrap();
    let child = wait_for(|| processes::descendants(proc(), shell.who.pid).first().copied());
    assert_eq!(group_of(child), group_of(shell.who));
    mechanism.apply(&[assign(Role::Rest, &[shell.who]), assign(Role::Focused, &[other.who])]);
    assert!(group_of(shell.who).ends_with(&set_name(shell.who)), "it stays in its group");
    mechanism.apply(&[Action::Forget(SetId(other.who))]);
    assert_eq!(
        (group_of(other.who), delegated.groups()),
        (home.clone(), vec![set_name(shell.who)])
    );
    let restored = mechanism.restore();
    assert_eq!((restored.failed, delegated.groups().len()), (0, 0), "{restored:?}");
    assert_eq!((group_of(shell.who), group_of(child)), (home.clone(), home));
}

#[test]
fn a_killed_manager_leaves_no_group_after_the_next_start() {
    let delegated = Delegated::new("kill");
    let mut fixture = Fixture::new(Backend::Cgroup);
    fixture.config.cgroup = Some(delegated.path.clone());
    let inside = Started::sleeper();
    fs::write(delegated.path.join("cgroup.procs"), inside.who.pid.to_string()).unwrap();
    let before = group_of(inside.who);
    let manager = Forked::new(|| {
        let (mut mechanism, _) = fixture.open();
        mechanism.apply(&[assign(Role::Focused, &[inside.who])]);
        std::mem::forget(mechanism);
    });
    drop(manager);
    assert!(group_of(inside.who).ends_with(&set_name(inside.who)), "{}", group_of(inside.who));
    let (_mechanism, restored) = fixture.open();
    assert_eq!((group_of(inside.who), restored.failed), (before, 0), "{restored:?}");
    assert_eq!(delegated.groups(), Vec::<String>::new());
    drop(inside);
}

fn read(group: &Path, file: &str) -> String {
    fs::read_to_string(group.join(file)).unwrap()
}

/// Creates a hierarchy of plain files, including the kernel's files for the group of each set.
fn plain(folder: &Path, sets: &[Identity]) -> PathBuf {
    let dir = folder.join("mount/user");
    fs::create_dir_all(&dir).unwrap();
    for group in [folder.join("mount"), dir.clone()] {
        fs::write(group.join("cgroup.procs"), "").unwrap();
        fs::write(group.join("cgroup.controllers"), "cpu io memory\n").unwrap();
        fs::write(group.join("cgroup.subtree_control"), "cpu io memory\n").unwrap();
        fs::write(group.join("memory.low"), "0\n").unwrap();
    }
    for who in sets {
        let group = dir.join(set_name(*who));
        fs::create_dir(&group).unwrap();
        let files =
            [("cgroup.procs", ""), ("cpu.weight", "100\n"), ("io.weight", "default 100\n8:0 70\n")];
        let memory = [("memory.low", "0\n"), ("memory.high", "max\n"), ("memory.reclaim", "")];
        for (name, text) in files.into_iter().chain(memory) {
            fs::write(group.join(name), text).unwrap();
        }
    }
    dir
}

#[test]
fn a_change_of_focus_writes_weights_only() {
    let (front, back) = (Started::sleeper(), Started::sleeper());
    let mut fixture = Fixture::new(Backend::Cgroup);
    let dir = plain(fixture.folder.path(), &[front.who, back.who]);
    fixture.config.cgroup = Some(dir.clone());
    let [first, second] = [&front, &back].map(|process| dir.join(set_name(process.who)));
    let (mut mechanism, _) = fixture.open();
    let applied =
        mechanism.apply(&[assign(Role::Focused, &[front.who]), assign(Role::Rest, &[back.who])]);
    assert!(applied.skipped.is_empty(), "{applied:?}");
    assert_eq!(["cpu.weight", "io.weight"].map(|file| read(&first, file)), ["8900", "500"]);
    assert_eq!(read(&second, "cpu.weight"), "100\n", "it was so already");
    for (group, process) in [(&first, &front), (&second, &back)] {
        assert_eq!(read(group, "cgroup.procs"), format!("{}\n", process.who.pid));
    }
    let applied =
        mechanism.apply(&[assign(Role::Rest, &[front.who]), assign(Role::Hog, &[back.who])]);
    assert_eq!([&first, &second].map(|group| read(group, "cpu.weight")), ["100", "20"]);
    assert_eq!([&first, &second].map(|group| read(group, "io.weight")), ["100", "10"]);
    assert_eq!(read(&first, "cgroup.procs"), format!("{}\n", front.who.pid), "{applied:?}");
    fs::write(second.join("cpu.weight"), "55\n").unwrap();
    let applied = mechanism.apply(&[assign(Role::Focused, &[back.who])]);
    assert!(
        applied
            .skipped
            .iter()
            .any(|skipped| skipped.why == SkipReason::ChangedByOther("55".into())),
        "{applied:?}"
    );
    assert_eq!(read(&second, "cpu.weight"), "55\n", "another program has set it");
}

#[test]
fn memory_is_protected_limited_and_reclaimed_in_whole_pages() {
    let child = Started::sleeper();
    let mut fixture = Fixture::new(Backend::Cgroup);
    let dir = plain(fixture.folder.path(), &[child.who]);
    fixture.config.cgroup = Some(dir.clone());
    let group = dir.join(set_name(child.who));
    let (mut mechanism, _) = fixture.open();
    let named = MemoryGroup::Cgroup(format!("/user/{}", set_name(child.who)));
    let actions = [
        MemoryAction::Protect { set: SetId(child.who), bytes: 10_000 },
        MemoryAction::High { group: named.clone(), bytes: 99_999 },
        MemoryAction::Reclaim { group: named.clone(), bytes: 1 << 40 },
    ];
    mechanism.apply(&[assign(Role::Focused, &[child.who])]);
    let applied = mechanism.apply(&actions.map(Action::Memory));
    assert!(applied.skipped.is_empty(), "{applied:?}");
    assert_eq!([&group, &dir].map(|folder| read(folder, "memory.low")), ["8192", "8192"]);
    assert_eq!(read(&group, "memory.high"), "98304");
    assert_eq!(read(&group, "memory.reclaim"), (64 << 20).to_string(), "a call is bounded");
    mechanism.apply(&[Action::Memory(MemoryAction::Relieve { group: named, bytes: u64::MAX })]);
    mechanism.apply(&[Action::Memory(MemoryAction::Protect { set: SetId(child.who), bytes: 0 })]);
    assert_eq!((read(&group, "memory.high"), read(&dir, "memory.low")), ("max".into(), "0".into()));
    for strange in ["/user/../../etc", "/user/set-1/../..", "/user", "set-1-1"] {
        let group = MemoryGroup::Cgroup(strange.into());
        let applied = mechanism.apply(&[Action::Memory(MemoryAction::High { group, bytes: 1 })]);
        assert_eq!(
            applied.skipped[0].why,
            SkipReason::Unsupported("the group was not created here"),
            "{strange}"
        );
    }
}

#[test]
fn the_rest_is_limited_to_what_it_has_and_its_room() {
    let (front, other) = (Started::sleeper(), Started::sleeper());
    let mut fixture = Fixture::new(Backend::Cgroup);
    let dir = plain(fixture.folder.path(), &[front.who]);
    fixture.config.cgroup = Some(dir.clone());
    let rest = dir.join("rest");
    fs::create_dir(&rest).unwrap();
    let files = [("memory.current", "100000000\n"), ("memory.high", "max\n"), ("cgroup.procs", "")];
    let stat = [("memory.stat", "anon 1\nactive_file 60000000\ninactive_file 30000000\n")];
    for (name, text) in files.into_iter().chain(stat) {
        fs::write(rest.join(name), text).unwrap();
    }
    let (mut mechanism, _) = fixture.open();
    // A process in the delegated group causes the creation of `rest`.
    fs::write(dir.join("cgroup.procs"), format!("{}\n", other.who.pid)).unwrap();
    mechanism.apply(&[assign(Role::Focused, &[front.who])]);
    let pressure = "some avg10=99.00 avg60=1.00\nfull avg10=80.50 avg60=1.00\n";
    for (pressure, more, least, limit, why) in [
        ("", 10_000_000, 0, "109998080", "whole pages"),
        ("", 11_000_000, 0, "109998080", "nearly the same"),
        ("", -60_000_000, 50_000_000, "49999872", "it keeps the least"),
        (pressure, i64::MIN / 2, 0, "49999872", "all in it wait"),
        ("", -80_000_000, 0, "19996672", "nothing in it waits"),
        ("", i64::MAX, 0, "max", "room without end"),
    ] {
        fs::write(rest.join("memory.pressure"), pressure).unwrap();
        mechanism.apply(&[Action::Memory(MemoryAction::Room { more, least })]);
        assert_eq!(read(&rest, "memory.high"), limit, "{why}");
    }
}

/// Creates a `/proc` of plain files with a single process, in the unit of a service manager.
fn plain_proc(folder: &Path, group: &str) -> PathBuf {
    let (proc, pid) = (folder.join("proc"), 4_711);
    let task = proc.join(format!("{pid}/task/{pid}"));
    fs::create_dir_all(&task).unwrap();
    let stat = format!("{pid} (x) S 3 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 55 {}", "0 ".repeat(30));
    fs::write(proc.join(format!("{pid}/stat")), &stat).unwrap();
    fs::write(task.join("stat"), stat).unwrap();
    fs::write(proc.join(format!("{pid}/status")), "Uid:\t0\t0\t0\t0\n").unwrap();
    fs::write(proc.join(format!("{pid}/cgroup")), format!("0::{group}\n")).unwrap();
    proc
}

#[test]
fn the_units_of_a_service_manager_are_left_alone() {
    let who = Identity { pid: 4_711, start: 55 };
    let mut fixture = Fixture::new(Backend::Cgroup);
    fixture.config.cgroup = Some(plain(fixture.folder.path(), &[who]));
    fixture.config.proc = plain_proc(fixture.folder.path(), "/system.slice/cron.service");
    let (mut mechanism, _) = fixture.open();
    let applied = mechanism.apply(&[assign(Role::Focused, &[who])]);
    let found = applied
        .skipped
        .iter()
        .find(|skipped| skipped.knob == Knob::Group)
        .map(|skipped| &skipped.why);
    assert_eq!(found, Some(&SkipReason::Unit("cron.service".into())), "{applied:?}");
    let procs = fixture.config.cgroup.clone().unwrap().join(set_name(who)).join("cgroup.procs");
    assert_eq!(fs::read_to_string(procs).unwrap(), "");
}

#[test]
fn a_folder_that_is_no_group_is_refused() {
    let mut fixture = Fixture::new(Backend::Cgroup);
    for path in [None, Some(fixture.folder.path().to_owned())] {
        fixture.config.cgroup = path;
        assert!(matches!(
            Mechanism::open(fixture.config.clone()),
            Err(MechanismError::Group { .. })
        ));
    }
}
