// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model of the kernel programs' `packed.h`, with tests that read back its output.

use super::*;
use crate::chunk::entries;
use crate::packed::{
    Bits, GENERATION, KIND, PACKED, PRIO, PRIO_LEAST, STATE, STATE_PARTS, STEP_BITS, TID, TIME,
};
use proptest::prelude::*;
use proptest::sample::Index;

const STEP_NS: u64 = 1 << STEP_BITS;
const SPAN_NS: u64 = STEP_NS << TIME.count;
const HEAD: usize = size_of::<ChunkHead>();
const OPENED: u64 = 1_000_000_000 * STEP_NS;

/// An action of the scheduler on one CPU. Times and threads follow from the state before it.
#[derive(Clone, Copy, Debug)]
enum ModelEvent {
    Switch {
        next: u32,
        prio: u8,
        state: u16,
    },
    /// The running thread changes its priority.
    Renice {
        prio: u8,
    },
    Waking {
        tid: u32,
        prio: u8,
        target: u16,
        context: u8,
    },
    Migrate {
        tid: u32,
        from: u16,
        to: u16,
    },
    /// A thread other than the one switched to last migrates a thread.
    ByAnother {
        by: u32,
        tid: u32,
    },
}

/// A CPU that writes to a chunk.
struct ModelWriter {
    chunk: Vec<u8>,
    taken: u64,
    fresh: bool,
    since: u64,
    running: u32,
    prio: Option<u8>,
    /// Actual running thread and priority.
    runs: (u32, u8),
    whole: Vec<Vec<u8>>,
    /// Stores of each record in order: position and word.
    stores: Vec<Vec<(usize, u64)>>,
}

fn put(field: Bits, value: u64) -> u64 {
    assert!(value <= field.mask(), "{} does not fit", field.name);
    value << field.at
}

fn fits(field: Bits, value: impl Into<u64>) -> bool {
    value.into() <= field.mask()
}

fn above(prio: u8) -> u32 {
    u32::from(prio).wrapping_sub(u32::from(PRIO_LEAST))
}

fn packed_state(state: u16) -> Option<u64> {
    let known = STATE_PARTS.iter().fold(0, |all, (mask, _)| all | mask);
    let packed =
        STATE_PARTS.iter().fold(0, |all, (mask, shift)| all | u64::from(state & mask) >> shift);
    (state & !known == 0).then_some(packed)
}

impl ModelWriter {
    fn new(taken: u64) -> ModelWriter {
        let head = ChunkHead { taken, opened: Nanos(OPENED), cpu: 3, class: 0, closed: Nanos(0) };
        ModelWriter {
            chunk: head.as_bytes().to_vec(),
            taken,
            fresh: true,
            since: 0,
            running: 0,
            prio: None,
            runs: (7, 120),
            whole: Vec::new(),
            stores: Vec::new(),
        }
    }

    fn head(&self, ts: u64, tid: u32, kind: RecordKind) -> Head {
        Head {
            ts: Nanos(ts),
            tid: Tid(tid),
            size: 24,
            kind: kind as u8,
            generation: self.taken as u8,
        }
    }

    fn write(&mut self, ts: u64, event: ModelEvent) {
        let (running, prio) = self.runs;
        match event {
            ModelEvent::Switch { next, prio: next_prio, state } => {
                self.switch(ts, (next, next_prio), state)
            }
            ModelEvent::Renice { prio } => self.runs.1 = prio,
            ModelEvent::Waking { tid, prio, target, context } => {
                let head = self.head(ts, tid, RecordKind::Waking);
                let waking =
                    Waking { head, waker: Tid(running), target_cpu: target, context, prio };
                let fit = fits(TID, tid)
                    && fits(PRIO, above(prio))
                    && fits(TARGET, target)
                    && tid != running;
                let word = fit.then(|| {
                    put(TID, tid.into())
                        | put(PRIO, above(prio).into())
                        | put(TARGET, target.into())
                        | put(CONTEXT, context.into())
                });
                self.record(
                    ts,
                    running,
                    word,
                    waking.as_bytes(),
                    RecordKind::Waking,
                    tid != running,
                );
            }
            ModelEvent::Migrate { tid, from, to } => {
                let migrate = Migrate {
                    head: self.head(ts, tid, RecordKind::Migrate),
                    from,
                    to,
                    by: Tid(running),
                };
                let fit = fits(TID, tid) && fits(FROM, from) && fits(TO, to);
                let word =
                    fit.then(|| put(TID, tid.into()) | put(FROM, from.into()) | put(TO, to.into()));
                self.record(ts, running, word, migrate.as_bytes(), RecordKind::Migrate, true);
            }
            ModelEvent::ByAnother { by, tid } => {
                self.runs.0 = by;
                self.write(ts, ModelEvent::Migrate { tid, from: 0, to: 1 });
                self.runs = (running, prio);
            }
        }
    }

