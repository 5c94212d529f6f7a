// SPDX-License-Identifier: MIT OR Apache-2.0
//! Windows, their owners and the resulting events, on a simulated `/proc`.

use super::*;
use std::fs;
use tipme_desktop::PidSource;

const USER: u32 = 1000;

struct DesktopFixture {
    root: tempfile::TempDir,
    desktop: DesktopState,
}

impl DesktopFixture {
    fn new(server_knows: bool) -> DesktopFixture {
        let root = tempfile::tempdir().expect("the test made it");
        let desktop = DesktopState::new(root.path().to_owned(), USER, server_knows, None);
        DesktopFixture { root, desktop }
    }

    /// Adds a process without a terminal.
    fn add(&self, pid: u32, parent: u32, start: u64, uid: u32) {
        self.add_on_terminal(pid, parent, start, uid, (1, 1, -1));
    }

    fn add_on_terminal(&self, pid: u32, parent: u32, start: u64, uid: u32, place: (u32, u32, i32)) {
        let dir = self.root.path().join(pid.to_string());
        fs::create_dir_all(dir.join(format!("task/{pid}"))).expect("the test made it");
        let (group, session, tpgid) = place;
        let stat = format!(
            "{pid} (x) S {parent} {group} {session} 0 {tpgid} 0 0 0 0 0 1 1 0 0 20 0 1 0 {start} \
             1 1 1 1 1 1 1 1 1 1 1 1 1 0 0 0 17 0 0 0\n"
        );
        fs::write(dir.join("stat"), stat).expect("the test made it");
        fs::write(dir.join("status"), format!("Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n"))
            .expect("the test made it");
    }

    fn remove(&self, pid: u32) {
        fs::remove_dir_all(self.root.path().join(pid.to_string())).expect("the test made it");
    }

    fn show(
        &mut self,
        window: u32,
        pid: u32,
        how: PidSource,
        helpers: &[u32],
    ) -> Vec<DesktopEvent> {
        let owner = Some(WindowOwner { pid, how });
        let state =
            WindowState { window, owner, helpers: helpers.to_vec(), visible: true, iconic: false };
        self.desktop.take(vec![AttentionChange::Window(state)], Nanos(0))
    }

    fn members(&self, pid: u32, start: u64) -> Vec<u32> {
        let group = self.desktop.groups.get(&Identity { pid, start });
        group
            .into_iter()
            .flat_map(|group| group.sets.values().flatten())
            .map(|member| member.who.pid)
            .collect()
    }
}

fn set(pid: u32, start: u64) -> SetId {
    SetId(Identity { pid, start })
}

fn reported(events: &[DesktopEvent]) -> Vec<(SetId, Vec<u32>)> {
    let sets = events.iter().filter_map(|event| match event {
        DesktopEvent::Set { id, members, .. } => {
            Some((*id, members.iter().map(|member| member.who.pid).collect()))
        }
        _ => None,
    });
    sets.collect()
}

#[test]
fn a_window_makes_a_set_and_the_focus_follows_its_window() {
    let mut world = DesktopFixture::new(true);
    world.add(10, 1, 5, USER);
    world.add(11, 10, 6, USER);
    assert_eq!(reported(&world.show(7, 10, PidSource::Server, &[])), [(set(10, 5), vec![10, 11])]);
    let events = world.desktop.take(vec![AttentionChange::Keyboard(Some(7))], Nanos(0));
    assert!(matches!(events[..], [DesktopEvent::Keyboard(Some(id))] if id == set(10, 5)));
    assert!(world.desktop.take(vec![AttentionChange::Keyboard(Some(7))], Nanos(0)).is_empty());
    let events = world
        .desktop
        .take(vec![AttentionChange::Keyboard(None), AttentionChange::Gone(7)], Nanos(0));
    let expected = [DesktopEvent::Gone(set(10, 5)), DesktopEvent::Keyboard(None)];
    assert_eq!(events, expected);
}

#[test]
fn a_window_of_another_user_is_nobodys() {
    let mut world = DesktopFixture::new(true);
    world.add(10, 1, 5, 4711);
    assert!(world.show(7, 10, PidSource::Server, &[]).is_empty());
    assert_eq!(world.desktop.refusal(10), Some(ClaimRefusal::OtherUser(4711)));
    assert!(world.desktop.take(vec![AttentionChange::Keyboard(Some(7))], Nanos(0)).is_empty());
    assert_eq!(world.desktop.counts.disbelieved, 1);
}

#[test]
fn a_windows_claim_counts_only_if_the_server_knows_no_client() {
    let mut world = DesktopFixture::new(true);
    world.add(10, 1, 5, USER);
    assert!(world.show(7, 10, PidSource::Property, &[]).is_empty());
    assert_eq!(world.desktop.refusal(10), Some(ClaimRefusal::OwnWords));
    let mut world = DesktopFixture::new(false);
    world.add(10, 1, 5, USER);
    world.add(20, 1, 5, 4711);
    assert_eq!(reported(&world.show(7, 10, PidSource::Property, &[])), [(set(10, 5), vec![10])]);
    assert!(world.show(8, 20, PidSource::Property, &[]).is_empty());
    assert_eq!(world.desktop.refusal(20), Some(ClaimRefusal::OtherUser(4711)));
    // Another window claims a process that is a client already.
    assert!(world.show(9, 10, PidSource::Property, &[]).is_empty());
    assert_eq!(world.desktop.counts.disbelieved, 2);
}

