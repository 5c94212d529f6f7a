// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random events in random order. [`Fixture`] checks the invariants after every single action.

use crate::support::{Fixture, MIB, process, set};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tipme_policy::{
    Action, DesktopEvent, GroupMemory, Member, Membership, MemoryGroup, MemorySample, Policy, Role,
    SetId, Strength,
};
use tipme_record::Nanos;

const TOTAL: u64 = 3_200 * MIB;
/// Small, so that sets collide and share processes.
const PIDS: u32 = 12;
/// Maximum number of successive deadlines without an event: ten fading steps for each set, plus a
/// margin.
const DEADLINES_MAX: usize = 12 * PIDS as usize + 4;

fn pid() -> impl Strategy<Value = u32> {
    0..=PIDS
}

fn id() -> impl Strategy<Value = SetId> {
    pid().prop_map(set)
}

fn member() -> impl Strategy<Value = Member> {
    let because =
        vec![Membership::Client, Membership::Foreground, Membership::Property, Membership::Child];
    (pid(), proptest::sample::select(because))
        .prop_map(|(pid, because)| Member { who: process(pid), because })
}

fn group() -> impl Strategy<Value = GroupMemory> {
    let name = prop_oneof![
        pid().prop_map(|pid| MemoryGroup::Process(process(pid))),
        (0u8..4).prop_map(|number| MemoryGroup::Cgroup(number.to_string())),
    ];
    let percent = prop_oneof![0f32..100.0, Just(90.0), Just(f32::NAN)];
    let bytes = prop_oneof![0..TOTAL, Just(u64::MAX)];
    (name, bytes, percent, option::of(id())).prop_map(|(group, bytes, full_percent, set)| {
        GroupMemory { group, bytes, full_percent, set }
    })
}

fn sample() -> impl Strategy<Value = MemorySample> {
    let percent = prop_oneof![0f32..20.0, Just(0.0)];
    (prop_oneof![9 => Just(TOTAL), 1 => Just(0)], 0..TOTAL / 4, percent, vec(group(), 0..6))
        .prop_map(|(total, available, some_percent, groups)| MemorySample {
            total,
            available,
            some_percent,
            groups,
        })
}

fn event() -> impl Strategy<Value = DesktopEvent> {
    prop_oneof![
        1 => vec(pid().prop_map(process), 0..3).prop_map(DesktopEvent::Core),
        2 => vec(pid().prop_map(process), 0..3).prop_map(DesktopEvent::Busy),
        6 => (id(), vec(member(), 0..6), any::<bool>())
            .prop_map(|(id, members, visible)| DesktopEvent::Set { id, members, visible }),
        2 => id().prop_map(DesktopEvent::Gone),
        5 => option::of(id()).prop_map(DesktopEvent::Keyboard),
        2 => option::of(id()).prop_map(DesktopEvent::Pointer),
        1 => any::<bool>().prop_map(DesktopEvent::Presence),
        4 => sample().prop_map(DesktopEvent::Memory),
        1 => proptest::sample::select(&Strength::ALL[..]).prop_map(DesktopEvent::Strength),
        3 => Just(DesktopEvent::Time),
    ]
}

/// Generates events, each with its delay in milliseconds after the previous one.
fn events() -> impl Strategy<Value = Vec<(u64, DesktopEvent)>> {
    let wait = prop_oneof![Just(0), 0u64..400, 0u64..20_000, 0u64..700_000];
    vec((wait, event()), 0..60)
}

fn play(fixture: &mut Fixture, events: Vec<(u64, DesktopEvent)>) -> u64 {
    let mut ms = 0;
    for (wait, event) in events {
        ms += wait;
        fixture.at(ms, event.clone());
        assert_eq!(fixture.at(ms, event.clone()), [], "{event:?} acts twice");
        check(fixture);
    }
    ms
}

