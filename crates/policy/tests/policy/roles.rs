// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assignment of roles, and its timing.

use crate::support::{Fixture, members, process, set, shown};
use tipme_policy::{
    BUSY_MAX, CORE_MAX, DesktopEvent, Identity, MEMBERS_MAX, Member, Membership, Reason, Role,
    SETS_MAX, SetId, Strength,
};

fn keyboard(pid: u32) -> DesktopEvent {
    DesktopEvent::Keyboard(Some(set(pid)))
}

/// Returns two visible clients, 10 with a child and 20, of which 10 has the keyboard focus.
fn two() -> Fixture {
    let mut fixture = Fixture::new(Strength::Normal);
    fixture.at(0, shown(&[10, 11], true));
    fixture.at(0, shown(&[20], true));
    fixture.at(0, keyboard(10));
    fixture
}

#[test]
fn a_day_of_work() {
    let mut fixture = Fixture::new(Strength::Normal);
    assert_eq!(
        fixture.lines(0, DesktopEvent::Core(vec![process(1)])),
        ["1 core [1]: the session needs it"]
    );
    assert_eq!(
        fixture.lines(1, shown(&[10, 11], false)),
        ["10 rest [10 11]: nobody attends to it"]
    );
    assert_eq!(
        fixture.lines(2, shown(&[20], true)),
        ["20 visible [20]: one of its windows can be seen"]
    );
    assert_eq!(fixture.lines(3, keyboard(10)), ["10 focused [10 11]: it has the keyboard focus"]);
    let pointer = DesktopEvent::Pointer(Some(set(20)));
    assert_eq!(fixture.lines(4, pointer), ["20 visible [20]: the pointer is in its window"]);
    assert_eq!(fixture.lines(5, keyboard(20)), ["20 focused [20]: it has the keyboard focus"]);
    assert_eq!(fixture.next_ms(), Some(205));
    let lost = "10 recent [10 11]: it lost the keyboard focus within the last minute";
    assert_eq!(fixture.lines(205, DesktopEvent::Time), [lost]);
    assert_eq!(fixture.lines(300, DesktopEvent::Gone(set(20))), ["20 forgotten"]);
    assert_eq!(fixture.next_ms(), Some(60_005));
    assert_eq!(
        fixture.lines(60_005, DesktopEvent::Time),
        ["10 recent 0.1 [10 11]: it lost the keyboard focus 1 min ago"]
    );
}

#[test]
fn favour_comes_at_once_and_goes_later() {
    let mut fixture = two();
    assert_eq!(fixture.lines(1_000, keyboard(20)), ["20 focused [20]: it has the keyboard focus"]);
    assert_eq!((fixture.role(10), fixture.next_ms()), (Some(Role::Focused), Some(1_200)));
    assert!(fixture.lines(1_199, DesktopEvent::Time).is_empty());
    assert_eq!(
        fixture.lines(1_200, DesktopEvent::Time),
        ["10 visible [10 11]: one of its windows can be seen"]
    );
    assert_eq!(fixture.next_ms(), None);
}

#[test]
fn a_short_change_of_focus_withdraws_nothing() {
    let mut fixture = two();
    fixture.at(1_000, keyboard(20));
    assert!(fixture.lines(1_100, keyboard(10)).is_empty(), "10 still has the favour");
    assert!(fixture.lines(1_150, keyboard(20)).is_empty(), "and so has 20");
    assert!(fixture.lines(1_190, keyboard(10)).is_empty());
    assert_eq!(
        fixture.lines(1_390, DesktopEvent::Time),
        ["20 visible [20]: one of its windows can be seen"]
    );
}

#[test]
fn any_event_applies_overdue_changes() {
    let mut fixture = two();
    fixture.at(1_000, keyboard(20));
    let lines = fixture.lines(5_000, DesktopEvent::Pointer(None));
    assert_eq!(lines, ["10 visible [10 11]: one of its windows can be seen"]);
}

#[test]
fn recent_focus_fades_over_ten_minutes() {
    let mut fixture = Fixture::new(Strength::Normal);
    fixture.at(0, shown(&[10], false));
    fixture.at(0, keyboard(10));
    fixture.at(1_000, DesktopEvent::Keyboard(None));
    let mut lines = Vec::new();
    while let Some(due) = fixture.next_ms() {
        lines.extend(
            fixture.lines(due, DesktopEvent::Time).into_iter().map(|line| format!("{due} {line}")),
        );
    }
    assert_eq!(lines.len(), 11);
    assert_eq!(lines[0], "1200 10 recent [10]: it lost the keyboard focus within the last minute");
    assert_eq!(lines[9], "541000 10 recent 0.9 [10]: it lost the keyboard focus 9 min ago");
    assert_eq!(lines[10], "601000 10 rest [10]: nobody attends to it");
}

#[test]
fn a_focus_may_come_before_its_set() {
    let mut fixture = Fixture::new(Strength::Normal);
    assert!(fixture.lines(0, keyboard(10)).is_empty());
    assert_eq!(
        fixture.lines(1, shown(&[10], true)),
        ["10 focused [10]: it has the keyboard focus"]
    );
}

