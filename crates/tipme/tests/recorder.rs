// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder as a whole program: contents of its incidents, and failures around it. Needs root.

use rustix::process::Signal;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;
use support::{
    Recording, contains, files, is_own_thread, mark_time, meta, records, records_of, said, tipme,
};
use tempfile::TempDir;
use tipme_record::RecordKind;
use tipme_record::incident::{Incident, Losses, Section};
use tipme_record::records::{Exec, Exit, Fork, Switch, Tally, Task, Wait, Waking};

/// Kinds of records that occur in any second on any machine.
const ALWAYS: [RecordKind; 3] = [RecordKind::Switch, RecordKind::Waking, RecordKind::Wait];

#[test]
fn a_mark_holds_what_a_child_did() {
    let recording = Recording::start(&["--display", "none"]);
    let mut child = Command::new("sleep").arg("0.3").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    let (path, incident) = recording.mark();
    assert!(path.starts_with(recording.incidents()));
    let sched: BTreeSet<u8> =
        records(&incident, Section::Sched).map(|entry| entry.head.kind).collect();
    let rare: BTreeSet<u8> =
        records(&incident, Section::Rare).map(|entry| entry.head.kind).collect();
    for kind in ALWAYS {
        assert!(sched.union(&rare).any(|seen| *seen == kind as u8), "no {kind:?} records");
    }
    child_is_known(&incident, pid);
    child_slept(&incident, pid);
    let meta = meta(&incident);
    assert_eq!(meta.user_text, "it hung");
    assert!(meta.held_from_ns >= meta.armed_ns && meta.held_from_ns < meta.mark_ns);
}

/// Asserts that fork, exec with its command line, and exit are recorded.
fn child_is_known(incident: &Incident, pid: u32) {
    let mut forks = records_of(incident, Section::Rare, RecordKind::Fork, Fork::read);
    let fork = forks.find(|fork| fork.child_pid.0 == pid).unwrap();
    assert_eq!(fork.parent.0, std::process::id());
    let [exec, exit] = [(Section::Rare, RecordKind::Exec), (Section::Exits, RecordKind::Exit)].map(
        |(section, kind)| {
            records(incident, section)
                .find(|entry| entry.kind == kind && entry.head.tid.0 == pid)
                .unwrap()
        },
    );
    let line = b"sleep\x000.3\0";
    assert!(exec.bytes[Exec::SIZE..].starts_with(line), "{:?}", &exec.bytes[Exec::SIZE..]);
    assert!(exit.bytes[Exit::SIZE..].starts_with(line));
    assert!(Exit::read(exit.bytes).unwrap().comm.starts_with(b"sleep\0"));
}

/// Asserts that the sleep is a wait of its length in clock_nanosleep, ended by an interrupt, and
/// that the switches agree.
fn child_slept(incident: &Incident, pid: u32) {
    let waits = records_of(incident, Section::Rare, RecordKind::Wait, Wait::read);
    let own = waits.filter(|wait| wait.head.tid.0 == pid);
    let longest = own.max_by_key(|wait| wait.head.ts.since(wait.start)).unwrap();
    assert!(longest.head.ts.since(longest.start).millis() >= 299.0);
    assert_eq!(longest.syscall, 230);
    assert_eq!(longest.context, 2);
    let switches = records_of(incident, Section::Sched, RecordKind::Switch, Switch::read);
    let left = switches
        .filter(|switch| switch.head.tid.0 == pid && switch.prev_state != 0)
        .map(|switch| switch.head.ts.0.abs_diff(longest.start.0));
    assert!(left.min().unwrap() < 2_000, "no switch-out near the begin of the wait");
}

#[test]
fn a_second_mark_has_no_gap_against_the_first() {
    let recording = Recording::start(&["--display", "none"]);
    std::thread::sleep(Duration::from_secs(1));
    let (_, first) = recording.mark();
    std::thread::sleep(Duration::from_secs(2));
    let (_, second) = recording.mark();
    let mark = mark_time(&first);
    assert!(meta(&second).held_from_ns < mark.0);
    let old: Vec<(u64, u32)> = wakings(&first).into_iter().filter(|(ts, _)| *ts < mark.0).collect();
    let new: BTreeSet<(u64, u32)> = wakings(&second).into_iter().collect();
    assert!(old.len() > 10);
    let missing = old.iter().filter(|record| !new.contains(record)).count();
    assert_eq!(missing, 0, "of {}", old.len());
    assert!(new.iter().any(|(ts, _)| *ts > mark.0));
}