/// Asserts the invariants that hold between events.
fn check(fixture: &Fixture) {
    for assignment in fixture.assigned.values() {
        assert!((0.0..1.0).contains(&assignment.faded));
        assert!(assignment.faded == 0.0 || assignment.role == Role::Recent);
        for member in &assignment.members {
            let expected = Some((assignment.role, &assignment.reason));
            assert_eq!(fixture.policy.role(member.who.pid), expected, "role of {:?}", member.who);
        }
    }
    assert!(fixture.protected.values().sum::<u64>() <= TOTAL / 2);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_events_give_consistent_actions(events in events()) {
        play(&mut Fixture::new(Strength::Normal), events);
    }

    #[test]
    fn off_leaves_nothing_behind(events in events()) {
        let mut fixture = Fixture::new(Strength::Normal);
        let ms = play(&mut fixture, events);
        fixture.at(ms, DesktopEvent::Strength(Strength::Off));
        prop_assert!(fixture.is_idle());
    }

    #[test]
    fn when_all_are_gone_nothing_is_left(events in events()) {
        let mut fixture = Fixture::new(Strength::Normal);
        let ms = play(&mut fixture, events);
        fixture.at(ms, DesktopEvent::Core(vec![]));
        fixture.at(ms, DesktopEvent::Busy(vec![]));
        for pid in 0..=PIDS {
            fixture.at(ms, DesktopEvent::Gone(set(pid)));
        }
        for second in [0, 10] {
            let groups = vec![];
            let plenty = MemorySample { total: TOTAL, available: TOTAL, some_percent: 0.0, groups };
            fixture.at(ms + second * 1_000, DesktopEvent::Memory(plenty));
        }
        prop_assert!(fixture.is_idle());
    }

    #[test]
    fn deadlines_come_to_an_end(events in events(), strange in any::<u64>()) {
        let mut policy = Policy::new(Strength::Normal);
        let mut now = Nanos(strange);
        for (wait, event) in events {
            now = now.after(Nanos::from_millis(wait));
            policy.handle(now, event);
        }
        let mut count = 0;
        while let Some(due) = policy.next() {
            prop_assert!(due > now, "{due} is not after {now}");
            now = due;
            policy.handle(now, DesktopEvent::Time);
            count += 1;
            prop_assert!(count <= DEADLINES_MAX, "time alone goes on for ever");
        }
    }

    #[test]
    fn deadlines_miss_no_change(events in events()) {
        let mut waits = Fixture::new(Strength::Normal);
        let mut looks = Fixture::new(Strength::Normal);
        let mut ms = 0;
        for (wait, event) in events {
            let until = ms + wait.min(30_000);
            while let Some(due) = waits.next_ms().filter(|due| *due <= until) {
                waits.at(due, DesktopEvent::Time);
            }
            while ms < until {
                ms = (ms + 500).min(until);
                looks.at(ms, DesktopEvent::Time);
            }
            waits.at(ms, event.clone());
            looks.at(ms, event);
            for pid in 0..=PIDS {
                prop_assert_eq!(waits.role(pid), looks.role(pid));
            }
        }
    }

    #[test]
    fn favour_is_never_late(events in events(), pid in 1..=PIDS) {
        let mut fixture = Fixture::new(Strength::Normal);
        let ms = play(&mut fixture, events);
        let members = vec![Member { who: process(pid), because: Membership::Client }];
        fixture.at(ms, DesktopEvent::Strength(Strength::Normal));
        fixture.at(ms, DesktopEvent::Presence(true));
        fixture.at(ms, DesktopEvent::Set { id: set(pid), members, visible: false });
        fixture.at(ms, DesktopEvent::Keyboard(Some(set(pid))));
        prop_assert!(matches!(fixture.role(pid), Some(Role::Core | Role::Focused)));
    }
}

#[test]
fn shared_processes_go_to_the_focused_set() {
    let mut policy = Policy::new(Strength::Normal);
    let shared: Vec<Member> =
        (1..=512).map(|pid| Member { who: process(pid), because: Membership::Property }).collect();
    for client in 1..=32 {
        policy.handle(
            Nanos(0),
            DesktopEvent::Set { id: set(client), members: shared.clone(), visible: true },
        );
    }
    let actions = policy.handle(Nanos(1), DesktopEvent::Keyboard(Some(set(300))));
    assert_eq!(actions, [], "an unknown set");
    let actions = policy.handle(Nanos(2), DesktopEvent::Keyboard(Some(set(32))));
    let moved = actions
        .iter()
        .filter(|action| matches!(action, Action::Assign(one) if one.members.len() > 32));
    assert_eq!(moved.count(), 1, "the focused set has all processes that are no clients");
}
