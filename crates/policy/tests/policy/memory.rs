// SPDX-License-Identifier: MIT OR Apache-2.0
//! Behaviour during a memory shortage. The machine has 3200 MiB: memory is short below 200,
//! plentiful above 400, and a hog's share is 100.

use crate::support::{Fixture, MIB, cgroup, holder, process, set, shown};
use tipme_policy::{DesktopEvent, GroupMemory, HOGS_MAX, MemorySample, Role, Strength};

const TOTAL: u64 = 3_200 * MIB;

fn sample(available_mib: u64, some_percent: f32, groups: &[GroupMemory]) -> DesktopEvent {
    DesktopEvent::Memory(MemorySample {
        total: TOTAL,
        available: available_mib * MIB,
        some_percent,
        groups: groups.to_vec(),
    })
}

/// Returns a fixture with the focused client 10 and the hidden client 20.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new(Strength::Normal);
    fixture.at(0, shown(&[10, 11], true));
    fixture.at(0, shown(&[20, 21], false));
    fixture.at(0, DesktopEvent::Keyboard(Some(set(10))));
    fixture
}

fn big(mib: u64) -> [GroupMemory; 1] {
    [cgroup("big", mib * MIB, 0.0, Some(set(20)))]
}

#[test]
fn enough_memory_makes_no_hogs() {
    let mut fixture = fixture();
    assert!(fixture.lines(0, sample(200, 10.0, &big(2_000))).is_empty());
    assert!(fixture.lines(1_000, sample(3_000, 0.0, &big(2_000))).is_empty());
}

#[test]
fn a_hog_is_limited_in_steps_until_memory_is_plentiful() {
    let mut fixture = fixture();
    let expected = [
        "20 hog [20 21]: memory is short and it has 1000 MiB",
        "limit big: 900 MiB",
        "reclaim big: 150 MiB",
    ];
    assert_eq!(fixture.lines(0, sample(50, 0.0, &big(1_000))), expected);
    assert!(fixture.lines(500, sample(50, 0.0, &big(900))).is_empty(), "one step each second");
    assert_eq!(
        fixture.lines(1_000, sample(300, 0.0, &big(900))),
        ["limit big: 810 MiB"],
        "not short, but not plenty"
    );
    assert!(
        fixture.lines(2_000, sample(300, 0.0, &big(1_000))).is_empty(),
        "a limit does not rise with its use"
    );
    assert_eq!(
        fixture.lines(3_000, sample(300, 0.0, &big(105))),
        ["limit big: 100 MiB"],
        "its share is left to it"
    );
    assert!(fixture.lines(4_000, sample(300, 0.0, &big(100))).is_empty());
    assert!(fixture.lines(5_000, sample(500, 0.0, &big(100))).is_empty());
    assert!(fixture.lines(14_999, sample(500, 0.0, &big(100))).is_empty());
    let released = ["20 rest [20 21]: nobody attends to it", "release big"];
    assert_eq!(fixture.lines(15_000, sample(500, 0.0, &big(100))), released);
}

#[test]
fn plenty_must_last() {
    let mut fixture = fixture();
    fixture.at(0, sample(50, 0.0, &big(1_000)));
    for (ms, available, some) in
        [(1_000, 500, 0.0), (9_000, 500, 1.0), (10_000, 500, 0.0), (19_000, 400, 0.0)]
    {
        fixture.at(ms, sample(available, some, &[]));
    }
    fixture.at(20_000, sample(500, 0.0, &[]));
    fixture.at(29_999, sample(500, 0.0, &[]));
    assert_eq!(fixture.role(20), Some(Role::Hog), "it was never plenty for 10 s");
    fixture.at(30_000, sample(500, 0.0, &[]));
    assert_eq!((fixture.role(20), fixture.limited.len()), (Some(Role::Rest), 0));
}

#[test]
fn waiting_makes_memory_short_as_well() {
    let mut fixture = fixture();
    let lines = fixture.lines(0, sample(1_000, 10.5, &big(1_000)));
    assert_eq!(lines[1..], ["limit big: 900 MiB"], "nothing is missing, so nothing is reclaimed");
}

#[test]
fn the_share_itself_makes_no_hog_and_parts_count_together() {
    let mut fixture = fixture();
    assert!(fixture.lines(0, sample(50, 0.0, &big(100))).is_empty());
    let parts =
        [cgroup("a", 60 * MIB, 0.0, Some(set(20))), cgroup("b", 90 * MIB, 0.0, Some(set(20)))];
    let lines = fixture.lines(1_000, sample(199, 0.0, &parts));
    let expected = [
        "20 hog [20 21]: memory is short and it has 150 MiB",
        "limit a: 54 MiB",
        "reclaim a: 1 MiB",
        "limit b: 81 MiB",
    ];
    assert_eq!(lines, expected);
    fixture.at(
        2_000,
        sample(199, 0.0, &[cgroup("a", 41 * MIB, 0.0, Some(set(20))), parts[1].clone()]),
    );
    assert!(fixture.limited.values().sum::<u64>() > 100 * MIB, "the parts keep the share together");
}

