// SPDX-License-Identifier: MIT OR Apache-2.0
//! The session agent on a private display, and programs that it starts.

use crate::{Running, tipme};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use tipme_bench::PrivateSession;
use tipme_desktop::inject::{Pace, Typist};

/// Time between two presses. A press in the millisecond of the last release counts as a key repeat.
const PRESS_PAUSE: Duration = Duration::from_millis(20);

/// Timeout on a busy machine.
pub const LONG: Duration = Duration::from_secs(120);

/// A running agent; killed on drop.
pub struct Agent {
    pub child: Running,
    lines: Receiver<String>,
    /// Lines not requested yet: the two outputs arrive in any order.
    passed: RefCell<Vec<String>>,
}

impl Agent {
    pub fn start(
        session: &PrivateSession,
        state_dir: &Path,
        change: impl FnOnce(&mut Command),
    ) -> Agent {
        Agent::start_anywhere(session, state_dir, |command| {
            change(command.args(["--display", &session.display_name()]));
        })
    }

    /// Starts an agent with these options and environment variables, and waits until it serves the
    /// keys.
    pub fn ready(
        session: &PrivateSession,
        state_dir: &Path,
        options: &[&str],
        environment: &[(&str, &str)],
    ) -> Agent {
        let agent = Agent::start(session, state_dir, |command| {
            command.args(options).envs(environment.iter().copied());
        });
        agent.line("ready: ");
        agent
    }

    /// Starts an agent that must detect the kind of its session itself.
    pub fn start_anywhere(
        session: &PrivateSession,
        state_dir: &Path,
        change: impl FnOnce(&mut Command),
    ) -> Agent {
        let mut command = tipme();
        command.arg("agent").arg("--state-dir").arg(state_dir);
        session.show(&mut command);
        // Hides the session of the tests themselves.
        for own in ["DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "WAYLAND_DISPLAY"] {
            command.env_remove(own);
        }
        change(&mut command);
        let mut child = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let (sender, lines) = channel();
        let (output, errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        forward(output, sender.clone());
        forward(errors, sender);
        Agent { child, lines, passed: RefCell::default() }
    }

    /// Returns the rest of the first unread line that starts with `prefix`.
    pub fn line(&self, prefix: &str) -> String {
        let (deadline, mut passed) = (Instant::now() + LONG, self.passed.borrow_mut());
        loop {
            if let Some(at) = passed.iter().position(|line| line.starts_with(prefix)) {
                return passed.remove(at)[prefix.len()..].to_string();
            }
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => passed.push(line),
                Err(_) => panic!("the agent did not say {prefix:?} but {passed:?}"),
            }
        }
    }
}

/// Sends the lines of an output on a thread of its own.
fn forward(output: impl Read + Send + 'static, lines: Sender<String>) {
    std::thread::spawn(move || {
        let mut output = BufReader::new(output).lines().map_while(Result::ok);
        output.all(|line| lines.send(line).is_ok())
    });
}

pub fn press(session: &PrivateSession, keys: &[&str]) {
    let mut typist = Typist::open(&session.target(), Pace::default()).unwrap();
    for key in keys {
        typist.chord(&key.parse().unwrap()).unwrap();
        std::thread::sleep(PRESS_PAUSE);
    }
}

/// Writes a shell script that can be started by its name if the folder is in `PATH`. A child writes
/// it: a process started meanwhile by another test would keep the file open for writing, so that it
/// could not be executed.
pub fn program(folder: &Path, name: &str, script: &str) {
    let words = ["-c", "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\" && chmod 755 \"$0\""];
    let status =
        Command::new("sh").args(words).arg(folder.join(name)).arg(script).status().unwrap();
    assert!(status.success());
}
