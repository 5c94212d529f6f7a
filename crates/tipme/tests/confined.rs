// SPDX-License-Identifier: MIT OR Apache-2.0
//! Privileges dropped by the recorder after its start, and those of its confined processes. Needs
//! root.

use rustix::thread::set_thread_uid;
use std::fs::File;
use std::io::{Read, Write, pipe};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::{Recording, tipme};
use tempfile::TempDir;
use tipme_bench::until;
use tipme_control::{Client, RecorderRequest, Trigger};
use tipme_record::Nanos;
use tipme_record::incident::Section;
use tipme_recorder::{RecorderOptions, Sealer, StateDirs, Tap, run};

/// A user without an account.
const USER: u32 = 4242;
/// Real and saved user of a confined process; only its effective user, for files, differs.
const NOBODY: u32 = 65_534;

/// Capabilities by their numbers: CHOWN, DAC_OVERRIDE, KILL, SETGID, SETUID, SYS_PTRACE, SYSLOG.
const KEPT: [u32; 7] = [0, 1, 5, 6, 7, 19, 34];
/// SYS_ADMIN.
const ADMINISTRATOR: u32 = 21;

fn status(task: &str) -> String {
    std::fs::read_to_string(format!("/proc/{task}/status")).unwrap_or_default()
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("no {name} in {status}")).trim()
}

/// Returns the statuses of all threads of a process; a thread that ends meanwhile has none.
fn statuses_of_threads(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let statuses = tasks.map(|task| status(&format!("{pid}/task/{}", task.file_name().display())));
    statuses.filter(|status| !status.is_empty()).collect()
}

#[test]
fn an_armed_recorder_keeps_what_it_needs_in_all_its_threads() {
    let recording = Recording::start(&["--display", "none", "--memory", "16M", "--auto"]);
    let (_, incident) = recording.mark();
    let missing: Vec<String> =
        support::meta(&incident).missing.into_iter().map(|missing| missing.what).collect();
    assert_eq!(missing, ["display"]);
    let kept = KEPT.iter().fold(0, |kept, capability| kept | 1u64 << capability);
    let threads = statuses_of_threads(recording.child.id());
    assert!(threads.len() > 1, "it has threads");
    for status in threads {
        for set in ["CapPrm", "CapEff", "CapBnd"] {
            assert_eq!(
                u64::from_str_radix(field(&status, set), 16).unwrap(),
                kept,
                "{set} of {status}"
            );
        }
        assert_eq!([field(&status, "CapInh"), field(&status, "CapAmb")], ["0000000000000000"; 2]);
        assert_eq!(field(&status, "NoNewPrivs"), "1");
    }
}

/// Starts a confined process that waits for its input.
fn waiting(arguments: &[&str]) -> (Child, impl Write + use<>) {
    let (input, writer) = pipe().unwrap();
    let mut command = tipme();
    command.args(arguments).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    // The caller's open files are not inherited.
    let child = command.spawn().unwrap();
    until("its filter", || status(&child.id().to_string()).contains("Seccomp:\t2"));
    (child, writer)
}

fn open_files(child: &Child) -> Vec<PathBuf> {
    let files = std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().flatten();
    files.map(|file| std::fs::read_link(file.path()).unwrap()).collect()
}

/// Returns the limits of a process by their kernel names.
fn limits<const COUNT: usize>(child: &Child, names: [&str; COUNT]) -> [String; COUNT] {
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    names.map(|name| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().to_owned()
    })
}

const LIMITS: [&str; 5] =
    ["Max cpu time", "Max file size", "Max core file size", "Max open files", "Max address space"];

/// Asserts that a process has this user for files only, is in this group only, and has no
/// capability.
fn assert_unprivileged(child: &Child, user: u32, group: u32) {
    let status = status(&child.id().to_string());
    for (name, [real, effective, saved]) in [("Uid", [NOBODY, user, NOBODY]), ("Gid", [group; 3])] {
        assert_eq!(
            field(&status, name),
            [real, effective, saved, effective].map(|number| number.to_string()).join("\t")
        );
    }
    assert_eq!(field(&status, "Groups"), "");
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(field(&status, set), "0000000000000000", "{set}");
    }
    let given_up = ["NoNewPrivs", "Seccomp", "Threads"].map(|name| field(&status, name));
    assert_eq!(given_up, ["1", "2", "1"]);
}

/// Nice value of the test, a lower bound for its children.
fn own_nice() -> i32 {
    rustix::process::getpriority_process(None).unwrap()
}

fn nice(child: &Child) -> i32 {
    support::stat(child.id())[16].parse().unwrap()
}

#[test]
fn the_judging_process_has_no_privileges() {
    let user = USER.to_string();
    let (mut child, mut writer) =
        waiting(&["judge", "--user", &user, "--seconds", "300", "--json"]);
    assert_unprivileged(&child, USER, USER);
    assert_eq!(open_files(&child).len(), 3);
    assert_eq!(limits(&child, LIMITS), ["302", "0", "0", "3", "4294967296"]);
    assert_eq!(nice(&child), own_nice().max(10));

    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/mutex-asleep.tipme");
    std::thread::spawn(move || writer.write_all(&std::fs::read(golden).unwrap()).unwrap());
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success());
    let usual = tipme().args(["diagnose", "--json", golden]).output().unwrap();
    assert_eq!(said, String::from_utf8(usual.stdout).unwrap());
}

