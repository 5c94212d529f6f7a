// SPDX-License-Identifier: MIT OR Apache-2.0
use crate::engine::Engine;
use crate::fake::{APP, FakeMachine, LOGIN, MemoryLog, SERVICE, assert_skipped, assign, engine};
use crate::units_names::Property;
use crate::why::{Applied, Knob, SkipReason};
use tipme_policy::{Action, Backend, Identity, MemoryAction, MemoryGroup, Role, SetId};

const APPS: &str = "/cg/user.slice/user-1000.slice/user@1000.service/app.slice";
const USER: &str = "/cg/user.slice/user-1000.slice/user@1000.service";

/// An engine with its machine, and the PID of the next process.
struct UnitsFixture {
    engine: Engine<FakeMachine, MemoryLog>,
    machine: FakeMachine,
    pid: u32,
}

impl UnitsFixture {
    fn new() -> UnitsFixture {
        let machine = FakeMachine::new();
        UnitsFixture { engine: engine(&machine, Backend::Systemd), machine, pid: 10 }
    }

    fn process(&mut self, group: &str) -> Identity {
        self.pid += 10;
        let who = self.machine.fork(self.pid, None, true);
        self.machine.put_into(who, group);
        who
    }

    fn assign(&mut self, role: Role, set: Identity, members: &[Identity]) -> Applied {
        self.engine.apply(&[assign(set, role, members)])
    }

    fn group(&self, who: Identity) -> String {
        self.machine.group(who)
    }

    fn has(&self, folder: &str, property: Property) -> Option<i64> {
        self.machine.state.borrow().units.get(&(folder.to_owned(), property)).copied()
    }

    fn weight(&self, folder: &str) -> Option<i64> {
        self.has(folder, Property::CpuWeight)
    }
}

#[test]
fn only_weighed_sets_are_split_out_of_a_login() {
    let mut fixture = UnitsFixture::new();
    let [shell, term, make] = [LOGIN; 3].map(|group| fixture.process(group));
    fixture.assign(Role::Rest, make, &[make]);
    let applied = fixture.assign(Role::Focused, term, &[term]);
    assert!(applied.skipped.is_empty(), "{applied:?}");
    let scope = fixture.group(term);
    assert!(
        scope.starts_with("/cg/user.slice/user-1000.slice/tipme-30-") && scope.ends_with(".scope"),
        "{scope}"
    );
    assert_eq!((fixture.group(shell), fixture.group(make)), (LOGIN.to_owned(), LOGIN.to_owned()));
    assert_eq!((fixture.weight(&scope), fixture.weight(LOGIN)), (Some(3_000), None));
    fixture.assign(Role::Rest, term, &[term]);
    assert_eq!(
        (fixture.group(term), fixture.weight(&scope)),
        (scope.clone(), Some(100)),
        "moved once, then only weighed"
    );
    fixture.engine.apply(&[Action::Forget(SetId(term))]);
    assert_eq!((fixture.group(term), fixture.weight(&scope)), (LOGIN.to_owned(), None));
    assert!(!fixture.machine.state.borrow().groups.contains_key(&scope));
}

#[test]
fn a_login_is_never_left_empty() {
    let mut fixture = UnitsFixture::new();
    let [term, other] = [LOGIN; 2].map(|group| fixture.process(group));
    fixture.assign(Role::Core, other, &[other]);
    fixture.assign(Role::Focused, term, &[term]);
    assert_eq!((fixture.group(term), fixture.weight(LOGIN)), (LOGIN.to_owned(), Some(3_000)));
    assert_ne!(fixture.group(other), LOGIN);
}

#[test]
fn a_program_keeps_its_unit_and_its_background_job_leaves_it() {
    let mut fixture = UnitsFixture::new();
    let [term, shell, job] = [APP; 3].map(|group| fixture.process(group));
    fixture.assign(Role::Focused, term, &[term, shell, job]);
    assert_eq!(fixture.group(job), APP);
    assert_eq!(
        (fixture.weight(APP), fixture.weight(APPS), fixture.weight(USER)),
        (Some(3_000), Some(500), Some(500))
    );
    fixture.assign(Role::Focused, term, &[term, shell]);
    fixture.assign(Role::Rest, job, &[job]);
    assert!(fixture.group(job).starts_with(&format!("{APPS}/tipme-")), "{}", fixture.group(job));
    assert_eq!(
        (fixture.group(term), fixture.weight(&fixture.group(job))),
        (APP.to_owned(), Some(100))
    );
    fixture.engine.apply(&[Action::Forget(SetId(job))]);
    fixture.assign(Role::Focused, term, &[term, shell, job]);
    assert_eq!(fixture.group(job), APP, "in the foreground again");
    fixture.engine.restore();
    assert!(fixture.machine.state.borrow().units.is_empty());
}