    fn switch(&mut self, ts: u64, next: (u32, u8), state: u16) {
        let (tid, prev_prio) = self.runs;
        let head = self.head(ts, tid, RecordKind::Switch);
        let switch =
            Switch { head, next: Tid(next.0), prev_state: state, prev_prio, next_prio: next.1 };
        let fit = self.prio == Some(prev_prio) && fits(TID, next.0) && fits(PRIO, above(next.1));
        let state = packed_state(state).filter(|_| fit);
        let word = state.map(|state| {
            put(TID, next.0.into()) | put(PRIO, above(next.1).into()) | put(STATE, state)
        });
        self.record(ts, tid, word, switch.as_bytes(), RecordKind::Switch, true);
        (self.runs, self.running, self.prio) = (next, next.0, Some(next.1));
    }

    /// Writes the word if the reader knows the rest; otherwise the full record, which updates the
    /// reader's knowledge if `is_news`.
    fn record(
        &mut self,
        ts: u64,
        running: u32,
        word: Option<u64>,
        whole: &[u8],
        kind: RecordKind,
        is_news: bool,
    ) {
        let known = !self.fresh && running == self.running && ts.wrapping_sub(self.since) < SPAN_NS;
        match word.filter(|_| known) {
            Some(word) => {
                let time = (ts >> STEP_BITS) & TIME.mask();
                let word = word | put(TIME, time) | put(GENERATION, self.taken & GENERATION.mask());
                let word = word | put(KIND, kind as u64) | put(PACKED, 1);
                self.store(&[word], &[0]);
            }
            None => {
                let (words, _) = whole.as_chunks::<WORD_BYTES>();
                let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
                self.store(&words, &[2, 0, 1]);
                if is_news {
                    self.publish(ts, running);
                }
            }
        }
        self.whole.push(whole.to_vec());
    }

    /// Stores the words of a record in this order.
    fn store(&mut self, words: &[u64], order: &[usize]) {
        let at = self.chunk.len();
        self.stores.push(order.iter().map(|word| (at + word * WORD_BYTES, words[*word])).collect());
        self.chunk.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    fn publish(&mut self, ts: u64, running: u32) {
        if self.fresh || running != self.running {
            self.prio = None;
        }
        (self.fresh, self.running, self.since) = (false, running, ts);
    }

    /// Returns the chunk with leftovers of an earlier use after it.
    fn onto(&self, stale: &[u8]) -> Vec<u8> {
        let mut chunk = self.chunk.clone();
        chunk.extend_from_slice(stale.get(chunk.len()..).unwrap_or_default());
        chunk.resize(CHUNK_BYTES, 0);
        chunk
    }
}

/// Returns a chunk with these stores applied to the leftovers of an earlier use.
fn stored(writer: &ModelWriter, stale: &[u8], stores: &[(usize, u64)]) -> Vec<u8> {
    let mut chunk = [&writer.chunk[..HEAD], stale.get(HEAD..).unwrap_or_default()].concat();
    chunk.resize(CHUNK_BYTES, 0);
    for (at, word) in stores {
        chunk[*at..at + WORD_BYTES].copy_from_slice(&word.to_le_bytes());
    }
    chunk
}

fn read(chunk: &[u8]) -> Vec<Vec<u8>> {
    unpacked(chunk)
        .chunks(CHUNK_BYTES)
        .flat_map(entries)
        .map(|entry| entry.bytes.to_vec())
        .collect()
}

fn written(taken: u64, events: &[(u64, ModelEvent)]) -> ModelWriter {
    let mut writer = ModelWriter::new(taken);
    let mut ts = OPENED;
    for (later, event) in events {
        ts += later / STEP_NS * STEP_NS;
        if writer.chunk.len() <= CHUNK_BYTES - 512 {
            writer.write(ts, *event);
        }
    }
    writer
}

fn tids() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0..8_u32, 1 => Just((1_u32 << 22) - 1), 1 => 1_u32 << 22..1 << 24]
}

fn prios() -> impl Strategy<Value = u8> {
    prop_oneof![6 => Just(120_u8), 2 => 100..140_u8, 1 => 0..140_u8]
}

fn states() -> impl Strategy<Value = u16> {
    let known =
        prop_oneof![4 => Just(0_u16), 2 => Just(0x2001), 1 => Just(0x402), 1 => Just(0x8102)];
    prop_oneof![8 => known, 1 => any::<u16>()]
}

fn cpus() -> impl Strategy<Value = u16> {
    prop_oneof![8 => 0..128_u16, 1 => any::<u16>()]
}