/// The naming process also has its own memory open, for code mapped by the kernel, and may open a
/// few files.
#[test]
fn the_naming_process_has_no_privileges() {
    let (child, mut writer) =
        waiting(&["name", "--user", "4242", "--group", "4343", "--seconds", "300"]);
    assert_unprivileged(&child, USER, 4343);
    let open = open_files(&child);
    assert_eq!(open.len(), 4, "{open:?}");
    assert!(open.contains(&PathBuf::from(format!("/proc/{}/mem", child.id()))), "{open:?}");
    assert_eq!(limits(&child, LIMITS), ["302", "0", "0", "16", "1073741824"]);
    assert_eq!(nice(&child), own_nice().max(0));

    write!(writer, r#"[{{"file":null,"places":[],"offsets":[1]}}]"#).unwrap();
    drop(writer);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"[0,[null]]\n"[..]));
}

/// The counting process keeps the privilege that it needs, and cannot use it otherwise.
#[test]
fn the_counting_process_has_one_privilege() {
    let (mut child, mut writer) = waiting(&["count", "--user", "65534", "--seconds", "300"]);
    let status = status(&child.id().to_string());
    assert_eq!([field(&status, "Uid"), field(&status, "Gid")], ["65534\t65534\t65534\t65534"; 2]);
    for (set, kept) in [
        ("CapInh", 0),
        ("CapPrm", 1 << ADMINISTRATOR),
        ("CapEff", 1 << ADMINISTRATOR),
        ("CapBnd", 0),
        ("CapAmb", 0),
    ] {
        assert_eq!(u64::from_str_radix(field(&status, set), 16).unwrap(), kept, "{set}");
    }
    assert_eq!(
        ["NoNewPrivs", "Seccomp", "Threads"].map(|name| field(&status, name)),
        ["1", "2", "1"]
    );
    assert_eq!((open_files(&child).len(), limits(&child, LIMITS)[3].as_str()), (3, "4"));

    writer.write_all(b"1\0\0").unwrap();
    until("the count", || {
        open_files(&child).iter().any(|file| file.ends_with("anon_inode:bpf-stats"))
    });
    std::thread::sleep(std::time::Duration::from_millis(20));
    writer.write_all(b"0\0\0").unwrap();
    let mut counted = [0; 8];
    child.stdout.as_mut().unwrap().read_exact(&mut counted).unwrap();
    assert!(u64::from_le_bytes(counted) >= 20_000_000, "{counted:?}");
    assert_eq!(open_files(&child).len(), 3, "it is switched off again");
    drop(writer);
    assert!(child.wait().unwrap().success(), "it ends with its input");
}

/// The same is true for the sealing process, which runs as nobody regardless of the marking user;
/// it has the capture, the kernel's functions and the output file open.
#[test]
fn the_sealing_process_has_no_privileges() {
    let (child, writer) = waiting(&["seal", "--user", "65534", "--seconds", "300"]);
    assert_unprivileged(&child, 65_534, 65_534);
    let open = open_files(&child);
    assert_eq!(open.len(), 6, "{open:?}");
    assert!(open.iter().any(|file| file == Path::new("/proc/kallsyms")), "{open:?}");
    drop(writer);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "there is nothing to seal");
}

/// A recorder with a failing sealing program.
#[test]
fn an_unsealed_capture_is_kept_for_root() {
    let dir = TempDir::new().unwrap();
    let options = RecorderOptions {
        dirs: StateDirs::below(dir.path()),
        window: Nanos::from_secs(20),
        memory: 16 << 20,
        tap: Tap::Off,
        without: Vec::new(),
        details: Vec::new(),
        allowed: vec![USER],
        day: false,
        auto: None,
        hot_keys: None,
        kept: tipme_store::FolderBounds::default(),
        sealer: Sealer::Program("/bin/false".into()),
    };
    let recorder = std::thread::spawn(move || run(&options));
    let client = Client::new(dir.path());
    until("the recorder", || client.call(&RecorderRequest::Status).is_ok());
    let mark = RecorderRequest::Mark { text: "it hung".into(), trigger: Trigger::Command };
    // As the user that would own the incident.
    let path = dir.path().to_owned();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let marked = std::thread::spawn(move || {
        set_thread_uid(rustix::fs::Uid::from_raw(USER)).expect("root may; run the tests as root");
        Client::new(&path).call(&mark)
    });
    let why = format!("{:?}", marked.join().unwrap());
    assert!(why.contains("kept for root") && why.contains("sudo tipme diagnose"), "{why}");
    let kept = support::files(&dir.path().join("incidents"), ".tipme");
    let [kept] = kept.as_slice() else { panic!("{kept:?}") };
    let file = std::fs::metadata(kept).unwrap();
    assert_eq!((file.uid(), file.permissions().mode() & 0o777), (0, 0o600));
    let incident = tipme_store::read(kept).unwrap();
    assert_eq!(incident.damage, []);
    assert_eq!(
        (support::meta(&incident).marked_by_uid, support::meta(&incident).user_text.as_str()),
        (USER, "it hung")
    );
    assert!(support::records(&incident, Section::Sched).next().is_some());
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM)
        .unwrap();
    recorder.join().unwrap().unwrap();
}

#[test]
fn a_confined_process_ends_itself_in_time() {
    let (mut child, _writer) = waiting(&["judge", "--user", "4242", "--seconds", "1"]);
    let ended = child.wait().unwrap();
    assert_eq!(ended.signal(), Some(rustix::process::Signal::ALARM.as_raw()), "{ended:?}");
}

#[test]
fn a_hostile_file_is_refused_in_words() {
    let mut command: Command = tipme();
    command
        .args(["judge", "--user", "4242", "--seconds", "60"])
        .stdin(File::open("/dev/zero").unwrap());
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("cannot read the incident"), "{error}");
}
