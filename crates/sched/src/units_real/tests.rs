// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::units_bus::Bus;
use crate::units_bus::tests::{manager, socket};
use crate::world::{KnobPlace, World};
use std::path::PathBuf;
use tempfile::TempDir;

const SCOPE: &str = "/cg/user.slice/user-1000.slice/tipme-7-8-9.scope";
const FIRST: Identity = Identity { pid: 4_711, start: 5 };

/// Writes the `/proc` entry of the process, replacing any other with its PID.
fn write(proc: &Path, who: Identity, group: &str) {
    let folder = proc.join(who.pid.to_string());
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).expect("the folder of the test can be written to");
    let stat = format!(
        "{} (x) S 1 1 1 0 -1 {} 1 0 {} {}",
        who.pid,
        "0 ".repeat(11),
        who.start,
        "0 ".repeat(30)
    );
    std::fs::write(folder.join("stat"), stat).expect("the folder of the test can be written to");
    std::fs::write(folder.join("cgroup"), format!("0::{group}\n"))
        .expect("the folder of the test can be written to");
}

/// Returns a process table with one process, and a machine that reads it.
fn machine(run: &Path) -> (TempDir, Linux) {
    let proc = tempfile::tempdir().expect("a folder");
    write(proc.path(), FIRST, "/login");
    let mut linux = Linux::new(proc.path(), None, None);
    linux.bus = Bus::new(run);
    linux.held(FIRST).expect("it lives");
    (proc, linux)
}

#[test]
fn a_scope_is_begun_with_the_process_that_is_meant() {
    let (run, listener) = socket();
    let (proc, linux) = machine(run.path());
    let table: PathBuf = proc.path().to_owned();
    let served = manager(listener, move |_| {
        let folder = table.join(FIRST.pid.to_string());
        std::fs::write(folder.join("cgroup"), format!("0::{}\n", &SCOPE[3..]))
            .expect("it is there");
        Ok(0)
    });
    assert_eq!(begin(&linux, SCOPE, "/cg", FIRST), Ok(()));
    drop(linux);
    assert_eq!(served.join().expect("the server does not panic").len(), 1);
}

#[test]
fn no_scope_is_begun_with_another_process_of_the_same_number() {
    let (run, listener) = socket();
    let (proc, linux) = machine(run.path());
    let served = manager(listener, |_| Ok(0));
    write(proc.path(), Identity { start: 6, ..FIRST }, "/login");
    assert_eq!(begin(&linux, SCOPE, "/cg", FIRST), Err(KnobFault::Vanished));
    drop(linux);
    assert!(
        served.join().expect("the server does not panic").is_empty(),
        "systemd got the PID of another process"
    );
}

#[test]
fn a_scope_with_another_process_of_the_same_pid_is_not_weighed() {
    let (run, listener) = socket();
    let (proc, linux) = machine(run.path());
    let table: PathBuf = proc.path().to_owned();
    let served = manager(listener, move |_| {
        write(&table, Identity { start: 6, ..FIRST }, &SCOPE[3..]);
        Ok(0)
    });
    assert_eq!(begin(&linux, SCOPE, "/cg", FIRST), Err(KnobFault::Vanished));
    drop(linux);
    assert_eq!(served.join().expect("the server does not panic").len(), 1);
}

#[test]
fn a_scope_that_does_not_come_may_come_late() {
    let (run, listener) = socket();
    let (_proc, linux) = machine(run.path());
    let served = manager(listener, |_| Ok(0));
    assert_eq!(begin(&linux, SCOPE, "/cg", FIRST), Err(KnobFault::Refused(libc::ETIMEDOUT)));
    for (folder, present, ended) in [
        (SCOPE, Err(KnobFault::Later), Err(KnobFault::Refused(libc::EINPROGRESS))),
        ("/cg/other.scope", Ok(0.into()), Ok(())),
    ] {
        let (folder, root) = (folder.to_owned(), "/cg".to_owned());
        assert_eq!(end(&linux, &folder), ended);
        assert_eq!(linux.get(&KnobPlace::Scope { folder, root, first: FIRST }), present);
    }
    drop(linux);
    served.join().expect("the server does not panic");
}

#[test]
fn a_unit_with_more_processes_than_are_looked_at_is_left_alone() {
    let (run, unit) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (_proc, linux) = machine(run.path());
    let folder = unit.path().to_str().expect("it is text");
    for (count, is_admitted) in [(ADMITTED_MAX, true), (ADMITTED_MAX + 1, false)] {
        let list: String = (1..=count).map(|pid| format!("{}\n", 100_000 + pid)).collect();
        std::fs::write(unit.path().join("cgroup.procs"), list)
            .expect("the folder of the test can be written to");
        let admitted = admit(&linux, folder, Some(7), None);
        // All of them are gone.
        assert!(matches!(
            (is_admitted, admitted),
            (true, Ok(())) | (false, Err(SkipReason::TooMany(_)))
        ));
    }
}