#[test]
fn a_number_that_is_used_again_is_another_process() {
    let mut world = DesktopFixture::new(true);
    world.add(10, 1, 5, USER);
    world.show(7, 10, PidSource::Server, &[]);
    world.remove(10);
    world.add(10, 1, 99, USER);
    // The same window, a second one over the same connection, and a look all keep the earlier
    // process.
    assert!(reported(&world.show(7, 10, PidSource::Server, &[])).is_empty());
    assert!(reported(&world.show(8, 10, PidSource::Server, &[])).is_empty());
    let events = world.desktop.refresh(set(10, 5), Nanos(0));
    assert!(matches!(events[..], [DesktopEvent::Gone(gone)] if gone == set(10, 5)), "{events:?}");
    assert!(world.members(10, 99).is_empty());
}

#[test]
fn helpers_are_believed_if_they_live_and_belong_to_the_user() {
    let mut world = DesktopFixture::new(true);
    for (pid, uid) in [(10, USER), (20, USER), (30, 4711)] {
        world.add(pid, 1, 5, uid);
    }
    assert_eq!(
        reported(&world.show(7, 10, PidSource::Server, &[20, 30, 40])),
        [(set(10, 5), vec![10, 20])]
    );
    assert_eq!(world.desktop.place(20), Some((set(10, 5), Membership::Property)));
    assert_eq!(world.desktop.counts.disbelieved, 2);
    // The helper ends and its PID is reused: the window listed another process.
    world.remove(20);
    world.add(20, 1, 77, USER);
    world.show(7, 10, PidSource::Server, &[20, 30, 40]);
    world.desktop.refresh(set(10, 5), Nanos(0));
    assert_eq!(world.members(10, 5), [10]);
}

#[test]
fn a_million_helpers_are_cut_and_counted() {
    let mut world = DesktopFixture::new(true);
    world.add(10, 1, 5, USER);
    let many: Vec<u32> = (1_000..1_001_000).collect();
    world.show(7, 10, PidSource::Server, &many);
    assert_eq!(world.desktop.counts.dropped, 1_000_000 - HELPERS_MAX as u64);
    assert_eq!(world.members(10, 5), [10]);
}

#[test]
fn windows_are_bounded() {
    let mut world = DesktopFixture::new(true);
    world.add(10, 1, 5, USER);
    for window in 0..WINDOWS_MAX as u32 + 3 {
        world.show(window + 1, 10, PidSource::Server, &[]);
    }
    assert_eq!((world.desktop.windows.len(), world.desktop.counts.dropped), (WINDOWS_MAX, 3));
}

#[test]
fn a_job_that_comes_to_the_foreground_leaves_its_old_set_first() {
    let mut world = DesktopFixture::new(true);
    world.add(10, 1, 5, USER);
    world.add_on_terminal(11, 10, 5, USER, (11, 11, 11));
    world.add_on_terminal(20, 11, 5, USER, (20, 11, 11));
    let first = reported(&world.show(7, 10, PidSource::Server, &[]));
    assert_eq!(first, [(set(10, 5), vec![10, 11]), (set(20, 5), vec![20])]);
    assert!(world.desktop.is_job(set(20, 5)) && !world.desktop.is_job(set(10, 5)));
    assert!(!world.desktop.has_switched_job(set(10, 5)));
    world.add_on_terminal(11, 10, 5, USER, (11, 11, 20));
    world.add_on_terminal(20, 11, 5, USER, (20, 11, 20));
    assert!(world.desktop.has_switched_job(set(10, 5)));
    let events = world.desktop.refresh(set(10, 5), Nanos(0));
    assert!(matches!(events[0], DesktopEvent::Gone(gone) if gone == set(20, 5)), "{events:?}");
    assert_eq!(
        reported(&events).last().expect("the test made it"),
        &(set(10, 5), vec![10, 11, 20])
    );
    assert_eq!(world.desktop.refresh(set(10, 5), Nanos(0)).len(), 0);
}

#[test]
fn processes_of_the_session_make_no_set() {
    let mut world = DesktopFixture::new(true);
    world.add(10, 1, 5, USER);
    world.show(7, 10, PidSource::Server, &[]);
    let events = world.desktop.set_core(&[Identity { pid: 10, start: 5 }]);
    assert!(matches!(events[..], [DesktopEvent::Gone(gone)] if gone == set(10, 5)));
    assert!(world.show(8, 10, PidSource::Server, &[]).is_empty());
}

