// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real processes: applied values, restored values, and exemptions. Runs as root.

mod support;

use std::os::unix::process::CommandExt;
use std::process::Stdio;
use support::{
    Fixture, Forked, Started, UNTOUCHED, assign, autogroup, identity, io_priority, kill_group,
    own_session, proc, quiet, sleep, slice, slices, values, wait_for,
};
use tipme_policy::{Action, Backend, Identity, MemoryAction, Role, SetId, Strength, knobs};
use tipme_sched::{Knob, Mechanism, MechanismError, Restored, SkipReason, processes};

const BEST_EFFORT: i64 = 2 << 13;

#[test]
fn each_role_is_set_and_taken_back() {
    let (fixture, child) = (Fixture::new(Backend::Nice), Started::sleeper());
    let usual = slice(child.who.pid);
    let (mut mechanism, _) = fixture.open();
    let applied = mechanism.apply(&[assign(Role::Focused, &[child.who])]);
    assert!(applied.skipped.is_empty() && applied.changed > 0, "{applied:?}");
    assert_eq!(values(child.who), (-10, 0, BEST_EFFORT));
    assert_eq!(slice(child.who.pid), if usual > 0 { 100_000 } else { 0 });
    mechanism.apply(&[assign(Role::Hog, &[child.who])]);
    assert_eq!(values(child.who), (0, libc::SCHED_IDLE as u32, BEST_EFFORT + 7));
    let hogs =
        knobs(Backend::Nice, Strength::Strong, Role::Hog, 0.0).slice_us.filter(|_| usual > 0);
    assert_eq!(slice(child.who.pid), hogs.map_or(usual, |slice_us| u64::from(slice_us) * 1_000));
    mechanism.apply(&[assign(Role::Focused, &[child.who])]);
    assert_eq!(
        (values(child.who).1, slice(child.who.pid)),
        (0, if usual > 0 { 100_000 } else { 0 })
    );
    mechanism.apply(&[assign(Role::Rest, &[child.who])]);
    assert_eq!(values(child.who), UNTOUCHED);
    mechanism.apply(&[assign(Role::Visible, &[child.who])]);
    assert_eq!(values(child.who).0, -4);
    assert_eq!(
        mechanism.apply(&[assign(Role::Visible, &[child.who])]).changed,
        0,
        "nothing is done twice"
    );
    mechanism.apply(&[Action::Forget(SetId(child.who))]);
    assert_eq!((values(child.who), slice(child.who.pid)), (UNTOUCHED, usual));
}

#[test]
fn it_says_what_and_why() {
    let (fixture, child) = (Fixture::new(Backend::Nice), Started::sleeper());
    let (mut mechanism, _) = fixture.open();
    mechanism.apply(&[assign(Role::Focused, &[child.who])]);
    let explanation = mechanism.explain(child.who).unwrap();
    assert_eq!(explanation.role.map(|found| found.role), Some(Role::Focused));
    let nice = explanation.knobs.iter().find(|state| state.knob == Knob::Nice).unwrap();
    assert_eq!(
        (nice.baseline.as_str(), nice.applied.as_str(), nice.present.as_deref()),
        ("0", "-10", Some("-10"))
    );
    let io = explanation.knobs.iter().find(|state| state.knob == Knob::Io).unwrap();
    assert_eq!((io.baseline.as_str(), io.applied.as_str()), ("none", "best effort 0"));
    assert!(mechanism.explain(Identity { pid: 1, start: 0 }).is_none());
}

fn nap() {
    std::thread::sleep(std::time::Duration::from_secs(600));
}

/// Returns the nice values of all threads.
fn nices(who: Identity) -> Vec<i32> {
    let threads = processes::threads(proc(), who.pid).into_iter();
    // SAFETY: the call takes numbers only.
    threads.map(|tid| unsafe { libc::getpriority(libc::PRIO_PROCESS, tid) }).collect()
}

