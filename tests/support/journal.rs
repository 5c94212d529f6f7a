// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stand-in for systemd's journal, and services that write to it.

use crate::{Running, tipme};
use rustix::process::Signal;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Duration;
use tempfile::TempDir;

/// Interval for checking that the service is alive while waiting for its entry.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
const ENTRY_BYTES_MAX: usize = 1 << 17;

/// Fields of an entry.
#[derive(Debug)]
pub struct Entry(Vec<(String, String)>);

impl Entry {
    /// Parses the journal's native protocol.
    fn parse(mut bytes: &[u8]) -> Entry {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
            let (name, rest) = (&bytes[..end], &bytes[end + 1..]);
            let (value, rest) = match name.iter().position(|byte| *byte == b'=') {
                Some(equals) => (&name[equals + 1..], rest),
                None => {
                    let (length, rest) = rest.split_first_chunk().unwrap();
                    let (value, rest) = rest.split_at(u64::from_le_bytes(*length) as usize);
                    (value, rest.strip_prefix(b"\n").unwrap())
                }
            };
            let name = name.split(|byte| *byte == b'=').next().unwrap_or_default();
            let [name, value] = [name, value].map(|bytes| String::from_utf8(bytes.into()).unwrap());
            fields.push((name, value));
            bytes = rest;
        }
        Entry(fields)
    }

    /// Returns the only value of a field; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        let values: Vec<&str> =
            self.0.iter().filter(|(field, _)| field == name).map(|(_, value)| &**value).collect();
        assert!(values.len() < 2, "{name} stands there several times: {self:?}");
        values.first().copied().unwrap_or_default()
    }
}

/// A folder that services see as `/run`.
pub struct Journal {
    run: TempDir,
    pub socket: UnixDatagram,
}

impl Journal {
    pub fn start() -> Journal {
        let run = TempDir::new().unwrap();
        std::fs::create_dir_all(run.path().join("systemd/journal")).unwrap();
        let socket = UnixDatagram::bind(run.path().join("systemd/journal/socket")).unwrap();
        socket.set_read_timeout(Some(POLL_INTERVAL)).unwrap();
        Journal { run, socket }
    }

    /// Starts `tipme` as systemd would: `JOURNAL_STREAM` names its standard output and error.
    pub fn service(&self, arguments: &[&str]) -> Service {
        let output = self.run.path().join(format!("output-{}", arguments[0]));
        let file = File::create(&output).unwrap();
        let meta = file.metadata().unwrap();
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c"]);
        command.args(["mount --bind \"$0\" /run && exec \"$@\""]).arg(self.run.path());
        command.arg(tipme().get_program()).args(arguments);
        command.env("JOURNAL_STREAM", format!("{}:{}", meta.dev(), meta.ino()));
        let child = Running::start(command.stdout(file.try_clone().unwrap()).stderr(file));
        Service { child, output }
    }

    /// Returns the next entry with this `MESSAGE_ID`. Fails if the service ends first.
    pub fn await_event(&self, service: &mut Service, id: &str) -> Entry {
        self.await_entry(service, |entry| entry.get("MESSAGE_ID") == id)
    }

    pub fn await_entry(
        &self,
        service: &mut Service,
        mut wanted: impl FnMut(&Entry) -> bool,
    ) -> Entry {
        let mut bytes = vec![0; ENTRY_BYTES_MAX];
        loop {
            // Entries sent before the end are still readable.
            let ended = service.child.try_wait().unwrap();
            if let Ok(length) = self.socket.recv(&mut bytes) {
                let entry = Entry::parse(&bytes[..length]);
                if wanted(&entry) {
                    return entry;
                }
            } else if let Some(status) = ended {
                panic!("the service ended, {status}, and said {:?}", service.output());
            }
        }
    }

    /// Fills the journal, which is not read meanwhile.
    pub fn fill(&self) {
        let sender = UnixDatagram::unbound().unwrap();
        sender.set_nonblocking(true).unwrap();
        sender.connect(self.run.path().join("systemd/journal/socket")).unwrap();
        while sender.send(b"MESSAGE=noise\n").is_ok() {}
    }

    /// Discards all unread entries.
    pub fn empty(&self) {
        while self.socket.recv(&mut [0; 64]).is_ok() {}
    }
}

/// A running service; killed on drop.
pub struct Service {
    child: Running,
    output: PathBuf,
}

impl Service {
    /// Returns its output outside of the journal.
    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap()
    }

    pub fn stop(&mut self) -> ExitStatus {
        self.child.signal(Signal::TERM);
        self.child.wait().unwrap()
    }
}
