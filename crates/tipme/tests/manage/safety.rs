// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nothing stays changed, whatever happens to the manager or the display.

use rustix::process::Signal;
use support::managed::{Desktop, Managed, Terminal, nice};
use support::x11;
use support::{stat, typist};
use tipme_bench::until;
use x11rb::protocol::xproto::ConnectionExt;

/// Returns the changeable settings of a process: nice value and scheduling policy of each thread.
fn settings(pid: u32) -> Vec<(i32, String)> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let mut ids: Vec<u32> =
        threads.map(|entry| entry.file_name().to_str().unwrap().parse().unwrap()).collect();
    ids.sort_unstable();
    ids.into_iter().map(|tid| (nice(tid), stat(tid)[38].clone())).collect()
}

/// Returns the display server, and the terminals with their shells.
fn everybody(desktop: &Desktop, terminals: &[&Terminal]) -> Vec<u32> {
    let server = tipme_desktop::server::describe(&desktop.session.target()).unwrap().server_pid;
    let below = terminals.iter().flat_map(|terminal| [terminal.pid(), terminal.shell()]);
    below.chain([server]).collect()
}

fn snapshot(pids: &[u32]) -> Vec<Vec<(i32, String)>> {
    pids.iter().map(|pid| settings(*pid)).collect()
}

#[test]
fn sigterm_puts_everything_back() {
    let desktop = Desktop::start();
    let (first, second) = (desktop.terminal("+20+20"), desktop.terminal("+500+20"));
    let pids = everybody(&desktop, &[&first, &second]);
    let before = snapshot(&pids);
    for signal in [Signal::TERM, Signal::INT] {
        let mut managed = Managed::start(&desktop, &[]);
        until("the favour", || nice(second.pid()) < 0);
        desktop.click(&first);
        until("the favour of the other", || nice(first.pid()) < 0);
        assert_eq!(managed.stop(signal), Some(0));
        assert_eq!(snapshot(&pids), before);
        desktop.click(&second);
    }
}

#[test]
fn after_a_kill_the_next_manager_puts_everything_back() {
    let desktop = Desktop::start();
    let (first, second) = (desktop.terminal("+20+20"), desktop.terminal("+500+20"));
    let pids = everybody(&desktop, &[&first, &second]);
    let before = snapshot(&pids);
    let mut managed = Managed::start(&desktop, &[]);
    until("the favour", || nice(second.pid()) < 0);
    managed.stop(Signal::KILL);
    assert_ne!(snapshot(&pids), before, "a manager that is killed puts nothing back");
    let mut next = Managed::start_in(managed.dir.take().unwrap(), &desktop, &["--strength", "off"]);
    assert_eq!(snapshot(&pids), before);
    next.said(&["manage", "strong"]);
    until("the favour", || nice(second.pid()) < 0);
    assert_eq!(next.stop(Signal::TERM), Some(0));
    assert_eq!(snapshot(&pids), before);
}

/// No manager can start while the display is grabbed, and inherited values wait for one that can.
#[test]
fn values_are_restored_even_if_the_display_does_not_answer() {
    let desktop = Desktop::start();
    let terminal = desktop.terminal_with("+20+20", "read go; sleep 3000 & read wait");
    let pids = everybody(&desktop, &[&terminal]);
    let before = snapshot(&pids);
    let mut managed = Managed::start(&desktop, &[]);
    until("the favour of the shell", || nice(terminal.shell()) < 0);
    let mut typist = typist(&desktop.session, 60.0);
    managed.stop(Signal::KILL);
    typist.key('\n').unwrap();
    until("the child", || terminal.below().len() > 1);
    let child = terminal.below()[1];
    let other = x11::connect(&desktop.session);
    other.grab_server().unwrap().check().unwrap();
    let dir = managed.dir.take().unwrap();
    let mut command = support::tipme();
    desktop.session.show(&mut command);
    let under = std::process::id().to_string();
    command.args(["manage", "--display", &desktop.session.display_name(), "--under", &under]);
    let output = command.arg("--state-dir").arg(dir.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("did not answer"), "{said}");
    assert_eq!(snapshot(&pids), before);
    assert!(nice(child) < 0, "its favour is not known yet");
    other.ungrab_server().unwrap().check().unwrap();
    let mut next = Managed::start_in(dir, &desktop, &["--strength", "off"]);
    assert_eq!((nice(terminal.shell()), nice(child)), (0, 0));
    assert_eq!(next.stop(Signal::TERM), Some(0));
}

