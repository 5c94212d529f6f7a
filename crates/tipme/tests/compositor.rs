// SPDX-License-Identifier: MIT OR Apache-2.0
//! The display tap on an unmodified Wayland compositor with a terminal. Needs root, sway and foot.

use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use support::compositor::{Compositor, DISPLAY};
use support::{
    Recording, Running, assert_stopped, contains, interactions, records, verdict, while_stopped,
};
use tipme_bench::until;
use tipme_desktop::inject::Typist;
use tipme_record::RecordKind;
use tipme_record::incident::{Display, Incident, Section};
use tipme_record::records::WlMessage;
use tipme_record::wayland::{BUTTON, ENTERED, HIDDEN, NEAR, PRESSED, RELEASED, SHAPE, WlWord};

/// Time for which a process is stopped: longer than any likely delay of a key on a busy machine.
const STOPPED: Duration = Duration::from_secs(3);

/// Flag of a send with unreadable messages.
const UNREAD: u16 = 2;

/// Directions of records.
const REQUEST_SENT: u8 = 0;
const EVENT_SENT: u8 = 2;

/// A word in no command line on this machine, and the codes of its keys.
const WORD: &str = "xyloquartz";
const CODES: [u32; 10] = [45, 21, 38, 24, 16, 22, 30, 19, 20, 44];

/// Starts a compositor with a terminal that opens while its display is recorded.
fn recorded() -> (Compositor, Typist, Recording, Running) {
    let compositor = Compositor::start();
    let keyboard = compositor.keyboard();
    let recording = Recording::start(&["--display", DISPLAY]);
    let terminal = compositor.terminal(WORD);
    (compositor, keyboard, recording, terminal)
}

/// Types the word, and waits until the compositor has its keys.
fn type_word(keyboard: &mut Typist) {
    keyboard.text(WORD).unwrap();
    keyboard.settle().unwrap();
}

fn messages(incident: &Incident) -> Vec<(WlMessage, Vec<WlWord>)> {
    let messages =
        records(incident, Section::Rare).filter(|entry| entry.kind == RecordKind::WlMessage);
    let read = messages.filter_map(|entry| {
        let message = WlMessage::read(entry.bytes)?;
        Some((message, WlWord::list(&entry.bytes[WlMessage::SIZE..], message.operations).collect()))
    });
    read.collect()
}

/// Returns key-like words sent to a client, ordered by the record's time in milliseconds: messages
/// of an incident are ordered per CPU only, and a compositor may migrate between two keys.
fn keys(incident: &Incident, client: u32) -> Vec<(u32, WlWord)> {
    let sent = messages(incident).into_iter();
    let sent =
        sent.filter(|(message, _)| message.client.0 == client && message.direction == EVENT_SENT);
    let words = sent
        .flat_map(|(message, words)| words.into_iter().map(move |word| (message.head.ts, word)));
    let mut keys: Vec<_> =
        words.filter(|(_, word)| (RELEASED..=PRESSED).contains(&(word.hint & SHAPE))).collect();
    keys.sort_by_key(|(at, _)| *at);
    keys.into_iter().map(|(at, word)| ((at.0 / 1_000_000) as u32, word)).collect()
}

/// Marks until the terminal has received this many presses and releases.
fn marked_with_keys(recording: &Recording, terminal: u32, count: usize) -> (PathBuf, Incident) {
    recording.mark_until("the keys", |path, incident| {
        (keys(&incident, terminal).len() >= count).then_some((path, incident))
    })
}

/// Asserts that no word of an incident contains a key code, and no section the text.
fn check_privacy(incident: &Incident, client: u32) {
    for (at, word) in keys(incident, client) {
        assert_eq!(
            (word.hint & BUTTON, word.hint & NEAR, word.opcode, word.units, word.unused),
            (0, NEAR, 3, 6, 0)
        );
        assert!(
            at.wrapping_sub(word.argument) < 5_000,
            "{} is no time stamp at {at}",
            word.argument
        );
    }
    for (message, words) in messages(incident) {
        for word in words.iter().filter(|word| word.argument != 0) {
            let is_own = matches!((word.hint, word.opcode), (0, 0 | 1 | 3) | (ENTERED.., _));
            assert!(is_own || word.hint & NEAR != 0, "{word:?} in {message:?}");
        }
    }
    let codes = CODES.map(u32::to_le_bytes).concat();
    for (section, bytes) in &incident.sections {
        assert!(
            !contains(bytes, WORD.as_bytes()) && !contains(bytes, &codes),
            "the word is in {section:?}"
        );
    }
}