fn wakings(incident: &Incident) -> Vec<(u64, u32)> {
    let wakings = records_of(incident, Section::Sched, RecordKind::Waking, Waking::read);
    wakings.map(|waking| (waking.head.ts.0, waking.head.tid.0)).collect()
}

#[test]
fn the_task_walk_names_living_and_blocked() {
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let recording = Recording::start(&["--display", "none"]);
    let (_, incident) = recording.mark();
    let pid = sleeper.id();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let mut bytes = incident.bytes(Section::Tasks);
    let mut tasks = Vec::new();
    while let Some(task) = Task::read(bytes) {
        tasks.push((
            task.head.kind,
            task.head.tid.0,
            u32::from_le_bytes(bytes[16..20].try_into().unwrap()),
        ));
        bytes = &bytes[usize::from(task.head.size)..];
    }
    assert!(tasks.iter().any(|(kind, tid, _)| *kind == RecordKind::Task as u8 && *tid == pid));
    assert!(tasks.iter().any(|(kind, tid, _)| *kind == RecordKind::Wait as u8 && *tid == pid));
    let lines = incident.bytes(Section::Cmdlines);
    let wanted = [&pid.to_le_bytes()[..], &9u32.to_le_bytes(), b"sleep\x0060\0"].concat();
    assert!(contains(lines, &wanted), "the command line of before is missing");
}

#[test]
fn sigusr1_marks() {
    let recording = Recording::start(&["--display", "none"]);
    recording.child.signal(Signal::USR1);
    let sealed = (0..100).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        files(&recording.incidents(), ".tipme").pop()
    });
    let incident = tipme_store::read(&sealed.expect("no incident was written")).unwrap();
    assert_eq!(meta(&incident).trigger, "signal");
}

#[test]
fn a_folder_has_one_recorder_and_two_folders_have_two() {
    let first = Recording::start(&["--display", "none"]);
    let output = tipme().args(["record", "--state-dir"]).arg(first.dir.path()).output().unwrap();
    let (code, message) = said(output);
    assert_eq!(code, Some(2));
    assert!(
        message.contains(&format!("pid {}", first.child.id())) && message.contains("--state-dir"),
        "{message}"
    );
    let second = Recording::start(&["--display", "none"]);
    first.mark();
    second.mark();
}

#[test]
fn after_a_killed_recorder_the_next_start_is_clean() {
    let mut recording = Recording::start(&["--display", "none"]);
    recording.kill();
    let dir = std::mem::replace(&mut recording.dir, TempDir::new().unwrap());
    std::fs::write(dir.path().join("incidents/left.tipme.partial"), b"half").unwrap();
    let next = Recording::start_in(dir, &["--display", "none"]);
    assert_eq!(files(&next.incidents(), ".partial").len(), 0);
    next.mark();
}

#[test]
fn a_full_disk_is_an_error_and_leaves_no_file() {
    let dir = TempDir::new().unwrap();
    let incidents = dir.path().join("incidents");
    std::fs::create_dir(&incidents).unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4k,mode=755", "tmpfs"])
        .arg(&incidents)
        .status()
        .unwrap();
    assert!(mount.success());
    let recording = Recording::start_in(dir, &["--display", "none"]);
    std::thread::sleep(Duration::from_millis(500));
    let output = recording.mark_output("");
    let left = files(&incidents, "");
    Command::new("umount").arg("-l").arg(&incidents).status().unwrap();
    let (code, message) = said(output);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("space"), "{message}");
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
}

#[test]
fn without_root_the_command_to_type_is_named() {
    let dir = TempDir::new().unwrap();
    std::os::unix::fs::chown(dir.path(), Some(65534), Some(65534)).unwrap();
    let program = dir.path().join("tipme");
    std::fs::copy(env!("CARGO_BIN_EXE_tipme"), &program).unwrap();
    let mut command = Command::new(&program);
    std::os::unix::process::CommandExt::uid(&mut command, 65534);
    let output = command.args(["record", "--state-dir"]).arg(dir.path()).output().unwrap();
    let (code, message) = said(output);
    assert_eq!(code, Some(2));
    assert!(message.contains("sudo tipme record"), "{message}");
}

#[test]
fn a_class_can_be_left_out_and_an_unknown_one_is_named() {
    let recording = Recording::start(&["--display", "none", "--without", "samples,locks"]);
    let (_, incident) = recording.mark();
    let meta = meta(&incident);
    assert!(
        !meta
            .classes_on
            .iter()
            .any(|class| class == "samples" || class == "locks" || class == "display")
    );
    assert!(
        meta.missing
            .iter()
            .any(|missing| missing.what == "samples" && missing.why.contains("--without"))
    );
    let output = tipme()
        .args(["record", "--without", "nonsense", "--state-dir"])
        .arg(TempDir::new().unwrap().path())
        .output();
    let (_, message) = said(output.unwrap());
    assert!(message.contains("nonsense") && message.contains("samples"), "{message}");
}

