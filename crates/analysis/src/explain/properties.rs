// SPDX-License-Identifier: MIT OR Apache-2.0
//! Invariants of every timeline, however odd: states and pieces tile time without gaps.

use crate::decode::events::{SchedChange, SchedEvent};
use crate::decode::names::Names;
use crate::explain::blame::Waiter;
use crate::explain::chain::Chain;
use crate::explain::partition::{Budget, length};
use crate::timeline::contention::Contention;
use crate::timeline::recording::Recording;
use crate::timeline::terminals::Terminals;
use crate::timeline::threads::{Resting, Timeline};
use crate::timeline::waits::Waits;
use proptest::prelude::*;
use tipme_record::records::{Tty, Wait};
use tipme_record::{Cpu, Nanos, Pid, Tid};
use zerocopy::FromZeros;

const MARK: u64 = 10_000_000;

fn event() -> impl Strategy<Value = SchedEvent> {
    let change = prop_oneof![
        5 => Just(SchedChange::Switch),
        4 => Just(SchedChange::Waking),
        1 => Just(SchedChange::Migrate),
        1 => Just(SchedChange::Fork),
        1 => Just(SchedChange::Sampled),
    ];
    let state = prop_oneof![Just(0_u16), Just(1), Just(2), Just(0x8002), Just(4), Just(0x80)];
    (0..MARK, change, 0..6_u32, 0..6_u32, 0..3_u16, state, 0..3_u8).prop_map(
        |(ts, change, tid, other, cpu, state, context)| {
            let argument = if change == SchedChange::Switch { state } else { cpu };
            SchedEvent {
                argument,
                change,
                context,
                ..SchedEvent::switched(Nanos(ts), cpu, tid, other)
            }
        },
    )
}

fn wait() -> impl Strategy<Value = Wait> {
    let syscall = prop_oneof![Just(202), Just(7), Just(61), Just(230), Just(-1), Just(0)];
    (0..MARK, 0..MARK, 1..6_u32, syscall).prop_map(|(start, ts, tid, syscall)| {
        let mut wait = Wait::new_zeroed();
        (wait.head.ts, wait.head.tid, wait.start, wait.syscall) =
            (Nanos(ts), Tid(tid), Nanos(start), syscall);
        wait
    })
}

fn tty() -> impl Strategy<Value = Tty> {
    (0..MARK, 1..6_u32, 0..2_u64, 0..2_u32).prop_map(|(ts, tid, port, stage)| {
        let mut tty = Tty::new_zeroed();
        (tty.head.ts, tty.head.tid, tty.port, tty.stage) = (Nanos(ts), Tid(tid), port, stage);
        tty
    })
}

fn recording() -> impl Strategy<Value = Recording> {
    let lists =
        |n| (proptest::collection::vec(event(), 0..n), proptest::collection::vec(wait(), 0..20));
    (lists(200), proptest::collection::vec(tty(), 0..20)).prop_map(|((mut events, waits), ttys)| {
        events.sort_by_key(|event| event.ts);
        let resting = [Resting { tid: Tid(5), state: 0, cpu: Cpu(1) }];
        let timeline = Timeline::new(events, &resting, Nanos(MARK));
        let terminals = Terminals::new(&ttys, &timeline);
        let waits = Waits::new(waits, &Names::default(), Contention::default());
        Recording { mark: Nanos(MARK), timeline, waits, terminals, ..Recording::default() }
    })
}

proptest! {
    #[test]
    fn every_nanosecond_of_a_thread_is_in_one_state(recording in recording()) {
        for tid in (1..6).map(Tid) {
            let mut spans = recording.timeline.spans(tid);
            let Some(first) = spans.next() else { continue };
            let end = spans.try_fold(first.end, |end, span| (span.start == end && span.end >= end).then_some(span.end));
            prop_assert_eq!(end, Some(Nanos(MARK)));
        }
    }

    #[test]
    fn pieces_tile_the_interval(recording in recording(), tid in 1..6_u32, a in 0..MARK, b in 0..MARK) {
        let (lo, hi) = (Nanos(a.min(b)), Nanos(a.max(b)));
        let chain = Chain::of_thread(&recording, Tid(tid), lo, hi);
        let end = chain.pieces.iter().try_fold(lo, |at, piece| (piece.lo == at && piece.hi > at).then_some(piece.hi));
        prop_assert_eq!(end, Some(hi));
        let budget = Budget::new(&recording, &chain, Waiter { client: Pid(1), command: None }, hi);
        let grouped: u64 = budget.groups().iter().map(|group| group.nanos).sum();
        let pieces: u64 = chain.pieces.iter().map(length).sum();
        prop_assert_eq!((grouped, pieces), (hi.since(lo).0, hi.since(lo).0));
        let shares: f64 = budget.shares().iter().map(|share| share.ms).sum();
        prop_assert!((shares - hi.since(lo).millis()).abs() < 1e-6);
    }

    #[test]
    fn who_ran_tiles_the_interval(recording in recording(), cpu in 0..4_u32, a in 0..MARK, b in 0..MARK) {
        let (lo, hi) = (Nanos(a.min(b)), Nanos(a.max(b)));
        let runs = recording.timeline.ran(Cpu(cpu), lo, hi);
        let end = runs.iter().try_fold(lo, |at, (_, from, to)| (*from == at && *to > at).then_some(*to));
        prop_assert_eq!(end, Some(hi));
    }
}