#[test]
fn a_set_that_is_gone_has_no_focus_when_it_comes_back() {
    let mut fixture = two();
    assert_eq!(fixture.lines(1, DesktopEvent::Gone(set(10))), ["10 forgotten"]);
    assert_eq!(fixture.lines(2, shown(&[10], false)), ["10 rest [10]: nobody attends to it"]);
}

#[test]
fn the_focused_set_of_an_absent_user_is_visible_only() {
    let mut fixture = two();
    assert!(fixture.lines(1_000, DesktopEvent::Presence(false)).is_empty());
    assert_eq!(fixture.next_ms(), Some(61_000));
    let away = "10 visible [10 11]: it has the keyboard focus, but nobody is at the desk";
    assert_eq!(fixture.lines(61_000, DesktopEvent::Time), [away]);
    assert_eq!(fixture.next_ms(), None);
    let back = ["10 focused [10 11]: it has the keyboard focus", "will need 10"];
    assert_eq!(fixture.lines(90_000, DesktopEvent::Presence(true)), back);
}

#[test]
fn a_short_absence_changes_nothing() {
    let mut fixture = two();
    fixture.at(1_000, DesktopEvent::Presence(false));
    assert!(fixture.lines(4_000, DesktopEvent::Presence(true)).is_empty());
    assert_eq!(fixture.next_ms(), None);
}

#[test]
fn a_set_long_out_of_focus_is_prefetched() {
    let mut fixture = two();
    assert!(fixture.lines(4_999, keyboard(20)).iter().all(|line| !line.starts_with("will need")));
    fixture.at(6_000, DesktopEvent::Time);
    assert_eq!(fixture.lines(9_999, keyboard(10)).last().unwrap(), "will need 10");
    assert!(fixture.lines(12_000, keyboard(20)).iter().all(|line| !line.starts_with("will need")));
}

#[test]
fn a_core_process_stands_alone() {
    let mut fixture = Fixture::new(Strength::Normal);
    fixture.at(0, shown(&[10, 11], true));
    fixture.at(0, shown(&[20, 10, 21], true));
    let core = fixture.lines(1, DesktopEvent::Core(vec![process(10)]));
    assert_eq!(
        core,
        ["10 core [10]: the session needs it"],
        "children of the window manager are not of the core"
    );
    assert_eq!((fixture.role(11), fixture.role(21)), (None, Some(Role::Visible)));
    assert!(fixture.lines(2, keyboard(10)).is_empty());
    let plain = fixture.lines(3, DesktopEvent::Core(vec![]));
    assert_eq!(
        plain,
        ["10 focused [10 11]: it has the keyboard focus"],
        "membership of the core ends at once"
    );
}

#[test]
fn a_client_is_judged_by_its_own_window() {
    let mut fixture = Fixture::new(Strength::Normal);
    fixture.at(0, shown(&[10, 11, 20], false));
    fixture.at(0, keyboard(10));
    assert_eq!(fixture.role(20), Some(Role::Focused), "started from the terminal");
    let own = fixture.lines(1, shown(&[20], false));
    let expected =
        ["10 focused [10 11]: it has the keyboard focus", "20 rest [20]: nobody attends to it"];
    assert_eq!(own, expected);
    assert_eq!(fixture.lines(2, DesktopEvent::Gone(set(20)))[0], "20 forgotten");
    assert_eq!(fixture.role(20), Some(Role::Focused));
}

#[test]
fn a_shared_process_goes_with_the_most_favoured() {
    let mut fixture = Fixture::new(Strength::Normal);
    fixture.at(0, shown(&[10, 30], false));
    fixture.at(0, shown(&[20, 30], true));
    assert_eq!(fixture.assigned[&set(20)].members.len(), 2);
    let moved = fixture.lines(1, keyboard(10));
    let expected = [
        "20 visible [20]: one of its windows can be seen",
        "10 focused [10 30]: it has the keyboard focus",
    ];
    assert_eq!(moved, expected, "the set that loses the process comes first");
}

fn busy(pids: &[u32]) -> DesktopEvent {
    DesktopEvent::Busy(pids.iter().copied().map(process).collect())
}

#[test]
fn busy_processes_without_a_window_are_of_the_rest() {
    let mut fixture = two();
    fixture.at(1, shown(&[10, 11], true));
    let first = fixture.lines(2, busy(&[11, 30, 31]));
    let expected = [
        "30 rest [30]: it computes, and nobody attends to it",
        "31 rest [31]: it computes, and nobody attends to it",
    ];
    assert_eq!(first, expected, "what belongs to a window is judged by the window");
    assert_eq!(fixture.lines(3, busy(&[11, 31])), ["30 forgotten"]);
    assert_eq!(
        fixture.lines(4, shown(&[20, 31], true))[0],
        "31 forgotten",
        "the window takes it over"
    );
    assert!(fixture.lines(5, busy(&[31])).is_empty());
    assert_eq!(
        fixture.lines(6, DesktopEvent::Core(vec![process(31)])).last().unwrap(),
        "31 core [31]: the session needs it"
    );
    assert!(fixture.lines(7, busy(&[])).is_empty());
}