#[test]
fn all_threads_are_set_and_those_born_later_go_back_too() {
    let fixture = Fixture::new(Backend::Nice);
    let (reader, writer) = std::io::pipe().unwrap();
    let process = Forked::new(move || {
        std::thread::spawn(nap);
        std::thread::spawn(move || {
            std::io::Read::read(&mut &reader, &mut [0]).ok();
            std::thread::spawn(nap);
            nap();
        });
    });
    let who = process.0;
    wait_for(|| (nices(who).len() == 3).then_some(()));
    let (mut mechanism, _) = fixture.open();
    mechanism.apply(&[assign(Role::Focused, &[who])]);
    assert_eq!(nices(who), [-10; 3]);
    std::io::Write::write_all(&mut &writer, b"x").unwrap();
    wait_for(|| (nices(who).len() == 4).then_some(()));
    assert_eq!(nices(who), [-10; 4], "it was inherited");
    mechanism.apply(&[assign(Role::Visible, &[who])]);
    assert_eq!(nices(who), [-4; 4]);
    mechanism.restore();
    assert_eq!(nices(who), [0; 4]);
}

#[test]
fn unlisted_children_follow_and_go_back() {
    let fixture = Fixture::new(Backend::Nice);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "read go; sleep 600 & wait"]).stdin(Stdio::piped());
    let shell = Started::new(own_session(&mut command));
    let (mut mechanism, _) = fixture.open();
    mechanism.apply(&[assign(Role::Focused, &[shell.who])]);
    std::io::Write::write_all(&mut shell.child.stdin.as_ref().unwrap(), b"go\n").unwrap();
    let child = wait_for(|| processes::descendants(proc(), shell.who.pid).first().copied());
    assert_eq!(values(child), (-10, 0, BEST_EFFORT), "it was inherited");
    mechanism.apply(&[assign(Role::Visible, &[shell.who])]);
    assert_eq!(values(child).0, -4);
    mechanism.apply(&[Action::Forget(SetId(shell.who))]);
    assert_eq!((values(shell.who), values(child)), (UNTOUCHED, UNTOUCHED));
    mechanism.apply(&[assign(Role::Focused, &[shell.who, child])]);
    assert_eq!(values(child).0, -10);
    let parent = shell.end_alone();
    mechanism.restore();
    let orphan = values(child);
    kill_group(parent);
    assert_eq!(orphan, UNTOUCHED, "its parent has gone");
}

#[test]
fn values_set_by_the_user_stay() {
    let fixture = Fixture::new(Backend::Nice);
    let mut command = sleep();
    let (niced, later) = (Started::new(&mut command), Started::sleeper());
    // SAFETY: the call takes numbers only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, niced.who.pid, 5) };
    let (mut mechanism, _) = fixture.open();
    let applied = mechanism.apply(&[assign(Role::Focused, &[later.who, niced.who])]);
    let reasons: Vec<_> =
        applied.skipped.iter().map(|skipped| (skipped.who, skipped.knob, &skipped.why)).collect();
    assert_eq!(reasons, [(niced.who, Knob::Nice, &SkipReason::SetByOther("5".into()))]);
    assert_eq!(values(niced.who), (5, 0, 0), "the other knobs stay too");
    // SAFETY: the call takes numbers only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, later.who.pid, 3) };
    let applied = mechanism.apply(&[assign(Role::Visible, &[later.who])]);
    let found =
        applied.skipped.iter().find(|skipped| skipped.who == later.who).map(|skipped| &skipped.why);
    assert_eq!(found, Some(&SkipReason::ChangedByOther("3".into())));
    let restored = mechanism.restore();
    assert_eq!((values(later.who), restored.changed_by_others), ((3, 0, 0), 1));
}

#[test]
fn a_killed_manager_leaves_nothing_changed_after_the_next_start() {
    let (fixture, child) = (Fixture::new(Backend::Autogroup), Started::leader());
    let manager = Forked::new(|| {
        let (mut mechanism, _) = fixture.open();
        mechanism.apply(&[assign(Role::Focused, &[child.who])]);
        std::mem::forget(mechanism);
    });
    assert!(
        matches!(Mechanism::open(fixture.config.clone()), Err(MechanismError::Busy { .. })),
        "the manager still runs"
    );
    drop(manager);
    assert_eq!(
        (values(child.who), autogroup(child.who.pid)),
        ((-10, 0, BEST_EFFORT), "-15".into())
    );
    let (_mechanism, restored) = fixture.open();
    assert_eq!((values(child.who), autogroup(child.who.pid)), (UNTOUCHED, "0".into()));
    assert_eq!(restored, Restored { restored: 3 + slices(), ..Restored::default() });
}