#[test]
fn keys_of_a_compositor_are_seen_and_never_their_codes_nor_text() {
    let compositor = Compositor::start();
    let mut keyboard = compositor.keyboard();
    let recording = Recording::start(&["--display", DISPLAY]);
    assert!(recording.line.contains(&*compositor.socket().to_string_lossy()), "{}", recording.line);
    let terminal = compositor.terminal(WORD);
    let client = terminal.0.id();
    type_word(&mut keyboard);
    let (path, incident) = marked_with_keys(&recording, client, 2 * CODES.len());
    check_privacy(&incident, client);
    assert!(!contains(&std::fs::read(&path).unwrap(), WORD.as_bytes()), "the word is in the file");
    let unread: Vec<_> = messages(&incident)
        .into_iter()
        .filter(|(message, _)| message.flags & UNREAD != 0)
        .collect();
    assert!(unread.is_empty(), "{unread:?}");
    let (server, stamps) = (
        compositor.sway.0.id(),
        keys(&incident, client).into_iter().map(|(_, word)| word.argument),
    );
    assert!(stamps.collect::<Vec<_>>().is_sorted());
    assert!(
        messages(&incident)
            .iter()
            .all(|(message, _)| message.server.0 == server || message.client.0 != client)
    );
    let commits = messages(&incident).into_iter().filter(|(message, words)| {
        message.client.0 == client
            && message.direction == REQUEST_SENT
            && words.iter().any(|word| (word.opcode, word.units) == (6, 2))
    });
    assert!(commits.count() > 1, "the terminal shows nothing");
}

#[test]
fn hidden_keys_leave_no_trace_of_when_they_were_pressed() {
    let (_compositor, mut keyboard, recording, terminal) = recorded();
    let client = tipme_control::Client::new(recording.dir.path());
    client.call(&tipme_control::RecorderRequest::Keys { record: false }).unwrap();
    type_word(&mut keyboard);
    let (_, incident) = recording.mark();
    assert_eq!(keys(&incident, terminal.0.id()), []);
    let words = messages(&incident).into_iter().flat_map(|(_, words)| words);
    let hidden: Vec<WlWord> = words.filter(|word| word.hint == HIDDEN).collect();
    let nothing =
        WlWord { object: 0, opcode: 0xff, units: 0, hint: HIDDEN, unused: 0, argument: 0 };
    assert!(hidden.iter().all(|word| *word == nothing) && !hidden.is_empty(), "{hidden:?}");
}

#[test]
fn a_recorder_of_one_display_leaves_others_alone() {
    let compositor = Compositor::start();
    let mut keyboard = compositor.keyboard();
    let recording = Recording::start(&["--display", "wayland-0"]);
    let _terminal = compositor.terminal(WORD);
    type_word(&mut keyboard);
    let (_, incident) = recording.mark();
    let server = compositor.sway.0.id();
    let seen = messages(&incident).into_iter().filter(|(message, _)| message.server.0 == server);
    assert_eq!(seen.count(), 0);
}

/// Types some keys, then one while a process is stopped; returns the verdict once it is about that
/// key.
fn stopped_around_a_key(
    recording: &Recording,
    keyboard: &mut Typist,
    (stopped, client): (u32, u32),
) -> Value {
    stopped_between((recording, client), keyboard, (stopped, client))
}

/// Same if the compositor's client, the receiver, is another process than the visible program.
fn stopped_between(
    (recording, receiver): (&Recording, u32),
    keyboard: &mut Typist,
    (stopped, client): (u32, u32),
) -> Value {
    let before = keys(&recording.mark().1, receiver).len();
    type_word(keyboard);
    marked_with_keys(recording, receiver, before + 2 * CODES.len());
    while_stopped(stopped, || {
        keyboard.key('x').unwrap();
        std::thread::sleep(STOPPED);
    });
    let (path, _) = marked_with_keys(recording, receiver, before + 2 * CODES.len() + 2);
    verdict(&path, &["--pid", &client.to_string()])
}

fn check_stopped(verdict: &Value, client: u32, inferred: bool) {
    assert_stopped(verdict, "key", client, STOPPED);
    let is_inferred = verdict["interval"]["inferred"].as_bool().unwrap_or(false);
    assert_eq!(is_inferred, inferred, "{verdict:#}");
}

#[test]
fn a_stopped_client_with_a_known_keyboard_is_named() {
    let _alone = support::alone();
    let (_compositor, mut keyboard, recording, terminal) = recorded();
    let client = terminal.0.id();
    let verdict = stopped_around_a_key(&recording, &mut keyboard, (client, client));
    check_stopped(&verdict, client, false);
}