#[test]
fn no_process_is_moved_out_of_a_service() {
    let mut fixture = UnitsFixture::new();
    let [server, other] = [SERVICE; 2].map(|group| fixture.process(group));
    let applied = fixture.assign(Role::Core, server, &[server]);
    let found = applied
        .skipped
        .iter()
        .find(|skipped| skipped.knob == Knob::Group)
        .map(|skipped| &skipped.why);
    assert_eq!(found, Some(&SkipReason::Unit("display.service".to_owned())));
    assert_eq!((fixture.group(server), fixture.weight(SERVICE)), (SERVICE.to_owned(), None));
    fixture.assign(Role::Core, other, &[other]);
    assert_eq!(fixture.weight(SERVICE), Some(500), "all in it are of the core");
}

#[test]
fn a_weight_that_somebody_has_set_stays() {
    let mut fixture = UnitsFixture::new();
    let term = fixture.process(APP);
    fixture.machine.state.borrow_mut().units.insert((APP.to_owned(), Property::CpuWeight), 250);
    let applied = fixture.assign(Role::Focused, term, &[term]);
    assert_skipped(&applied, &SkipReason::SetByOther("250".to_owned()));
    assert_eq!((fixture.weight(APP), fixture.has(APP, Property::IoWeight)), (Some(250), Some(500)));
}

#[test]
fn a_hog_is_limited_in_its_own_scope_and_goes_back_later() {
    let mut fixture = UnitsFixture::new();
    let [_, hog] = [LOGIN; 2].map(|group| fixture.process(group));
    let group = MemoryGroup::Process(hog);
    let high = Action::Memory(MemoryAction::High { group: group.clone(), bytes: 1 << 20 });
    fixture.engine.apply(std::slice::from_ref(&high));
    let scope = fixture.group(hog);
    assert_eq!(fixture.has(&scope, Property::MemoryHigh), Some(1 << 20));
    fixture.engine.apply(&[Action::Memory(MemoryAction::Relieve { group, bytes: u64::MAX })]);
    assert_eq!(fixture.group(hog), LOGIN);
    assert!(fixture.machine.state.borrow().units.is_empty());
}

#[test]
fn protection_is_carried_by_all_that_is_above() {
    let mut fixture = UnitsFixture::new();
    let [first, second] = [fixture.process(APP), fixture.process(LOGIN)];
    fixture.assign(Role::Focused, first, &[first]);
    fixture.assign(Role::Core, second, &[second]);
    for set in [first, second] {
        fixture
            .engine
            .apply(&[Action::Memory(MemoryAction::Protect { set: SetId(set), bytes: 8_192 })]);
    }
    assert_eq!(
        [APP, APPS, USER, "/cg/user.slice"].map(|folder| fixture.has(folder, Property::MemoryLow)),
        [8_192, 8_192, 8_192, 16_384].map(Some)
    );
    fixture.engine.restore();
    assert!(fixture.machine.state.borrow().units.is_empty());
}

#[test]
fn nice_values_replace_the_weights_of_an_unresponsive_systemd() {
    let mut fixture = UnitsFixture::new();
    let term = fixture.process(APP);
    fixture.machine.mute.set(true);
    let applied = fixture.assign(Role::Focused, term, &[term]);
    assert_skipped(&applied, &SkipReason::Refused(libc::ETIMEDOUT));
    assert!(
        fixture.machine.state.borrow().processes[&term]
            .threads
            .values()
            .all(|values| values[0] < 0)
    );
}

#[test]
fn a_scope_that_comes_late_is_no_seat_and_is_left_again() {
    let mut fixture = UnitsFixture::new();
    let [_, term, second] = [LOGIN; 3].map(|group| fixture.process(group));
    fixture.machine.slow.set(true);
    let applied = fixture.assign(Role::Focused, term, &[term, second]);
    assert_skipped(&applied, &SkipReason::Refused(libc::ETIMEDOUT));
    assert_eq!((fixture.group(term), applied.vanished), (LOGIN.to_owned(), 0));
    let mut late = fixture.machine.late.borrow().clone().into_iter();
    assert!(late.all(|(scope, _)| fixture.engine.ledger.knows(&scope)));
    assert!(fixture.engine.units.iter().all(|units| units.placements.is_empty()));
    fixture.machine.slow.set(false);
    fixture.machine.land();
    assert_ne!(fixture.group(term), LOGIN);
    fixture.engine.restore();
    assert_eq!([fixture.group(term), fixture.group(second)], [LOGIN; 2]);
}