#[test]
fn another_process_with_the_same_id_is_another() {
    let mut fixture = Fixture::new(Strength::Normal);
    let reused = Identity { pid: 10, start: 5_000 };
    fixture.at(0, shown(&[10], true));
    let again = DesktopEvent::Set { id: SetId(reused), members: vec![], visible: false };
    fixture.at(1, again);
    assert_eq!(fixture.role(10), Some(Role::Visible), "nobody has listed the new one");
    let member = Member { who: reused, because: Membership::Client };
    fixture.at(2, DesktopEvent::Set { id: SetId(reused), members: vec![member], visible: false });
    assert_eq!(fixture.role(10), Some(Role::Rest), "the later one has the id now");
}

#[test]
fn events_without_a_change_cause_no_actions() {
    let mut fixture = two();
    let reordered = DesktopEvent::Set {
        id: set(10),
        members: members(&[10, 11]).into_iter().rev().collect(),
        visible: true,
    };
    let events = [
        reordered,
        keyboard(10),
        DesktopEvent::Pointer(None),
        DesktopEvent::Presence(true),
        DesktopEvent::Time,
    ];
    for event in events.into_iter().chain([
        DesktopEvent::Gone(set(99)),
        DesktopEvent::Core(vec![]),
        DesktopEvent::Strength(Strength::Normal),
    ]) {
        assert!(fixture.lines(1, event.clone()).is_empty(), "{event:?}");
    }
}

#[test]
fn off_takes_everything_back_and_on_brings_it_again() {
    let mut fixture = two();
    assert_eq!(
        fixture.lines(1, DesktopEvent::Strength(Strength::Off)),
        ["10 forgotten", "20 forgotten"]
    );
    assert!(fixture.lines(2, keyboard(20)).is_empty());
    assert_eq!((fixture.role(10), fixture.next_ms()), (None, None));
    let again = [
        "20 focused [20]: it has the keyboard focus",
        "10 visible [10 11]: one of its windows can be seen",
    ];
    assert_eq!(fixture.lines(1_000, DesktopEvent::Strength(Strength::Gentle)), again);
    assert!(
        fixture.lines(1_001, DesktopEvent::Strength(Strength::Strong)).is_empty(),
        "the roles are the same"
    );
}

#[test]
fn input_beyond_the_bounds_is_dropped_and_counted() {
    let mut fixture = Fixture::new(Strength::Normal);
    let many: Vec<u32> = (1..=MEMBERS_MAX as u32 + 3).collect();
    fixture.at(0, shown(&many, true));
    assert_eq!(
        (fixture.assigned[&set(1)].members.len(), fixture.policy.dropped()),
        (MEMBERS_MAX, 3)
    );
    let pids = 1_000..1_000 + SETS_MAX as u32 + 1;
    pids.for_each(|pid| drop(fixture.at(0, shown(&[pid], true))));
    assert_eq!((fixture.assigned.len(), fixture.policy.dropped()), (SETS_MAX, 5));
    fixture.at(0, DesktopEvent::Gone(set(1_000)));
    fixture.at(0, shown(&[7_000], true));
    assert_eq!(
        (fixture.role(7_000), fixture.policy.dropped()),
        (Some(Role::Visible), 5),
        "there is room again"
    );
    fixture.at(0, DesktopEvent::Core((8_000..8_000 + CORE_MAX as u32 + 2).map(process).collect()));
    let core = fixture.assigned.values().filter(|assignment| assignment.role == Role::Core).count();
    assert_eq!((core, fixture.policy.dropped()), (CORE_MAX, 7));
    fixture.at(0, DesktopEvent::Busy((9_000..9_000 + BUSY_MAX as u32 + 4).map(process).collect()));
    let busy =
        fixture.assigned.values().filter(|assignment| assignment.reason == Reason::Busy).count();
    assert_eq!((busy, fixture.policy.dropped()), (BUSY_MAX, 11));
}

#[test]
fn process_zero_is_nobody() {
    let mut fixture = Fixture::new(Strength::Normal);
    let nobody = Identity { pid: 0, start: 0 };
    assert!(fixture.lines(0, DesktopEvent::Core(vec![nobody])).is_empty());
    assert!(
        fixture
            .lines(0, DesktopEvent::Set { id: SetId(nobody), members: vec![], visible: true })
            .is_empty()
    );
    fixture.at(0, shown(&[10, 0], true));
    assert_eq!(fixture.assigned[&set(10)].members.len(), 1);
}

#[test]
fn time_that_goes_back_stands_still() {
    let mut fixture = two();
    fixture.at(10_000, keyboard(20));
    assert!(fixture.lines(5, DesktopEvent::Time).is_empty());
    assert_eq!(fixture.next_ms(), Some(10_200));
}
