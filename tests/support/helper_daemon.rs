// SPDX-License-Identifier: MIT OR Apache-2.0
//! A helper of the test, and callers. Needs root.

use crate::{Running, tipme};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use tipme_bench::until;
use tipme_policy::{Backend, Role, Strength, knobs};

/// Two users that may call the helper, and one that may not.
pub const ANNA: u32 = 64_101;
pub const BERT: u32 = 64_102;
pub const OTHER_UID: u32 = 64_103;

/// Serializes helpers: two of them with sessions for the same user would restore each other's
/// values as inherited ones. A machine has only one helper.
static ONLY_ONE: Mutex<()> = Mutex::new(());

/// `tipme manage-helper` in a folder of its own; killed on drop.
pub struct HelperDaemon {
    pub child: Running,
    pub dir: TempDir,
    _only: MutexGuard<'static, ()>,
}

impl HelperDaemon {
    /// Starts a helper that serves Anna, Bert and these users.
    pub fn start(more: &[u32]) -> HelperDaemon {
        HelperDaemon::start_by(|_| (), more)
    }

    /// Same with a modified command.
    pub fn start_by(prepare: impl FnOnce(&mut Command), more: &[u32]) -> HelperDaemon {
        let mut command = tipme();
        prepare(&mut command);
        HelperDaemon::begun(command, &users(more))
    }

    /// Starts a helper that serves only root and the users present according to this login manager,
    /// which is visible to this helper only.
    pub fn start_for_seats(logind: &Path) -> HelperDaemon {
        const SCRIPT: &str = "set -e; mount -t tmpfs none /run; mkdir /run/systemd
            mount --bind \"$1\" /run/systemd; shift; exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh"]).arg(logind);
        command.arg(tipme().get_program());
        HelperDaemon::begun(command, &[])
    }

    fn begun(command: Command, users: &[u32]) -> HelperDaemon {
        // A failed test has killed its helper as well.
        let only = ONLY_ONE.lock().unwrap_or_else(PoisonError::into_inner);
        // Services have a `/tmp` of their own.
        let dir = TempDir::new_in("/var/tmp").unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let child = begin(command, dir.path(), users);
        HelperDaemon { child, dir, _only: only }
    }

    /// Starts another one in place of the ended one.
    pub fn start_again(&mut self, more: &[u32]) {
        self.child = begin(tipme(), self.dir.path(), &users(more));
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it with a signal; returns its exit code.
    pub fn stop(&mut self, signal: Signal) -> Option<i32> {
        self.child.signal(signal);
        self.child.await_end().code()
    }

    /// Connects as a user: the peer credentials are those of the connecting thread.
    pub fn connect(&self, uid: u32) -> Peer {
        let path = self.dir.path().join("helper.sock");
        let thread = std::thread::spawn(move || {
            rustix::thread::set_thread_uid(rustix::fs::Uid::from_raw(uid))
                .expect("root may; run the tests as root");
            UnixStream::connect(path).unwrap()
        });
        let stream = thread.join().unwrap();
        stream.set_read_timeout(Some(crate::family::TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
        Peer { reader: BufReader::new(stream) }
    }

    /// Connects, and opens a session with the `nice` backend.
    pub fn session(&self, uid: u32) -> Peer {
        let mut peer = self.connect(uid);
        let opened = peer.ask(&json!({ "open": { "backend": "nice" } }));
        assert_eq!(opened["opened"]["backend"], "nice", "{opened}");
        peer
    }

    /// Sends a request over a separate connection, as soon as the helper has forgotten the user's
    /// last one.
    pub fn ask_once(&self, uid: u32, request: &Value) -> Value {
        self.say_once(uid, format!("{request}\n").as_bytes())
    }

    /// Same with raw bytes.
    pub fn say_once(&self, uid: u32, bytes: &[u8]) -> Value {
        let mut answer = Value::Null;
        until("a place for one more caller", || {
            let mut peer = self.connect(uid);
            // A caller without a place may be refused before it sends anything.
            let said = peer.send(bytes);
            answer = peer.hear().expect("everybody has an answer");
            let refused =
                answer["error"].as_str().is_some_and(|why| why.contains("too many callers"));
            assert!(said.is_ok() || refused, "{said:?}");
            !refused
        });
        answer
    }

    /// Returns its memory without file mappings, since their size depends on the kernel.
    pub fn resident(&self) -> u64 {
        crate::memory_bytes(self.pid(), "RssAnon")
    }

    /// Waits until no session is open.
    pub fn expect_no_session(&self) {
        until("the end of all sessions", || {
            self.connect(0).ask(&json!("status"))["status"]["sessions"] == 0
        });
    }
}

/// Anna, Bert and others.
fn users(more: &[u32]) -> Vec<u32> {
    [&[ANNA, BERT], more].concat()
}

fn begin(mut command: Command, dir: &Path, users: &[u32]) -> Running {
    command.arg("manage-helper").arg("--state-dir").arg(dir);
    for user in users {
        command.arg("--allow-user").arg(user.to_string());
    }
    let (child, line) = Running::start_saying(&mut command);
    assert!(line.starts_with("helping managers at "), "not ready: {line:?}; these tests need root");
    child
}

/// A caller.
pub struct Peer {
    reader: BufReader<UnixStream>,
}

impl Peer {
    pub fn ask(&mut self, request: &Value) -> Value {
        self.send(format!("{request}\n").as_bytes()).unwrap();
        self.hear().unwrap_or_else(|| panic!("no answer to {request}"))
    }

    /// Sends raw bytes.
    pub fn send(&self, bytes: &[u8]) -> std::io::Result<()> {
        self.reader.get_ref().write_all(bytes)
    }

    /// Returns the next response; `None` at the end of the connection.
    pub fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        // A connection closed with unread bytes ends with a reset.
        self.reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// Assigns a role to a set of these processes, named after the first.
    pub fn assign(&mut self, role: &str, members: &[Value]) -> Value {
        self.ask(&json!({ "apply": [assignment(role, members)] }))["applied"].clone()
    }

    pub fn stream(&self) -> &UnixStream {
        self.reader.get_ref()
    }
}

pub fn assignment(role: &str, members: &[Value]) -> Value {
    let list = members.iter().map(|who| json!({ "who": who, "because": "client" }));
    let list: Vec<Value> = list.collect();
    json!({ "assign": {
        "set": members[0], "role": role, "reason": "keyboard_focus", "faded": 0.0, "members": list
    } })
}

/// Returns the nice value of the focused role in the table.
pub fn favour(strength: Strength) -> i32 {
    knobs(Backend::Nice, strength, Role::Focused, 0.0).nice.unwrap().into()
}

/// A sleeping process of a user that is killed on drop.
pub struct Sleeper(Running);

impl Sleeper {
    pub fn of(uid: u32) -> Sleeper {
        rustix::process::setpriority_process(None, 0).unwrap();
        Sleeper(Running::start(Command::new("sleep").arg("1000").uid(uid).gid(uid)))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn who(&self) -> Value {
        identity(self.pid())
    }

    pub fn nice(&self) -> i32 {
        crate::stat(self.pid())[16].parse().unwrap()
    }

    /// Returns the number of the scheduling policy.
    pub fn policy(&self) -> u32 {
        crate::stat(self.pid())[38].parse().unwrap()
    }
}

/// Returns PID and start time of a process in the format of requests.
pub fn identity(pid: u32) -> Value {
    json!({ "pid": pid, "start": crate::stat(pid)[19].parse::<u64>().unwrap() })
}
