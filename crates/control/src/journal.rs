// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output of a daemon: to the systemd journal with fields if it runs as a service, else to the
//! terminal.
//!
//! A service is recognised as systemd recommends: `JOURNAL_STREAM` identifies the standard error
//! that systemd opened. An entry is one datagram of the journal's native protocol, which sends each
//! value with its length, so no value can forge a field. Sending never blocks: if the journal's
//! buffer is full, an entry is lost, and the next one has the number lost.
//! docs/reference/journal.md lists the events and the fields.

use crate::life::{say, say_error};
use rustix::fs::fstat;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tipme_record::named;

/// Socket of the journal.
const SOCKET: &str = "/run/systemd/journal/socket";
/// Identifier for `journalctl -t`.
const IDENTIFIER: &str = "tipme";
/// Syslog facility of daemons.
const FACILITY: &str = "3";
/// Maximum characters of a value; the rest is cut.
const VALUE_LETTERS_MAX: usize = 4096;

/// Severity, with the numbers of syslog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Level {
    Error = 3,
    Warning = 4,
    Info = 6,
}

named! {
    /// Event that `journalctl MESSAGE_ID=…` can find. The names are these values, which never
    /// change.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum JournalEvent {
        /// A recorder has started recording.
        Recording = "919dd7568e224080bd60d3bba76d8c9c",
        /// Some records are not available on this machine.
        NotRecorded = "3634d4379e22469c888fa4034c6298dc",
        /// An incident was written.
        Marked = "5f24f596fabd4dedad9f0b33e9367209",
        /// An incident could not be written.
        MarkFailed = "8581308f2b0b4b44be8053a4735628e6",
        /// The diagnosis of an incident has ended, with or without a cause.
        Judged = "75f08567c4964783baafb872f795efed",
        /// A manager has started.
        Managing = "2cfef2a40dbd40dda4f273fcc990ad97",
        /// The helper of managers has started.
        Helping = "b184a177b2004f09927214a91f82b275",
        /// A change could not be undone.
        NotRestored = "73803391b69a45e1830922346147dea9",
    }
}

named! {
    /// A field of an entry.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Field {
        /// Id of an incident, as listed by `tipme incidents`.
        Incident = "TIPME_INCIDENT",
        /// Kind of the first cause, such as `disk-queue`.
        Kind = "TIPME_KIND",
        /// Culprit of the first cause.
        Culprit = "TIPME_CULPRIT",
        /// Application that the user waited for.
        Application = "TIPME_APPLICATION",
        /// Trigger of a mark: `hotkey`, `command`, `signal`, `auto`.
        Trigger = "TIPME_TRIGGER",
        /// Uid of the marking user.
        User = "TIPME_USER",
    }
}

/// An entry with its level and fields.
#[derive(Clone, Debug)]
#[must_use = "`tell`, `show` or `keep` writes it"]
pub struct JournalEntry {
    level: Level,
    text: String,
    event: Option<JournalEvent>,
    fields: Vec<(Field, String)>,
}

/// Returns an informational entry: on the terminal, a line of standard output.
pub fn info(text: impl Display) -> JournalEntry {
    JournalEntry::new(Level::Info, text)
}

/// Returns a warning, after which work goes on: on the terminal, a line of standard error.
pub fn warning(text: impl Display) -> JournalEntry {
    JournalEntry::new(Level::Warning, text)
}

/// Returns an error that ends an operation: on the terminal, a line of standard error.
pub fn error(text: impl Display) -> JournalEntry {
    JournalEntry::new(Level::Error, text)
}

impl JournalEntry {
    fn new(level: Level, text: impl Display) -> JournalEntry {
        JournalEntry { level, text: text.to_string(), event: None, fields: Vec::new() }
    }

    pub fn event(self, event: JournalEvent) -> JournalEntry {
        JournalEntry { event: Some(event), ..self }
    }

    pub fn field(mut self, field: Field, value: impl Display) -> JournalEntry {
        self.fields.push((field, value.to_string()));
        self
    }

    /// Writes the entry to the journal if this is a service, else to the terminal.
    pub fn tell(&self) {
        if !journal().is_some_and(|journal| journal.send(self)) {
            self.print();
        }
    }

    /// Writes the entry to the journal only.
    pub fn keep(&self) {
        if let Some(journal) = journal() {
            journal.send(self);
        }
    }

    /// Writes the entry to the terminal only: the journal has a separate entry about it.
    pub fn show(&self) {
        if journal().is_none() {
            self.print();
        }
    }

    fn print(&self) {
        match self.level {
            Level::Info => say(&self.text),
            Level::Warning | Level::Error => say_error(&format!("{IDENTIFIER}: {}", self.text)),
        }
    }

    /// Encodes the entry as a datagram.
    fn encode(&self, lost: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, "MESSAGE", &cleaned(&self.text, "\n"));
        put(&mut bytes, "PRIORITY", &(self.level as u8).to_string());
        put(&mut bytes, "SYSLOG_IDENTIFIER", IDENTIFIER);
        put(&mut bytes, "SYSLOG_FACILITY", FACILITY);
        if let Some(event) = self.event {
            put(&mut bytes, "MESSAGE_ID", event.name());
        }
        for (field, value) in &self.fields {
            put(&mut bytes, field.name(), &cleaned(value, ""));
        }
        if lost > 0 {
            put(&mut bytes, "TIPME_LOST", &lost.to_string());
        }
        bytes
    }
}

