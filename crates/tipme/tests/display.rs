// SPDX-License-Identifier: MIT OR Apache-2.0
//! The display tap on a private X server with real clients. Needs root.

use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};
use std::collections::BTreeSet;
use std::io::{IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use support::{
    Recording, contains, diagnose, interactions, records, session, session_with_terminal, tipme_as,
    verdict,
};
use tipme_bench::PrivateSession;
use tipme_desktop::echo::EchoWindow;
use tipme_desktop::inject::Typist;
use tipme_desktop::window::Watcher;
use tipme_record::RecordKind;
use tipme_record::incident::{Display, Incident, Section};
use tipme_record::records::Message;

/// Timeout that only a failing test reaches.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Flag of a send with unreadable messages.
const UNREAD: u16 = 2;

/// Size of a reply of the display server in bytes.
const ANSWER_BYTES: usize = 32;

/// A word in no command line on this machine.
const WORD: &str = "xyloquartz";

fn typist(session: &PrivateSession) -> Typist {
    support::typist(session, 120.0)
}

fn messages(incident: &Incident) -> Vec<(Message, Vec<[u8; 4]>)> {
    let messages =
        records(incident, Section::Rare).filter(|entry| entry.kind == RecordKind::Message);
    let read = messages.filter_map(|entry| {
        let message = Message::read(entry.bytes)?;
        let words = entry.bytes[Message::SIZE..].as_chunks().0;
        Some((message, words[..usize::from(message.operations)].to_vec()))
    });
    read.collect()
}

/// Returns the codes of all key presses sent to a client, or to any.
fn presses(incident: &Incident, client: Option<u32>) -> Vec<[u8; 4]> {
    let sent = messages(incident).into_iter().filter(|(message, _)| {
        message.direction == 2 && client.is_none_or(|client| message.client.0 == client)
    });
    sent.flat_map(|(_, words)| words).filter(|word| word[0] == 2).collect()
}

/// Marks until the whole word has reached the terminal.
fn marked_with_presses(recording: &Recording, terminal: u32) -> (PathBuf, Incident, Vec<[u8; 4]>) {
    recording.mark_until("the whole word", |path, incident| {
        let codes = presses(&incident, Some(terminal));
        (codes.len() >= WORD.len()).then_some((path, incident, codes))
    })
}

#[test]
fn typed_keys_are_seen_as_events_and_never_as_text() {
    let session = session_with_terminal();
    let recording = Recording::start(&["--display", &session.display_name()]);
    typist(&session).text(WORD).unwrap();
    let terminal = session.terminal_pid().unwrap();
    let (path, incident, codes) = marked_with_presses(&recording, terminal);
    let messages = messages(&incident);
    assert!(
        codes.iter().all(|word| word[1] == 0 && word[2] == 0),
        "a key press carries more than its code"
    );
    let unread = messages.iter().filter(|(message, _)| message.flags & UNREAD != 0).count();
    assert_eq!(unread, 0, "of {} sends", messages.len());
    let draws = messages
        .iter()
        .filter(|(message, _)| message.client.0 == terminal && message.direction == 0);
    assert!(
        draws.flat_map(|(_, words)| words).any(|word| word[0] == 76 || word[0] == 74),
        "no text was drawn"
    );
    let raw = std::fs::read(&path).unwrap();
    let sections =
        incident.sections.iter().map(|(_, bytes)| bytes.as_slice()).chain([raw.as_slice()]);
    for bytes in sections {
        assert!(!contains(bytes, WORD.as_bytes()), "the word is in the incident");
    }
}

/// Returns the number of unread sends of a client, and the opcodes of its requests.
fn requests(incident: &Incident, client: u32) -> (usize, Vec<u8>) {
    let messages = messages(incident).into_iter();
    let sent: Vec<_> = messages
        .filter(|(message, _)| message.client.0 == client && message.direction == 0)
        .collect();
    let unread = sent.iter().filter(|(message, _)| message.flags & UNREAD != 0).count();
    (unread, sent.iter().flat_map(|(_, words)| words).map(|word| word[0]).collect())
}

#[test]
fn every_way_of_sending_is_read() {
    let session = session();
    let recording = Recording::start(&["--display", &session.display_name()]);
    let target = session.target();
    let mut server = UnixStream::connect(format!("/tmp/.X11-unix/X{}", target.display)).unwrap();
    let authority = std::fs::read(target.authority.unwrap()).unwrap();
    // The cookie is the last entry of the file.
    let cookie = authority.last_chunk::<16>().unwrap();
    let parts: [&[u8]; 3] =
        [&[b'l', 0, 11, 0, 0, 0, 18, 0, 16, 0, 0, 0], b"MIT-MAGIC-COOKIE-1\0\0", cookie];
    server.write_all(&parts.concat()).unwrap();
    let mut setup = [0; 8];
    server.read_exact(&mut setup).unwrap();
    assert_eq!(setup[0], 1, "the server refuses the test");
    let (nothing, bell) = ([127, 0, 1, 0], [104, 0, 1, 0]);
    server.write_all(&nothing).unwrap();
    let parted =
        [&nothing[..3], &nothing[3..], &bell[..], &nothing[..2], &nothing[2..]].map(IoSlice::new);
    assert_eq!(server.write_vectored(&parted).unwrap(), 12);
    let flags = SendFlags::empty();
    let both = [IoSlice::new(&bell), IoSlice::new(&nothing)];
    assert_eq!(send(&server, &bell, flags).unwrap(), 4);
    assert_eq!(sendmsg(&server, &both, &mut SendAncillaryBuffer::default(), flags).unwrap(), 8);
    // Too long for one piece in the receiver's queue: it is read from the sender's buffer.
    let long = [&[127, 0, 0xd0, 7][..], &[0; 4 * 2_000 - 4]].concat();
    let (whole, both) = ([&long[..], &bell].concat(), [IoSlice::new(&long), IoSlice::new(&bell)]);
    server.write_all(&whole).unwrap();
    assert_eq!(server.write_vectored(&both).unwrap(), whole.len());
    assert_eq!(send(&server, &whole, flags).unwrap(), whole.len());
    assert_eq!(
        sendmsg(&server, &both, &mut SendAncillaryBuffer::default(), flags).unwrap(),
        whole.len()
    );
    // The reply to this request means that the server has read everything.
    server.write_all(&[43, 0, 1, 0]).unwrap();
    let mut rest = Vec::new();
    while rest.len() < setup_bytes(&setup) + ANSWER_BYTES {
        let mut part = [0; 4096];
        let count = server.read(&mut part).unwrap();
        rest.extend_from_slice(&part[..count]);
    }
    let (_, incident) = recording.mark();
    let read = requests(&incident, std::process::id());
    let long = [127, 104].repeat(4);
    assert_eq!(read, (0, [&[127, 127, 104, 127, 104, 104, 127][..], &long, &[43]].concat()));
}

/// Returns the number of bytes after the first eight of the server's setup reply.
fn setup_bytes(head: &[u8; 8]) -> usize {
    4 * usize::from(u16::from_le_bytes([head[6], head[7]]))
}

#[test]
fn a_long_request_hides_nothing_that_follows() {
    let session = session();
    let recording = Recording::start(&["--display", &session.display_name()]);
    let mut window = EchoWindow::open(&session.target()).unwrap();
    let focused =
        Watcher::open(&session.target()).unwrap().wait_for_focus(std::process::id(), TIMEOUT);
    focused.unwrap();
    let mut typist = typist(&session);
    for _ in 0..3 {
        window.picture().unwrap();
        typist.key('a').unwrap();
        window.next(TIMEOUT).unwrap().unwrap();
    }
    typist.key('b').unwrap();
    window.next(TIMEOUT).unwrap().unwrap();
    let (path, _) = recording.mark();
    let listed = interactions(&path);
    assert_eq!(listed.iter().filter(|one| one["join"] == "exact").count(), 4, "{listed:#?}");
}

#[test]
fn stopped_keys_leave_no_input_records() {
    let session = session_with_terminal();
    let recording = Recording::start(&["--display", &session.display_name()]);
    let client = tipme_control::Client::new(recording.dir.path());
    client.call(&tipme_control::RecorderRequest::Keys { record: false }).unwrap();
    typist(&session).text(WORD).unwrap();
    let (without, hidden) = recording.mark();
    client.call(&tipme_control::RecorderRequest::Keys { record: true }).unwrap();
    typist(&session).text(WORD).unwrap();
    let (with, shown) = recording.mark();
    for path in [without, with] {
        let verdict = verdict(&path, &[]);
        assert!(
            verdict["incident"]["input_stopped_s"].as_f64().is_some_and(|stopped| stopped > 0.0),
            "{verdict:#}"
        );
        let notes = verdict["notes"].as_array().unwrap();
        assert!(
            notes
                .iter()
                .any(|note| note.as_str().unwrap().starts_with("Input was not recorded for ")),
            "{notes:?}"
        );
    }
    assert_eq!(presses(&hidden, None), [[0; 4]; 0]);
    assert!(presses(&shown, None).len() >= WORD.len());
}

#[test]
fn a_server_that_is_replaced_is_recorded_again() {
    let first = session_with_terminal();
    let recording = Recording::start(&[]);
    typist(&first).text("one").unwrap();
    let terminals = [first.terminal_pid().unwrap()];
    drop(first);
    let second = session_with_terminal();
    typist(&second).text("two").unwrap();
    let (path, incident) = recording.mark();
    let clients: BTreeSet<u32> =
        messages(&incident).iter().map(|(message, _)| message.client.0).collect();
    assert!(clients.contains(&terminals[0]) && clients.contains(&second.terminal_pid().unwrap()));
    let displays: Vec<Display> = incident.json(Section::Displays).unwrap();
    let known = displays.iter().find(|display| display.display == second.target().display).unwrap();
    assert!(known.extensions.iter().any(|extension| extension.name == "XTEST"));
    let (code, _) = diagnose(&path, &["--json"]);
    assert!(matches!(code, Some(0 | 3)), "{code:?}");
}

#[test]
fn a_client_that_vanishes_in_mid_event_does_no_harm() {
    let session = session_with_terminal();
    let recording = Recording::start(&["--display", &session.display_name()]);
    let mut typist = typist(&session);
    typist.text("before").unwrap();
    let terminal = rustix::process::Pid::from_raw(session.terminal_pid().unwrap() as i32).unwrap();
    rustix::process::kill_process(terminal, rustix::process::Signal::STOP).unwrap();
    typist.text("lost").unwrap();
    rustix::process::kill_process(terminal, rustix::process::Signal::KILL).unwrap();
    let (path, incident) = recording.mark();
    assert!(
        messages(&incident)
            .iter()
            .any(|(message, _)| message.client.0 == session.terminal_pid().unwrap())
    );
    let (code, text) = diagnose(&path, &[]);
    assert!(matches!(code, Some(0 | 3)), "{code:?} {text}");
}

#[test]
fn status_lists_only_the_recorded_display() {
    let [own, other] = [session(), session()];
    let recording = Recording::start(&["--display", &own.display_name()]);
    let output = tipme_as(0, recording.dir.path(), &["status", "--json"]).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        status["recorder"]["displays"],
        serde_json::json!([own.display_name()]),
        "beside {}",
        other.display_name()
    );
}
