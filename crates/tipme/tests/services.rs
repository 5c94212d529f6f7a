// SPDX-License-Identifier: MIT OR Apache-2.0
//! The services: their exposure according to systemd-analyze, and their function within their
//! limits. Needs root and systemd-analyze, not systemd.

use rustix::process::Signal;
use serde_json::json;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use support::helper_daemon::{ANNA, HelperDaemon, Sleeper, favour};
use support::managed::{Desktop, Managed, nice};
use support::unit::Installed;
use support::{Recording, diagnose, hitch, meta, records, session_with_terminal, status, typist};
use tempfile::TempDir;
use tipme_bench::until;
use tipme_policy::Strength;
use tipme_record::RecordKind;
use tipme_record::incident::Section;

/// Ten times the maximum exposure of a service.
const EXPOSURE_MAX: u32 = 30;

#[test]
fn no_service_is_more_exposed_than_it_must_be() {
    let installed = Installed::install();
    for service in ["tipmed", "tipme-manage", "tipme-manage-helper"] {
        let mut command = Command::new("systemd-analyze");
        command.args([
            "security",
            "--offline=yes",
            "--no-pager",
            &format!("--threshold={EXPOSURE_MAX}"),
        ]);
        let output = command
            .arg(installed.path(service))
            .output()
            .expect("systemd-analyze can be run: make test-deps");
        let said = String::from_utf8(output.stdout).unwrap();
        let overall = said.lines().last().unwrap();
        assert!(overall.contains("Overall exposure level"), "{said}");
        assert!(output.status.success(), "{service}: {overall}\n{said}");
    }
}

#[test]
fn a_forbidden_system_call_ends_a_program() {
    let unit = Installed::install().unit("tipmed");
    let [fine, keyring, internet, shown] = [
        &["true"][..],
        &["perl", "-e", "syscall 250, 0, 0, 0; print 'went on'"],
        &["perl", "-MSocket", "-e", "socket my $s, 2, 1, 0; print 'went on'"],
        &["cat", "/proc/self/status"],
    ]
    .map(|words| {
        let mut command = Command::new(words[0]);
        unit.limit(command.args(&words[1..]));
        command.output().unwrap()
    });
    assert!(fine.status.success());
    assert!(!keyring.status.success(), "a keyring can be had");
    assert!(!internet.status.success(), "a socket of the internet can be had");
    let status = String::from_utf8(shown.stdout).unwrap();
    let [privileges, filter, capabilities] = ["NoNewPrivs:", "Seccomp:", "CapEff:"].map(|name| {
        status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).unwrap()
    });
    assert_eq!((privileges, filter), ("1", "2"), "{status}");
    let held = u64::from_str_radix(capabilities, 16).unwrap();
    assert_eq!(
        held & (1 << 16 | 1 << 12 | 1 << 25),
        0,
        "modules, the network and the clock: {status}"
    );
}

#[test]
fn the_recorder_works_within_its_unit() {
    let unit = Installed::install().unit("tipmed");
    let session = session_with_terminal();
    // In a place where the service has its own folders too.
    let dir = TempDir::new_in("/var/tmp").unwrap();
    let socket = UnixDatagram::bind(dir.path().join("notify")).unwrap();
    let display = session.display_name();
    let mut command =
        support::recorder(&dir, &["--display", &display, "--auto=dry-run", "--allow-user", "4242"]);
    command.env("NOTIFY_SOCKET", dir.path().join("notify")).env("WATCHDOG_USEC", "2000000");
    unit.limit(&mut command);
    let recording = Recording::start_by(command, dir);
    assert_eq!(said(&socket), "READY=1");
    let mut typist = typist(&session, 60.0);
    typist.text("it hangs now\n").unwrap();
    let (path, incident) = recording.mark();
    let mode = std::fs::metadata(recording.incidents()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755, "users cannot come to their incidents");
    for class in ["display", "samples", "locks", "interrupts"] {
        assert!(
            meta(&incident).classes_on.iter().any(|on| on == class),
            "{:?}",
            meta(&incident).missing
        );
    }
    assert_eq!(meta(&incident).missing, []);
    assert!(records(&incident, Section::Rare).any(|entry| entry.kind == RecordKind::Message));
    let displays: Vec<tipme_record::incident::Display> = incident.json(Section::Displays).unwrap();
    let asked = displays
        .iter()
        .any(|one| format!(":{}", one.display) == display && !one.extensions.is_empty());
    assert!(asked, "the display could not be asked: {displays:?}");
    let names = String::from_utf8_lossy(incident.bytes(Section::Symbols)).into_owned();
    assert!(names.contains("schedule"), "functions of the kernel have no names");
    let cost: tipme_record::incident::Cost = incident.json(Section::Cost).unwrap();
    assert!(
        cost.programs.iter().any(|program| program.runs_per_second > 0.0),
        "the cost was not sampled"
    );
    let (code, text) = diagnose(&path, &[]);
    assert!(matches!(code, Some(0 | 3)), "{text}");
    until("the judgement of a hitch", || {
        typist.text("The quick brown fox jumps over the lazy dog\n").unwrap();
        hitch(&session, &mut typist);
        let auto = status(recording.dir.path()).auto.unwrap();
        assert_eq!(auto.failed, 0, "{auto:?}");
        auto.marked + auto.known_causes + auto.without_finding > 0
    });
    assert_eq!([said(&socket), said(&socket)], ["WATCHDOG=1", "WATCHDOG=1"]);
}

/// Returns the next message to systemd.
fn said(socket: &UnixDatagram) -> String {
    socket.set_read_timeout(Some(support::family::TIMEOUT)).unwrap();
    let mut bytes = [0; 256];
    let count = socket.recv(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..count]).trim().to_owned()
}

#[test]
fn the_manager_works_within_its_unit() {
    let unit = Installed::install().unit("tipme-manage");
    let desktop = Desktop::start();
    let (first, second) = (desktop.terminal("+20+20"), desktop.terminal("+500+20"));
    let mut command = support::tipme();
    desktop.session.show(&mut command);
    unit.limit(&mut command);
    let dir = TempDir::new().unwrap();
    let sleep = std::fs::metadata("/usr/bin/sleep").unwrap();
    let used = json!({"path": "/usr/bin/sleep", "bytes": sleep.len(), "changed_s": sleep.mtime()});
    let used = json!({"programs": {"sleep": {"files": [used]}}});
    std::fs::write(dir.path().join("preload.json"), used.to_string()).unwrap();
    let mut managed = Managed::start_by(command, dir, &desktop.session.display_name(), &[]);
    for (on, off) in [(&first, &second), (&second, &first)] {
        desktop.click(on);
        until("the favour of the focused terminal", || {
            nice(on.pid()) < 0 && nice(off.pid()) > nice(on.pid())
        });
    }
    until("that a file was read ahead", || managed.status()["preload"]["files"] == 1);
    assert_eq!(managed.stop(Signal::TERM), Some(0));
    assert_eq!([nice(first.pid()), nice(second.pid())], [0, 0]);
}

#[test]
fn the_helper_works_within_its_unit() {
    let unit = Installed::install().unit("tipme-manage-helper");
    let mut helper = HelperDaemon::start_by(|command| unit.limit(command), &[]);
    let own = Sleeper::of(ANNA);
    let mut anna = helper.session(ANNA);
    let applied = anna.assign("focused", &[own.who()]);
    assert!(applied["changed"].as_u64() > Some(0), "{applied}");
    assert_eq!(own.nice(), favour(Strength::Normal));
    drop(anna);
    until("the end of the favour", || own.nice() == 0);
    assert_eq!(helper.stop(Signal::TERM), Some(0));
}
