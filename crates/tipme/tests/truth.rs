// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder's times of typing, held against those of a client that stamps its own. Needs root.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that fails")]

mod support;

use support::{Recording, records};
use tipme_bench::Session;
use tipme_bench::alone::Alone;
use tipme_bench::interrupt::Interrupt;
use tipme_bench::job::Helper;
use tipme_bench::session::Options;
use tipme_bench::truth::{Truth, TruthClient};
use tipme_desktop::inject::Pace;
use tipme_record::incident::{Display, Incident, Section};
use tipme_record::records::Message;
use tipme_record::{Kind, Nanos};

const KEYS: u32 = 400;

/// Directions of a message.
const REQUEST_SENT: u8 = 0;
const EVENT_SENT: u8 = 2;
const EVENT_RECEIVED: u8 = 3;
/// First bytes of operations.
const KEY_PRESS: u8 = 2;
const FILL_RECTANGLE: u8 = 70;

fn messages(incident: &Incident) -> Vec<(Message, Vec<[u8; 4]>)> {
    let of_kind = records(incident, Section::Rare).filter(|entry| entry.kind == Kind::Message);
    let read = of_kind.map(|entry| {
        let message = Message::read(entry.bytes).unwrap();
        let words = entry.bytes[Message::SIZE..].as_chunks().0;
        (message, words[..usize::from(message.operations)].to_vec())
    });
    let mut all: Vec<_> = read.collect();
    all.sort_by_key(|(message, _)| message.head.ts);
    all
}

/// When key presses were sent to the server by `client`.
fn injections(messages: &[(Message, Vec<[u8; 4]>)], client: u32, xtest: u8) -> Vec<Nanos> {
    let press = |word: &[u8; 4]| word[0] == xtest && word[1] == 2 && word[3] == KEY_PRESS;
    let sent = messages.iter().filter(|(message, _)| message.client.0 == client && message.direction == REQUEST_SENT);
    sent.filter(|(_, words)| words.iter().any(press)).map(|(message, _)| message.head.ts).collect()
}

/// For each key press: when `client` took the event, and the reply to the request behind its drawing.
///
/// A message may be taken before the record of its sending is made: that record comes late then and
/// without operations. So a key press that is seen begins a new turn, and where it is not seen the
/// client's next message after a turn does.
fn answers(messages: &[(Message, Vec<[u8; 4]>)], client: u32) -> Vec<(Nanos, Nanos)> {
    let mut found = Vec::new();
    let (mut received, mut drawn) = (None, false);
    for (message, words) in messages.iter().filter(|(message, _)| message.client.0 == client) {
        let has = |code: u8| words.iter().any(|word| word[0] == code);
        match message.direction {
            EVENT_SENT if has(KEY_PRESS) => (received, drawn) = (None, false),
            REQUEST_SENT => drawn |= received.is_some() && (words.is_empty() || has(FILL_RECTANGLE)),
            EVENT_RECEIVED if drawn => {
                found.extend(received.take().map(|received| (received, message.head.ts)));
                drawn = false;
            }
            EVENT_RECEIVED if received.is_none() => received = Some(message.head.ts),
            _ => {}
        }
    }
    found
}

fn quantile(errors: &mut [u64], share: f64) -> f64 {
    errors.sort_unstable();
    let at = (errors.len() as f64 * share).ceil() as usize;
    errors[at.clamp(1, errors.len()) - 1] as f64 / 1e6
}

fn check(what: &str, mut errors: Vec<u64>) {
    let (median, p99) = (quantile(&mut errors, 0.5), quantile(&mut errors, 0.99));
    println!("{what}: error p50 {median:.3} ms, p99 {p99:.3} ms of {}", errors.len());
    assert!(median <= 0.3, "{what}: median error {median} ms");
    assert!(p99 <= 1.0, "{what}: p99 error {p99} ms");
}

#[test]
fn recorded_times_agree_with_the_clients_own() {
    let _alone = Alone::wait(&Interrupt::default(), || ()).unwrap();
    let session = Session::start(Options::default()).unwrap();
    let recording = Recording::start(&["--display", &session.display_name()]);
    let helper = Helper(vec![env!("CARGO_BIN_EXE_tipme").into(), "helper".into()]);
    let client = TruthClient::start(&session, &helper, KEYS).unwrap();
    let pid = client.pid();
    let pace = Pace { words_per_minute: 600.0, variation: 0.5, seed: 3 };
    let truths: Vec<Truth> = client.drive(&session, pace).unwrap();
    let (_, incident) = recording.mark();
    let displays: Vec<Display> = incident.json(Section::Displays).unwrap();
    let extensions = displays.iter().flat_map(|display| &display.extensions);
    let xtest = extensions.filter(|one| one.name == "XTEST").map(|one| one.major).next().unwrap();
    let messages = messages(&incident);
    let injected = injections(&messages, std::process::id(), xtest);
    let answered = answers(&messages, pid);
    assert_eq!((injected.len(), answered.len()), (KEYS as usize, KEYS as usize));
    let against = |recorded: &dyn Fn(usize) -> Nanos, truth: &dyn Fn(&Truth) -> Nanos| {
        truths.iter().enumerate().map(|(at, one)| recorded(at).0.abs_diff(truth(one).0)).collect::<Vec<u64>>()
    };
    check("input", against(&|at| injected[at], &|one| one.injected));
    check("event taken", against(&|at| answered[at].0, &|one| one.received));
    check("latency", against(&|at| answered[at].1.since(injected[at]), &|one| one.finished.since(one.injected)));
}
