// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wayland messages with any words: two clients of one compositor, with threads that run now and
//! then.

use crate::seeds::check_incident;
use tipme_record::incident::{Incident, Meta, Section};
use tipme_record::records::{Switch, WlMessage};
use tipme_record::wayland::{HINTS, WlWord};
use tipme_record::{CHUNK_BYTES, Head, Nanos, Pid, RingClass, Tid};
use zerocopy::{FromZeros, IntoBytes};

const BEGIN_NS: u64 = 1_000_000_000;
const SERVER: u32 = 1;
/// Bytes of the input for one word: object, opcode, length, hint, argument.
const WORD: usize = 5;
/// Maximum number of words of one message.
const WORDS_MAX: usize = 32;

/// Diagnoses the messages.
pub fn check(bytes: &[u8]) -> bool {
    let (mut rare, mut sched) = (head(RingClass::Rare), head(RingClass::Sched));
    let (mut rest, mut ts) = (bytes, BEGIN_NS);
    while let [what, step, count, behind @ ..] = rest {
        let words = usize::from(*count) % (WORDS_MAX + 1);
        let (words, further) = behind.split_at(behind.len().min(words * WORD));
        ts += u64::from(*step) * 50_000;
        add(&mut sched, &switch(ts, u32::from(what / 8) % 5));
        add(&mut rare, &message(ts + 1_000, *what, words));
        rest = further;
    }
    let meta = Meta {
        mark_ns: ts + 1_000_000,
        held_from_ns: BEGIN_NS,
        armed_ns: BEGIN_NS,
        ..Meta::default()
    };
    let mut incident = Incident::default();
    incident.push_json(Section::Meta, &meta).expect("it is JSON");
    for (section, mut chunk) in [(Section::Rare, rare), (Section::Sched, sched)] {
        chunk.resize(CHUNK_BYTES, 0);
        incident.push(section, chunk);
    }
    check_incident(&incident)
}

/// Returns a keyboard that is created and receives keys, a window that is drawn, and similar
/// messages.
pub fn seeds() -> Vec<Vec<u8>> {
    let made = [[2, 0, 8, 11, 4], [4, 1, 3, 0, 8], [2, 0, 10, 10, 5], [5, 0, 3, 0, 9]].concat();
    let key = [8, 3, 6, 142, 1];
    let frame = [[9, 1, 5, 0, 0], [9, 3, 3, 0, 30], [9, 6, 2, 0, 0]].concat();
    let done = [[30, 0, 3, 0, 0], [1, 1, 3, 0, 30]].concat();
    let round = [
        &[2, 1, 1][..],
        &key,
        &[3 | 16, 1, 0],
        &[0, 1, 3],
        &frame,
        &[1 | 8, 1, 0],
        &[2 | 8, 9, 2],
        &done,
        &[3 | 16, 1, 0],
    ];
    let connection = [&[0, 1, 4][..], &made].concat();
    let rounds = round.concat().repeat(12);
    vec![[&connection[..], &rounds].concat(), rounds, connection]
}

fn head(class: RingClass) -> Vec<u8> {
    let (opened, none) = (BEGIN_NS.to_le_bytes(), 0_u32.to_le_bytes());
    [&1_u64.to_le_bytes()[..], &opened, &none, &(class as u32).to_le_bytes(), &0_u64.to_le_bytes()]
        .concat()
}

fn add(chunk: &mut Vec<u8>, record: &[u8]) {
    if chunk.len() + record.len() <= CHUNK_BYTES {
        chunk.extend_from_slice(record);
    }
}

fn switch(ts: u64, next: u32) -> Vec<u8> {
    let mut switch = Switch::new_zeroed();
    let head = Head {
        ts: Nanos(ts),
        tid: Tid(next ^ 1),
        size: Switch::SIZE as u16,
        kind: 1,
        generation: 1,
    };
    (switch.head, switch.next, switch.prev_state) = (head, Tid(next), (next % 2) as u16);
    switch.as_bytes().to_vec()
}

/// Returns a message; the low bits of the first byte are the direction, the next one the client.
fn message(ts: u64, what: u8, bytes: &[u8]) -> Vec<u8> {
    let tail: Vec<u8> =
        bytes.as_chunks().0.iter().flat_map(|word| self::word(*word).as_bytes().to_vec()).collect();
    let mut message = WlMessage::new_zeroed();
    let client = 2 + u32::from(what / 4 % 2);
    let is_client = matches!(what % 4, 0 | 3);
    let size = (WlMessage::SIZE + tail.len()).next_multiple_of(8);
    let tid = if is_client { client } else { SERVER };
    message.head = Head {
        ts: Nanos(ts),
        tid: Tid(tid),
        size: size as u16,
        kind: WlMessage::KIND as u8,
        generation: 1,
    };
    (message.pid, message.client, message.server) = (Pid(tid), Pid(client), Pid(SERVER));
    (message.connection, message.direction, message.bytes) = (client, what % 4, 64);
    message.operations = (tail.len() / WlWord::SIZE) as u8;
    let mut record = [message.as_bytes(), &tail].concat();
    record.resize(size, 0);
    record
}

/// Returns a word; its hints are limited to valid ones with their flags.
fn word([object, opcode, units, hint, argument]: [u8; WORD]) -> WlWord {
    let shape = hint.checked_sub(1).map_or(0, |number| HINTS[usize::from(number) % HINTS.len()].1);
    let hint = if hint < 128 { shape } else { shape | (hint & 0xc0) };
    WlWord { object: object.into(), opcode, units, hint, unused: 0, argument: argument.into() }
}