/// Appends a field with an arbitrary value.
fn put(bytes: &mut Vec<u8>, name: &str, value: &str) {
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(b'\n');
    bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
    bytes.extend_from_slice(value.as_bytes());
    bytes.push(b'\n');
}

/// Replaces control characters except those in `kept`: values may be untrusted, such as names of
/// processes.
fn cleaned(value: &str, kept: &str) -> String {
    let letters = value.chars().take(VALUE_LETTERS_MAX);
    letters
        .map(|letter| if letter.is_control() && !kept.contains(letter) { '?' } else { letter })
        .collect()
}

/// Returns the journal if this process is a service.
fn journal() -> Option<&'static JournalSocket> {
    static JOURNAL: OnceLock<Option<JournalSocket>> = OnceLock::new();
    JOURNAL.get_or_init(JournalSocket::find).as_ref()
}

struct JournalSocket {
    socket: UnixDatagram,
    /// Number of entries lost since the last one that was sent.
    lost: AtomicU64,
}

impl JournalSocket {
    fn find() -> Option<JournalSocket> {
        let named = std::env::var("JOURNAL_STREAM").ok()?;
        let stderr = fstat(io::stderr()).ok()?;
        let is_service = named == format!("{}:{}", stderr.st_dev, stderr.st_ino);
        let socket =
            UnixDatagram::unbound().ok().filter(|socket| socket.set_nonblocking(true).is_ok())?;
        is_service.then_some(JournalSocket { socket, lost: AtomicU64::new(0) })
    }

    /// Returns `true` if the entry was sent, or lost because the journal was busy; `false` if there
    /// is no journal.
    fn send(&self, entry: &JournalEntry) -> bool {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        match self.socket.send_to(&entry.encode(lost), SOCKET) {
            Ok(_) => true,
            Err(error) => {
                let busy = error.kind() == ErrorKind::WouldBlock;
                self.lost.fetch_add(lost + u64::from(busy), Ordering::Relaxed);
                busy
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses the fields of a datagram like the journal does.
    fn decode(mut bytes: &[u8]) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let name = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let (length, rest) = bytes[end + 1..].split_first_chunk().unwrap();
            let (value, rest) = rest.split_at(u64::from_le_bytes(*length) as usize);
            fields.push((name, String::from_utf8(value.to_vec()).unwrap()));
            bytes = rest.strip_prefix(b"\n").unwrap();
        }
        fields
    }

    fn value(fields: &[(String, String)], name: &str) -> Vec<String> {
        fields.iter().filter(|(field, _)| field == name).map(|(_, value)| value.clone()).collect()
    }

    #[test]
    fn no_value_passes_for_a_field() {
        let hostile = "evil\nPRIORITY=0\nMESSAGE_ID\n\u{4}\0\0\0\0\0\0\0fake\n\u{1b}[2J";
        let entry = error(hostile).event(JournalEvent::Judged).field(Field::Culprit, hostile);
        let fields = decode(&entry.encode(0));
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "MESSAGE",
            "PRIORITY",
            "SYSLOG_IDENTIFIER",
            "SYSLOG_FACILITY",
            "MESSAGE_ID",
            "TIPME_CULPRIT",
        ];
        assert_eq!(names, expected);
        assert_eq!(value(&fields, "PRIORITY"), ["3"]);
        assert_eq!(value(&fields, "MESSAGE_ID"), [JournalEvent::Judged.name()]);
        assert_eq!(
            value(&fields, "TIPME_CULPRIT"),
            ["evil?PRIORITY=0?MESSAGE_ID?????????fake??[2J"]
        );
        assert!(value(&fields, "MESSAGE")[0].starts_with("evil\nPRIORITY=0\nMESSAGE_ID\n?"));
    }

    #[test]
    fn values_are_bounded_and_losses_reported() {
        let fields = decode(&info("x".repeat(100_000)).encode(7));
        assert_eq!(value(&fields, "MESSAGE")[0].len(), VALUE_LETTERS_MAX);
        assert_eq!(value(&fields, "TIPME_LOST"), ["7"]);
        assert_eq!(value(&fields, "PRIORITY"), ["6"]);
    }

    #[test]
    fn the_document_lists_every_event_and_field() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/journal.md");
        let document = std::fs::read_to_string(path).unwrap();
        let ids = JournalEvent::ALL.map(|event| format!("`{}`", event.name()));
        let names = Field::ALL.map(|field| format!("`{}`", field.name()));
        let missing: Vec<&String> =
            ids.iter().chain(&names).filter(|name| !document.contains(*name)).collect();
        assert!(missing.is_empty(), "docs/reference/journal.md lacks {missing:?}");
        let distinct: std::collections::BTreeSet<&String> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
    }
}