#[test]
fn the_focused_set_and_the_core_are_never_hogs() {
    let mut fixture = fixture();
    fixture.at(0, DesktopEvent::Core(vec![process(1)]));
    let groups = [holder(10, 900 * MIB), holder(1, 500 * MIB), holder(20, 50 * MIB)];
    let lines = fixture.lines(0, sample(10, 50.0, &groups));
    assert_eq!(lines, ["protect 1: 500 MiB", "protect 10: 900 MiB"]);
    fixture.at(100, DesktopEvent::Keyboard(Some(set(20))));
    fixture.at(200, sample(10, 50.0, &groups));
    assert_eq!(fixture.role(10), Some(Role::Focused), "not while it still has the favour either");
}

#[test]
fn a_focus_lost_while_memory_is_short_makes_a_hog() {
    let mut fixture = fixture();
    let groups = [holder(10, 900 * MIB)];
    fixture.at(0, sample(10, 0.0, &groups));
    fixture.at(1_000, DesktopEvent::Keyboard(Some(set(20))));
    assert_eq!(fixture.lines(1_200, DesktopEvent::Time)[1..], ["protect 10: 0 MiB"]);
    assert_eq!(
        fixture.lines(2_000, sample(10, 0.0, &groups))[0],
        "10 hog [10 11]: memory is short and it has 900 MiB"
    );
}

#[test]
fn a_hog_that_gets_the_focus_is_released_at_once() {
    let mut fixture = fixture();
    fixture.at(0, sample(50, 0.0, &big(1_000)));
    let lines = fixture.lines(6_000, DesktopEvent::Keyboard(Some(set(20))));
    let expected = [
        "20 focused [20 21]: it has the keyboard focus",
        "will need 20",
        "release big",
        "protect 20: 1000 MiB",
    ];
    assert_eq!(lines, expected);
}

fn strained(percent: f32) -> [GroupMemory; 1] {
    [cgroup("big", 1_000 * MIB, percent, Some(set(20)))]
}

#[test]
fn a_strained_hog_gets_some_back() {
    let mut fixture = fixture();
    fixture.at(0, sample(50, 0.0, &strained(0.0)));
    for ms in [1_000, 15_000, 30_999] {
        assert!(
            fixture.lines(ms, sample(50, 0.0, &strained(81.0))).is_empty(),
            "{ms}: not pressed further"
        );
    }
    assert_eq!(fixture.lines(31_000, sample(50, 0.0, &strained(81.0))), ["relieve big: 990 MiB"]);
    assert!(fixture.lines(60_000, sample(50, 0.0, &strained(81.0))).is_empty());
    assert_eq!(fixture.lines(61_000, sample(50, 0.0, &strained(81.0))), ["relieve big: 1089 MiB"]);
    let pressed = fixture.lines(62_000, sample(199, 0.0, &strained(80.0)));
    assert_eq!(pressed, ["limit big: 900 MiB", "reclaim big: 1 MiB"]);
}

#[test]
fn a_hog_without_a_window_becomes_a_set_of_its_own() {
    let mut fixture = fixture();
    let loose = [holder(70, 500 * MIB), cgroup("batch", 400 * MIB, 0.0, None)];
    let expected = [
        "70 hog [70]: memory is short and it has 500 MiB",
        "cold 70",
        "limit 70: 450 MiB",
        "reclaim 70: 190 MiB",
        "limit batch: 360 MiB",
    ];
    assert_eq!(fixture.lines(0, sample(10, 0.0, &loose)), expected);
    assert_eq!(
        fixture.lines(1_000, sample(10, 0.0, &loose)),
        ["reclaim 70: 190 MiB"],
        "it is marked as cold once"
    );
    let claimed = fixture.lines(2_000, shown(&[10, 70], true));
    assert_eq!(
        claimed,
        ["70 forgotten", "10 focused [10 70]: it has the keyboard focus", "release 70"]
    );
    let off = fixture.lines(3_000, DesktopEvent::Strength(Strength::Off));
    assert_eq!(off, ["10 forgotten", "20 forgotten", "release batch"]);
}