#[test]
fn a_stopped_client_older_than_the_recorder_is_named() {
    let _alone = support::alone();
    let compositor = Compositor::start();
    let mut keyboard = compositor.keyboard();
    let terminal = compositor.terminal(WORD);
    let client = terminal.0.id();
    let recording = Recording::start(&["--display", DISPLAY]);
    let verdict = stopped_around_a_key(&recording, &mut keyboard, (client, client));
    check_stopped(&verdict, client, true);
    let notes = verdict["notes"].as_array().unwrap().iter().filter_map(Value::as_str);
    assert!(notes.into_iter().any(|note| note.contains("inferred")), "{verdict:#}");
}

#[test]
fn a_stopped_compositor_is_named() {
    let _alone = support::alone();
    let (compositor, mut keyboard, recording, terminal) = recorded();
    let client = terminal.0.id();
    let sway = compositor.sway.0.id();
    let verdict = stopped_around_a_key(&recording, &mut keyboard, (sway, client));
    check_stopped(&verdict, client, false);
    let finding = serde_json::to_string(&verdict["findings"][0]).unwrap();
    assert!(finding.contains("sway"), "{verdict:#}");
}

/// Returns the number of key repeats that a client is known to have answered.
fn answered_repeats(recording: &Recording, client: u32) -> usize {
    let own = interactions(&recording.mark().0).into_iter().filter(|one| {
        one["client_pid"] == client && one["join"] == "exact" && one["class"] == "key"
    });
    own.filter(|one| one["repeated"] == true).count()
}

#[test]
fn a_client_that_was_stopped_while_it_repeated_a_key_is_named() {
    let _alone = support::alone();
    let (_compositor, mut keyboard, recording, terminal) = recorded();
    let client = terminal.0.id();
    type_word(&mut keyboard);
    keyboard.hold('x').unwrap();
    until("some repeats are answered", || answered_repeats(&recording, client) >= 5);
    while_stopped(client, || std::thread::sleep(STOPPED));
    let answered = answered_repeats(&recording, client);
    until("more repeats are answered", || answered_repeats(&recording, client) >= answered + 5);
    keyboard.release('x').unwrap();
    keyboard.settle().unwrap();
    let (path, _) = recording.mark();
    check_stopped(&verdict(&path, &["--pid", &client.to_string()]), client, false);
}

#[test]
fn a_key_that_was_released_at_once_is_not_repeated() {
    let (_compositor, mut keyboard, recording, terminal) = recorded();
    type_word(&mut keyboard);
    marked_with_keys(&recording, terminal.0.id(), 2 * CODES.len());
    assert_eq!(answered_repeats(&recording, terminal.0.id()), 0);
}

/// Returns the processes of a verdict's chain.
fn chain_pids(verdict: &Value) -> Vec<u64> {
    verdict["chain"].as_array().unwrap().iter().filter_map(|piece| piece["pid"].as_u64()).collect()
}

#[test]
fn a_program_of_x11_has_one_chain_through_both_servers() {
    let _alone = support::alone();
    let compositor = Compositor::start_with_x();
    let mut keyboard = compositor.keyboard();
    let (terminal, server) = compositor.x_terminal();
    let (client, sway) = (terminal.0.id(), compositor.sway.0.id());
    let recording = Recording::start(&[]);
    // The first key event sent by the X server identifies a connection without a name.
    until("the X server's connection is known", || {
        keyboard.key('x').unwrap();
        !keys(&recording.mark().1, server).is_empty()
    });
    let verdict = stopped_between((&recording, server), &mut keyboard, (sway, client));
    check_stopped(&verdict, client, false);
    let pids = chain_pids(&verdict);
    for party in [sway, server, client] {
        assert!(pids.contains(&party.into()), "{party} is not in {verdict:#}");
    }
    let finding = serde_json::to_string(&verdict["findings"][0]).unwrap();
    assert!(finding.contains("sway"), "{verdict:#}");
}

/// The X server accepts only its user, not even root, and its compositor listens on the display.
#[test]
fn extensions_of_an_x_server_for_its_user_only_are_known() {
    let _alone = support::alone();
    let compositor = Compositor::start_with_x();
    let _terminal = compositor.x_terminal();
    let (_, incident) = Recording::start(&[]).mark();
    let displays: Vec<Display> = serde_json::from_slice(incident.bytes(Section::Displays)).unwrap();
    let own = displays.iter().filter(|display| display.server_pid == compositor.sway.0.id());
    assert!(
        own.flat_map(|display| &display.extensions).any(|extension| extension.name == "RENDER"),
        "{displays:?}"
    );
}