#[test]
fn a_foreign_change_after_a_kill_stays() {
    let (fixture, child) = (Fixture::new(Backend::Nice), Started::sleeper());
    let manager = Forked::new(|| {
        let (mut mechanism, _) = fixture.open();
        mechanism.apply(&[assign(Role::Focused, &[child.who])]);
        std::mem::forget(mechanism);
    });
    drop(manager);
    // SAFETY: the call takes numbers only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, child.who.pid, 7) };
    let (_mechanism, restored) = fixture.open();
    assert_eq!(values(child.who), (7, 0, 0));
    assert_eq!(
        restored,
        Restored { restored: 1 + slices(), changed_by_others: 1, ..Restored::default() }
    );
}

#[test]
fn sessions_are_weighed_and_a_shared_one_is_reported() {
    let fixture = Fixture::new(Backend::Autogroup);
    let (front, back) = (Started::leader(), Started::leader());
    let (mut mechanism, _) = fixture.open();
    let applied =
        mechanism.apply(&[assign(Role::Focused, &[front.who]), assign(Role::Rest, &[back.who])]);
    assert!(applied.skipped.is_empty(), "{applied:?}");
    assert_eq!((autogroup(front.who.pid), autogroup(back.who.pid)), ("-15".into(), "0".into()));
    mechanism.apply(&[assign(Role::Visible, &[front.who]), assign(Role::Hog, &[back.who])]);
    assert_eq!((autogroup(front.who.pid), autogroup(back.who.pid)), ("-4".into(), "19".into()));
    mechanism.restore();
    assert_eq!((autogroup(front.who.pid), autogroup(back.who.pid)), ("0".into(), "0".into()));

    let mut shell = std::process::Command::new("sh");
    let shell = Started::new(own_session(shell.args(["-c", "sleep 600 & sleep 600 & wait"])));
    let children = wait_for(|| {
        Some(processes::descendants(proc(), shell.who.pid)).filter(|found| found.len() == 2)
    });
    let actions = [assign(Role::Focused, &children[..1]), assign(Role::Rest, &children[1..])];
    let applied = mechanism.apply(&actions);
    let why = SkipReason::SharedSession { session: shell.who.pid, serves: Role::Focused };
    assert_eq!(autogroup(children[1].pid), "-15");
    assert!(
        applied.skipped.iter().any(|skipped| skipped.who == children[1] && skipped.why == why),
        "{applied:?}"
    );
}

#[test]
fn another_process_of_the_same_number_is_refused() {
    let (fixture, child) = (Fixture::new(Backend::Autogroup), Started::leader());
    let (mut mechanism, _) = fixture.open();
    let forged = Identity { start: child.who.start - 1, ..child.who };
    let applied = mechanism.apply(&[assign(Role::Focused, &[forged])]);
    assert_eq!((applied.changed, applied.vanished), (0, 1), "{applied:?}");
    assert_eq!((values(child.who), autogroup(child.who.pid)), (UNTOUCHED, "0".into()));
    let applied = mechanism.apply(&[Action::Memory(MemoryAction::Cold(forged))]);
    assert_eq!((applied.changed, applied.vanished), (0, 1));
}

#[test]
fn the_system_and_other_users_are_refused() {
    let mut fixture = Fixture::new(Backend::Nice);
    fixture.config.owner = Some(0);
    let other = Started::new(quiet(sleep().uid(65_534)));
    let own = Started::sleeper();
    let before = values(identity(1));
    let (mut mechanism, _) = fixture.open();
    let applied = mechanism.apply(&[assign(Role::Focused, &[own.who, other.who, identity(1)])]);
    for (who, why) in [(other.who, SkipReason::NotOwner(65_534)), (identity(1), SkipReason::System)]
    {
        let found = applied.skipped.iter().find(|skipped| skipped.who == who);
        assert_eq!(found.map(|skipped| &skipped.why), Some(&why));
    }
    assert_eq!(
        (values(own.who).0, values(other.who), values(identity(1))),
        (-10, UNTOUCHED, before)
    );
    let applied = mechanism.apply(&[Action::Memory(MemoryAction::PageOut(other.who))]);
    assert_eq!(applied.skipped[0].why, SkipReason::NotOwner(65_534));
}