fn events() -> impl Strategy<Value = Vec<(u64, ModelEvent)>> {
    let event = prop_oneof![
        8 => (tids(), prios(), states())
            .prop_map(|(next, prio, state)| ModelEvent::Switch { next, prio, state }),
        8 => (tids(), prios(), cpus(), 0..3_u8).prop_map(|(tid, prio, target, context)| {
            ModelEvent::Waking { tid, prio, target, context }
        }),
        2 => (tids(), cpus(), cpus())
            .prop_map(|(tid, from, to)| ModelEvent::Migrate { tid, from, to }),
        1 => prios().prop_map(|prio| ModelEvent::Renice { prio }),
        1 => (tids(), tids()).prop_map(|(by, tid)| ModelEvent::ByAnother { by, tid }),
    ];
    let later = prop_oneof![
        8 => 0..5_000_u64,
        1 => Just(0),
        1 => SPAN_NS - 64..SPAN_NS + 64,
        1 => 0..10 * SPAN_NS,
    ];
    proptest::collection::vec((later, event), 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn what_is_written_is_read_back(taken in 18..250_u64, now in events(), before in events()) {
        let stale = written(taken, &before).onto(&[]);
        let writer = written(taken + 1, &now);
        prop_assert_eq!(read(&writer.onto(&stale)), writer.whole);
    }

    #[test]
    fn the_begin_of_a_chunk_in_the_making_is_read(
        now in events(),
        before in events(),
        cut in any::<Index>(),
    ) {
        let writer = written(100, &now);
        let stores: Vec<(usize, u64)> = writer.stores.concat();
        let begun = cut.index(stores.len() + 1);
        let torn = stored(&writer, &written(99, &before).onto(&[]), &stores[..begun]);
        let mut left = begun;
        let whole = writer.stores.iter().take_while(|stores| {
            let done = stores.len() <= left;
            left = left.saturating_sub(stores.len());
            done
        });
        let (found, count) = (read(&torn), whole.count());
        prop_assert_eq!((found.len(), found.last()), (count, writer.whole[..count].last()));
        prop_assert_eq!(&found[..], &writer.whole[..count]);
    }

    #[test]
    fn a_hole_makes_no_record_wrong(now in events(), hole in any::<Index>()) {
        let writer = written(100, &now);
        let mut stores = writer.stores.clone();
        if !stores.is_empty() {
            stores.remove(hole.index(stores.len()));
        }
        let torn = stored(&writer, &[], &stores.concat());
        let mut rest = writer.whole.iter();
        for record in read(&torn) {
            prop_assert!(rest.any(|whole| *whole == record), "{:?} was not written", record);
        }
    }

    #[test]
    fn any_bytes_are_read(
        bytes in proptest::collection::vec(any::<u64>(), 0..2_000),
        words in any::<bool>(),
    ) {
        let head = ChunkHead { taken: 1, opened: Nanos(0), cpu: 0, class: 0, closed: Nanos(0) };
        let words = bytes.iter().map(|word| if words { word | 1 << 63 } else { *word });
        let mut chunk = [head.as_bytes().to_vec(), words.flat_map(u64::to_le_bytes).collect()].concat();
        chunk.resize(CHUNK_BYTES, 0);
        prop_assert!(read(&chunk).len() <= CHUNK_BYTES / WORD_BYTES);
    }
}

#[test]
fn a_busy_chunk_is_nearly_all_words() {
    let events: Vec<(u64, ModelEvent)> = (0..8_000)
        .map(|number| match number % 2 {
            0 => (
                5_000,
                ModelEvent::Waking { tid: 21 + number / 2 % 2, prio: 120, target: 1, context: 0 },
            ),
            _ => {
                (5_000, ModelEvent::Switch { next: 21 + number / 2 % 2, prio: 120, state: 0x2001 })
            }
        })
        .collect();
    let writer = written(1, &events);
    assert_eq!(writer.whole.len(), 8_000);
    assert!(writer.chunk.len() < 8_000 * 8 + 200, "{} bytes", writer.chunk.len());
    assert_eq!(read(&writer.onto(&[])), writer.whole);
}

#[test]
fn fields_of_a_kind_do_not_overlap() {
    let kinds: [&[Bits]; 3] =
        [&[TID, PRIO, STATE], &[TID, PRIO, CONTEXT, TARGET], &[TID, FROM, TO]];
    for fields in kinds {
        let fields = [fields, &[TIME, GENERATION, KIND, PACKED]].concat();
        let all =
            fields.iter().fold(0_u128, |all, field| all + (u128::from(field.mask()) << field.at));
        assert_eq!(all.count_ones(), fields.iter().map(|field| field.count).sum::<u32>());
        assert!(all <= u128::from(u64::MAX));
    }
}

#[test]
fn no_word_of_a_whole_record_looks_like_a_packed_one() {
    for prio in 0..=139_u8 {
        let head = Head { ts: Nanos(1 << 62), tid: Tid(7), size: 24, kind: 1, generation: 0xfe };
        let switch = Switch {
            head,
            next: Tid(u32::MAX),
            prev_state: u16::MAX,
            prev_prio: prio,
            next_prio: prio,
        };
        let (words, _) = switch.as_bytes().as_chunks::<WORD_BYTES>();
        assert!(
            words.iter().all(|word| PackedWord::first(word, 0xff).is_none()),
            "with priority {prio}"
        );
    }
}