#[test]
fn memory_of_a_former_hog_counts_for_its_new_owner_at_once() {
    let mut fixture = fixture();
    fixture.at(0, sample(10, 0.0, &[holder(70, 500 * MIB)]));
    fixture.at(1_000, sample(500, 0.0, &[]));
    let named = [GroupMemory { set: Some(set(10)), ..holder(70, 500 * MIB) }];
    let released = ["70 forgotten", "release 70", "protect 10: 500 MiB"];
    assert_eq!(fixture.lines(11_000, sample(500, 0.0, &named)), released);
    assert!(
        fixture.lines(11_000, sample(500, 0.0, &named)).is_empty(),
        "the same sample says nothing new"
    );
}

#[test]
fn a_hogs_process_that_moves_to_the_focus_is_released_at_once() {
    let mut fixture = fixture();
    fixture.at(0, sample(50, 0.0, &[holder(21, 1_000 * MIB)]));
    fixture.at(1_000, shown(&[20], false));
    let lines = fixture.lines(2_000, shown(&[10, 11, 21], true));
    assert_eq!(lines, ["10 focused [10 11 21]: it has the keyboard focus", "release 21"]);
    assert_eq!(fixture.role(20), Some(Role::Hog), "until memory is plentiful");
}

#[test]
fn a_hog_that_leaves_the_display_is_released() {
    let mut fixture = fixture();
    fixture.at(0, sample(50, 0.0, &big(1_000)));
    assert_eq!(fixture.lines(1_000, DesktopEvent::Gone(set(20))), ["20 forgotten", "release big"]);
}

fn focused(mib: u64) -> [GroupMemory; 1] {
    [holder(10, mib * MIB)]
}

#[test]
fn protection_is_half_of_memory_at_most_and_follows_in_steps() {
    let mut fixture = fixture();
    assert_eq!(fixture.lines(0, sample(1_000, 0.0, &focused(300))), ["protect 10: 300 MiB"]);
    assert!(fixture.lines(1_000, sample(1_000, 0.0, &focused(340))).is_empty());
    assert_eq!(fixture.lines(2_000, sample(1_000, 0.0, &focused(360))), ["protect 10: 360 MiB"]);
    assert!(
        fixture.lines(3_000, sample(1_000, 0.0, &[])).is_empty(),
        "an omitted group keeps its protection"
    );
    assert_eq!(fixture.lines(4_000, sample(1_000, 0.0, &focused(3_000))), ["protect 10: 1600 MiB"]);
    let both = [holder(10, 3_000 * MIB), holder(20, 200 * MIB)];
    fixture.at(5_000, sample(1_000, 0.0, &both));
    let lines = fixture.lines(6_000, DesktopEvent::Keyboard(Some(set(20))));
    let expected = [
        "20 focused [20 21]: it has the keyboard focus",
        "will need 20",
        "protect 10: 1400 MiB",
        "protect 20: 200 MiB",
    ];
    assert_eq!(lines, expected, "the sum is never over its bound");
}

#[test]
fn the_bounds_hold_and_a_void_sample_is_nothing() {
    let mut fixture = fixture();
    let many: Vec<GroupMemory> =
        (100..100 + HOGS_MAX as u32 + 2).map(|pid| holder(pid, 200 * MIB)).collect();
    fixture.at(0, sample(10, 0.0, &many));
    let hogs = fixture.assigned.values().filter(|assignment| assignment.role == Role::Hog).count();
    assert_eq!((hogs, fixture.policy.dropped()), (HOGS_MAX, 2));
    let void = MemorySample { total: 0, available: 0, some_percent: f32::NAN, groups: many };
    assert!(fixture.lines(1, DesktopEvent::Memory(void)).is_empty());
}

#[test]
fn room_of_the_rest_follows_memory_and_ends_when_off() {
    let mut fixture = fixture();
    // While memory is short, each sample assigns the room again.
    for (ms, available_mib, room_mib) in
        [(0, 500, Some(300)), (1, 500, None), (2, 50, Some(-150)), (3, 50, Some(-150))]
    {
        fixture.at(ms, sample(available_mib, 0.0, &[]));
        assert_eq!(fixture.room.take().map(|more| more >> 20), room_mib, "at {ms}");
    }
    fixture.at(4, DesktopEvent::Strength(Strength::Off));
    assert_eq!(fixture.room.take(), Some(i64::MAX));
    fixture.at(5, DesktopEvent::Time);
    fixture.at(6, sample(500, 0.0, &[]));
    assert_eq!(fixture.room, None);
}

#[test]
fn off_does_nothing_about_memory() {
    let mut fixture = Fixture::new(Strength::Off);
    assert!(fixture.lines(0, sample(1, 99.0, &[holder(70, 900 * MIB)])).is_empty());
}