#[test]
fn nothing_outside_of_the_tree_is_changed() {
    for backend in [Backend::Nice, Backend::Autogroup] {
        let mut shell = std::process::Command::new("sh");
        let shell = Started::new(own_session(shell.args(["-c", "sleep 600 & wait"])));
        let child = wait_for(|| processes::descendants(proc(), shell.who.pid).first().copied());
        let (outside, mut fixture) = (Started::leader(), Fixture::new(backend));
        fixture.config.under = Some(shell.who);
        let (mut mechanism, _) = fixture.open();
        let applied =
            mechanism.apply(&[assign(Role::Focused, &[child]), assign(Role::Hog, &[outside.who])]);
        assert!(applied.skipped.iter().all(|skipped| skipped.who == outside.who), "{applied:?}");
        assert!(
            applied.skipped.iter().any(|skipped| skipped.why == SkipReason::NotBelow(shell.who)),
            "{applied:?}"
        );
        assert_eq!((values(child).0, values(outside.who)), (-10, UNTOUCHED));
        assert_eq!(autogroup(outside.who.pid), "0");
        fixture.config.under = Some(Identity { start: shell.who.start + 1, ..shell.who });
        drop(mechanism);
        let (mut mechanism, _) = fixture.open();
        mechanism.apply(&[assign(Role::Focused, &[child])]);
        assert_eq!(values(child), UNTOUCHED, "the tree is another one's");
    }
}

#[test]
fn a_process_that_is_gone_is_normal() {
    let (fixture, first, second) =
        (Fixture::new(Backend::Nice), Started::sleeper(), Started::sleeper());
    let (mut mechanism, _) = fixture.open();
    let who = first.who;
    mechanism.apply(&[assign(Role::Focused, &[who, second.who])]);
    first.end_alone();
    let applied = mechanism.apply(&[assign(Role::Visible, &[who, second.who])]);
    assert_eq!((applied.vanished, applied.skipped.len()), (1, 0), "{applied:?}");
    assert_eq!(values(second.who).0, -4);
    let restored = mechanism.restore();
    assert_eq!((restored.failed, values(second.who)), (0, UNTOUCHED));
}

fn assert_refused(fixture: &Fixture, why: &str) {
    let error = Mechanism::open(fixture.config.clone()).err().map(|error| error.to_string());
    assert!(error.as_ref().is_some_and(|error| error.contains(why)), "{error:?}");
}

#[test]
fn an_unsafe_journal_is_not_followed() {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    let fixture = Fixture::new(Backend::Nice);
    std::fs::write(fixture.journal(), "").unwrap();
    std::fs::set_permissions(fixture.journal(), PermissionsExt::from_mode(0o666)).unwrap();
    assert_refused(&fixture, "others can write");
    std::fs::set_permissions(fixture.journal(), PermissionsExt::from_mode(0o600)).unwrap();
    chown(fixture.journal(), Some(65_534), None).unwrap();
    assert_refused(&fixture, "another user");
    std::fs::remove_file(fixture.journal()).unwrap();
    symlink("elsewhere", fixture.journal()).unwrap();
    assert_refused(&fixture, "cannot open the journal");
    assert!(!fixture.folder.path().join("elsewhere").exists());
}

#[test]
fn advice_about_memory_reaches_the_process() {
    let (fixture, child) = (Fixture::new(Backend::Nice), Started::sleeper());
    let (mut mechanism, _) = fixture.open();
    mechanism.apply(&[assign(Role::Focused, &[child.who])]);
    let advice = [
        MemoryAction::Cold(child.who),
        MemoryAction::PageOut(child.who),
        MemoryAction::WillNeed(SetId(child.who)),
        MemoryAction::Protect { set: SetId(child.who), bytes: 1 << 20 },
    ];
    let applied = mechanism.apply(&advice.map(Action::Memory));
    assert_eq!(applied.changed, 3, "{applied:?}");
    assert_eq!(
        applied.skipped.iter().map(|skipped| skipped.knob).collect::<Vec<_>>(),
        [Knob::MemoryLow]
    );
    assert_eq!(io_priority(child.who.pid), BEST_EFFORT, "advice changes no setting");
}