#[test]
fn an_icon_is_not_visible() {
    let mut world = DesktopFixture::new(true);
    world.add(10, 1, 5, USER);
    world.show(7, 10, PidSource::Server, &[]);
    let owner = Some(WindowOwner { pid: 10, how: PidSource::Server });
    let state = WindowState { window: 7, owner, helpers: vec![], visible: true, iconic: true };
    let events = world.desktop.take(vec![AttentionChange::Window(state)], Nanos(0));
    let [DesktopEvent::Set { visible: false, members, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(members.len(), 1);
}

#[test]
fn looks_share_one_budget_and_skipped_ones_are_counted() {
    let mut world = DesktopFixture::new(true);
    for pid in 10..60 {
        world.add(pid, 1, 5, USER);
        world.show(pid, pid, PidSource::Server, &[]);
    }
    let now = Nanos::from_secs(1_000);
    world.desktop.budget.spend(Nanos::from_millis(2), now);
    world.desktop.refresh_stalest(now);
    assert_eq!(
        (
            world.desktop.looks_left(),
            world.desktop.groups.values().all(|group| group.looked == Nanos(0))
        ),
        (1, true)
    );
    let paid = Nanos::from_secs(1_002);
    world.desktop.refresh_stalest(paid);
    assert_eq!(world.desktop.groups.values().filter(|group| group.looked == paid).count(), 1);
    // A change of focus has credit, and a new set is looked at in any case.
    world.desktop.budget.spend(Nanos::from_millis(9), paid);
    world.desktop.refresh(set(10, 5), paid);
    world.desktop.budget.spend(Nanos::from_millis(9), paid);
    let before = world.desktop.looks_left();
    world.desktop.refresh(set(11, 5), paid);
    assert_eq!(world.desktop.looks_left(), before + 1);
    world.add(70, 1, 5, USER);
    assert_eq!(reported(&world.show(70, 70, PidSource::Server, &[])), [(set(70, 5), vec![70])]);
}

#[test]
fn a_set_is_settled_after_two_looks_without_a_fork() {
    let mut world = DesktopFixture::new(true);
    world.add(10, 1, 5, USER);
    world.show(7, 10, PidSource::Server, &[]);
    let group = world.desktop.groups.values_mut().next().expect("the test made it");
    for (last_pid, now, settled) in [
        ([Some(5), Some(5)], Some(5), true),
        ([Some(5), Some(5)], Some(6), false),
        ([Some(6), Some(5)], Some(6), false),
        ([Some(6), None], Some(6), false),
        ([None, None], None, false),
    ] {
        group.last_pid = last_pid;
        assert_eq!(group.is_settled(now, Nanos(0)), settled, "{last_pid:?} {now:?}");
    }
    (group.last_pid, group.ask_again) = ([Some(5); 2], Some(Nanos(7)));
    let settled = [6, 7].map(|now| group.is_settled(Some(5), Nanos(now)));
    assert_eq!(settled, [true, false], "somebody is to be asked for again");
}

#[test]
fn a_busy_process_comes_into_the_set_of_the_client_above_it() {
    let mut world = DesktopFixture::new(true);
    world.add(10, 1, 5, USER);
    world.show(7, 10, PidSource::Server, &[]);
    world.add(11, 10, 6, USER);
    world.add(12, 11, 7, USER);
    world.add(20, 1, 8, USER);
    let [child, other] = [set(12, 7).0, set(20, 8).0];
    // Nothing is affordable except on credit.
    world.desktop.budget.spend(Nanos::from_millis(5), Nanos(0));
    assert_eq!(
        reported(&world.desktop.place_unplaced(&[child, other], Nanos(0))),
        [(set(10, 5), vec![10, 11, 12])]
    );
    assert!(world.desktop.place_unplaced(&[child, other], Nanos(0)).is_empty());
    assert_eq!(world.desktop.unplaced, BTreeSet::from([other]));
    // A reused PID belongs to no set.
    world.add(13, 10, 9, USER);
    assert!(world.desktop.place_unplaced(&[set(13, 8).0], Nanos(0)).is_empty());
    world.add(14, 10, 9, USER);
    world.desktop.budget.spend(Nanos::from_secs(60), Nanos(0));
    let young = set(14, 9).0;
    assert!(world.desktop.place_unplaced(&[young], Nanos(0)).is_empty(), "not without credit");
    let later = world.desktop.place_unplaced(&[young], Nanos::from_secs(100_000));
    assert!(reported(&later).iter().any(|(_, members)| members.contains(&14)), "{later:?}");
}

#[test]
fn a_round_goes_over_all_clients_while_processes_are_born() {
    let mut world = DesktopFixture::new(true);
    let clients = [(10, 5), (20, 6), (30, 7)];
    for (pid, start) in clients {
        world.add(pid, 1, start, USER);
        world.show(pid, pid, PidSource::Server, &[]);
    }
    world.desktop.take(vec![AttentionChange::Keyboard(Some(10))], Nanos(0));
    let mut seen = BTreeSet::new();
    for second in 1..=6_u32 {
        let now = Nanos::from_secs(2_000 * u64::from(second));
        for (pid, _) in clients {
            world.add(100 * second + pid, pid, 50, USER);
        }
        world.desktop.follow_jobs(set(10, 5), now);
        seen.extend(reported(&world.desktop.refresh_stalest(now)).into_iter().map(|(set, _)| set));
    }
    assert_eq!(seen, clients.into_iter().map(|(pid, start)| set(pid, start)).collect());
}
