// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager as a user runs it, on private displays, restricted to descendants of the test's own
//! process. Needs root.

#[path = "manage/inheritance.rs"]
mod inheritance;
#[path = "manage/other_users.rs"]
mod other_users;
#[path = "manage/preload.rs"]
mod preload;
#[path = "manage/rootless.rs"]
mod rootless;
#[path = "manage/safety.rs"]
mod safety;
use serde_json::Value;
use support::managed::{Desktop, Managed, Terminal, command_line, nice};
use support::{said, tipme};
use tipme_bench::until;

/// The client and shell of a focused terminal are favoured until another one gets the focus.
#[test]
fn the_favour_goes_with_the_focus() {
    let desktop = Desktop::start();
    let first = desktop.terminal("+20+20");
    let second = desktop.terminal("+500+20");
    let managed = Managed::start(&desktop, &[]);
    for (on, off) in [(&first, &second), (&second, &first), (&first, &second)] {
        desktop.click(on);
        until("the favour of the focused terminal and its shell", || {
            nice(on.pid()) < 0 && nice(on.shell()) == nice(on.pid())
        });
        until("the end of the other's favour", || {
            nice(off.pid()) > nice(on.pid()) && nice(off.shell()) > nice(on.pid())
        });
    }
    let status = managed.status();
    let sets = status["sets"].as_array().unwrap();
    let set = |terminal: &Terminal| sets.iter().find(|set| set["pid"] == terminal.pid()).unwrap();
    let first = set(&first);
    assert_eq!((&first["role"], &first["program"]), (&"focused".into(), &"xterm".into()));
    assert_ne!(set(&second)["role"], "focused");
    assert!(status["focus_changes"]["n"].as_u64().unwrap() >= 2, "{status:#}");
    assert_eq!(
        (&status["backend"], &status["strength"]),
        (&Value::from("nice"), &Value::from("normal"))
    );
    assert!(managed.memory_bytes() < 20 << 20, "{status:#}");
}

/// A job loses the favour in the background, and regains it in the foreground.
#[test]
fn the_favour_goes_with_the_foreground_of_the_terminal() {
    let desktop = Desktop::start();
    // The shell has job control; the first job stays in the background, the second is in the
    // foreground, and after its end the first one returns without a fork.
    let terminal = desktop.terminal_with("+20+20", "set -m; sleep 4000 & sleep 5000; fg");
    let managed = Managed::start(&desktop, &[]);
    let [behind, front] = ["4000", "5000"].map(|seconds| {
        let mut found = None;
        until("both jobs", || {
            found =
                terminal.below().into_iter().find(|pid| command_line(*pid) == ["sleep", seconds]);
            found.is_some()
        });
        found.unwrap()
    });
    until("the favour of the job in front", || nice(front) < 0);
    until("that the other job has none", || nice(behind) == 0);
    assert_eq!(managed.why(front)["membership"], "foreground");
    let why = managed.why(behind);
    assert_ne!(why["role"], "focused", "{why:#}");
    assert_eq!(why["set"], behind, "{why:#}");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(front as i32).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    until("the favour of the job that has come to the front", || nice(behind) < 0);
    assert_eq!(managed.why(behind)["membership"], "foreground");
}

#[test]
fn why_shows_role_reason_membership_and_knobs() {
    let desktop = Desktop::start();
    let terminal = desktop.terminal("+20+20");
    let managed = Managed::start(&desktop, &[]);
    until("the favour", || nice(terminal.shell()) < 0);
    let why = managed.why(terminal.shell());
    assert_eq!(
        (&why["role"], &why["set"]),
        (&Value::from("focused"), &Value::from(terminal.pid())),
        "{why:#}"
    );
    let knob =
        why["knobs"].as_array().unwrap().iter().find(|knob| knob["name"] == "nice value").unwrap();
    assert_eq!(
        (&knob["baseline"], &knob["applied"]),
        (&"0".into(), &nice(terminal.shell()).to_string().into())
    );
    let text = managed.said(&["why", &terminal.shell().to_string()]);
    assert!(text.contains("keyboard"), "{text}");
    let text = managed.said(&["why", "1"]);
    assert!(text.starts_with("1 (") && text.contains("left alone, because"), "{text}");
    let text = managed.said(&["manage", "status"]);
    for words in ["managing ", "core: ", "focused", "focus changes: ", "prediction: ", "own cost: "]
    {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

#[test]
fn the_knob_is_turned_while_it_runs() {
    let desktop = Desktop::start();
    let terminal = desktop.terminal("+20+20");
    let managed = Managed::start(&desktop, &["--strength", "gentle"]);
    until("the favour", || nice(terminal.pid()) < 0);
    let gentle = nice(terminal.pid());
    managed.said(&["manage", "strong"]);
    until("a greater favour", || nice(terminal.pid()) < gentle);
    managed.said(&["manage", "off"]);
    until("the end of all favour", || nice(terminal.pid()) == 0 && nice(terminal.shell()) == 0);
    assert_eq!(managed.status()["strength"], "off");
    assert!(managed.why(terminal.pid())["reason"].as_str().unwrap().contains("the manager is off"));
    managed.said(&["manage", "normal"]);
    until("the favour again", || nice(terminal.pid()) < 0);
}

#[test]
fn without_a_manager_the_remedy_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [&["manage", "status"][..], &["manage", "off"], &["why", "1"]] {
        let output = tipme().args(arguments).arg("--state-dir").arg(dir.path()).output().unwrap();
        let expected = format!(
            "tipme: no manager listens at {0}/manage.sock; \
             start one with: sudo tipme manage --state-dir {0}\n",
            dir.path().display()
        );
        assert_eq!(said(output), (Some(2), expected));
    }
}

#[test]
fn mutated_lines_leave_the_manager_as_it_was() {
    let desktop = Desktop::start();
    let managed = Managed::start(&desktop, &[]);
    let socket = managed.path().join(tipme_control::manager::SOCKET_NAME);
    support::lines::send_mutated("manager", &socket, managed.child.id());
    assert!(managed.status()["pid"].is_number());
}