#[test]
fn children_of_a_favoured_shell_are_put_back_too() {
    let desktop = Desktop::start();
    let terminal = desktop.terminal_with("+20+20", "read go; sleep 3000 & read wait");
    let mut managed = Managed::start(&desktop, &[]);
    until("the favour of the shell", || nice(terminal.shell()) < 0);
    let mut typist = typist(&desktop.session, 60.0);
    typist.key('\n').unwrap();
    until("the child", || terminal.below().len() > 1);
    let child = terminal.below()[1];
    assert_eq!(managed.stop(Signal::TERM), Some(0));
    assert_eq!((nice(terminal.shell()), nice(child)), (0, 0));
}

#[test]
fn a_display_that_goes_ends_it_with_a_clear_message() {
    let desktop = Desktop::start();
    let mut managed = Managed::start(&desktop, &[]);
    let _alone = desktop.end();
    assert_eq!(managed.wait(), Some(1));
    let said = std::io::read_to_string(managed.child.stderr.take().unwrap()).unwrap();
    assert!(said.contains("everything is put back, because the display is gone"), "{said}");
}

/// Returns the time for which the display has not answered.
fn silent_s(managed: &Managed) -> Option<f64> {
    managed.status()["silent_seconds"].as_f64()
}

fn has_set(managed: &Managed, pid: u32) -> bool {
    managed.status()["sets"].as_array().unwrap().iter().any(|set| set["pid"] == pid)
}

/// A grabbed display answers only the grabbing client.
#[test]
fn a_silent_display_delays_nothing() {
    let desktop = Desktop::start();
    let [first, third, second] =
        ["+20+20", "+20+300", "+500+20"].map(|place| desktop.terminal(place));
    let pids = everybody(&desktop, &[&first, &second]);
    let before = snapshot(&pids);
    let mut managed = Managed::start(&desktop, &[]);
    until("the favour", || nice(second.pid()) < 0);
    // A closed reader of its output does not delay it either.
    drop(managed.child.stderr.take());
    let other = x11::connect(&desktop.session);
    other.grab_server().unwrap().check().unwrap();
    until("its silence is shown", || silent_s(&managed) >= Some(8.0));
    assert!(nice(second.pid()) < 0);
    let third_pid = third.pid();
    drop(third);
    other.ungrab_server().unwrap().check().unwrap();
    until("it answers again", || silent_s(&managed).is_none());
    until("the end of the one that ended meanwhile", || !has_set(&managed, third_pid));
    assert!(has_set(&managed, first.pid()) && has_set(&managed, second.pid()));
    desktop.click(&first);
    until("the favour of the other", || nice(first.pid()) < 0);
    other.grab_server().unwrap().check().unwrap();
    until("its silence is shown again", || silent_s(&managed).is_some());
    assert_eq!(managed.stop(Signal::TERM), Some(0));
    assert_eq!(snapshot(&pids), before);
}

#[test]
fn nothing_outside_the_tree_is_changed() {
    let desktop = Desktop::start();
    let inside = desktop.terminal("+20+20");
    let outside = desktop.terminal("+500+20");
    // Only descendants of the first terminal may be changed.
    let below = inside.pid().to_string();
    let managed = Managed::start(&desktop, &["--under", &below]);
    desktop.click(&inside);
    until("the favour", || nice(inside.pid()) < 0);
    desktop.click(&outside);
    until("the loss of the focus", || {
        nice(inside.pid()) == 0 || managed.status()["focus_changes"]["n"] != 0
    });
    assert_eq!((nice(outside.pid()), nice(outside.shell())), (0, 0));
    let why = managed.why(outside.pid());
    let words = why.to_string();
    assert!(words.contains(&format!("not below process {below}")), "{why:#}");
}