#[test]
fn without_kernel_types_the_kernel_option_is_named() {
    let dir = TempDir::new().unwrap();
    let hidden = "mount -t tmpfs none /sys/kernel/btf && exec \"$0\" record --state-dir \"$1\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", hidden, env!("CARGO_BIN_EXE_tipme")]).arg(dir.path());
    let output = command.output().unwrap();
    let (code, message) = said(output);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("CONFIG_DEBUG_INFO_BTF"), "{message}");
}

#[test]
fn a_mark_right_before_the_end_is_still_sealed() {
    let mut recording = Recording::start(&["--display", "none"]);
    recording.child.signal(Signal::USR1);
    std::thread::sleep(Duration::from_millis(20));
    recording.child.signal(Signal::TERM);
    assert!(recording.child.wait().unwrap().success());
    let sealed = files(&recording.incidents(), ".tipme");
    assert_eq!((sealed.len(), files(&recording.incidents(), ".partial").len()), (1, 0));
    assert_eq!(tipme_store::read(&sealed[0]).unwrap().damage, []);
}

#[test]
fn writers_are_counted_on_demand_only() {
    for (details, counted) in [(&["--detail", "writers"][..], true), (&[], false)] {
        let recording = Recording::start(&[&["--display", "none"], details].concat());
        for file in 0..200 {
            std::fs::write(recording.dir.path().join(format!("file{file}")), [1; 100]).unwrap();
        }
        let (_, incident) = recording.mark();
        let tallies = records_of(&incident, Section::Rare, RecordKind::Tally, Tally::read);
        let own = tallies.filter(|tally| is_own_thread(tally.head.tid.0)).count();
        assert_eq!(meta(&incident).details, details.get(1..).unwrap_or_default());
        assert!(if counted { own >= 2 } else { own == 0 }, "{own} tallies");
    }
}

/// Writes that the kernel merges into larger requests: a merged request has no completion of its
/// own.
#[test]
fn requests_that_are_merged_are_no_losses() {
    let recording = Recording::start(&["--display", "none"]);
    let folder = tempfile::tempdir_in(".").unwrap();
    for number in 0..60 {
        std::fs::write(folder.path().join(format!("f{number}")), vec![7u8; 4 << 20]).unwrap();
        if number % 10 == 9 {
            assert!(Command::new("sync").arg("-f").arg(folder.path()).status().unwrap().success());
        }
    }
    std::thread::sleep(Duration::from_millis(1_100));
    let (_, incident) = recording.mark();
    let blocks =
        records(&incident, Section::Rare).filter(|entry| entry.kind == RecordKind::Block).count();
    assert!(blocks > 100, "{blocks} requests reached a disk");
    let losses: Losses = serde_json::from_slice(incident.bytes(Section::Losses)).unwrap();
    assert_eq!(losses.per_second, [], "of {blocks} requests");
}

fn has_word(incident: &Incident, word: &[u8]) -> bool {
    incident.sections.iter().any(|(_, bytes)| contains(bytes, word))
}

#[test]
fn a_scrubbed_copy_has_nothing_of_its_owner() {
    let recording = Recording::start(&["--display", "none"]);
    let mut diary = Command::new("sleep").args(["60", "0.0625"]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let (path, incident) = recording.mark();
    diary.kill().unwrap();
    diary.wait().unwrap();
    let copy = recording.dir.path().join("copy.tipme");
    let preview = tipme().args(["scrub", "--preview"]).arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&preview.stdout);
    assert!(
        preview.status.success() && said.contains("command lines,") && said.contains("kept: "),
        "{said}"
    );
    for code in [0, 2] {
        let scrubbed = tipme().arg("scrub").arg(&path).arg(&copy).status().unwrap();
        assert_eq!(scrubbed.code(), Some(code), "an existing file is not overwritten");
    }
    let clean = tipme_store::read(&copy).unwrap();
    assert_eq!(meta(&clean).machine.hostname, "desk");
    for word in [&b"0.0625"[..], b"it hung"] {
        assert!(has_word(&incident, word), "{word:?} was never there");
        assert!(!has_word(&clean, word), "{word:?} is still there");
    }
}
