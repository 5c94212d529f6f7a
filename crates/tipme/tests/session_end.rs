// SPDX-License-Identifier: MIT OR Apache-2.0
//! An agent ends with its session, and the next session's agent takes over. Private X servers stand
//! for sessions.

use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::notification_server::FakeServer;
use support::portal::Portal;
use support::screen::{ADDRESS, Bus};
use support::session_agent::Agent;
use support::{Running, session, tipme};
use tempfile::TempDir;
use tipme_bench::until;
use tipme_desktop::inject::{Pace, Typist};
use tipme_desktop::{DisplayTarget, server};

/// Time within which an agent ends by itself on a machine that is busy with other tests.
const SOON: Duration = Duration::from_secs(10);

/// Returns the exit code of an agent, once it has ended by itself.
fn ended(agent: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    while begun.elapsed() < SOON {
        if let Some(status) = agent.try_wait().unwrap() {
            println!("ended after {:?}", begun.elapsed());
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the agent goes on");
}

/// Starts an X server without authority, as a display manager does for the next session on the same
/// display.
fn server_on(display: u32) -> Running {
    let mut command = Command::new("Xvfb");
    command
        .args([&format!(":{display}"), "-nolisten", "tcp", "-noreset", "-ac"])
        .stderr(Stdio::null());
    let running = Running(command.spawn().expect("Xvfb is installed"));
    until("the server starts", || server::describe(&DisplayTarget::new(display)).is_ok());
    running
}

/// Starts an agent of a display on a bus, with the display as argument and the bus in its
/// environment.
fn agent_on(display: u32, bus: &Bus, state: &TempDir) -> Running {
    let mut command = tipme();
    command
        .args(["agent", "--no-dialog", "--display", &format!(":{display}"), "--state-dir"])
        .arg(state.path());
    command.env_remove("XDG_RUNTIME_DIR").env_remove("WAYLAND_DISPLAY").env(ADDRESS, &bus.address);
    let agent = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let target = DisplayTarget::new(display);
    until("the agent serves the display", || {
        let found = tipme_desktop::presence::find(&target).unwrap();
        found.is_some_and(|found| found.pid == agent.id() && !found.words.is_empty())
    });
    agent
}

#[test]
fn an_agent_ends_with_its_display_and_the_next_one_takes_over() {
    let (state, first_bus, second_bus) = (TempDir::new().unwrap(), Bus::start(), Bus::start());
    let used = server::find();
    let display =
        (3000 + std::process::id() % 1000..).find(|number| !used.contains(number)).unwrap();
    let first_server = server_on(display);
    let mut first = agent_on(display, &first_bus, &state);
    drop(first_server);
    assert_eq!(ended(&mut first.0), Some(0));
    let _second_server = server_on(display);
    let _second = agent_on(display, &second_bus, &state);
    let stale = FakeServer::start(&first_bus.address, "dunst", &["actions"]);
    let server = FakeServer::start(&second_bus.address, "gnome-shell", &["actions"]);
    let mut typist = Typist::open(&DisplayTarget::new(display), Pace::default()).unwrap();
    typist.chord(&"ctrl+alt+minus".parse().unwrap()).unwrap();
    assert_eq!(server.wait_for(0).summary, "The mark failed");
    assert!(stale.calls().is_empty());
}

#[test]
fn an_agent_ends_with_its_bus() {
    let (session, state, bus) = (session(), TempDir::new().unwrap(), Bus::start());
    let mut agent =
        Agent::ready(&session, state.path(), &["--no-dialog"], &[(ADDRESS, &bus.address)]);
    // It is on the bus once it has shown something there.
    let server = FakeServer::start(&bus.address, "dunst", &["actions"]);
    support::session_agent::press(&session, &["ctrl+alt+minus"]);
    server.wait_for(0);
    drop(server);
    drop(bus);
    assert_eq!(ended(&mut agent.child), Some(0));
    agent.line("the session's message bus is gone; the agent ends with it");
}

#[test]
fn under_wayland_an_agent_ends_with_its_compositor() {
    let (session, state, bus, folder) =
        (session(), TempDir::new().unwrap(), Bus::start(), TempDir::new().unwrap());
    let compositor =
        std::os::unix::net::UnixListener::bind(folder.path().join("wayland-7")).unwrap();
    let portal = Portal::start(&bus.address, 0);
    let mut agent = Agent::start_anywhere(&session, state.path(), |command| {
        command.arg("--no-dialog").env("WAYLAND_DISPLAY", "wayland-7");
        command.env("XDG_RUNTIME_DIR", folder.path()).env(ADDRESS, &bus.address);
    });
    let connection = compositor.accept().unwrap();
    agent.line("ready: ");
    drop((connection, compositor));
    assert_eq!(ended(&mut agent.child), Some(0));
    agent.line("the session's compositor is gone; the agent ends with it");
    drop(portal);
}

/// Prefix of threads of the D-Bus library, which wake up twice a second to check whether they are
/// still needed.
const OF_LIBRARY: &str = "Name:\tblocking-";

/// Returns the number of voluntary context switches of the other threads of a process.
fn sleeps(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let status = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok());
    let status = status.filter(|status| !status.starts_with(OF_LIBRARY));
    let counts = status.filter_map(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    });
    counts.sum()
}

#[test]
fn an_idle_agent_sleeps() {
    let (session, state, bus) = (session(), TempDir::new().unwrap(), Bus::start());
    let agent = Agent::ready(&session, state.path(), &["--no-dialog"], &[(ADDRESS, &bus.address)]);
    let pid = agent.child.id();
    until("no thread wakes up for three seconds", || {
        let before = sleeps(pid);
        std::thread::sleep(Duration::from_secs(3));
        sleeps(pid) - before <= 1
    });
}

#[test]
fn status_names_the_notification_server_that_the_agent_reaches() {
    let (session, state) = (session(), TempDir::new().unwrap());
    let [own, other] = [(); 2].map(|()| Bus::start());
    let _server = FakeServer::start(&other.address, "dunst", &["actions"]);
    let _agent = Agent::ready(&session, state.path(), &["--no-dialog"], &[(ADDRESS, &own.address)]);
    let mut command = tipme();
    session.show(command.args(["status", "--json", "--state-dir"]).arg(state.path()));
    command.env(ADDRESS, &other.address);
    let status: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    assert_eq!(status["notifications"], Value::Null, "the agent is on a bus without a server");
    let _reached = FakeServer::start(&own.address, "mako", &["actions"]);
    let status: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    assert_eq!(status["notifications"], "mako 1.0");
}
